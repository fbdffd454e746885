# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The eviction counts of section IV-D against a count of the evictions of every bucket."""

import random

import cocotb
from cocotb.triggers import FallingEdge
from common import elements, start

LEAF_LEVELS = [0, 1, 2, 3, 4, 20, 40]


async def begin(dut, leaf: int, evictions: int) -> None:
    """Starts all walks. Returns with the root at the output."""
    dut.evict_start_i.value = 1
    dut.evict_leaf_i.value = leaf
    dut.evict_evictions_i.value = evictions
    await FallingEdge(dut.clk_i)
    dut.evict_start_i.value = 0


async def step(dut) -> None:
    """Moves all walks one level down."""
    dut.evict_step_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.evict_step_i.value = 0


def read(dut):
    """Level, index, bucket and evictions of each walk."""
    return list(zip(
        elements(dut.evict_level_o, 6, 7), elements(dut.evict_index_o, 40, 7),
        elements(dut.evict_bucket_o, 41, 7), elements(dut.evict_evictions_o, 64, 7),
    ))


@cocotb.test()
async def counts_equal_the_evictions_of_every_bucket_up_to_leaf_level_4(dut) -> None:
    await start(dut)
    # Evictions of each bucket so far, by LeafLevel, level and index.
    counts = {l: [[0] * 2**d for d in range(l + 1)] for l in range(5)}
    for evictions in range(50):
        for leaf in range(16):
            await begin(dut, leaf, evictions)
            for level in range(5):
                walks = read(dut)
                for l in range(level, 5):
                    index = leaf % 2**level
                    bucket = 2**level - 1 + index
                    assert walks[l] == (level, index, bucket, counts[l][level][index])
                await step(dut)
        for l in range(5):
            # Reverse lexicographic order: eviction number G goes to leaf G mod 2^L.
            for level in range(l + 1):
                counts[l][level][evictions % 2**l % 2**level] += 1


@cocotb.test()
async def figure_5(dut) -> None:
    # L = 2. G = 0, 1, 2, 3 evict the paths to leaves 0, 1, 2, 3, then the order repeats. Evictions
    # of root, middle and leaf bucket on the path that is evicted next:
    expected = {0: (0, 0, 0), 1: (1, 0, 0), 2: (2, 1, 0), 3: (3, 1, 0), 4: (4, 2, 1), 5: (5, 2, 1)}
    await start(dut)
    for evictions, counts in expected.items():
        await begin(dut, evictions % 4, evictions)
        for level in range(3):
            assert read(dut)[2][3] == counts[level], (evictions, level)
            await step(dut)


@cocotb.test()
async def large_counts_do_not_overflow(dut) -> None:
    random.seed(7)
    await start(dut)
    for number in range(60):
        leaf = random.getrandbits(40)
        evictions = random.choice([2**64 - 1 - number, random.getrandbits(64)])
        await begin(dut, leaf, evictions)
        for level in range(41):
            walks = read(dut)
            for i, leaf_level in enumerate(LEAF_LEVELS):
                if level <= leaf_level:
                    index = leaf % 2**level
                    # The number of G < evictions with G = index modulo 2^level.
                    count = (evictions - index + 2**level - 1) // 2**level
                    assert walks[i] == (level, index, 2**level - 1 + index, count)
            # The output must not move without a step.
            if level % 8 == 3:
                await FallingEdge(dut.clk_i)
                assert read(dut) == walks
            await step(dut)
