# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Slot pools: no slot is lost, and no slot is allocated twice."""

import random

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from common import elements, reset, start

SLOTS = [1, 5, 8]


@cocotb.test()
async def fills_itself_in_as_many_cycles_as_slots(dut) -> None:
    await start(dut)
    await reset(dut)
    dut.pool_take_i.value = 0b111
    for cycle in range(1, 12):
        await ReadOnly()
        assert int(dut.pool_ready_o.value) == sum((cycle > n) << i for i, n in enumerate(SLOTS))
        # Nothing is taken before the pool is ready, though take_i is high.
        for i, slots in enumerate(SLOTS):
            if cycle <= slots:
                assert int(dut.pool_take_valid_o.value) >> i & 1 == 0
                assert elements(dut.pool_free_o, 4, 3)[i] == cycle - 1
        await FallingEdge(dut.clk_i)


@cocotb.test()
async def loses_no_slot_and_allocates_none_twice(dut) -> None:
    random.seed(4)
    await start(dut)
    for _ in range(max(SLOTS)):
        await FallingEdge(dut.clk_i)
    allocated = [set() for _ in SLOTS]
    was_empty, was_full, both = [0] * 3, [0] * 3, [0] * 3
    for cycle in range(4000):
        taking, giving = [(0.9, 0.3), (0.3, 0.9), (0.9, 0.9)][cycle // 40 % 3]
        take = [random.random() < taking for _ in SLOTS]
        give = [bool(a) and random.random() < giving for a in allocated]
        slot = [random.choice(sorted(a)) if a else 0 for a in allocated]
        dut.pool_take_i.value = sum(t << i for i, t in enumerate(take))
        dut.pool_give_i.value = sum(g << i for i, g in enumerate(give))
        dut.pool_give_slot_i.value = sum(s << (3 * i) for i, s in enumerate(slot))
        await ReadOnly()
        assert int(dut.pool_ready_o.value) == 0b111
        free = elements(dut.pool_free_o, 4, 3)
        valid, offered = int(dut.pool_take_valid_o.value), elements(dut.pool_take_slot_o, 3, 3)
        for i, slots in enumerate(SLOTS):
            assert free[i] == slots - len(allocated[i])
            assert valid >> i & 1 == (free[i] > 0)
            was_empty[i] += free[i] == 0
            was_full[i] += free[i] == slots
            taken = take[i] and free[i] > 0
            both[i] += taken and give[i]
            if taken:
                assert offered[i] < slots and offered[i] not in allocated[i]
                allocated[i].add(offered[i])
            if give[i]:
                allocated[i].remove(slot[i])
        await FallingEdge(dut.clk_i)
    # A pool of one slot cannot take and give in one cycle.
    assert min(was_empty) > 50 and min(was_full) > 20 and min(both[1:]) > 50
