# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Plants faults into copies of the RTL, one at a time. A named bench must fail for each.

Usage: faults.py [--only TEXT]. `make -C hw formal-faults` plants the faults that proofs must find.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import hostile
import lockstep
import twin
from simulation import BUILD, RTL, Configuration, SimulationError, build, in_parallel, run, stop


class Test(NamedTuple):
    """A bench and its plusargs."""

    configuration: Configuration
    arguments: dict[str, int]


class Fault(NamedTuple):
    """A text of a source, the wrong text in its place, and the test that must fail."""

    name: str
    source: str
    right: str
    wrong: str
    test: str


RANDOM = {"accesses": 400, "crowding": 60, "stalls": 30}


def bad_input(raw: bool, mode: int, status: int) -> Test:
    """A run of the hostile bench in which the controller must close."""
    return Test(hostile.configuration(raw, 2, 4, 4),
                {"mode": mode, "status": status, "expect": hostile.MUST_CLOSE})


TESTS = {
    "lockstep-raw": Test(lockstep.configuration(True, 2, 2, 2, period=3, capacity=10), RANDOM),
    "lockstep-path": Test(lockstep.configuration(False, 2, 2, 2, capacity=10), RANDOM),
    "lockstep-raw-512": Test(
        lockstep.configuration(True, 2, 2, 2, period=2, capacity=10, block=512), RANDOM),
    "twin-raw": Test(twin.configuration(True, 4, 2, 64), {"accesses": 300}),
    "twin-mirror": Test(twin.configuration(True, 3, 2, 1, blocks=12),
                        {"accesses": 300, "mirror": 1, "stalls": 75}),
    # Here a path takes longer than the visit of the stash.
    "twin-path": Test(twin.configuration(False, 3, 1, 64, block=512, cores=4), {"accesses": 100}),
    "hostile-memory-error": bad_input(True, 9, hostile.MEMORY_ERROR),
    "hostile-address": bad_input(True, 10, hostile.BAD_COMMAND),
    "hostile-new-leaf": bad_input(True, 12, hostile.BAD_COMMAND),
    "hostile-append-twice": bad_input(True, 13, hostile.BAD_COMMAND),
    "hostile-period": bad_input(True, 20, hostile.BAD_START),
    "hostile-second-start": bad_input(True, 22, hostile.BAD_START),
    "hostile-restart": bad_input(False, 23, hostile.CORRUPT),
    "hostile-write-counter": bad_input(True, 30, hostile.EXHAUSTED),
    "hostile-eviction-counter": bad_input(True, 31, hostile.EXHAUSTED),
    "hostile-forged-address": bad_input(True, 15, hostile.CORRUPT),
    "hostile-forged-path": bad_input(True, 16, hostile.CORRUPT),
    "hostile-forged-leaf": bad_input(True, 17, hostile.CORRUPT),
    "hostile-forged-copy": bad_input(True, 18, hostile.CORRUPT),
    "hostile-garbage": Test(hostile.configuration(True, 2, 4, 4),
                            {"mode": 8, "percent": 50, "expect": hostile.MUST_CLOSE, "seed": 4,
                             "early_reads": 0, "hurries": 1}),
    "hostile-good": Test(hostile.configuration(True, 2, 4, 4),
                         {"expect": hostile.MUST_STAY_OPEN}),
    "hostile-headers": Test(hostile.configuration(True, 2, 4, 4),
                            {"mode": 6, "percent": 50, "status": hostile.CORRUPT,
                             "expect": hostile.MUST_CLOSE}),
    "hostile-one-leaf": Test(hostile.configuration(True, 4, 1, 1),
                             {"mode": 14, "status": hostile.STASH_FULL,
                              "watchdog": hostile.WATCHDOG, "expect": hostile.MUST_CLOSE}),
    "hostile-memory-error-narrow": Test(
        hostile.configuration(True, 4, 1, 1),
        {"mode": 9, "status": hostile.MEMORY_ERROR, "expect": hostile.MUST_CLOSE, "seed": 10}),
    # A small configuration of the short table that has background evictions.
    "lockstep-path-full": Test(
        lockstep.configuration(False, 3, 1, 3, period=4, capacity=12, cores=4), RANDOM),
    "lockstep-path-long-visit": Test(
        lockstep.configuration(False, 2, 4, 100, capacity=20, cores=4), {"accesses": 100}),
    "lockstep-path-512": Test(
        lockstep.configuration(False, 2, 2, 2, capacity=10, block=512), RANDOM),
    "lockstep-raw-appends": Test(
        lockstep.configuration(True, 2, 2, 2, period=3, capacity=10),
        RANDOM | {"accesses": 2000, "appends": 40}),
    "lockstep-raw-early": Test(lockstep.configuration(True, 3, 2, 2, period=1, capacity=12),
                               RANDOM | {"stalls": 75, "early_reads": 1}),
    "lockstep-raw-taken": Test(lockstep.configuration(True, 2, 2, 2, period=3, capacity=10),
                               {"accesses": 200, "warm": 100}),
}

