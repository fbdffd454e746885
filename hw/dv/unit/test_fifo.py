# SPDX-License-Identifier: Apache-2.0 OR MIT
"""FIFOs of several depths with random stalls at both ends, against a deque.

The last one is the FIFO in block RAM: its entries come to the output up to three cycles later, and
it takes no entry while it is full.
"""

import random
from collections import deque

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly
from common import elements, start

DEPTHS = [1, 2, 5, 8, 6]
IN_RAM = 4
# Cycles from an entry to the output of an empty FIFO in block RAM.
RAM_LATENCY = 3


@cocotb.test()
async def keeps_order_and_count_under_random_stalls(dut) -> None:
    random.seed(2)
    await start(dut)
    models = [deque() for _ in DEPTHS]
    was_full, was_empty, moved_full = [0] * 5, [0] * 5, [0] * 5
    # Cycles in which the FIFO in block RAM had entries and showed none.
    hidden = 0
    for cycle in range(4000):
        # Phases that fill, drain, and balance.
        offer, accept = [(0.9, 0.3), (0.3, 0.9), (0.7, 0.7), (1.0, 1.0)][cycle // 50 % 4]
        valid = [random.random() < offer for _ in DEPTHS]
        ready = [random.random() < accept for _ in DEPTHS]
        data = [random.getrandbits(8) for _ in DEPTHS]
        dut.fifo_valid_i.value = sum(v << i for i, v in enumerate(valid))
        dut.fifo_ready_i.value = sum(r << i for i, r in enumerate(ready))
        dut.fifo_data_i.value = sum(d << (8 * i) for i, d in enumerate(data))
        await ReadOnly()
        heads = elements(dut.fifo_data_o, 8, 5)
        assert elements(dut.fifo_count_o, 4, 5) == [len(model) for model in models]
        valid_o, ready_o = int(dut.fifo_valid_o.value), int(dut.fifo_ready_o.value)
        for i, (depth, model) in enumerate(zip(DEPTHS, models)):
            full, empty = len(model) == depth, not model
            shown, takes = bool(valid_o >> i & 1), bool(ready_o >> i & 1)
            if i == IN_RAM:
                hidden = 0 if shown or empty else hidden + 1
                assert hidden < RAM_LATENCY and not (shown and empty)
                assert takes == (not full)
            else:
                assert shown == (not empty)
                assert takes == (not full or ready[i])
            was_full[i] += full
            was_empty[i] += empty
            moved_full[i] += full and ready[i] and valid[i]
            pushed = valid[i] and takes
            if ready[i] and shown:
                assert heads[i] == model.popleft()
            if pushed:
                model.append(data[i])
        await FallingEdge(dut.clk_i)
    assert min(was_full) > 100 and min(was_empty) > 100 and min(moved_full) > 100
