# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Builds the lock-step bench in many configurations, and runs it against the golden model.

Usage: lockstep.py [--long] [--json FILE] [--only TEXT]

Prints one line for each run. The first failure ends the script with the text of the bench.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import NamedTuple

from simulation import Bench, Configuration, SimulationError, build, in_parallel, run, stop

LOCKSTEP = Bench("lockstep", ("golden_pkg.sv", "ideal_memory.sv", "lockstep.sv",
                              "backend_checks.sv"))

# The most cycles per access at L = 20, from the requirements of the two back ends.
RAW_CYCLES_MAX = 240.0
PATH_CYCLES_MAX = 260.0


class Group(NamedTuple):
    """A configuration and its runs: plusargs of each.

    `cycles_max` bounds the cycles per command of runs without stalls and gaps. With `evicts`, the
    runs must have had background evictions.
    """

    configuration: Configuration
    runs: list[dict[str, int]]
    cycles_max: float | None = None
    evicts: bool = False


class Line(NamedTuple):
    """What one run measured. Latency is in cycles from a command to the first beat of its data."""

    name: str
    arguments: str
    commands: int
    cycles_per_command: float
    latency: float
    latency_min: int
    latency_max: int
    background_evictions: int
    seconds: float


def configuration(raw: bool, level: int, slots: int, stash: int, *, period: int = 5,
                  capacity: int | None = None, block: int = 64, bus: int = 512, cores: int = 1,
                  period_max: int | None = None, subtree: int = 4, block_ram: bool = True,
                  optimize: bool = False) -> Configuration:
    """A configuration of the bench."""
    parameters = {
        "LeafLevel": level, "BucketSlots": slots, "StashBlocksMax": stash, "BlockBytes": block,
        "BusBits": bus, "AesCores": cores, "Capacity": capacity or 1 << level,
        "SubtreeLevels": subtree, "AesBlockRam": int(block_ram),
    }
    if raw:
        parameters |= {"EvictPeriod": period, "EvictPeriodMax": period_max or period}
    return Configuration(LOCKSTEP, raw, parameters, optimize)


def name_of(made: Configuration) -> str:
    """The name of a configuration in reports."""
    values = made.parameters
    period = f" A {values['EvictPeriod']}" if made.raw else ""
    return (f"{'RAW ' if made.raw else 'Path'} L {values['LeafLevel']} Z {values['BucketSlots']} "
            f"C {values['StashBlocksMax']}{period}, {values['BlockBytes']} B, "
            f"{values['BusBits']} bits, {values['AesCores']} AES")


def full_size(accesses: int, seeds: list[int], is_long: bool) -> list[Group]:
    """The controllers at L = 20. With a gap, the controller is idle before each command."""
    run = {"accesses": accesses, "appends": 0, "bus_checks": 1, "outstanding": 1}
    runs = [run | {"seed": seed} for seed in seeds]
    runs.append({"accesses": 300, "appends": 0, "gap": 400})
    in_flight = run | {"accesses": min(accesses, 10_000), "outstanding": 2}
    groups = [
        Group(configuration(True, 20, 5, 64, period_max=8, optimize=True), [*runs, in_flight],
              RAW_CYCLES_MAX),
        Group(configuration(False, 20, 4, 78, cores=4, optimize=True), runs, PATH_CYCLES_MAX),
    ]
    if is_long:
        # With two cores the bus is the bound.
        groups.append(Group(configuration(True, 20, 5, 64, period_max=8, cores=2, optimize=True),
                            [in_flight | {"outstanding": 1}, in_flight]))
    return groups


def stalled(accesses: int, seeds: int) -> list[dict[str, int]]:
    """Random commands that crowd the stash, with stalls on all ports."""
    return [
        {"accesses": accesses, "stalls": stalls, "seed": 10 * stalls + seed, "crowding": 60,
         "early_reads": early_reads}
        for stalls, early_reads in ((0, 0), (30, 0), (75, 1)) for seed in range(1, seeds + 1)
    ]


# The small trees of the short table, by scheme.
SHORT_LEVELS = {True: (2,), False: (3,)}


def small(accesses: int, seeds: int, is_long: bool) -> list[Group]:
    """Small trees with little room in the stash: all commands, leaves and places of a block.

    The directed sequence runs every combination of operation, block present or absent, old leaf,
    new leaf, two addresses and three distances from the command that prepared the block.
    """
    groups = []
    for raw in (True, False):
        for level, slots, stash, capacity in ((0, 1, 1, 1), (0, 4, 2, 4), (1, 2, 1, 6),
                                              (2, 2, 2, 10), (3, 1, 3, 12)):
            if not is_long and level not in SHORT_LEVELS[raw]:
                continue
            # A of 1, 2, 3 and 4: the sum of distances differs from a multiple of it.
            groups.append(Group(
                configuration(raw, level, slots, stash, period=level + 1, capacity=capacity,
                              cores=1 + level % 4, subtree=1 + level % 3,
                              block_ram=level % 2 == 0),
                # With 8 leaves there are 64 pairs: the short table has them at one distance.
                # The directed sequence has three blocks.
                [*([{"directed": 1, "distances": 1 if level == 3 and not is_long else 3,
                     "stalls": 0 if level > 1 else 30}] if capacity > 2 else []),
                 *stalled(accesses, seeds)],
                evicts=level > 0,
            ))
    # The tree of Fig. 2, with all commands on all pairs of paths.
    groups.append(Group(configuration(False, 3, 4, 4), [{"directed": 1, "distances": 1}]))
    return groups