FAULTS = [
    Fault("Algorithm 1, line 13, as an OR", "push_to_leaf",
          "{path_leaf_q ^ leaf_i, 1'b0}", "{path_leaf_q | leaf_i, 1'b0}", "lockstep-raw"),
    Fault("a bucket is full above Z", "push_to_leaf",
          "full[i] = occupied_q[i] == IndexWidth'(BucketSlots);",
          "full[i] = occupied_q[i] > IndexWidth'(BucketSlots);", "lockstep-raw"),
    Fault("the shallowest bucket instead of the deepest", "push_to_leaf",
          "if (open[i]) begin",
          "if (open[i] && (open & ((Levels'(1) << i) - Levels'(1))) == '0) begin",
          "lockstep-raw"),
    Fault("Occupied is not reset", "push_to_leaf",
          "if (start_i) begin\n          occupied_q[i] <= '0;",
          "if (1'b0) begin\n          occupied_q[i] <= '0;", "lockstep-raw"),
    Fault("the count of accesses is not reset", "oram_backend",
          "since_q <= due ? '0 : since_q + PeriodWidth'(1);",
          "since_q <= since_q + PeriodWidth'(1);", "lockstep-raw"),
    Fault("the header keeps the block that was taken", "path_reader",
          "if (hits[slot] || !was_written) begin", "if (!was_written) begin", "lockstep-raw"),
    Fault("the header is not rewritten", "path_writer",
          "sealing_headers_q ? HeaderStrobe : '1", "sealing_headers_q ? '0 : '1", "lockstep-raw"),
    Fault("the header's strobes leave out the address table", "path_writer",
          "129'd1 << (LeavesAt / 8)", "129'd1 << (AddressesAt / 8)", "lockstep-raw"),
    Fault("the eviction is skipped when the stash is empty", "oram_backend",
          "since_q + PeriodWidth'(1) == period_q;",
          "since_q + PeriodWidth'(1) == period_q && count != '0;", "lockstep-raw"),
    Fault("IV2 is the counter in memory plus 1", "mask_scheduler",
          "request_of(writes_q, encode_bucket",
          "request_of(arrival_counter_i + 64'd1, encode_bucket",
          "lockstep-raw"),
    Fault("IV2 is not incremented", "mask_scheduler",
          "writes_q <= writes_q + 64'd1;", "writes_q <= 64'd1;", "lockstep-path"),
    Fault("IV1 of a write equals IV1 of the read", "mask_scheduler",
          "request_of(body_evictions + 64'(for_write_q)", "request_of(body_evictions",
          "lockstep-raw"),
    Fault("a body mask is used twice", "path_writer",
          "assign body_ready_o = seal && needs_body;",
          "assign body_ready_o = seal && needs_body && !sealing_header_q;", "lockstep-raw"),
    Fault("a mask of Path ORAM is used twice", "path_writer",
          "assign encode_ready_o = seal && needs_encode;",
          "assign encode_ready_o = seal && needs_encode && !(sealing_header_q && !Raw);",
          "lockstep-path"),
    Fault("the body mask opens the header", "path_reader",
          "mask[AddressesAt +: AddressTableBits] = decode_mask_i[AddressTableBits-1:0];",
          "mask[AddressesAt +: AddressTableBits] = body_mask_i[AddressTableBits-1:0];",
          "lockstep-raw"),
    Fault("the mask of slot 0 opens the wanted block", "path_reader",
          "found_slot_o <= SlotWidth'(slot);", "found_slot_o <= '0;", "lockstep-raw"),
    Fault("a block in the stash keeps its old leaf", "placer",
          "entering.leaf = wanted_leaf_i;", "entering.leaf = visited.leaf;", "lockstep-raw"),
    Fault("a block on the path keeps its old leaf", "path_reader",
          "is_wanted ? wanted_leaf_i : entry.leaf", "entry.leaf", "lockstep-path"),
    Fault("a removed block stays in the stash", "placer",
          "!(is_wanted && wanted_remove_i)", "1'b1", "lockstep-raw"),
    Fault("a removed block keeps its slot", "block_server",
          "assign free_give_o = state_q == Finish && found_q && op_q == OpReadRemove;",
          "assign free_give_o = 1'b0;", "lockstep-raw"),
    Fault("slots of dummies are freed", "path_writer",
          "block_last && bucket_q[slot_q].real_block;", "block_last;", "lockstep-raw"),
    Fault("a slot is taken with the last beat", "path_reader",
          "assign free_take_o = keeps && block_first;", "assign free_take_o = keeps && block_last;",
          "lockstep-raw-512"),
    Fault("blocks are visited from the youngest on", "placer",
          "head_q <= next(head_q);", "head_q <= head_q;", "lockstep-raw"),
    Fault("the bank of the plan is not toggled", "placer",
          "bank_q <= !bank_q;", "bank_q <= bank_q;", "lockstep-raw"),
    Fault("dummies are not zeros", "path_writer",
          "plain = sealing_real_q ? load_data_i : '0;", "plain = load_data_i;", "lockstep-raw"),
    Fault("the stash may hold C - 1 blocks", "oram_backend",
          "assign over_bound = count > ", "assign over_bound = count >= ", "lockstep-raw"),
    Fault("dummy accesses ignore the entropy port", "oram_backend",
          "op_leaf = Raw ? evict_leaf : entropy_i;", "op_leaf = Raw ? evict_leaf : '0;",
          "lockstep-path-full"),
    Fault("a memory command changes while it waits", "command_issuer",
          "assign go = active_q && (!cmd_valid_o || cmd_ready_i);", "assign go = active_q;",
          "lockstep-path"),
    Fault("the response is early if the block is in the stash", "oram_backend",
          "(opened_q || op_q == OpAppend)", "(opened_q || stash_found || op_q == OpAppend)",
          "twin-path"),
    Fault("the visit ends with the last entry", "placer",
          "if (scan_q == ScanWidth'(1)) begin", "if (to_visit_q <= CountWidth'(1)) begin",
          "twin-raw"),
    Fault("an absent block is not loaded", "block_server",
          "state_q <= fail_i ? Finish : Load;",
          "state_q <= fail_i ? Finish : found ? Load : Exchange;",
          "twin-path"),
    Fault("beats of dummies wait for no mask", "path_writer",
          "(encode_valid_i || !needs_encode)",
          "(encode_valid_i || !needs_encode || !sealing_real_q)", "lockstep-path-512"),
    Fault("memory errors are ignored", "path_reader",
          "assign memory_error_o = in_accept && rdata_error_i;", "assign memory_error_o = 1'b0;",
          "hostile-memory-error"),
    Fault("a closed controller starts operations", "oram_backend",
          "assign cmd_starts = cmd_good && !closed_o &&", "assign cmd_starts = cmd_good &&",
          "hostile-memory-error"),
    Fault("a second command comes after an append", "oram_backend",
          "session_q && op_q != OpAppend && !due_q;", "session_q && !due_q;",
          "lockstep-raw-appends"),
    Fault("a second command comes before an EO access", "oram_backend",
          "session_q && op_q != OpAppend && !due_q;", "session_q && op_q != OpAppend;",
          "lockstep-raw"),
    Fault("a second path is opened before the first command is answered", "path_reader",
          "&& (has_wanted_q || !op_user);", ";", "lockstep-raw-512"),
    Fault("the second command begins as the first", "oram_backend",
          "assign command = second_waits ? second_q :", "assign command =", "lockstep-raw"),
    Fault("a closed controller starts the EO access that was due", "oram_backend",
          "assign evict_follow = evict_pending_q && !closed_o &&",
          "assign evict_follow = evict_pending_q &&", "hostile-garbage"),
    Fault("a closed controller evicts", "oram_backend",
          "assign evict_begin = run && !closed_o &&", "assign evict_begin = run &&",
          "hostile-one-leaf"),
    Fault("addresses are not checked", "oram_backend",
          "assign cmd_good = good_address && good_leaf;", "assign cmd_good = good_leaf;",
          "hostile-address"),
    Fault("new leaves are not checked", "oram_backend",
          "(cmd_op_i == OpReadRemove || 64'(cmd_new_leaf_i) >> LeafLevel == '0)", "1'b1",
          "hostile-new-leaf"),
    Fault("a block may be appended twice", "oram_backend",
          "|| op_q == OpAppend) && !served;", ") && !served;", "hostile-append-twice"),
    Fault("A = 0 is accepted", "oram_backend",
          "(start_evict_period_i != '0 && ", "(", "hostile-period"),
    Fault("a second start is ignored", "oram_backend",
          "assign start_again = start_valid_i && started_q;", "assign start_again = 1'b0;",
          "hostile-second-start"),
    Fault("headers may have a counter that no operation has had", "mask_scheduler",
          "assign corrupt_o = arrival_valid_i && arrival_counter_i > writes_q;",
          "assign corrupt_o = 1'b0;", "hostile-restart"),
    Fault("a reset leaves the key", "aes_key_schedule",
          "keys_q <= '0;", "keys_q <= keys_q;", "hostile-restart"),
    Fault("the write counter wraps", "mask_scheduler",
          "assign exhausted_o = writes_q >= {62'h3fff_ffff_ffff_ffff, 2'b00};",
          "assign exhausted_o = 1'b0;", "hostile-write-counter"),
    Fault("the eviction counter wraps", "oram_backend",
          "|| evictions_q == '1) begin", ") begin", "hostile-eviction-counter"),
    Fault("corrupt buckets are not reported", "path_reader",
          "assign corrupt_o = opened_valid_q && context_q.header && corrupt_here;",
          "assign corrupt_o = 1'b0;", "hostile-headers"),
    Fault("a block of the path may have an address out of range", "path_reader",
          "in_range = 64'(address) < 64'(Capacity);", "in_range = 1'b1;",
          "hostile-forged-address"),
    Fault("a block may be off its path", "path_reader",
          "on_path = ((LeafWidth'(leaf) ^ path_leaf_q) & shared_bits) == '0\n          &&",
          "on_path = ", "hostile-forged-path"),
    Fault("a block of the path may have a leaf out of range", "path_reader",
          "          && 64'(leaf) >> LeafLevel == '0;", "          ;", "hostile-forged-leaf"),
    Fault("a block may be in the stash and on the path", "oram_backend",
          "((path_found && op_q != OpAppend) || op_q == OpAppend)", "op_q == OpAppend",
          "hostile-forged-copy"),
    Fault("appends check their old leaf", "oram_backend",
          "assign good_leaf = (cmd_op_i == OpAppend || ", "assign good_leaf = (", "hostile-good"),
    Fault("the largest A is refused", "oram_backend",
          "32'(start_evict_period_i) <= EvictPeriodMax",
          "32'(start_evict_period_i) < EvictPeriodMax", "lockstep-raw"),
    Fault("half of the arrivals have room", "placer",
          ".Depth(PathSlots + 2)", ".Depth(PathSlots / 2)", "lockstep-path-long-visit"),
    Fault("after a write an eviction waits for an even count of masks", "oram_backend",
          "assign evict_begin = run && !closed_o &&",
          "assign evict_begin = run && !(op_q == OpWrite && body_count[0]) && !closed_o &&",
          "twin-mirror"),
    Fault("a stash that does not fit is evicted for ever", "oram_backend",
          "assign evict_stuck = evict_run_q == ($bits(evict_run_q))'(EvictionsMax);",
          "assign evict_stuck = 1'b0;", "hostile-one-leaf"),
    Fault("a path is opened before the last one has been sealed", "path_reader",
          "!to_serve_q && !to_write_q", "!to_serve_q", "lockstep-raw-early"),
    Fault("paths are written after a memory error", "oram_backend",
          "assign discard = status_q == StatusMemoryError || status_q == StatusCorrupt;",
          "assign discard = status_q == StatusCorrupt;", "hostile-memory-error"),
    Fault("masks start at operation 0", "mask_scheduler",
          "writes_q <= start_operations_i;", "writes_q <= '0;", "lockstep-raw-taken"),
    Fault("masks start at EO access 0", "mask_scheduler",
          "ahead_q <= start_evictions_i;", "ahead_q <= '0;", "lockstep-raw-taken"),
    Fault("a mask request is dropped when it is not wanted any more", "mask_scheduler",
          "run_i && (begun_in_q || wants[chosen])", "run_i && wants[chosen]",
          "hostile-memory-error-narrow"),
]


