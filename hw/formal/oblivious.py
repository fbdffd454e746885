# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Proves that the timing and the addresses of the ORAM controllers do not depend on secrets.

Usage: oblivious.py [--real | --faults | --assumptions] [--list] [--rounds] [NAME ...]

Without an option it proves both controllers with small parameters.

  --real         prove both controllers with the parameters of the paper
  --faults       check that each planted fault breaks a proof
  --assumptions  check that no proof holds without one of its assumptions
  --list         print all registers and memory columns: the equal ones and the secret ones
  --rounds       print the progress of each search

README.md in this directory states the claim, the assumptions and the method.
"""

import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
HW = HERE.parent
BIN = Path(sys.executable).parent

# Literals of a graph: twice the number of a node, plus 1 for its negation.
FALSE, TRUE = 0, 1

# The omitted module. Its outputs are secret and arbitrary, which only adds behaviours.
SBOXES = "aes_sbox_pair"

# Nets of undefined bits have numbers from here down.
UNDEFINED = -1_000_000_000

# Patterns that a random simulation tries at once.
LANES = 2048


class Graph:
    """An and-inverter graph in which equal nodes are one node."""

    def __init__(self) -> None:
        self.left = [0]
        self.right = [0]
        self.known: dict[tuple[int, int], int] = {}

    def variable(self) -> int:
        """A new free variable."""
        self.left.append(-1)
        self.right.append(-1)
        return 2 * (len(self.left) - 1)

    def both(self, a: int, b: int) -> int:
        """a AND b."""
        if a > b:
            a, b = b, a
        if a == FALSE or a ^ b == 1:
            return FALSE
        if a == TRUE or a == b:
            return b
        found = self.known.get((a, b))
        if found is None:
            self.left.append(a)
            self.right.append(b)
            found = 2 * (len(self.left) - 1)
            self.known[(a, b)] = found
        return found

    def either(self, a: int, b: int) -> int:
        """a OR b."""
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differs(self, a: int, b: int) -> int:
        """a XOR b."""
        if a == b:
            return FALSE
        if a ^ b == 1:
            return TRUE
        if a <= TRUE:
            return b ^ a
        if b <= TRUE:
            return a ^ b
        sign = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        return self.both(self.both(a, b) ^ 1, self.both(a ^ 1, b ^ 1) ^ 1) ^ sign

    def choose(self, select: int, one: int, zero: int) -> int:
        """`one` if `select`, else `zero`."""
        if one == zero:
            return one
        return self.either(self.both(select, one), self.both(select ^ 1, zero))

    def all_of(self, literals: Iterable[int]) -> int:
        """The conjunction."""
        result = TRUE
        for literal in literals:
            result = self.both(result, literal)
        return result

    def any_of(self, literals: Iterable[int]) -> int:
        """The disjunction, as a balanced tree."""
        work = list(literals)
        while len(work) > 1:
            work = [
                self.either(work[i], work[i + 1]) if i + 1 < len(work) else work[i]
                for i in range(0, len(work), 2)
            ]
        return work[0] if work else FALSE

    def words_differ(self, a: list[int], b: list[int]) -> int:
        """Whether two words differ."""
        return self.any_of(self.differs(x, y) for x, y in zip(a, b, strict=True))

    def below(self, a: list[int], b: list[int]) -> int:
        """Whether a < b, unsigned. Words have their low bit first."""
        width = max(len(a), len(b))
        less = FALSE
        for x, y in zip(a + [FALSE] * (width - len(a)), b + [FALSE] * (width - len(b))):
            less = self.choose(self.differs(x, y), y, less)
        return less

    def cone(self, literals: Iterable[int]) -> list[int]:
        """The nodes that the literals depend on, in topological order."""
        seen: set[int] = set()
        work = [literal >> 1 for literal in literals]
        while work:
            node = work.pop()
            if node in seen:
                continue
            seen.add(node)
            if self.left[node] > TRUE:
                work += (self.left[node] >> 1, self.right[node] >> 1)
        return sorted(seen)

    def simulate(self, source: random.Random, near: dict[int, bool] | None = None) -> list[int]:
        """The values of all nodes for `LANES` random assignments, one bit an assignment.

        With `near`, the assignments are that one with a few flipped variables.
        """
        values = [0] * len(self.left)
        ones = (1 << LANES) - 1
        left, right = self.left, self.right
        for node in range(1, len(values)):
            a, b = left[node], right[node]
            if a < 0:
                value = source.getrandbits(LANES)
                if near is not None and node in near:
                    for _ in range(5):
                        value &= source.getrandbits(LANES)
                    value ^= ones if near[node] else 0
                values[node] = value
            else:
                x, y = values[a >> 1], values[b >> 1]
                values[node] = (x ^ ones if a & 1 else x) & (y ^ ones if b & 1 else y)
        return values

    def solve(self, required: list[int]) -> dict[int, bool] | None:
        """An assignment of nodes that makes all literals true, or None if there is none."""
        if FALSE in required:
            return None
        nodes = self.cone(required)
        number = {node: i + 1 for i, node in enumerate(nodes)}

        def term(literal: int) -> int:
            return -number[literal >> 1] if literal & 1 else number[literal >> 1]

        clauses = []
        for node in nodes:
            if node == 0:
                clauses.append(f"-{number[0]} 0")
            elif self.left[node] > TRUE:
                n, a, b = number[node], term(self.left[node]), term(self.right[node])
                clauses += (f"-{n} {a} 0", f"-{n} {b} 0", f"{n} {-a} {-b} 0")
        clauses += [f"{term(literal)} 0" for literal in required if literal != TRUE]
        with tempfile.NamedTemporaryFile("w", suffix=".cnf") as file:
            file.write(f"p cnf {len(nodes)} {len(clauses)}\n" + "\n".join(clauses) + "\n")
            file.flush()
            run = subprocess.run([str(BIN / "z3"), "-dimacs", file.name],
                                 capture_output=True, text=True)
        lines = run.stdout.split("\n")
        if "s UNSATISFIABLE" in lines:
            return None
        if "s SATISFIABLE" not in lines:
            sys.exit(f"error: z3 gave no verdict: {run.stdout[:400]}{run.stderr[:400]}")
        true = {int(word) for line in lines if line.startswith("v ")
                for word in line[2:].split()}
        return {node: number[node] in true for node in nodes}


class Memory(NamedTuple):
    """A memory. Bits of ports are numbers of nets, or "0" and "1"."""

    name: str
    width: int
    # Address and data of each read port; enables, address and data of each write port.
    reads: list[tuple[list[Any], list[Any]]]
    writes: list[tuple[list[Any], list[Any], list[Any]]]


class Gate(NamedTuple):
    """A gate. Its inputs are nets, or "0" and "1"."""

    kind: str
    inputs: tuple[Any, ...]
    output: int


class Read(NamedTuple):
    """Port `port` of a memory is read."""

    memory: Memory
    port: int


class Netlist:
    """A flat netlist of gates, flip-flops with one clock, and memories."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.names: dict[str, list[Any]] = {
            name: net["bits"] for name, net in module["netnames"].items()
            if not net.get("hide_name")
        }
        self.inputs: dict[str, list[Any]] = {}
        self.outputs: dict[str, list[Any]] = {}
        for name, port in module["ports"].items():
            (self.inputs if port["direction"] == "input" else self.outputs)[name] = port["bits"]
        gates: list[Gate] = []
        # Next state of each flip-flop, by the net of its state.
        self.next: dict[int, Any] = {}
        # The net of the state of each flip-flop, by its output: they differ during a reset.
        self.state: dict[int, int] = {}
        self.memories: list[Memory] = []
        # Outputs of omitted modules, and undefined bits: any values, in each copy.
        self.free: list[int] = []
        for cell in module["cells"].values():
            # An undefined bit has any value, in each copy.
            cell["connections"] = {pin: [self.defined(bit) for bit in bits]
                                   for pin, bits in cell["connections"].items()}
            kind, pins = cell["type"], cell["connections"]
            if kind == "$_DFF_P_":
                self.state[pins["Q"][0]] = pins["Q"][0]
                self.next[pins["Q"][0]] = pins["D"][0]
            elif kind in ("$_DFF_PN0_", "$_DFF_PN1_", "$_ALDFF_PN_"):
                # The reset is asynchronous: it acts on the output at once. New nets are negative.
                output = pins["Q"][0]
                reset, value = ((pins["L"][0], pins["AD"][0]) if kind == "$_ALDFF_PN_"
                                else (pins["R"][0], kind[-2]))
                gates.append(Gate("$_MUX_", (reset, -2 * output, value), output))
                gates.append(Gate("$_MUX_", (reset, pins["D"][0], value), -2 * output - 1))
                self.state[output] = -2 * output
                self.next[-2 * output] = -2 * output - 1
            elif kind == "$mem_v2":
                self.memories.append(self.memory_of(cell))
            elif kind in ("$_AND_", "$_OR_", "$_XOR_", "$_XNOR_", "$_NAND_", "$_NOR_",
                          "$_ANDNOT_", "$_ORNOT_"):
                gates.append(Gate(kind, (pins["A"][0], pins["B"][0]), pins["Y"][0]))
            elif kind in ("$_NOT_", "$_BUF_"):
                gates.append(Gate(kind, (pins["A"][0],), pins["Y"][0]))
            elif kind == "$_MUX_":
                gates.append(Gate(kind, (pins["S"][0], pins["B"][0], pins["A"][0]), pins["Y"][0]))
            elif kind == SBOXES:
                self.free += [bit for pin, bits in pins.items()
                              if cell["port_directions"][pin] == "output" for bit in bits]
            elif kind != "$scopeinfo":
                sys.exit(f"error: the netlist has a cell of kind {kind}")
        self.order = self.sort(gates)
        self.register_names = self.name_registers()

    def defined(self, bit: Any) -> Any:
        """The bit, or a new free net if it is undefined."""
        if bit != "x":
            return bit
        self.free.append(UNDEFINED - len(self.free))
        return self.free[-1]

    @staticmethod
    def memory_of(cell: dict[str, Any]) -> Memory:
        """The memory of a cell, whose reads have no register."""
        pins = cell["connections"]
        size = {k: int(cell["parameters"][k], 2)
                for k in ("WIDTH", "ABITS", "RD_PORTS", "WR_PORTS", "RD_CLK_ENABLE")}
        width, bits = size["WIDTH"], size["ABITS"]
        if size["RD_CLK_ENABLE"]:
            sys.exit("error: a memory has a registered read")

        def part(pin: str, port: int, of: int) -> list[Any]:
            return list(pins[pin][port * of:(port + 1) * of])

        return Memory(
            str(cell["parameters"]["MEMID"]).lstrip("\\"), width,
            [(part("RD_ADDR", p, bits), part("RD_DATA", p, width))
             for p in range(size["RD_PORTS"])],
            [(part("WR_EN", p, width), part("WR_ADDR", p, bits), part("WR_DATA", p, width))
             for p in range(size["WR_PORTS"])],
        )

    def sort(self, gates: list[Gate]) -> list[Gate | Read]:
        """Gates and reads of memories, each after its inputs."""
        source: dict[int, Gate | Read] = {gate.output: gate for gate in gates}
        for memory in self.memories:
            for port, (_, data) in enumerate(memory.reads):
                for bit in data:
                    source[bit] = Read(memory, port)
        order: list[Gate | Read] = []
        done: set[int] = set()
        for start in list(source):
            work: list[tuple[int, bool]] = [(start, False)]
            while work:
                net, entered = work.pop()
                if net in done:
                    continue
                item = source[net]
                if entered:
                    order.append(item)
                    if isinstance(item, Gate):
                        done.add(net)
                    else:
                        done.update(item.memory.reads[item.port][1])
                    continue
                work.append((net, True))
                inputs = (item.inputs if isinstance(item, Gate)
                          else item.memory.reads[item.port][0])
                work += [(n, False) for n in inputs if n in source and n not in done]
        return order

    def name_registers(self) -> dict[int, str]:
        """A name of each flip-flop: the deepest in the hierarchy, and then the shortest."""
        best: dict[int, tuple[int, int, str]] = {}
        for name, bits in self.names.items():
            for i, bit in enumerate(bits):
                if bit in self.state:
                    full = f"{name}[{i}]" if len(bits) > 1 else name
                    key = (-name.count("."), len(name), full)
                    if bit not in best or key < best[bit]:
                        best[bit] = key
        return {state: best[bit][2] if bit in best else f"net {bit}"
                for bit, state in self.state.items()}