def taken_over(accesses: int, seeds: int) -> list[Group]:
    """Trees that the engine has filled before the controller starts."""
    runs = [{"accesses": accesses, "warm": 300, "stalls": 30 * (seed % 2), "seed": seed}
            for seed in range(1, seeds + 1)]
    # With C = 40 a path has arrived before the visit of the stash ends.
    return [Group(configuration(raw, 5, 4, 40, period=3, period_max=8, capacity=60), runs)
            for raw in (True, False)]


def wide(accesses: int, seeds: int, is_long: bool) -> list[Group]:
    """Large blocks and the wide bus. The short table has two of them."""
    groups = [
        Group(configuration(True, 3, 2, 4, period=3, capacity=20, block=512, cores=2),
              stalled(accesses, seeds)),
        Group(configuration(False, 3, 3, 4, capacity=20, block=512, cores=4),
              stalled(accesses, seeds)),
        Group(configuration(True, 2, 2, 4, period=2, capacity=10, block=4096, bus=1024, cores=4),
              stalled(accesses // 2, seeds)),
        Group(configuration(False, 2, 2, 4, capacity=10, block=4096, cores=2),
              stalled(accesses // 2, seeds)),
        Group(configuration(False, 4, 4, 6, capacity=60, block=128, bus=1024, cores=4),
              stalled(accesses, seeds)),
    ]
    return groups if is_long else groups[2::2]


def table(is_long: bool) -> list[Group]:
    """The groups, those with the longest builds first."""
    if not is_long:
        return [*full_size(2000, [1], is_long), *wide(60, 1, is_long), *small(150, 2, is_long),
                *taken_over(150, 1)]
    return [*full_size(100_000, [1, 2], is_long), *wide(1000, 5, is_long), *small(5000, 20, is_long),
            *taken_over(2000, 10)]


def number(pattern: str, text: str) -> float:
    """A number of the bench's report."""
    match = re.search(pattern, text)
    if not match:
        raise SimulationError(f"the bench printed no report:\n{text}")
    return float(match[1])


def measure(group: Group) -> list[Line]:
    """Builds and runs a group. Raises `SimulationError` at the first failure."""
    name = name_of(group.configuration)
    binary = build(group.configuration)
    lines: list[Line] = []
    for arguments in group.runs:
        shown = " ".join(f"+{key}={value}" for key, value in arguments.items())
        result = run(binary, arguments)
        if result.code:
            raise SimulationError(f"FAILED  {name}: {shown}\n{result.text}")
        line = Line(
            name, shown,
            int(number(r"commands +(\d+)", result.text)),
            number(r"cycles per command +([\d.]+)", result.text),
            number(r"latency to data +([\d.]+)", result.text),
            int(number(r"latency to data +[\d.]+ \((\d+)", result.text)),
            int(number(r"latency to data +[\d.]+ \(\d+ to (\d+)", result.text)),
            int(number(r"background evictions +(\d+)", result.text)),
            result.seconds,
        )
        print(f"ok  {name}: {shown}: {line.cycles_per_command:.2f} cycles/command, "
              f"latency {line.latency:.2f} ({line.latency_min} to {line.latency_max}), "
              f"{line.background_evictions} background evictions, {line.seconds:.1f} s", flush=True)
        if group.cycles_max and "gap" not in arguments and line.cycles_per_command > group.cycles_max:
            raise SimulationError(f"FAILED  {name}: {line.cycles_per_command:.2f} cycles per "
                                  f"command, at most {group.cycles_max:.0f} are allowed")
        lines.append(line)
    if group.evicts and not sum(line.background_evictions for line in lines):
        raise SimulationError(f"FAILED  {name}: no run had a background eviction")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true", help="10^5 accesses at L = 20, more seeds")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument("--only", default="", help="only configurations with this text in the name")
    options = parser.parse_args()
    groups = [group for group in table(options.long)
              if options.only in name_of(group.configuration)]
    if not groups:
        stop("error: no configuration has this name")
    began = time.monotonic()
    lines = [line for group_lines in in_parallel(measure, groups) for line in group_lines]
    if options.json:
        options.json.write_text(json.dumps([line._asdict() for line in lines], indent=1) + "\n")
    print(f"lock step: {len(lines)} runs of {len(groups)} configurations, "
          f"{sum(line.commands for line in lines)} commands, all equal to the model, "
          f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
