# SPDX-License-Identifier: Apache-2.0 OR MIT
"""AES-128 from the definitions of FIPS 197: bytes, field arithmetic, no table from the RTL."""


def multiply(x: int, y: int) -> int:
    """The product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1."""
    product = 0
    while y:
        if y & 1:
            product ^= x
        x = x << 1 ^ (0x11B if x & 0x80 else 0)
        y >>= 1
    return product


def substitute(x: int) -> int:
    """SubBytes of one byte: the inverse, found by search, and the affine map."""
    inverse = next((y for y in range(256) if multiply(x, y) == 1), 0)
    result = 0x63
    for shift in range(5):
        result ^= (inverse << shift | inverse >> (8 - shift)) & 0xFF
    return result


SBOX = [substitute(x) for x in range(256)]
TIMES = {factor: [multiply(x, factor) for x in range(256)] for factor in (1, 2, 3)}


def expand_key(key: int) -> list[int]:
    """The eleven round keys."""
    words = [key >> (96 - 32 * i) & 0xFFFFFFFF for i in range(4)]
    constant = 1
    for i in range(4, 44):
        word = words[i - 1]
        if i % 4 == 0:
            word = (word << 8 | word >> 24) & 0xFFFFFFFF
            word = sum(SBOX[word >> (8 * b) & 0xFF] << (8 * b) for b in range(4))
            word ^= constant << 24
            constant = multiply(constant, 2)
        words.append(words[i - 4] ^ word)
    return [
        words[i] << 96 | words[i + 1] << 64 | words[i + 2] << 32 | words[i + 3]
        for i in range(0, 44, 4)
    ]


def encrypt(round_keys: list[int], block: int) -> int:
    """One block under expanded keys. Byte 0 is in the highest bits."""
    state = list((block ^ round_keys[0]).to_bytes(16, "big"))
    for number in range(1, 11):
        state = [SBOX[byte] for byte in state]
        # Row r of column c comes from column c + r.
        state = [state[(i + 4 * (i % 4)) % 16] for i in range(16)]
        if number < 10:
            state = [
                TIMES[2][state[i]]
                ^ TIMES[3][state[i - i % 4 + (i + 1) % 4]]
                ^ state[i - i % 4 + (i + 2) % 4]
                ^ state[i - i % 4 + (i + 3) % 4]
                for i in range(16)
            ]
        key = round_keys[number].to_bytes(16, "big")
        state = [a ^ b for a, b in zip(state, key)]
    return int.from_bytes(bytes(state), "big")
