# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Bad input: garbage from memory, bad commands and start-up, exhausted counters, bad parameters.

Usage: hostile.py [--seeds N] [--only TEXT]. The first failure ends the script.
"""

import argparse
import subprocess
import time

from simulation import (
    HW,
    RTL,
    VERILATOR,
    Bench,
    Configuration,
    SimulationError,
    build,
    in_parallel,
    run,
)

HOSTILE = Bench("hostile", ("ideal_memory.sv", "hostile.sv", "backend_checks.sv"))

# Statuses of the response port, and "any status that memory can cause".
BAD_COMMAND, BAD_START, MEMORY_ERROR, CORRUPT, EXHAUSTED, STASH_FULL = 1, 2, 3, 4, 5, 6
ANY = 7
MUST_STAY_OPEN, MUST_CLOSE, MAY_CLOSE = 0, 1, 2

# Mode of the bench, its name, the status, and whether the controller must close.
GARBAGE = [
    (1, "random beats", ANY, MAY_CLOSE),
    (2, "flipped bits", ANY, MAY_CLOSE),
    (3, "beats of zeros", ANY, MAY_CLOSE),
    (4, "beats of ones", ANY, MAY_CLOSE),
    (5, "replayed beats", ANY, MAY_CLOSE),
    (6, "random headers", ANY, MAY_CLOSE),
    (7, "forged headers", ANY, MAY_CLOSE),
    (8, "all kinds of garbage", ANY, MAY_CLOSE),
]
ERRORS = [
    (0, "nothing is wrong", ANY, MUST_STAY_OPEN),
    (9, "memory error", MEMORY_ERROR, MUST_CLOSE),
    (10, "address out of range", BAD_COMMAND, MUST_CLOSE),
    (11, "old leaf out of range", BAD_COMMAND, MUST_CLOSE),
    (12, "new leaf out of range", BAD_COMMAND, MUST_CLOSE),
    (13, "append of a block that is in the stash", BAD_COMMAND, MUST_CLOSE),
    (22, "second start", BAD_START, MUST_CLOSE),
    (23, "restart with the same key and counts of 0", CORRUPT, MUST_CLOSE),
    (30, "write counter exhausted", EXHAUSTED, MUST_CLOSE),
]
# With room for two blocks more than there are.
FORGED = [
    (15, "block with an address out of range", CORRUPT, MUST_CLOSE),
    (16, "block off its path", CORRUPT, MUST_CLOSE),
    (17, "block with a leaf out of range", CORRUPT, MUST_CLOSE),
]
FORGED_RAW = [(18, "block in the stash and on the path", CORRUPT, MUST_CLOSE)]
ERRORS_RAW = [
    (20, "A = 0", BAD_START, MUST_CLOSE),
    (21, "A above EvictPeriodMax", BAD_START, MUST_CLOSE),
    (31, "eviction counter exhausted", EXHAUSTED, MUST_CLOSE),
]

# With five slots on a path.
ERRORS_NARROW = [(14, "more blocks on one leaf than fit", STASH_FULL, MUST_CLOSE)]

# Top, parameter and value, and the name that the message must have.
BAD_PARAMETERS = [
    (top, parameter, value) for top in ("raw_backend", "path_backend") for parameter, value in (
        ("LeafLevel", "41"), ("BucketSlots", "0"), ("BucketSlots", "256"), ("BucketSlots", "49"),
        ("BlockBytes", "32"), ("BlockBytes", "96"), ("BlockBytes", "8192"), ("BusBits", "256"),
        ("Capacity", "64'd0"), ("Capacity", "64'd10485756"), ("StashBlocksMax", "0"),
        ("StashBlocksMax", "4097"), ("AesCores", "0"), ("AesCores", "5"), ("AesCores", "-1"),
        ("SubtreeLevels", "0"),
    )
] + [("raw_backend", "BodyDepth", "3"), ("raw_backend", "EvictPeriodMax", "0"),
     ("raw_backend", "EvictPeriodMax", "65537")]


# A stash over its bound takes 1023 evictions before the controller closes.
WATCHDOG = 400_000


def configuration(raw: bool, level: int, slots: int, stash: int) -> Configuration:
    """A small controller with few blocks."""
    parameters = {"LeafLevel": level, "BucketSlots": slots, "StashBlocksMax": stash,
                  "Capacity": 8, "AesCores": 1 if slots == 1 else 2}
    if raw:
        parameters["EvictPeriod"] = 2
    return Configuration(HOSTILE, raw, parameters)


def modes_of(made: Configuration) -> list[tuple[int, str, int, int]]:
    """The modes that a configuration can run."""
    slots = made.parameters["BucketSlots"]
    return [
        *GARBAGE, *ERRORS,
        *(ERRORS_RAW if made.raw else []),
        *(ERRORS_NARROW if slots == 1 else []),
        *(FORGED if slots == 4 else []),
        *(FORGED_RAW if slots == 4 and made.raw else []),
    ]


def run_modes(made: Configuration, seeds: int) -> int:
    """Runs all modes. Returns the number of runs; raises `SimulationError` at the first failure."""
    binary = build(made)
    count = 0
    for mode, name, status, expect in modes_of(made):
        for seed in range(1, seeds + 1):
            arguments = {"mode": mode, "status": status, "expect": expect, "seed": seed,
                         "stalls": (0, 75)[seed % 2], "percent": (1, 5, 50)[seed % 3],
                         "early_reads": seed // 2 % 2, "hurries": seed // 3 % 2,
                         "watchdog": WATCHDOG}
            result = run(binary, arguments)
            count += 1
            if result.code:
                shown = " ".join(f"+{key}={value}" for key, value in arguments.items())
                raise SimulationError(f"FAILED  {name}, {'RAW' if made.raw else 'Path'} "
                                      f"{made.parameters}: {shown}\n{result.text}")
        print(f"ok  {'RAW ' if made.raw else 'Path'} L {made.parameters['LeafLevel']}: {name}, "
              f"{seeds} seeds", flush=True)
    return count


def elaborate(bad: tuple[str, str, str]) -> None:
    """Checks that a bad parameter stops elaboration with a message that names it."""
    top, parameter, value = bad
    packages = [RTL / "oram_pkg.sv", RTL / "aes_pkg.sv"]
    result = subprocess.run(
        [str(VERILATOR), "--lint-only", "-Wno-lint", "-Wno-style",
         f"-G{parameter}={value}", "--top-module", top, "-y", str(RTL), *map(str, packages),
         str(RTL / f"{top}.sv")],
        cwd=HW, capture_output=True, text=True,
    )
    text = result.stdout + result.stderr
    is_named = any("USERFATAL" in line and parameter in line for line in text.splitlines())
    if result.returncode == 0 or not is_named:
        raise SimulationError(f"FAILED  {top} with {parameter} = {value}: no message names "
                              f"{parameter}\n{text[-1500:]}")
    print(f"ok  {top} refuses {parameter} = {value}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=6, choices=range(1, 1001), metavar="N",
                        help="seeds of each mode (6)")
    parser.add_argument("--only", choices=("runs", "parameters"), help="one part alone")
    options = parser.parse_args()
    began = time.monotonic()
    configurations = [configuration(raw, level, slots, stash)
                      for raw in (True, False)
                      for level, slots, stash in ((2, 4, 4), (0, 12, 2), (4, 1, 1))]
    done = []
    if options.only != "parameters":
        count = sum(in_parallel(lambda made: run_modes(made, options.seeds), configurations))
        done.append(f"{count} runs")
    if options.only != "runs":
        in_parallel(elaborate, BAD_PARAMETERS)
        done.append(f"{len(BAD_PARAMETERS)} bad parameters")
    print(f"hostile: {', '.join(done)}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
