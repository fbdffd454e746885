# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Builds benches with Verilator, and runs them.

The makefiles of Verilator compile its run-time library and two precompiled headers for each bench,
which takes longer than the bench itself. Here a bench is one translation unit, and the library and
the headers are compiled once.

A binary is built again only if a source, a parameter or this file has changed.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

HW = Path(__file__).resolve().parents[1]
DV = HW / "dv"
RTL = HW / "rtl"
BUILD = HW / "build" / "sim"
VERILATOR = HW / "tools" / "verilator"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HW.parent / "target"))
GOLDEN = TARGET / "debug" / "liboblivio_golden.so"

LIBRARY_SOURCES = ("verilated", "verilated_cov", "verilated_dpi", "verilated_threads")
DEFINES = ["-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0", "-DVERILATOR=1"]

Item = TypeVar("Item")
Value = TypeVar("Value")

_library_lock = threading.Lock()


class SimulationError(Exception):
    """A failed build or run. The text is the output of its tools."""


class Bench(NamedTuple):
    """A top module in `hw/dv`, and the files that it needs beside the RTL."""

    top: str
    files: tuple[str, ...]


class Configuration(NamedTuple):
    """A bench with parameters. `optimize` is for long runs: the build takes three times as long."""

    bench: Bench
    raw: bool
    parameters: dict[str, int]
    optimize: bool = False


class Result(NamedTuple):
    """What a run printed, its exit code, and its seconds."""

    text: str
    code: int
    seconds: float


def _run(command: list[str], directory: Path) -> str:
    """Runs a tool. Returns its output."""
    run = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if run.returncode:
        raise SimulationError(f"{' '.join(command[:3])} ...: failed\n"
                              f"{(run.stdout + run.stderr)[-6000:]}")
    return run.stdout + run.stderr


def _include() -> Path:
    """Verilator's directory of C++ headers."""
    for path in sorted(HW.glob(".venv/lib/python3*/site-packages/verilator/include")):
        return path
    raise SimulationError("error: hw/.venv has no Verilator: run make -C hw tools")


def _library(optimize: bool) -> Path:
    """Compiles Verilator's library and a precompiled header, once. Returns their directory."""
    include = _include()
    level = "-O2" if optimize else "-O0"
    BUILD.mkdir(parents=True, exist_ok=True)
    with _library_lock, (BUILD / "library.lock").open("w") as lock:
        # Other scripts may build it, too.
        fcntl.flock(lock, fcntl.LOCK_EX)
        directory = BUILD / f"library{level}"
        built, content = directory / "built", " ".join(LIBRARY_SOURCES)
        if built.exists() and built.read_text() == content:
            return directory
        directory.mkdir(parents=True, exist_ok=True)
        includes = [f"-I{include}", f"-I{include / 'vltstd'}"]
        (directory / "precompiled.h").write_text(
            '#include "verilated.h"\n#include "verilated_dpi.h"\n#include "svdpi.h"\n'
            "#include <cstdio>\n#include <memory>\n")
        commands = [["g++", "-std=gnu++17", level, *DEFINES, *includes, "-x", "c++-header",
                     "precompiled.h", "-o", "precompiled.h.gch"]]
        # The library takes little of the time of a run.
        commands += [["g++", "-std=gnu++17", "-O0", *DEFINES, *includes, "-c",
                      str(include / f"{name}.cpp"), "-o", f"{name}.o"]
                     for name in LIBRARY_SOURCES]
        for command in commands:
            _run(command, directory)
        built.write_text(content)
        return directory


def _constant(name: str, value: int) -> str:
    """A parameter's value. `Capacity` is the one of 64 bits."""
    return f"64'd{value}" if name == "Capacity" else str(value)


