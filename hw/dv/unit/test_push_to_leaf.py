# SPDX-License-Identifier: Apache-2.0 OR MIT
"""PushToLeaf against the loop that Algorithm 1 of Tiny ORAM replaces."""

import itertools
import random
from collections import deque
from functools import cache

import cocotb
from cocotb.triggers import FallingEdge
from common import element, start

LATENCY = 3


@cache
def place(leaf_level, bucket_slots, path, leaf, occupied):
    """The deepest bucket with room on both paths: (level, index, occupied afterwards) or None."""
    for level in range(leaf_level, -1, -1):
        shared = path % 2**level == leaf % 2**level
        if shared and occupied[level] < bucket_slots:
            after = occupied[:level] + (occupied[level] + 1,) + occupied[level + 1:]
            return level, occupied[level], after
    return None


# The small instances: element number, LeafLevel, BucketSlots, leaf of the path.
SMALL = [
    (2 * (2**l - 1 + path) + z - 1, l, z, path)
    for l in range(3) for path in range(2**l) for z in (1, 2)
]


async def run_small(dut, cycles) -> None:
    """Drives (start, valid, real, leaf, slot, expected value and mask) cycle by cycle."""
    pending = deque([(0, sum(1 << (15 * i + 14) for i in range(14)))] * (LATENCY - 1))
    for begin, valid, real, leaf, slot, expected in cycles:
        dut.push_start_i.value = begin
        dut.push_valid_i.value = valid
        dut.push_real_i.value = real
        dut.push_leaf_i.value = leaf
        dut.push_slot_i.value = slot
        pending.append(expected)
        await FallingEdge(dut.clk_i)
        value, mask = pending.popleft()
        assert int(dut.push_o.value) & mask == value


def scan(blocks):
    """The cycles of one scan: (real, leaf) per block, then the time to drain the pipeline."""
    idle = (0, sum(1 << (15 * i + 14) for i in range(14)))
    yield 1, 0, 0, 0, 0, idle
    occupied = {number: (0,) * (l + 1) for number, l, _, _ in SMALL}
    for slot, (real, leaf) in enumerate(blocks):
        value = mask = 0
        for number, l, z, path in SMALL:
            found = place(l, z, path, leaf % 2**l, occupied[number]) if real else None
            entry = 1 << 14 | real << 13 | slot << 8
            care = 0x7F00
            if found:
                entry |= 1 << 12 | found[0] << 4 | found[1]
                care = 0x7FFF
                occupied[number] = found[2]
            value |= entry << (15 * number)
            mask |= care << (15 * number)
        yield 0, 1, real, leaf, slot, (value, mask)
    for _ in range(LATENCY - 1):
        yield 0, 0, 1, 0, 0, idle


@cocotb.test()
async def all_sequences_of_five_blocks_up_to_leaf_level_2(dut) -> None:
    await start(dut)
    choices = [(1, 0), (1, 1), (1, 2), (1, 3), (0, 1)]
    sequences = itertools.product(choices, repeat=5)
    await run_small(dut, itertools.chain.from_iterable(scan(blocks) for blocks in sequences))


@cocotb.test()
async def long_scans_fill_whole_paths(dut) -> None:
    random.seed(5)
    await start(dut)
    scans = [
        [(int(random.random() < 0.9), random.randrange(4)) for _ in range(16)] for _ in range(200)
    ]
    await run_small(dut, itertools.chain.from_iterable(scan(blocks) for blocks in scans))


@cocotb.test()
async def figure_3(dut) -> None:
    # Z = 2 and the path to leaf 1, with buckets b1 (leaf), b2 and b3 (root). Two blocks fill b1 and
    # one is in b2. A (leaf 1) then goes to b2 and B, which shares b2 and b3, to the root.
    await start(dut)
    l, z, path = 2, 2, 1
    number = 2 * (2**l - 1 + path) + z - 1
    blocks = [1, 1, 3, 1, 3]
    expected = [(2, 0), (2, 1), (1, 0), (1, 1), (0, 0)]
    seen = []
    dut.push_start_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.push_start_i.value = 0
    dut.push_real_i.value = 1
    for cycle in range(len(blocks) + LATENCY):
        dut.push_valid_i.value = int(cycle < len(blocks))
        dut.push_leaf_i.value = blocks[cycle] if cycle < len(blocks) else 0
        await FallingEdge(dut.clk_i)
        entry = element(dut.push_o, 15, number)
        if entry >> 14:
            assert entry >> 12 & 1
            seen.append((entry >> 4 & 0xF, entry & 0xF))
    assert seen == expected


@cocotb.test()
async def random_scans_with_gaps_at_leaf_level_20_and_5(dut) -> None:
    random.seed(6)
    await start(dut)
    shapes = [(20, 4), (5, 3)]
    stuck = [0, 0]
    for _ in range(25):
        path = random.getrandbits(20)
        dut.big_start_i.value = 1
        dut.big_path_leaf_i.value = path
        dut.big_valid_i.value = 0
        await FallingEdge(dut.clk_i)
        dut.big_start_i.value = 0
        occupied = [(0,) * (l + 1) for l, _ in shapes]
        pending = deque([None] * (LATENCY - 1))
        for cycle in range(220):
            valid = cycle < 200 and random.random() < 0.8
            real = random.random() < 0.9
            # Random leaves share few levels with the path: let the first difference be uniform.
            leaf = path ^ (random.getrandbits(20) << random.randrange(21) & 0xFFFFF)
            slot = random.getrandbits(8)
            dut.big_valid_i.value = int(valid)
            dut.big_real_i.value = int(real)
            dut.big_leaf_i.value = leaf
            dut.big_slot_i.value = slot
            results = []
            for i, (l, z) in enumerate(shapes):
                found = None
                if valid and real:
                    found = place(l, z, path % 2**l, leaf % 2**l, occupied[i])
                    stuck[i] += found is None
                if found:
                    occupied[i] = found[2]
                results.append(found)
            pending.append((real, slot, results) if valid else None)
            await FallingEdge(dut.clk_i)
            expected = pending.popleft()
            for i in range(2):
                entry = element(dut.big_o, 19, i)
                if expected is None:
                    assert entry >> 18 == 0
                    continue
                found = expected[2][i]
                assert entry >> 8 == (
                    0b100 | expected[0] << 1 | (found is not None)
                ) << 8 | expected[1]
                if found:
                    assert (entry >> 3 & 0x1F, entry & 7) == found[:2]
    assert min(stuck) > 100
