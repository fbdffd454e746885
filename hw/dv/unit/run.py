# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Builds `unit_bench` with Verilator and runs all unit benches on it.

Usage: run.py [TEST_MODULE ...]. Needs `verilator` and `cocotb` as installed by `make -C hw tools`.
"""

import os
import subprocess
import sys
from pathlib import Path

import cocotb_tools.config
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent
HW = HERE.parents[1]
# Another copy of the RTL, for planted faults.
RTL = Path(os.environ.get("RTL", HW / "rtl"))
BUILD = Path(os.environ.get("BUILD", HW / "build" / "unit"))
SOURCES = [
    "aes_pkg", "aes_sbox_pair", "aes_pipe", "aes_key_schedule", "fifo", "ram_1r1w",
    "ram_fifo", "slot_pool", "push_to_leaf", "eviction_path", "path_address",
]


# The wheel is configured for Clang. These variables make its makefiles work with GCC.
MAKE_VARIABLES = [
    "CXX=g++", "LINK=g++", "CFG_CXXFLAGS_PCH_I=-include", "CFG_GCH_IF_CLANG=",
    "CFG_CXXFLAGS_COROUTINES=-fcoroutines",
    # The build takes longer than the tests.
    "OPT_FAST=-O0", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0",
]


def build() -> None:
    """Builds the simulation.

    cocotb's own build makes all signals public, which slows the C++ compiler down. Here only
    the ports of the top are public.
    """
    libraries = cocotb_tools.config.libs_dir
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            "verilator", "--cc", "--exe", "--vpi", "-Mdir", str(BUILD), "--prefix", "Vtop",
            "--top-module", "unit_bench", "-o", "unit_bench", "--timescale", "1ns/1ps",
            "-Wno-UNUSEDSIGNAL", "-Wall", "-O3",
            "-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
            str(cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"),
            str(HW / "verilator.vlt"), str(HERE / "unit_bench.vlt"),
            *(str(RTL / f"{name}.sv") for name in SOURCES), str(HERE / "unit_bench.sv"),
        ],
        check=True, stdout=subprocess.DEVNULL,
    )
    # The targets of a make that runs this script must not reach the inner make.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    subprocess.run(
        ["make", "-s", "-j2", "-C", str(BUILD), "-f", "Vtop.mk", *MAKE_VARIABLES],
        check=True, env=environment, stdout=subprocess.DEVNULL,
    )


def main() -> None:
    modules = sys.argv[1:] or sorted(path.stem for path in HERE.glob("test_*.py"))
    os.environ["PATH"] = f"{HW / 'tools'}{os.pathsep}{os.environ['PATH']}"
    sys.path.insert(0, str(HERE))
    build()
    runner = get_runner("verilator")
    results = runner.test(
        hdl_toplevel="unit_bench",
        hdl_toplevel_lang="verilog",
        test_module=modules,
        build_dir=BUILD,
        test_dir=HERE,
        results_xml=str(BUILD / "results.xml"),
    )
    tests, failures = get_results(results)
    print(f"unit benches: {tests} tests, {failures} failures")
    if failures or not tests:
        sys.exit(1)


main()