def plant(fault: Fault) -> tuple[str, float]:
    """Runs the test of a fault on RTL that has it. Returns what happened, and seconds."""
    began = time.monotonic()
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as directory:
        rtl = Path(directory) / "rtl"
        shutil.copytree(RTL, rtl)
        path = rtl / f"{fault.source}.sv"
        text = path.read_text()
        if text.count(fault.right) != 1:
            return f"ERROR: {path.name} has the text {text.count(fault.right)} times", 0.0
        path.write_text(text.replace(fault.right, fault.wrong))
        test = TESTS[fault.test]
        try:
            binary = build(test.configuration, rtl)
        except SimulationError as error:
            return f"ERROR in the build: {error}", time.monotonic() - began
        result = run(binary, test.arguments, 600.0)
        shutil.rmtree(binary.parent)
    if not result.code:
        return "NOT NOTICED", time.monotonic() - began
    lines = [line for line in result.text.splitlines() if ": " in line and "FAILED" not in line]
    return f"noticed: {lines[0][:150] if lines else result.text[:150]}", time.monotonic() - began


def check_sound(name: str) -> None:
    """Runs a test on RTL without a fault."""
    result = run(build(TESTS[name].configuration), TESTS[name].arguments)
    if result.code:
        raise SimulationError(f"FAILED  {name} without a fault:\n{result.text}")


def report(fault: Fault) -> bool:
    """Plants a fault and prints what happened. Returns whether the test noticed it."""
    result, seconds = plant(fault)
    is_good = result.startswith("noticed")
    print(f"{'ok ' if is_good else 'BAD'} {fault.name} ({fault.test}, {seconds:.0f} s): {result}",
          flush=True)
    return is_good


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="only faults with this text in name or test")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if options.only in f"{fault.name} {fault.test}"]
    if not faults:
        stop("error: no fault has this name")
    began = time.monotonic()
    # Without a fault, each test passes.
    in_parallel(check_sound, sorted({fault.test for fault in faults}))
    bad = in_parallel(report, faults).count(False)
    print(f"{len(faults)} planted faults, {bad} not noticed, {time.monotonic() - began:.0f} s")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