def build(configuration: Configuration, rtl: Path = RTL, *, coverage: bool = False) -> Path:
    """Builds a bench, with coverage counters if requested. Returns the binary."""
    bench, raw, parameters, optimize = configuration
    if not GOLDEN.exists():
        raise SimulationError(f"error: {GOLDEN} is missing: "
                              "run cargo build --profile test -p oblivio-golden")
    packages = [rtl / "oram_pkg.sv", rtl / "aes_pkg.sv"]
    modules = sorted(path for path in rtl.glob("*.sv") if path not in packages)
    sources = [*packages, *modules, *(DV / name for name in bench.files)]
    digest = hashlib.sha256(repr(
        (bench, raw, sorted(parameters.items()), optimize, coverage)).encode())
    for path in [*sources, DV / "bench_main.cpp", DV / "golden.h", Path(__file__)]:
        digest.update(path.read_bytes())
    directory = BUILD / f"{bench.top}-{'raw' if raw else 'path'}-{digest.hexdigest()[:16]}"
    binary = directory / "bench"
    if binary.exists():
        return binary
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as temporary:
        made = Path(temporary)
        _run([
            str(VERILATOR), "--cc", "-O3", "--assert", "--no-timing", "--prefix", "Vbench",
            "--top-module", bench.top, "-Mdir", str(made), "--output-split", "0",
            # Registers without a reset begin with anything.
            "--x-assign", "unique", "--x-initial", "unique",
            # Lint is `make -C hw lint`.
            "-Wno-lint", "-Wno-style", "-Wno-fatal", "-Werror-USERFATAL",
            *(["-DORAM_RAW"] if raw else []),
            *(["--coverage-line", "--coverage-user"] if coverage else []),
            *(f"-G{name}={_constant(name, value)}" for name, value in parameters.items()),
            str(HW / "verilator.vlt"), *(str(path) for path in sources),
        ], HW)
        library = _library(optimize)
        include = _include()
        units = sorted(path.name for path in made.glob("Vbench*.cpp"))
        (made / "all.cpp").write_text("".join(f'#include "{name}"\n' for name in units))
        _run([
            "g++", "-std=gnu++17", "-O2" if optimize else "-O0", *DEFINES,
            f"-DVM_COVERAGE={int(coverage)}", "-w",
            "-include", str(library / "precompiled.h"), f"-I{made}", f"-I{include}",
            f"-I{include / 'vltstd'}", f"-I{DV}", "all.cpp", str(DV / "bench_main.cpp"),
            *(str(library / f"{name}.o") for name in LIBRARY_SOURCES),
            str(GOLDEN), f"-Wl,-rpath,{GOLDEN.parent}", "-pthread", "-o", "bench",
        ], made)
        directory.mkdir(exist_ok=True)
        shutil.move(made / "bench", binary)
    return binary


def run(binary: Path, arguments: dict[str, int], limit_seconds: float = 3600.0,
        coverage: Path | None = None, port_log: Path | None = None) -> Result:
    """Runs a bench with plusargs. Uninitialized registers follow from the seed.

    `coverage` gets the counts of a coverage build, `port_log` the log of `port_log.sv`.
    """
    environment = os.environ | ({"COVERAGE_FILE": str(coverage)} if coverage else {})
    seed = arguments.get("seed", 1)
    began = time.monotonic()
    try:
        process = subprocess.run(
            [str(binary), *(f"+{name}={value}" for name, value in arguments.items()),
             *([f"+portlog={port_log}"] if port_log else []), "+verilator+rand+reset+2", f"+verilator+seed+{seed}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit_seconds,
            errors="replace", env=environment,
        )
    except subprocess.TimeoutExpired:
        return Result(f"no end after {limit_seconds:.0f} s", 1, time.monotonic() - began)
    return Result(process.stdout, process.returncode, time.monotonic() - began)


def in_parallel(work: Callable[[Item], Value], items: Sequence[Item]) -> list[Value]:
    """Calls `work` for all items, two at a time. The first error ends the script."""
    failed = threading.Event()

    def unless_failed(item: Item) -> Value | None:
        if failed.is_set():
            return None
        try:
            return work(item)
        except SimulationError as error:
            if not failed.is_set():
                failed.set()
                print(error, file=sys.stderr, flush=True)
            return None

    def interrupt(*_: object) -> None:
        # Ctrl-C also ends the tools and benches that run. No others begin.
        failed.set()
        print("interrupted", file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, interrupt)
    with ThreadPoolExecutor(2) as pool:
        values = list(pool.map(unless_failed, items))
    if failed.is_set():
        sys.exit(1)
    return [value for value in values if value is not None]


def stop(text: str) -> None:
    """Ends a script as failed."""
    print(text, file=sys.stderr, flush=True)
    sys.exit(1)
