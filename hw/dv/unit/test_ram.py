# SPDX-License-Identifier: Apache-2.0 OR MIT
"""RAMs against a list: a read in the cycle of a write to the same address returns the old word."""

import random

import cocotb
from cocotb.triggers import FallingEdge
from common import elements, start

DEPTH = 5


@cocotb.test()
async def reads_return_the_words_before_the_cycle(dut) -> None:
    random.seed(3)
    await start(dut)
    words = [random.getrandbits(12) for _ in range(DEPTH)]
    for address, word in enumerate(words):
        dut.ram_write_i.value = 1
        dut.ram_write_address_i.value = address
        dut.ram_write_data_i.value = word
        await FallingEdge(dut.clk_i)
    output, collisions, held = None, 0, 0
    for _ in range(3000):
        write, read = random.random() < 0.6, random.random() < 0.6
        to, at, data = random.randrange(DEPTH), random.randrange(DEPTH), random.getrandbits(12)
        dut.ram_write_i.value = int(write)
        dut.ram_write_address_i.value = to
        dut.ram_write_data_i.value = data
        dut.ram_read_i.value = int(read)
        dut.ram_read_address_i.value = at
        if read:
            output = words[at]
        collisions += write and read and to == at
        held += not read
        if write:
            words[to] = data
        await FallingEdge(dut.clk_i)
        if output is not None:
            assert elements(dut.ram_read_data_o, 12, 2) == [output] * 2
    assert collisions > 100 and held > 100
