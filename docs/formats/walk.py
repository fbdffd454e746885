"""An independent reader for the volume of walk.md, written from docs/format.md alone.

    pip install cryptography pyaegis
    python3 walk.py walk.obl walk.state/state-* key

It reads volumes of one shape only: 64 blocks of 64 bytes, no levels on the client, one key file in slot 0.
It verifies every tag that it uses, and prints the blocks on the client and in each bucket.
"""

import hmac
import sys
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pyaegis import Aegis256X4, AegisMac256X4

LEAF_LEVEL, SPARE_PLACES, SLOTS, BLOCK_BYTES = 5, 1, 5, 64  # L, W, Z, B
HEAD_BYTES = 24 + 32 + SLOTS * 2
SUPERBLOCK, ANCHORS = 0x20000, 0x28000
SLOTS_OF_LEVEL = [0x29000, 0x29400, 0x29A00, 0x2A400, 0x2B600, 0x2D800]  # tree 2
HEADS_OF_LEVEL = [0x3A000, 0x3A400, 0x3AA00, 0x3B400, 0x3C600, 0x3E800]  # tree 4
STATE_HEADER_BYTES, FRAME_BYTES, GCM_TAG_BYTES = 68, 36, 16


def hkdf(secret: bytes, salt: bytes | None, info: bytes, length: int = 32) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


def number(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def volume_key(volume: bytes, key_file: bytes) -> bytes:
    superblock = volume[SUPERBLOCK : SUPERBLOCK + 16384]
    slot = superblock[256:512]
    wrapping_key = hkdf(key_file, slot[16:48], b"oblivio key file v1")
    bound_to = b"oblivio key slot v1" + superblock[24:40] + b"\0" + slot[:80]
    key = AESGCM(wrapping_key).decrypt(slot[80:92], slot[92:140], bound_to)
    hmac_key = derived(key, b"superblock")
    assert hmac.digest(hmac_key, superblock[:16320], "sha256") == superblock[16320:16352]
    print("superblock: sequence number", number(superblock, 16), "and the right HMAC")
    return key


def derived(key: bytes, purpose: bytes) -> bytes:
    return hkdf(key, None, b"oblivio volume key v1" + (32).to_bytes(4, "little") + purpose)


def records(state: bytes, key: bytes) -> Iterator[bytes]:
    """Decrypts the records of a state file, up to the first one out of sequence."""
    cipher = AESGCM(hkdf(derived(key, b"state files"), state[:STATE_HEADER_BYTES], b"oblivio state file v1"))
    at, count = STATE_HEADER_BYTES, 0
    while at + FRAME_BYTES <= len(state) and number(state, at + 4) == count:
        claim, end = state[at : at + 20], at + FRAME_BYTES + number(state, at, 4) + GCM_TAG_BYTES
        nonce = [count.to_bytes(8, "big") + part.to_bytes(4, "big") for part in (0, 1)]
        cipher.decrypt(nonce[1], state[at + 20 : at + FRAME_BYTES], claim)
        yield cipher.decrypt(nonce[0], state[at + FRAME_BYTES : end], claim)
        at, count = end, count + 1


def last_state(state: bytes, key: bytes) -> tuple[int, list[tuple[int, bytes]]]:
    """Returns the next eviction and the salts of the eras, from the last complete state. Prints its blocks."""
    sections: list[bytes] = []
    last: list[bytes] = []
    for record in records(state, key):
        if record[0] == 2:  # a section
            sections.append(record[5:])
        elif record[0] in (1, 4):  # a state begins, or is complete
            last, sections = (sections, []) if record[0] == 4 else (last, [])
    head = next(section for section in last if section[0] == 1)
    next_eviction, since = number(head, 1), number(head, 9, 4)
    eras = [head[17 + 40 * era :][:40] for era in range(number(head, 13, 4))]
    salts = [(number(era, 0), era[8:]) for era in eras]
    print(
        f"state: the next eviction is {next_eviction}, after {since} accesses; eras begin at", [era for era, _ in salts]
    )
    for section in last:
        if section[0] == 3:
            print(
                f"  on the client: block {number(section, 9)}, leaf {number(section, 17)},",
                section[25:].rstrip(bytes(1)),
            )
    return next_eviction, salts


def masked(cipher_key: bytes, nonce: bytes, part: int, data: bytes) -> bytes:
    nonce = nonce + part.to_bytes(2, "big") + bytes(6)
    key_stream, _ = Aegis256X4().encrypt_detached(cipher_key, nonce, bytes(len(data)))
    return bytes(a ^ b for a, b in zip(data, key_stream))


def show_bucket(
    volume: bytes, key: bytes, eviction: int, salts: list[tuple[int, bytes]], level: int, place: int
) -> None:
    head = volume[HEADS_OF_LEVEL[level] + 512 * place :][:HEAD_BYTES]
    slots = volume[SLOTS_OF_LEVEL[level] + 512 * place :][: SLOTS * BLOCK_BYTES]
    nonce, tag, table = head[:24], head[24:56], head[56:]
    salt = [salt for first, salt in salts if first <= eviction][-1]
    keys = hkdf(derived(key, b"buckets"), salt, b"oblivio era seal v2 " + (2).to_bytes(2, "big"), 96)
    mac = AegisMac256X4(keys[:32], bytes(32))  # a nonce of zeros
    for part in (eviction.to_bytes(8, "big") + bytes([level]) + bytes(7), nonce, table, slots):
        mac.update(part)
    assert hmac.compare_digest(mac.final(), tag), "the tag is wrong"
    table = masked(keys[64:], nonce, 0, table)
    print(f"eviction {eviction}, level {level}, place {place}: the tag is right; table {table.hex(' ')}")
    for slot in range(SLOTS):
        if table[slot] != 0xFF:
            block = masked(keys[64:], nonce, slot + 1, slots[slot * BLOCK_BYTES :][:BLOCK_BYTES])
            print(f"  slot {slot}: block {table[slot]}, leaf {table[SLOTS + slot]}, {block.rstrip(bytes(1))!r}")


def main(volume: bytes, state: bytes, key_file: bytes) -> None:
    key = volume_key(volume, key_file)
    for place in 0, 1:
        anchor = volume[ANCHORS + 512 * place :][:64]
        is_right = hmac.digest(derived(key, b"anchor"), anchor[:32], "sha256") == anchor[32:]
        print("anchor in place", place, "of checkpoint", number(anchor, 8), "right" if is_right else "wrong")
    next_eviction, salts = last_state(state, key)
    for level in range(LEAF_LEVEL + 1):
        places = 2**level + SPARE_PLACES
        for eviction in range(max(2**LEAF_LEVEL, next_eviction - places), next_eviction):
            show_bucket(volume, key, eviction, salts, level, eviction % places)


main(*(Path(path).read_bytes() for path in sys.argv[1:4]))
