# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Synthesizes a module for Xilinx 7-series with Yosys and prints its area.

Usage: run.py TOP [PARAMETER=VALUE ...]

LUT counts a LUT RAM or a shift register as the LUTs that it occupies. BRAM36 counts two RAMB18 as
one.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from math import ceil
from pathlib import Path

HW = Path(__file__).resolve().parents[1]

# LUTs that a cell of the 7-series library occupies.
LUTS = {
    "RAM32X1S": 1, "RAM32X1D": 2, "RAM64X1S": 1, "RAM64X1D": 2, "RAM128X1S": 2, "RAM128X1D": 4,
    "RAM256X1S": 4, "RAM32M": 4, "RAM64M": 4, "SRL16E": 1, "SRLC32E": 1, "INV": 1,
}
FLIP_FLOPS = {"FDRE", "FDSE", "FDCE", "FDPE"}
# Cells without LUTs, flip-flops or block RAM: carry chains, wide multiplexers and buffers.
FREE = {"CARRY4", "MUXF7", "MUXF8", "MUXF9", "IBUF", "OBUF", "BUFG"}


def sources() -> list[str]:
    """All RTL files, packages first."""
    return [str(p) for p in sorted((HW / "rtl").glob("*.sv"),
                                   key=lambda p: (not p.stem.endswith("_pkg"), p.name))]


def area(cells: dict[str, int]) -> dict[str, int]:
    """LUT, FF, BRAM36 and DSP from the number of cells of each type."""
    total: Counter[str] = Counter()
    for cell, count in cells.items():
        if re.fullmatch(r"LUT[1-6]", cell):
            total["LUT"] += count
        elif cell in LUTS:
            total["LUT"] += count * LUTS[cell]
        elif cell in FLIP_FLOPS:
            total["FF"] += count
        elif cell == "RAMB18E1":
            total["BRAM18"] += count
        elif cell == "RAMB36E1":
            total["BRAM18"] += 2 * count
        elif cell == "DSP48E1":
            total["DSP"] += count
        elif cell not in FREE:
            sys.exit(f"error: no area is known for {count} cells of type {cell}")
    return {"LUT": total["LUT"], "FF": total["FF"], "BRAM36": ceil(total["BRAM18"] / 2),
            "DSP": total["DSP"]}


def synthesize(top: str, script: list[str], log: Path) -> None:
    """Runs commands of Yosys. The log gets what they print."""
    log.parent.mkdir(parents=True, exist_ok=True)
    code = (
        "from pyosys import libyosys as ys\n"
        "design = ys.Design()\n"
        f"for command in {script!r}:\n"
        "    ys.run_pass(command, design)\n"
    )
    with log.open("w") as file:
        run = subprocess.run([sys.executable, "-c", code], stdout=file, stderr=subprocess.STDOUT)
    if run.returncode:
        print(log.read_text()[-2000:])
        sys.exit(f"error: synthesis of {top} failed; the whole log is {log}")


def main() -> None:
    if len(sys.argv) < 2 or not (HW / "rtl" / f"{sys.argv[1]}.sv").exists():
        sys.exit("usage: run.py TOP [PARAMETER=VALUE ...], with TOP a module of hw/rtl")
    top, parameters = sys.argv[1], sys.argv[2:]
    text = (HW / "rtl" / f"{top}.sv").read_text()
    for parameter in parameters:
        name = parameter.partition("=")[0]
        if not re.search(rf"^  parameter .*\b{re.escape(name)} += ", text, re.MULTILINE):
            sys.exit(f"error: {top} has no parameter {name}")
    build = HW / "build" / "syn"
    name = "-".join([top, *parameters])
    log, result = build / f"{name}.log", build / f"{name}.json"
    options = " ".join(f"-G {parameter}" for parameter in parameters)
    script = [
        f"read_slang --top {top} {options} {' '.join(sources())}",
        f"synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top {top}",
        f"tee -q -o {result} stat -json",
        "tee -q -a " + str(log) + " stat",
    ]
    synthesize(top, script, log)
    cells = json.loads(result.read_text())["design"]["num_cells_by_type"]
    print(f"{name}: " + ", ".join(f"{value} {unit}" for unit, value in area(cells).items()))


if __name__ == "__main__":
    main()
