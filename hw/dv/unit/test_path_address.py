# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The address map against a walk through memory, bucket by bucket."""

import random

import cocotb
from cocotb.triggers import Timer
from common import elements

# LeafLevel, SubtreeLevels, BucketBeats.
MAPS = [
    (0, 4, 6), (1, 4, 6), (3, 2, 6), (4, 4, 5), (5, 1, 3), (6, 4, 6), (6, 7, 321), (20, 4, 6),
    (40, 4, 65),
]


def buckets_in_order(leaf_level: int, subtree_levels: int):
    """(level, index) of all buckets in the order of their addresses."""
    for top in range(0, leaf_level + 1, subtree_levels):
        for root in range(2**top):
            for level in range(top, min(top + subtree_levels, leaf_level + 1)):
                for index in range(root, 2**level, 2**top):
                    yield level, index


@cocotb.test()
async def every_bucket_of_small_trees(dut) -> None:
    random.seed(8)
    places = [
        {bucket: place for place, bucket in enumerate(buckets_in_order(l, k))} if l < 10 else {}
        for l, k, _ in MAPS
    ]
    assert all(len(p) == 2**(m[0] + 1) - 1 for p, m in zip(places, MAPS) if p)
    for level in range(7):
        for index in range(2**level):
            for above in (0, random.getrandbits(40)):
                dut.map_level_i.value = level
                # The bits from the level up belong to the leaf and must be ignored.
                dut.map_index_i.value = (index | above << level) & (2**40 - 1)
                await Timer(1, unit="ns")
                addresses = elements(dut.map_address_o, 48, 9)
                for i, (l, _, beats) in enumerate(MAPS):
                    if places[i] and level <= l:
                        assert addresses[i] == places[i][level, index] * beats, (i, level, index)


@cocotb.test()
async def random_buckets_of_large_trees(dut) -> None:
    random.seed(9)
    for number in range(1500):
        level = random.randrange(41)
        index = random.choice([0, 2**level - 1, random.getrandbits(40) % 2**level])
        dut.map_level_i.value = level
        dut.map_index_i.value = index
        await Timer(1, unit="ns")
        addresses = elements(dut.map_address_o, 48, 9)
        for i, (l, k, beats) in enumerate(MAPS):
            if level <= l:
                top = level - level % k
                size = 2**min(k, l + 1 - top) - 1
                root = index % 2**top
                place = 2**top - 1 + root * size + 2**(level - top) - 1 + (index >> top)
                assert addresses[i] == place * beats, (number, i, level, index)
