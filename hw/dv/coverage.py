# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures which lines of the RTL, and which cover points, the benches of the back ends reach.

Usage: coverage.py [--missing]

Fails if less than 95 % of the lines are reached, or if a cover point is not.
"""

import argparse
import re
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import hostile
import lockstep
from simulation import RTL, Configuration, SimulationError, build, in_parallel, run

LINES_MIN = 95.0

# Configurations of small controllers, and the plusargs of their runs.
RANDOM = {"accesses": 1500, "crowding": 60}
RUNS: list[tuple[Configuration, list[dict[str, int]]]] = [
    (lockstep.configuration(True, 2, 2, 2, period=3, capacity=10),
     [RANDOM, RANDOM | {"stalls": 75, "early_reads": 1}, {"accesses": 300, "warm": 100}]),
    (lockstep.configuration(True, 2, 2, 4, period=2, capacity=10, block=512, cores=3),
     [RANDOM | {"accesses": 300}]),
    (lockstep.configuration(False, 3, 1, 3, capacity=12, cores=4),
     [RANDOM, RANDOM | {"stalls": 75}]),
    (lockstep.configuration(False, 2, 2, 4, capacity=10, block=512, bus=1024, cores=2),
     [RANDOM | {"accesses": 300}]),
]
RUNS += [
    (made, [{"mode": mode, "status": status, "expect": expect, "seed": seed, "percent": 50,
             "watchdog": hostile.WATCHDOG}
            for mode, _, status, expect in hostile.modes_of(made) for seed in (1, 2)])
    for made in (hostile.configuration(raw, level, slots, stash)
                 for raw in (True, False) for level, slots, stash in ((2, 4, 4), (4, 1, 1)))
]

# Kind of a point, file, line, column and name: how often it was reached.
Points = dict[tuple[str, str, int, int, str], int]


def read(path: Path) -> Points:
    """Reads the counts that a bench has written."""
    points: Points = defaultdict(int)
    for line in path.read_text(errors="replace").splitlines():
        match = re.fullmatch(r"C '(.*)' (\d+)", line)
        if not match:
            continue
        fields = dict(field.split("\x02", 1) for field in match[1].split("\x01") if "\x02" in field)
        kind = fields["page"].split("/")[0]
        points[kind, Path(fields["f"]).name, int(fields["l"]), int(fields.get("n", 0)),
               fields.get("o", "")] += int(match[2])
    return points


def measure(item: tuple[Configuration, list[dict[str, int]]]) -> list[Points]:
    """Builds a configuration for coverage, and runs it."""
    configuration, runs = item
    binary = build(configuration, coverage=True)
    found = []
    for arguments in runs:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "coverage.dat"
            result = run(binary, arguments, coverage=path)
            if result.code:
                raise SimulationError(f"FAILED  {configuration} {arguments}\n{result.text}")
            found.append(read(path))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--missing", action="store_true", help="print the lines not reached")
    options = parser.parse_args()
    began = time.monotonic()
    total: Points = defaultdict(int)
    for several in in_parallel(measure, RUNS):
        for points in several:
            for point, count in points.items():
                total[point] += count
    files = {path.name for path in RTL.glob("*.sv")}
    # A line counts once: reached if all its points are, in some configuration.
    lines: dict[tuple[str, int], bool] = {}
    for (kind, file, line, _, _), count in total.items():
        if kind in ("v_line", "v_branch") and file in files:
            lines[file, line] = lines.get((file, line), True) and count > 0
    missing = sorted(place for place, is_reached in lines.items() if not is_reached)
    covers = {point[4]: count for point, count in total.items() if point[0] == "v_user"}
    unseen = sorted(name for name, count in covers.items() if not count)
    percent = 100.0 * (1 - len(missing) / len(lines))
    if options.missing:
        for file, line in missing:
            print(f"{file}:{line}: {(RTL / file).read_text().splitlines()[line - 1].strip()}")
    print(f"coverage: {percent:.1f} % of {len(lines)} lines and branches (at least {LINES_MIN:.0f}), "
          f"{len(covers) - len(unseen)} of {len(covers)} cover points, "
          f"{time.monotonic() - began:.0f} s")
    if unseen:
        print(f"never reached: {', '.join(unseen)}")
    sys.exit(bool(unseen or not covers or percent < LINES_MIN))


if __name__ == "__main__":
    main()