def synthesize(top: str, parameters: dict[str, int], rtl: Path) -> Netlist:
    """Reads the controller and flattens it to gates."""
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "netlist.json"
        sources = sorted(rtl.glob("*.sv"), key=lambda path: (not path.stem.endswith("_pkg"), path))
        values = " ".join(f"-G {k}={v}" for k, v in parameters.items())
        script = [
            f"read_slang --allow-use-before-declare --blackboxed-module {SBOXES} "
            f"--top {top} {values} "
            + " ".join(map(str, sources)),
            f"hierarchy -check -top {top}",
            "proc",
            "flatten",
            "opt_expr",
            "opt_clean",
            "memory_collect",
            "dffunmap",
            "techmap",
            "simplemap",
            "opt_clean",
            f"write_json {output}",
        ]
        code = (
            "from pyosys import libyosys as ys\n"
            "design = ys.Design()\n"
            f"for command in {script!r}:\n"
            "    ys.run_pass(command, design)\n"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if run.returncode or not output.exists():
            sys.exit(f"error: Yosys failed:\n{(run.stdout + run.stderr)[-3000:]}")
        return Netlist(json.loads(output.read_text())["modules"][top])


# Secret inputs. All others are public, and equal in both copies.
SECRET_INPUTS = ("start_key_i", "cmd_op_i", "cmd_address_i", "cmd_new_leaf_i", "wdata_i",
                 "mem_rdata_i")

# Outputs that must be equal in both copies, in every cycle.
PUBLIC_OUTPUTS = ("start_ready_o", "entropy_ready_o", "cmd_ready_o", "wdata_ready_o",
                  "rsp_valid_o", "rsp_last_o", "rsp_status_o", "mem_cmd_valid_o",
                  "mem_cmd_write_o", "mem_cmd_address_o", "mem_wdata_valid_o",
                  "mem_wdata_strobe_o", "mem_rdata_ready_o", "closed_o")

# A register of the netlist (its net), or a column of a memory (its name and bit).
Element = int | tuple[str, int]


class Word(NamedTuple):
    """The values of a wire in both copies, low bit first."""

    a: list[int]
    b: list[int]


class Miter:
    """One step of two copies. Registers and memory columns in `public` are equal before it."""

    def __init__(self, netlist: Netlist, public: set[Element]) -> None:
        self.netlist = netlist
        self.graph = graph = Graph()
        # The values of nets in both copies.
        self.a: dict[Any, int] = {"0": FALSE, "1": TRUE}
        self.b: dict[Any, int] = dict(self.a)
        for name, bits in netlist.inputs.items():
            for bit in bits:
                self.set_variable(bit, name not in SECRET_INPUTS)
        for bit in netlist.free:
            self.set_variable(bit, False)
        for bit in netlist.next:
            self.set_variable(bit, bit in public)
        for item in netlist.order:
            if isinstance(item, Gate):
                inputs_a = [self.a[n] for n in item.inputs]
                inputs_b = [self.b[n] for n in item.inputs]
                self.a[item.output] = self.gate(item.kind, inputs_a)
                self.b[item.output] = (self.a[item.output] if inputs_a == inputs_b
                                       else self.gate(item.kind, inputs_b))
            else:
                self.read(item, public)
        # Whether an element differs after the step.
        self.after: dict[Element, int] = {
            bit: graph.differs(self.a[d], self.b[d]) for bit, d in netlist.next.items()
        }
        for memory in netlist.memories:
            for column in range(memory.width):
                self.after[(memory.name, column)] = self.column_differs(memory, column)

    def set_variable(self, net: int, shared: bool) -> None:
        """Gives a net a free value: the same in both copies, or one in each."""
        self.a[net] = self.graph.variable()
        self.b[net] = self.a[net] if shared else self.graph.variable()

    def gate(self, kind: str, pins: list[int]) -> int:
        """The value of a gate."""
        graph = self.graph
        match kind:
            case "$_AND_":
                return graph.both(*pins)
            case "$_NAND_":
                return graph.both(*pins) ^ 1
            case "$_OR_":
                return graph.either(*pins)
            case "$_NOR_":
                return graph.either(*pins) ^ 1
            case "$_XOR_":
                return graph.differs(*pins)
            case "$_XNOR_":
                return graph.differs(*pins) ^ 1
            case "$_ANDNOT_":
                return graph.both(pins[0], pins[1] ^ 1)
            case "$_ORNOT_":
                return graph.either(pins[0], pins[1] ^ 1)
            case "$_NOT_":
                return pins[0] ^ 1
            case "$_BUF_":
                return pins[0]
            case _:
                return graph.choose(*pins)

    def read(self, item: Read, public: set[Element]) -> None:
        """A column that is equal in both copies returns equal bits for equal addresses.

        Nothing else is known of the bits, not even that equal reads return equal bits. This only
        adds behaviours.
        """
        address, data = item.memory.reads[item.port]
        differ = self.graph.words_differ([self.a[n] for n in address],
                                         [self.b[n] for n in address])
        for column, net in enumerate(data):
            shared = (item.memory.name, column) in public and differ != TRUE
            self.set_variable(net, shared)
            if shared and differ != FALSE:
                self.b[net] = self.graph.choose(differ, self.graph.variable(), self.a[net])

    def column_differs(self, memory: Memory, column: int) -> int:
        """Whether the writes of this step may make an equal column unequal."""
        graph = self.graph
        bad = FALSE
        for enable, address, data in memory.writes:
            on_a, on_b = self.a[enable[column]], self.b[enable[column]]
            other = graph.either(
                graph.words_differ([self.a[n] for n in address], [self.b[n] for n in address]),
                graph.differs(self.a[data[column]], self.b[data[column]]),
            )
            bad = graph.either(bad, graph.either(graph.differs(on_a, on_b),
                                                 graph.both(on_a, other)))
        return bad

    def wire(self, name: str) -> Word:
        """The values of a wire in this cycle."""
        bits = self.netlist.names[name]
        return Word([self.a[n] for n in bits], [self.b[n] for n in bits])

    def register(self, name: str, after: bool) -> Word:
        """The values of a register before or after the step."""
        bits = [self.netlist.state[n] for n in self.netlist.names[name]]
        if after:
            bits = [self.netlist.next[n] for n in bits]
        return Word([self.a[n] for n in bits], [self.b[n] for n in bits])


def constant(value: int) -> list[int]:
    """The literals of a number."""
    return [value >> i & 1 for i in range(value.bit_length())]


# The names of all assumptions.
ASSUMPTIONS = ("append is public", "commands are in range", "equal demand for evictions",
               "no corrupt bucket", "no block twice", "bounded stash")


def assumptions(miter: Miter, parameters: dict[str, int], raw: bool) -> dict[str, int]:
    """What the proof assumes, by name. README.md gives the argument for each."""
    graph = miter.graph
    top = "u_backend."

    def same(name: str) -> int:
        return graph.words_differ(*miter.wire(top + name)) ^ 1

    def implies(a: int, b: int) -> int:
        return graph.either(a ^ 1, b)

    op = miter.wire("cmd_op_i")
    valid = miter.wire("cmd_valid_i").a[0]
    idle = miter.wire(top + "placer_idle")
    begin = miter.wire(top + "evict_begin")
    count = miter.wire(top + "count")
    # One more than the most entries at the start of an eviction.
    limit = constant(parameters["StashBlocksMax"] + (parameters["EvictPeriodMax"] if raw else 1)
                     + 1)
    return {
        "append is public":
            implies(valid, graph.differs(graph.both(*op.a), graph.both(*op.b)) ^ 1),
        "commands are in range": implies(valid, same("cmd_good")),
        "equal demand for evictions":
            implies(graph.both(idle.a[0], idle.b[0]), same("over_bound")),
        "no corrupt bucket": same("corrupt"),
        "no block twice": same("found_twice"),
        "bounded stash": graph.both(implies(begin.a[0], graph.below(count.a, limit)),
                                    implies(begin.b[0], graph.below(count.b, limit))),
    }


def start_facts(miter: Miter, after: bool) -> dict[str, int]:
    """No round key is there before the start. The registers are public."""
    graph = miter.graph
    started, has_key, number = (miter.register("u_backend." + name, after).a
                                for name in ("started_q", "u_keys.has_key_q", "u_keys.round_q"))
    return {
        "a start takes the key": graph.differs(started[0], has_key[0]) ^ 1,
        "no round without a key": graph.either(has_key[0], graph.any_of(number) ^ 1),
    }


def period_facts(miter: Miter, after: bool, period_max: int) -> dict[str, int]:
    """RAW ORAM: fewer than A accesses have passed since the last eviction.

    The registers are public, so one copy is enough.
    """
    graph = miter.graph

    def register(name: str) -> list[int]:
        return miter.register("u_backend." + name, after).a

    def implies(a: int, b: int) -> int:
        return graph.either(a ^ 1, b)

    started, good = register("started_q")[0], register("period_good_q")[0]
    round_is_0 = graph.any_of(register("u_keys.round_q")) ^ 1
    is_open = graph.any_of(register("status_q")) ^ 1
    since, period = register("since_q"), register("period_q")
    return {
        "a good A needs a start": implies(good, started),
        "a bad A closes before the last round key": implies(
            graph.both(graph.both(started, good ^ 1), is_open), round_is_0),
        "a good A is in range": implies(good, graph.both(
            graph.any_of(period), graph.below(constant(period_max), period) ^ 1)),
        "a command waits only with a good A": implies(register("second_valid_q")[0], good),
        "accesses since the last eviction < A": graph.either(
            graph.any_of(since) ^ 1, graph.both(good, graph.below(since, period))),
    }


def facts(miter: Miter, after: bool, parameters: dict[str, int], raw: bool) -> dict[str, int]:
    """Invariants beyond equal registers, before or after the step.

    They make secret registers harmless: an operation code of which only "append" matters, and the
    visit of the stash, which ends within the time that is reserved for it.
    """
    graph = miter.graph
    result = start_facts(miter, after)
    if raw:
        result |= period_facts(miter, after, parameters["EvictPeriodMax"])
    for name in ("u_backend.op_q", "u_backend.u_server.op_q"):
        op = miter.register(name, after)
        result[f"{name} == OpAppend is equal"] = graph.differs(
            graph.both(*op.a), graph.both(*op.b)) ^ 1
    if raw:
        # The operation code is the field of second_q with the highest bits.
        second = miter.register("u_backend.second_q", after)
        waits = miter.register("u_backend.second_valid_q", after).a[0]
        result["op == OpAppend of a waiting command is equal"] = graph.either(
            waits ^ 1, graph.differs(graph.both(*second.a[-2:]), graph.both(*second.b[-2:])) ^ 1)
    placer = "u_backend.u_placer."
    state = miter.register(placer + "state_q", after)
    scan = miter.register(placer + "scan_q", after)
    visit = miter.register(placer + "to_visit_q", after)
    visiting = miter.register(placer + "visiting_q", after)
    for copy in (0, 1):
        # The state Scan has the code 1.
        scanning = graph.both(state[copy][0], state[copy][1] ^ 1)
        result[f"scan time is left, copy {copy}"] = graph.either(
            scanning ^ 1, graph.any_of(scan[copy]))
        result[f"entries left <= scan time left, copy {copy}"] = graph.either(
            scanning ^ 1, graph.below(scan[copy], visit[copy]) ^ 1)
    scanning = graph.both(state.a[0], state.a[1] ^ 1)
    full = [graph.below(visit[copy], scan[copy]) ^ 1 for copy in (0, 1)]
    result["entries left == scan time left is equal"] = graph.either(
        scanning ^ 1, graph.differs(*full) ^ 1)
    result["visiting_q is equal after the scan"] = graph.either(
        scanning, graph.differs(visiting.a[0], visiting.b[0]) ^ 1)
    return result


def events(miter: Miter, raw: bool) -> dict[str, int]:
    """Events that the assumptions must not exclude, so that the proof is not vacuous."""
    graph = miter.graph
    running = miter.wire("rst_ni").a[0]
    names = ["accept", "evict_begin", "mem_cmd_valid_o", "mem_wdata_valid_o", "rsp_valid_o"]
    result = {name: graph.both(running, miter.wire("u_backend." + name).a[0])
              for name in names + (["evict_follow"] if raw else [])}
    for name in ("rsp_found_o", "rsp_data_o", "mem_wdata_o"):
        result[f"{name} differs"] = graph.both(running, graph.words_differ(*miter.wire(name)))
    return result


class Stream(NamedTuple):
    """A stream of requests for masks that seal paths."""

    name: str
    # Its bit in `takes`, and its registers. The number of a walk is in `number`, low word first.
    code: int
    active: str
    beat: str
    level: str
    number: list[str]
    # Beats of a bucket that it requests.
    beats: int


def streams(parameters: dict[str, int], raw: bool) -> list[Stream]:
    """The streams of a controller."""
    bucket_beats = 1 + parameters["BucketSlots"] * parameters["BlockBytes"] // 64
    result = [Stream("encoding", 2, "encoding_q", "encode_beat_q", "u_encode_path.level_q",
                     ["writes_q"], 1 if raw else bucket_beats)]
    if raw:
        result.append(Stream("body", 3, "walking_q", "body_beat_q", "u_body_path.level_q",
                             ["for_write_q", "ahead_q"], bucket_beats))
    return result


def mask_facts(miter: Miter, after: bool, parameters: dict[str, int],
               raw: bool) -> dict[str, int]:
    """Invariants of the walks that request masks."""
    graph = miter.graph
    result = {}
    for stream in streams(parameters, raw):

        def register(name: str) -> list[int]:
            return miter.register("u_backend.u_masks." + name, after).a

        result[f"{stream.name}: level in range"] = graph.either(
            register(stream.active)[0] ^ 1,
            graph.below(register(stream.level), constant(parameters["LeafLevel"] + 1)))
        result[f"{stream.name}: beat in range"] = graph.below(
            register(stream.beat), constant(stream.beats))
        is_begun = graph.all_of([*register("begun_in_q"), *(
            bit ^ 1 ^ (stream.code >> i & 1) for i, bit in enumerate(register("begun_q")))])
        result[f"{stream.name}: a request that has begun is in a walk"] = graph.either(
            is_begun ^ 1, register(stream.active)[0])
    return result


def repeated_masks(miter: Miter, parameters: dict[str, int], raw: bool) -> dict[str, int]:
    """Steps after which a stream could request the same mask a second time.

    The name of a request is the number of its walk, its level and its beat, in this order. Names
    rise from each request to the next. A walk of encoding is numbered by the operation. A walk of
    bodies is numbered by the EO access, and whether it is for the read or for the write.
    """
    graph = miter.graph
    masks = "u_backend.u_masks."

    def register(name: str, after: bool) -> list[int]:
        return miter.register(masks + name, after).a

    running = miter.wire("rst_ni").a[0]
    started = miter.register("u_backend.started_q", False).a[0]
    result = {}
    for stream in streams(parameters, raw):
        takes = miter.wire(masks + "takes").a[stream.code]
        number, number_after = ([bit for name in stream.number for bit in register(name, after)]
                                for after in (False, True))
        place, place_after = (register(stream.beat, after) + register(stream.level, after)
                              for after in (False, True))
        active = register(stream.active, False)[0]
        active_after = register(stream.active, True)[0]
        result[f"{stream.name}: a request before the start"] = graph.both(takes, started ^ 1)
        # 2^64 walks never happen. The numbers begin with what the start brings.
        some = graph.all_of([running, started, graph.all_of(number) ^ 1])
        same = graph.words_differ(number, number_after) ^ 1
        rises = graph.below(number, number_after)
        goes_on = graph.both(active, active_after)
        # The number of an encoding walk rises at its start, the number of a body walk at its end.
        renewed = (graph.both(active ^ 1, active_after) if stream.name == "encoding"
                   else graph.both(active, active_after ^ 1))
        result |= {f"{stream.name}: {name}": graph.both(some, bad) for name, bad in {
            "a request outside a walk": graph.both(takes, active ^ 1),
            "the number falls": graph.either(rises, same) ^ 1,
            "the number changes during a walk": graph.both(goes_on, same ^ 1),
            "a request is repeated": graph.all_of(
                [takes, goes_on, graph.below(place, place_after) ^ 1]),
            "a walk goes back": graph.both(goes_on, graph.below(place_after, place)),
            "a walk has the number of the last one": graph.both(renewed, rises ^ 1),
        }.items()}
    return result


class Result(NamedTuple):
    """The outcome of a proof: what failed (nothing if proved), and the elements by class."""

    failed: list[str]
    public: list[str]
    secret: list[str]
    rounds: int


def element_name(netlist: Netlist, element: Element) -> str:
    """The name of a register or a memory column."""
    if isinstance(element, int):
        return netlist.register_names[element]
    return f"{element[0]}[*][{element[1]}]"


def differing(graph: Graph, values: list[int], required: list[int],
              candidates: dict[Element, int]) -> tuple[set[Element], int]:
    """The elements that differ in a simulated run that is allowed, and the number of such runs."""
    ones = (1 << LANES) - 1

    def lanes(literal: int) -> int:
        return values[literal >> 1] ^ (ones if literal & 1 else 0)

    allowed = ones
    for literal in required:
        allowed &= lanes(literal)
    return {e for e, d in candidates.items() if lanes(d) & allowed}, allowed.bit_count()


def possible(graph: Graph, required: list[int], bad: dict[str, int]) -> list[str]:
    """The names of what may happen."""
    # Mostly nothing may, and one search is enough.
    if graph.solve([*required, graph.any_of(bad.values())]) is None:
        return []
    return [name for name, literal in bad.items()
            if graph.solve([*required, literal]) is not None]


def prove(netlist: Netlist, parameters: dict[str, int], raw: bool, without: str,
          log: Callable[[str], None]) -> Result:
    """Finds the largest set of registers whose equality is inductive, and checks the pins.

    The assumption `without` is not made.
    """
    public: set[Element] = set(netlist.next)
    for memory in netlist.memories:
        public |= {(memory.name, column) for column in range(memory.width)}
    everything = set(public)
    source = random.Random(1)
    rounds = 0
    while True:
        rounds += 1
        miter = Miter(netlist, public)
        graph = miter.graph
        assumed = assumptions(miter, parameters, raw)
        assumed.pop(without, None)
        before = facts(miter, False, parameters, raw)
        required = [*assumed.values(), *before.values()]
        # Nodes that are equal by construction need no search.
        candidates = {e: miter.after[e] for e in public if miter.after[e] != FALSE}
        broken, runs = differing(graph, graph.simulate(source), required, candidates)
        how = f"simulation, {runs} of {LANES} runs allowed"
        if not broken:
            how = "search"
            while model := graph.solve([
                *required, graph.any_of(d for e, d in candidates.items() if e not in broken)
            ]):
                found, runs = differing(graph, graph.simulate(source, model), required,
                                        candidates)
                broken |= found | {
                    e for e, d in candidates.items()
                    if d == TRUE or model.get(d >> 1, False) != bool(d & 1)
                }
        log(f"round {rounds}: {len(graph.left)} nodes, {len(public)} equal, "
            f"{len(candidates)} to check, {len(broken)} not preserved ({how})")
        if not broken:
            break
        public -= broken

    failed = [f"never happens: {name}" for name, event in events(miter, raw).items()
              if graph.solve([*required, event]) is None]
    failed += possible(graph, required, {
        f"pin {name}": graph.words_differ(*miter.wire(name)) for name in PUBLIC_OUTPUTS})
    after = facts(miter, True, parameters, raw)
    failed += possible(graph, required, {
        f"invariant {name}": holds ^ 1 for name, holds in after.items()})
    in_range = mask_facts(miter, True, parameters, raw)
    failed += possible(
        graph, [*required, *mask_facts(miter, False, parameters, raw).values()],
        {f"invariant {name}": holds ^ 1 for name, holds in in_range.items()}
        | {f"repeated mask, {name}": bad
           for name, bad in repeated_masks(miter, parameters, raw).items()})
    # The invariants hold after a reset, whatever was before.
    failed += possible(graph, [miter.wire("rst_ni").a[0] ^ 1], {
        f"reset of {name}": holds ^ 1 for name, holds in (after | in_range).items()})
    return Result(failed, sorted(element_name(netlist, e) for e in public),
                  sorted(element_name(netlist, e) for e in everything - public), rounds)


def summary(names: list[str]) -> dict[str, int]:
    """Names without bit numbers, with the number of bits."""
    result: dict[str, int] = {}
    for name in names:
        base = re.sub(r"\[[0-9*]+\]", "", name)
        result[base] = result.get(base, 0) + 1
    return result


class Proof(NamedTuple):
    """A controller with parameters. `without` names an assumption that is not made."""

    name: str
    top: str
    parameters: dict[str, int]
    without: str = ""


SMALL = {"BlockBytes": 64, "StashBlocksMax": 4, "SubtreeLevels": 2, "LeafLevel": 2,
         "BucketSlots": 2, "AesCores": 1}

PROOFS = [
    Proof("raw", "raw_backend", SMALL | {"EvictPeriodMax": 3, "BodyDepth": 16}),
    Proof("path", "path_backend", SMALL),
]

# The parameters of the paper's Table II.
REAL = [
    Proof("raw-20", "raw_backend",
          {"LeafLevel": 20, "BucketSlots": 5, "StashBlocksMax": 64, "BlockBytes": 64,
           "EvictPeriodMax": 8}),
    Proof("path-20", "path_backend",
          {"LeafLevel": 20, "BucketSlots": 4, "StashBlocksMax": 78, "BlockBytes": 64}),
]


class Fault(NamedTuple):
    """A text of a source, the wrong text in its place, and the proof that must fail."""

    name: str
    source: str
    right: str
    wrong: str
    proof: str


FAULTS = [
    Fault("write strobes leave dummies out", "path_writer",
          "sealing_headers_q ? HeaderStrobe : '1;",
          "sealing_headers_q ? HeaderStrobe : sealing_header_q || sealing_real_q ? '1 : '0;",
          "raw"),
    Fault("header strobes tell what the address table holds", "path_writer",
          "sealing_headers_q ? HeaderStrobe : '1;",
          "sealing_headers_q ? (old_table[0] ? HeaderStrobe : '0) : '1;", "raw"),
    Fault("the scan ends with the last entry", "placer",
          "if (scan_q == ScanWidth'(1)) begin",
          "if (scan_q == ScanWidth'(1) || to_visit_q == '0) begin", "path"),
    Fault("the scan is two entries short", "oram_backend",
          ".ScanCycles (StashBlocksMax + Beyond)", ".ScanCycles (StashBlocksMax + Beyond - 2)",
          "path"),
    Fault("the answer leaves as soon as the block is found", "oram_backend",
          "(scanned && (opened_q || op_q == OpAppend));",
          "(scanned && (opened_q || stash_found || op_q == OpAppend));", "path"),
    Fault("a memory command is skipped if the stash has the block", "oram_backend",
          ".cmd_ready_i  (mem_cmd_ready_i),", ".cmd_ready_i  (mem_cmd_ready_i || stash_found),",
          "raw"),
    Fault("an AO access asks for masks only if the block is found", "block_server",
          "headers_i && serving_o && !mask_asked_q;",
          "headers_i && serving_o && !mask_asked_q && found_on_path_i;", "raw"),
    Fault("the exchange waits for masks only if the block is found", "block_server",
          "(mask_valid_i || !Raw || op_q == OpAppend);",
          "(mask_valid_i || !Raw || op_q == OpAppend || !found_q);", "raw"),
    Fault("opening waits for a free slot of the stash", "path_reader",
          "assign beat_take = walking_q && beat_valid &&",
          "assign beat_take = walking_q && free_valid_i && beat_valid &&", "path"),
    Fault("dummies of the path do not arrive", "path_reader",
          "(is_block && block_first && !is_access_only) || mark_q;",
          "(is_block && block_first && !is_access_only && entry.real_block) || mark_q;", "raw"),
    Fault("dummies take no body mask", "path_writer",
          "assign needs_body = Raw && !sealing_headers_q;",
          "assign needs_body = Raw && !sealing_headers_q && (sealing_header_q || sealing_real_q);",
          "raw"),
    Fault("commands wait for room in the stash", "oram_backend",
          "assign free_to_begin = !server_busy &&",
          "assign free_to_begin = count < CountWidth'(3) && !server_busy &&", "path"),
    Fault("a second command is accepted only if the first was found", "oram_backend",
          "session_q && op_q != OpAppend && !due_q;",
          "session_q && op_q != OpAppend && !due_q && path_found;", "raw"),
    Fault("an eviction is skipped if the stash is empty", "oram_backend",
          "assign evict_follow = evict_pending_q &&",
          "assign evict_follow = evict_pending_q && count != '0 &&", "raw"),
    Fault("reads take no user data", "block_server",
          "assign data_ready_o = state_q != Idle && !has_data_q;",
          "assign data_ready_o = state_q != Idle && !has_data_q && is_write;", "path"),
    Fault("a user's block is answered early if it is new", "block_server",
          "state_q <= fail_i ? Finish : Load;", "state_q <= fail_i || !found ? Finish : Load;",
          "path"),
    Fault("two operations seal with one counter", "mask_scheduler",
          "writes_q <= writes_q + 64'd1;", "writes_q <= writes_q + 64'(op_valid_i);", "path"),
    Fault("two EO accesses have one number", "mask_scheduler",
          "ahead_q <= ahead_q + 64'(for_write_q);",
          "ahead_q <= ahead_q + 64'(for_write_q && ahead_q[0]);", "raw"),
]


class Outcome(NamedTuple):
    """The result of a proof, its seconds, and its progress."""

    result: Result
    seconds: float
    log: list[str]


def run(proof: Proof, rtl: Path = HW / "rtl") -> Outcome:
    """Proves one controller."""
    began = time.monotonic()
    log: list[str] = []
    netlist = synthesize(proof.top, proof.parameters, rtl)
    log.append(f"synthesis: {time.monotonic() - began:.1f} s")
    result = prove(netlist, proof.parameters, proof.top == "raw_backend", proof.without, log.append)
    return Outcome(result, time.monotonic() - began, log)


def plant(fault: Fault) -> Outcome:
    """Runs the proof of a fault on a copy of the RTL that has the fault."""
    proof = next(p for p in PROOFS if p.name == fault.proof)
    with tempfile.TemporaryDirectory() as directory:
        rtl = Path(directory) / "rtl"
        shutil.copytree(HW / "rtl", rtl)
        path = rtl / f"{fault.source}.sv"
        text = path.read_text()
        if text.count(fault.right) != 1:
            sys.exit(f"error: {path.name} has the text of a fault {text.count(fault.right)} times: "
                     f"{fault.right}")
        path.write_text(text.replace(fault.right, fault.wrong))
        return run(proof, rtl)


def attempt(work: Proof | Fault) -> Outcome:
    """Runs a proof, or plants a fault."""
    return run(work) if isinstance(work, Proof) else plant(work)


def main() -> None:
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if unknown := options - {"--real", "--faults", "--assumptions", "--list", "--rounds"}:
        sys.exit(f"error: unknown option {' '.join(sorted(unknown))}")
    work: list[Proof | Fault]
    if "--faults" in options:
        work = list(FAULTS)
    elif "--assumptions" in options:
        work = [proof._replace(name=f"{proof.name} without: {name}", without=name)
                for proof in PROOFS for name in ASSUMPTIONS]
    else:
        work = list(REAL if "--real" in options else PROOFS)
    work = [item for item in work if not names or any(re.search(n, item.name) for n in names)]
    if not work:
        sys.exit("error: no proof or fault has this name")
    to_fail = bool({"--faults", "--assumptions"} & options)
    bad = 0
    with ProcessPoolExecutor(2) as pool:
        for item, (result, seconds, log) in zip(work, pool.map(attempt, work)):
            good = bool(result.failed) == to_fail
            bad += not good
            verdict = f"fails: {', '.join(result.failed)}" if result.failed else "proved"
            print(f"{'ok ' if good else 'BAD'} {seconds:5.1f} s  {item.name}: {verdict}; "
                  f"{len(result.public)} bits equal, {len(result.secret)} secret", flush=True)
            if "--rounds" in options:
                print("\n".join(log))
            if "--list" in options:
                for title, elements in (("equal", result.public), ("secret", result.secret)):
                    print(f"  {title}:")
                    for name, bits in summary(elements).items():
                        print(f"    {name} ({bits} bits)")
    print(f"{len(work)} {'attempts to fail' if to_fail else 'proofs'}, {bad} not as expected")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
