# SPDX-License-Identifier: Apache-2.0 OR MIT
"""AES-128: FIPS 197, random streams, and the S-box table, for both kinds of S-boxes."""

import random
from collections import deque

import cocotb
from aes_model import SBOX, encrypt, expand_key
from cocotb.triggers import FallingEdge
from common import elements, reset, start

LATENCY = 11

# FIPS 197, appendices B and C.1: key, plaintext, ciphertext.
VECTORS = [
    (0x2B7E151628AED2A6ABF7158809CF4F3C, 0x3243F6A8885A308D313198A2E0370734,
     0x3925841D02DC09FBDC118597196A0B32),
    (0x000102030405060708090A0B0C0D0E0F, 0x00112233445566778899AABBCCDDEEFF,
     0x69C4E0D86A7B0430D8CDB78070B4C55A),
]


async def load_key(dut, key: int) -> None:
    """Loads a key after a reset, and checks the ten cycles of the expansion."""
    assert dut.aes_key_ready_o.value == 1
    assert dut.aes_keys_done_o.value == 0
    dut.aes_key_valid_i.value = 1
    dut.aes_key_i.value = key
    await FallingEdge(dut.clk_i)
    # Another key must not be taken.
    dut.aes_key_i.value = key ^ 1
    for _ in range(10):
        assert dut.aes_key_ready_o.value == 0
        assert dut.aes_keys_done_o.value == 0
        await FallingEdge(dut.clk_i)
    assert dut.aes_keys_done_o.value == 1
    await FallingEdge(dut.clk_i)
    dut.aes_key_valid_i.value = 0
    assert elements(dut.aes_keys_o, 128, 11) == expand_key(key)


@cocotb.test()
async def the_model_agrees_with_fips_197(dut) -> None:
    for key, plain, cipher in VECTORS:
        assert encrypt(expand_key(key), plain) == cipher
    assert expand_key(VECTORS[0][0])[10] == 0xD014F9A8C9EE2589E13F0CC8B6630CA6


@cocotb.test()
async def fips_197_vectors(dut) -> None:
    await start(dut)
    for key, plain, cipher in VECTORS:
        await reset(dut)
        await load_key(dut, key)
        dut.aes_valid_i.value = 1
        dut.aes_block_i.value = plain
        for _ in range(LATENCY - 1):
            await FallingEdge(dut.clk_i)
            dut.aes_valid_i.value = 0
            assert dut.aes_valid_o.value == 0
        await FallingEdge(dut.clk_i)
        assert int(dut.aes_valid_o.value) == 0b11
        assert elements(dut.aes_block_o, 128, 2) == [cipher, cipher]
        await FallingEdge(dut.clk_i)
        assert dut.aes_valid_o.value == 0


@cocotb.test()
async def random_blocks_in_every_cycle_and_with_gaps(dut) -> None:
    random.seed(1)
    await start(dut)
    for gaps in (False, True):
        await reset(dut)
        key = random.getrandbits(128)
        await load_key(dut, key)
        keys = expand_key(key)
        # The expected outputs of the next LATENCY cycles.
        pipeline = deque([None] * (LATENCY - 1))
        for _ in range(300):
            block, tag = random.getrandbits(128), random.getrandbits(8)
            valid = not gaps or random.random() < 0.6
            dut.aes_valid_i.value = int(valid)
            dut.aes_block_i.value = block
            dut.aes_tag_i.value = tag
            pipeline.append((encrypt(keys, block), tag) if valid else None)
            await FallingEdge(dut.clk_i)
            expected = pipeline.popleft()
            if expected is None:
                assert dut.aes_valid_o.value == 0
            else:
                assert int(dut.aes_valid_o.value) == 0b11
                assert elements(dut.aes_block_o, 128, 2) == [expected[0]] * 2
                assert elements(dut.aes_tag_o, 8, 2) == [expected[1]] * 2
        dut.aes_valid_i.value = 0


@cocotb.test()
async def the_sbox_table_is_the_inverse_and_the_affine_map(dut) -> None:
    await start(dut)
    for x in range(256):
        y = x * 7 % 256
        dut.sbox_a_i.value = x
        dut.sbox_b_i.value = y
        await FallingEdge(dut.clk_i)
        assert int(dut.sbox_function_o.value) == SBOX[x], x
        assert elements(dut.sbox_a_o, 8, 2) == [SBOX[x]] * 2, x
        assert elements(dut.sbox_b_o, 8, 2) == [SBOX[y]] * 2, y
