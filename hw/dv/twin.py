# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Builds the twin bench and runs it: equal leaves and different secrets, equal pins in every cycle.

Usage: twin.py [--long] [--only TEXT]. The first failure ends the script with the text of the bench.
"""

import argparse
import time

from simulation import Bench, Configuration, SimulationError, build, in_parallel, run

TWIN = Bench("twin", ("ideal_memory.sv", "twin.sv", "backend_checks.sv"))


def configuration(raw: bool, level: int, slots: int, stash: int, *, block: int = 64,
                  bus: int = 512, cores: int = 1, blocks: int = 48) -> Configuration:
    """A configuration of the bench.

    The stash has room for all blocks, or the twins are mirrored: which blocks are in the stash
    differs, so the demand for evictions must not depend on it.
    """
    parameters = {"LeafLevel": level, "BucketSlots": slots, "StashBlocksMax": stash,
                  "BlockBytes": block, "BusBits": bus, "AesCores": cores,
                  "Capacity": min(blocks, ((2 << level) - 1) * slots)}
    return Configuration(TWIN, raw, parameters)


def runs(accesses: int, seed: int) -> list[dict[str, int]]:
    """Without stalls, with stalls, and with an idle controller before each command."""
    return [
        {"accesses": accesses, "seed": seed},
        {"accesses": accesses, "seed": seed + 1, "stalls": 75, "early_reads": 1},
        {"accesses": accesses, "seed": seed + 2, "gap": 300},
    ]


def mirrored(accesses: int, seed: int) -> list[dict[str, int]]:
    """Stashes that are equally full, which the runs drive over their bound."""
    return [{"accesses": accesses, "mirror": 1, "seed": seed},
            {"accesses": accesses, "mirror": 1, "seed": seed + 1, "stalls": 75, "early_reads": 1}]


SHORT = [
    (configuration(True, 20, 5, 64), runs(100, 1)),
    (configuration(False, 4, 1, 64, cores=2), runs(200, 10)),
    (configuration(True, 3, 2, 1, blocks=12), mirrored(500, 30)),
]
LONG = [
    (configuration(False, 4, 1, 2, cores=3, blocks=12), mirrored(1000, 40)),
    (configuration(True, 4, 2, 2, block=256, bus=1024, blocks=24), mirrored(300, 50)),
    # With four slots in a bucket few blocks stay in the stash.
    (configuration(False, 20, 4, 78, cores=4), [run | {"places": 0} for run in runs(160, 4)]),
    (configuration(True, 4, 2, 64), runs(500, 7)),
    (configuration(True, 3, 2, 64, block=512, cores=2), runs(100, 13)),
    (configuration(False, 3, 1, 64, block=512, cores=4), runs(100, 16)),
]


def run_group(group: tuple[Configuration, list[dict[str, int]]]) -> None:
    """Builds and runs a configuration. Raises `SimulationError` at the first failure."""
    made, all_arguments = group
    binary = build(made)
    for arguments in all_arguments:
        result = run(binary, arguments)
        shown = " ".join(f"+{key}={value}" for key, value in arguments.items())
        if result.code:
            raise SimulationError(f"FAILED  {made.parameters} {shown}\n{result.text}")
        text = " ".join(result.text.split())
        print(f"ok  {text} ({shown}, {result.seconds:.1f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true", help="more trees and larger blocks, too")
    parser.add_argument("--only", default="", choices=("raw", "path"), help="one scheme alone")
    options = parser.parse_args()
    groups = [group for group in (SHORT + LONG if options.long else SHORT)
              if options.only in ("", "raw" if group[0].raw else "path")]
    began = time.monotonic()
    in_parallel(run_group, groups)
    print(f"twin runs: {len(groups)} configurations, no pin but the data differs, "
          f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
