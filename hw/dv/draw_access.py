# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws what RAW ORAM's back end does in each cycle of some accesses, as SVG pictures in `img`.

Usage: draw_access.py
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

import lockstep
from simulation import HW, Bench, SimulationError, build, run

IMAGES = HW / "img"
BENCH = Bench("lockstep", (*lockstep.LOCKSTEP.files, "port_log.sv"))


class Picture(NamedTuple):
    """A picture: its file, its title, the plusargs of the run, the command and the cycles."""

    name: str
    title: str
    arguments: dict[str, int]
    command: int
    cycles: int


# With A = 5, commands 4, 9 and 14 are followed by an EO access.
PICTURES = [
    Picture("raw-ao", "RAW ORAM, L = 20: an AO access", {"gap": 400}, 11, 200),
    Picture("raw-eo", "RAW ORAM, L = 20: an AO access and the EO access after it",
            {"outstanding": 1}, 14, 440),
    Picture("raw-two", "RAW ORAM, L = 20, two AES cores: two commands in flight",
            {"outstanding": 2}, 11, 330),
]

# The bits of a line, in the order in which the log has them, and where they are drawn.
COLUMNS = ["command accepted", "read command", "write command", "read data", "write data",
           "stash visited", "block served", "answer", "eviction begins",
           "AES: bodies ahead", "AES: encoding", "AES: serving", "AES: decoding"]
ROWS = ["command accepted", "eviction begins", "read command", "write command", "read data",
        "write data", "AES: decoding", "AES: serving", "AES: encoding", "AES: bodies ahead",
        "stash visited", "block served", "answer"]
COLOURS = {"read": "#2f6db3", "write": "#c0562b", "AES": "#6b8e4e", "stash": "#7a5aa0",
           "block": "#7a5aa0", "command": "#333333", "answer": "#333333", "eviction": "#c0562b"}
LABEL_WIDTH, CYCLE_WIDTH, ROW_HEIGHT, TOP = 150, 2.2, 20, 46


def read_log(path: Path) -> dict[int, str]:
    """The bits of each cycle."""
    return {int(cycle): bits for cycle, bits in
            (line.split() for line in path.read_text().splitlines())}


def runs(cycles: list[int]) -> list[tuple[int, int]]:
    """First and last cycle of each run of successive cycles."""
    found: list[tuple[int, int]] = []
    for cycle in cycles:
        if found and found[-1][1] == cycle - 1:
            found[-1] = (found[-1][0], cycle)
        else:
            found.append((cycle, cycle))
    return found


def draw(log: dict[int, str], first: int, last: int, title: str) -> str:
    """The picture."""
    rows = [row for row in ROWS if any(
        log[cycle][COLUMNS.index(row)] == "1" for cycle in range(first, last + 1))]
    width = LABEL_WIDTH + (last - first + 1) * CYCLE_WIDTH + 20
    height = TOP + len(rows) * ROW_HEIGHT + 14
    out = [(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
            f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif" font-size="11">'),
           f"<title>{title}</title>",
           f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
           f'<text x="8" y="16" font-size="13">{title}</text>']
    for tick in range(0, last - first + 1, 20):
        x = LABEL_WIDTH + tick * CYCLE_WIDTH
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 10}" '
                   'stroke="#dddddd"/>')
        out.append(f'<text x="{x:.1f}" y="{TOP - 10}" text-anchor="middle" fill="#666666">'
                   f"{tick}</text>")
    for number, row in enumerate(rows):
        y = TOP + number * ROW_HEIGHT
        out.append(f'<text x="8" y="{y + 12}">{row}</text>')
        bit = COLUMNS.index(row)
        active = [cycle for cycle in range(first, last + 1) if log[cycle][bit] == "1"]
        for begin, end in runs(active):
            x = LABEL_WIDTH + (begin - first) * CYCLE_WIDTH
            bar = max((end - begin + 1) * CYCLE_WIDTH, 1.5)
            out.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{bar:.1f}" height="12" '
                       f'fill="{COLOURS[row.split(" ")[0].rstrip(":")]}"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main() -> None:
    made = lockstep.configuration(True, 20, 5, 64, period_max=8, cores=2)._replace(bench=BENCH)
    binary = build(made)
    for picture in PICTURES:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "log"
            result = run(binary, {"accesses": 20, "appends": 0, "image": 0} | picture.arguments,
                         port_log=path)
            if result.code:
                raise SimulationError(result.text)
            log = read_log(path)
        first = [cycle for cycle, bits in log.items() if bits[0] == "1"][picture.command] - 4
        text = draw(log, first, first + picture.cycles, picture.title)
        (IMAGES / f"{picture.name}.svg").write_text(text)
        print(f"drawn: hw/img/{picture.name}.svg")


main()
