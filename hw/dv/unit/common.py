# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Clock, reset and vectors for the unit benches.

Tests drive inputs and read registered outputs at the falling edge of the clock. Outputs that depend
on inputs of the same cycle are read in the read-only phase after that.
"""

from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

INPUTS = [
    "aes_key_valid_i", "aes_key_i", "aes_valid_i", "aes_block_i", "aes_tag_i", "sbox_a_i",
    "sbox_b_i", "fifo_valid_i", "fifo_data_i", "fifo_ready_i", "ram_write_i",
    "ram_write_address_i", "ram_write_data_i", "ram_read_i", "ram_read_address_i", "pool_take_i",
    "pool_give_i", "pool_give_slot_i", "push_start_i", "push_valid_i", "push_real_i",
    "push_leaf_i", "push_slot_i", "big_start_i", "big_path_leaf_i", "big_valid_i", "big_real_i",
    "big_leaf_i", "big_slot_i", "evict_start_i", "evict_leaf_i", "evict_evictions_i",
    "evict_step_i", "map_level_i", "map_index_i",
]


async def start(dut) -> None:
    """Starts the clock with all inputs at 0 and resets the blocks."""
    for name in INPUTS:
        getattr(dut, name).value = 0
    Clock(dut.clk_i, 10, unit="ns").start()
    await reset(dut)


async def reset(dut) -> None:
    """Holds the reset for two cycles. Returns at a falling edge."""
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 0
    await FallingEdge(dut.clk_i)
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


def element(handle, width: int, number: int) -> int:
    """Element `number` of a packed vector of elements with `width` bits."""
    return int(handle.value) >> (width * number) & ((1 << width) - 1)


def elements(handle, width: int, count: int) -> list[int]:
    """All elements of a packed vector."""
    value = int(handle.value)
    return [value >> (width * i) & ((1 << width) - 1) for i in range(count)]
