"""Go's compressor, byte for byte: streams recorded from Go 1.24 and 1.26, and properties of all others (T1)."""

from __future__ import annotations

import base64
import gzip as reference
import hashlib
import random
import zlib

import pytest

from syncline.ignition.butane.deflate import deflate, gzip, huffman_lengths

GO = {
    b"": "H4sIAAAAAAAC/wEAAP//AAAAAAAAAAA=",
    b"a" * 48: "H4sIAAAAAAAC/0okEQACAAD//1YrOKAwAAAA",
    "é".encode() * 40: "H4sIAAAAAAAC/zq8kroQEAAA///OEzpTUAAAAA==",
}
"""What Go writes at its best level; all but the first are samples of the reference (behaviours 10 and 11)."""


@pytest.mark.parametrize("data", list(GO))
def test_streams_are_those_of_go(data: bytes) -> None:
    assert base64.b64encode(gzip(data)).decode() == GO[data]


SEEDS = {
    "random": lambda chance, size: chance.randbytes(size),
    "two letters": lambda chance, size: bytes(chance.choice(b"ab") for _ in range(size)),
    "words": lambda chance, size: b" ".join(b"w%d" % chance.randrange(300) for _ in range(size // 4)),
    "runs": lambda chance, size: b"".join(bytes([chance.randrange(256)]) * chance.randrange(600) for _ in range(20)),
    "skewed": lambda chance, size: bytes(min(255, int(chance.expovariate(0.1))) for _ in range(size)),
}


@pytest.mark.parametrize("kind", SEEDS)
@pytest.mark.parametrize("size", [1, 3, 4, 257, 5_000, 70_000])
def test_every_stream_unpacks_to_what_went_in(kind: str, size: int) -> None:
    data = SEEDS[kind](random.Random(size), size)
    packed = gzip(data)
    assert reference.decompress(packed) == data
    assert packed[:10] == b"\x1f\x8b\x08\0\0\0\0\0\2\xff"
    assert zlib.decompressobj(-15).decompress(deflate(data)) == data


def _words(seed: int, count: int) -> bytes:
    chance = random.Random(seed)
    return b" ".join(b"w%d" % chance.randrange(300) for _ in range(count))


def _letters(seed: int, count: int) -> bytes:
    chance = random.Random(seed)
    return bytes(chance.choice(b"abc") for _ in range(count))


def _far(seed: int, count: int) -> bytes:
    """Matches at every distance, also beyond the window and across slides of the buffer."""
    chance = random.Random(seed)
    out = bytearray(chance.randbytes(200))
    while len(out) < count:
        distance, length = chance.randint(1, min(len(out), 40_000)), chance.choice([3, 4, 5, 8, 100, 300])
        out += out[len(out) - distance : len(out) - distance + length]
        out += chance.randbytes(chance.choice([0, 0, 1, 3]))
    return bytes(out)


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (_words(1, 9_000), "4d25c271457709da"),
        (_letters(2, 30_000), "8a73e58e35cf4988"),
        (_far(3, 140_000), "f10740ba5c44b34a"),
        (_far(4, 70_000), "42bfb20ea4e498ed"),
        (_words(5, 40), "a9786ba4873d9b29"),
    ],
    ids=["words", "letters", "far over two windows", "far over one window", "short"],
)
def test_generated_inputs_give_the_streams_that_go_gave(data: bytes, digest: str) -> None:
    assert hashlib.sha256(gzip(data)).hexdigest()[:16] == digest


def test_a_match_of_four_bytes_is_only_taken_from_nearby() -> None:
    """A distance of 4096 is near, 4097 is not: the far one costs more than four literals."""
    near = b"WXYZ" + bytes(range(65, 65 + 16)) * 256
    chance = random.Random(1)
    filler = bytes(chance.randrange(128, 256) for _ in range(5_000))
    close, far = b"WXYZ" + filler[:4092] + b"WXYZ", b"WXYZ" + filler[:4093] + b"WXYZ"
    assert len(deflate(close)) <= len(deflate(far))
    assert zlib.decompress(deflate(near), -15) == near


def test_blocks_that_do_not_shrink_are_stored() -> None:
    data = random.Random(7).randbytes(40_000)
    packed = deflate(data)
    assert packed[0] & 7 == 0
    assert len(packed) == len(data) + 3 * 5 + 5  # three blocks of 16384 tokens, and the empty one at the end


def test_codes_are_at_most_as_long_as_allowed_and_complete() -> None:
    fibonacci = [1, 1]
    while len(fibonacci) < 40:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    lengths = huffman_lengths(fibonacci, 15)
    assert max(lengths) == 15
    assert sum(2 ** (15 - length) for length in lengths) == 2**15


@pytest.mark.parametrize(("counts", "lengths"), [([0, 5], [0, 1]), ([3, 0, 9], [1, 0, 1]), ([0, 0], [0, 0])])
def test_one_or_two_symbols_take_one_bit_each(counts: list[int], lengths: list[int]) -> None:
    assert huffman_lengths(counts, 15) == lengths
