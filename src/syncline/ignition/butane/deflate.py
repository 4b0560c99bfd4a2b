"""Compresses to exactly the gzip stream of Go (up to 1.26) at its best level, which zlib cannot produce: :func:`gzip`.

Called by ``ignition/butane/encoding.py``: Butane embeds the shortest encoding, so equal documents need equal bytes. The
rules are those of Go's ``compress/flate``: a 64 KiB buffer with a 32 KiB window, lazy matching without skipping, at
most 4096 candidates, blocks of 16384 tokens. The size is not limited here: callers limit what they embed.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Final

WINDOW: Final = 32768
BUFFER: Final = 2 * WINDOW
MIN_MATCH: Final = 4
MAX_MATCH: Final = 258
LOOKAHEAD: Final = MIN_MATCH + MAX_MATCH
"""The encoder waits for more input when fewer bytes than these lie ahead."""

CANDIDATES: Final = 4096
"""Longest walk along one hash chain."""

NEAR: Final = 4096
"""A match of only four bytes is taken up to this distance."""

BLOCK_TOKENS: Final = 16384
MAX_STORED: Final = 65535

_END_OF_BLOCK: Final = 256
_FEW: Final = 24
"""Chains up to this length are walked; longer ones are searched for the next better match at once."""

_CODE_ORDER: Final = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)


def _length_table() -> list[tuple[int, int, int]]:
    """Return for every match length from 3: symbol, number of extra bits, their value (RFC 1951, 3.2.5)."""
    table: list[tuple[int, int, int]] = []
    symbol = 257
    for extra in [0] * 8 + [extra for extra in range(1, 6) for _ in range(4)]:
        table.extend((symbol, extra, value) for value in range(1 << extra))
        symbol += 1
    table[-1] = (285, 0, 0)  # 258 has a symbol of its own
    return table


def _distance_table() -> tuple[list[int], list[int]]:
    """Return the first distance and the number of extra bits of the 30 distance symbols."""
    starts, extras, start = [], [], 1
    for symbol in range(30):
        extra = max(0, symbol // 2 - 1)
        starts.append(start)
        extras.append(extra)
        start += 1 << extra
    return starts, extras


_LENGTHS: Final = _length_table()
_DISTANCE_STARTS, _DISTANCE_EXTRAS = _distance_table()
_FIXED_LENGTHS: Final = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8


def gzip(data: bytes) -> bytes:
    """Return ``data`` as one gzip member: no name, no time, best compression, unknown operating system."""
    trailer = zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + deflate(data) + trailer


def deflate(data: bytes) -> bytes:
    """Return the raw stream; it ends with an empty stored block, as Go closes every stream."""
    out = _BitWriter()
    _Matcher(data, out).run()
    out.bits(1, 3)
    out.align()
    out.raw(b"\x00\x00\xff\xff")
    return out.finish()


class _Matcher:
    """Splits the input into literals and matches. Positions are absolute; ``_base`` is the start of the buffer."""

    def __init__(self, data: bytes, out: _BitWriter) -> None:
        self._data = data
        self._out = out
        self._base = 0
        self._chains: dict[int, list[int]] = {}
        self._tokens: list[int] = []
        self._block_start: int | None = 0

    def run(self) -> None:
        data, size = self._data, len(self._data)
        filled = 0
        index, length, offset, pending = 0, MIN_MATCH - 1, 0, False
        while True:
            if filled - index < LOOKAHEAD:
                if filled < size:
                    filled = self._fill(index, size)
                    continue
                if index >= filled:
                    break
            self._insert(index)
            previous_length, previous_offset = length, offset
            length, offset = MIN_MATCH - 1, 0
            ahead = filled - index
            if ahead > previous_length and previous_length < MAX_MATCH:
                length, offset = self._search(index, min(ahead, MAX_MATCH))
            if previous_length >= MIN_MATCH and length <= previous_length:
                self._tokens.append(previous_length << 16 | previous_offset)
                end = index + previous_length - 1
                for skipped in range(index + 1, end):
                    self._insert(skipped)
                index, length, pending = end, MIN_MATCH - 1, False
                self._close_full(index)
                continue
            if pending:
                self._tokens.append(data[index - 1])
                self._close_full(index)
            index += 1
            pending = True
        if pending:
            self._tokens.append(data[index - 1])
        if self._tokens:
            self._close(index)

    def _fill(self, index: int, size: int) -> int:
        """Slide the buffer when its second half is used up, then fill it; return the new end of the data."""
        if index - self._base >= BUFFER - LOOKAHEAD:
            self._base += WINDOW
            if self._block_start is not None and self._block_start < self._base:
                self._block_start = None
        return min(size, self._base + BUFFER)

    def _insert(self, at: int) -> None:
        data = self._data
        if at + MIN_MATCH <= len(data):
            key = (int.from_bytes(data[at : at + 4]) * 0x1E35A7BD & 0xFFFFFFFF) >> 15
            chain = self._chains.get(key)
            if chain is None:
                self._chains[key] = [at]
            else:
                chain.append(at)

    def _search(self, at: int, limit: int) -> tuple[int, int]:
        """Return the longest match and its distance, the nearest among equals; (3, 0) without one."""
        data = self._data
        if limit < MIN_MATCH:
            return MIN_MATCH - 1, 0
        chain = self._chains[(int.from_bytes(data[at : at + 4]) * 0x1E35A7BD & 0xFFFFFFFF) >> 15]
        newest = len(chain) - 2
        if newest < 0:
            return MIN_MATCH - 1, 0
        oldest = max(at - WINDOW, self._base)
        first = max(0, newest - CANDIDATES + 1)
        if chain[first] < oldest:
            first = bisect_left(chain, oldest, first)
        if newest - first < _FEW:
            return self._walk(at, limit, chain, newest, first)
        return self._jump(at, limit, chain[newest], chain[first])

    def _walk(self, at: int, limit: int, chain: list[int], newest: int, first: int) -> tuple[int, int]:
        data = self._data
        best, distance = MIN_MATCH - 1, 0
        wanted = data[at : at + best + 1]
        for place in range(newest, first - 1, -1):
            candidate = chain[place]
            if data[candidate + best] != wanted[best] or data[candidate : candidate + best + 1] != wanted:
                continue
            length = _common(data, candidate, at, best + 1, limit)
            if length > MIN_MATCH or at - candidate <= NEAR:
                best, distance = length, at - candidate
                if best >= limit:
                    break
                wanted = data[at : at + best + 1]
        return best, distance

    def _jump(self, at: int, limit: int, newest: int, oldest: int) -> tuple[int, int]:
        """Like :meth:`_walk`, but find the next longer match with ``rfind``: long chains are common in text."""
        data = self._data
        best, distance, needed = MIN_MATCH - 1, 0, MIN_MATCH
        end = newest
        while True:
            candidate = data.rfind(data[at : at + needed], oldest, end + needed)
            if candidate < 0:
                return best, distance
            length = _common(data, candidate, at, needed, limit)
            if length > MIN_MATCH or at - candidate <= NEAR:
                best, distance = length, at - candidate
                if best >= limit:
                    return best, distance
            needed = length + 1
            end = candidate - 1
            if end < oldest:
                return best, distance

    def _close_full(self, index: int) -> None:
        if len(self._tokens) == BLOCK_TOKENS:
            self._close(index)

    def _close(self, index: int) -> None:
        raw = None if self._block_start is None else self._data[self._block_start : index]
        _write_block(self._out, self._tokens, raw)
        self._tokens = []
        self._block_start = index


def _common(data: bytes, left: int, right: int, known: int, limit: int) -> int:
    """Return how many bytes at ``left`` and ``right`` are equal, at least ``known``, at most ``limit``."""
    low, high = known, limit
    while low < high:
        middle = (low + high + 1) // 2
        if data[left + low : left + middle] == data[right + low : right + middle]:
            low = middle
        else:
            high = middle - 1
    return low


class _BitWriter:
    """Writes bits, lowest first, as deflate packs them."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._pending = 0
        self._count = 0

    def bits(self, value: int, width: int) -> None:
        self._pending |= value << self._count
        self._count += width
        if self._count >= 512:
            whole = self._count // 8
            self._bytes += (self._pending & (1 << whole * 8) - 1).to_bytes(whole, "little")
            self._pending >>= whole * 8
            self._count -= whole * 8

    def align(self) -> None:
        size = (self._count + 7) // 8
        self._bytes += self._pending.to_bytes(size, "little")
        self._pending = self._count = 0

    def raw(self, data: bytes) -> None:
        self._bytes += data

    def finish(self) -> bytes:
        self.align()
        return bytes(self._bytes)


def _write_block(out: _BitWriter, tokens: list[int], raw: bytes | None) -> None:
    """Write the cheapest of fixed codes, dynamic codes and stored bytes; the earlier one among equals."""
    literals, distances, extra_bits = _frequencies(tokens)
    literal_lengths = huffman_lengths(literals, 15)
    distance_lengths = huffman_lengths(distances, 15)
    runs = _run_lengths(literal_lengths + distance_lengths)
    run_frequencies = [0] * 19
    for symbol, _, _ in runs:
        run_frequencies[symbol] += 1
    run_code_lengths = huffman_lengths(run_frequencies, 7)
    run_code_lengths += [0] * (19 - len(run_code_lengths))
    listed = 19
    while listed > 4 and not run_code_lengths[_CODE_ORDER[listed - 1]]:
        listed -= 1
    header = 17 + 3 * listed + _cost(run_frequencies, run_code_lengths) + sum(width for _, width, _ in runs)
    dynamic = header + _cost(literals, literal_lengths) + _cost(distances, distance_lengths) + extra_bits
    fixed = 3 + _cost(literals, _FIXED_LENGTHS) + 5 * sum(distances) + extra_bits
    if raw is not None and len(raw) <= MAX_STORED and (len(raw) + 5) * 8 < min(dynamic, fixed):
        out.bits(0, 3)
        out.align()
        out.raw(len(raw).to_bytes(2, "little") + (len(raw) ^ 0xFFFF).to_bytes(2, "little") + raw)
        return
    if dynamic < fixed:
        out.bits(4, 3)
        out.bits(len(literal_lengths) - 257, 5)
        out.bits(len(distance_lengths) - 1, 5)
        out.bits(listed - 4, 4)
        for symbol in _CODE_ORDER[:listed]:
            out.bits(run_code_lengths[symbol], 3)
        codes = _codes(run_code_lengths)
        for symbol, width, value in runs:
            out.bits(*codes[symbol])
            if width:
                out.bits(value, width)
        _write_tokens(out, tokens, _codes(literal_lengths), _codes(distance_lengths))
    else:
        out.bits(2, 3)
        _write_tokens(out, tokens, *_fixed_codes())


def _frequencies(tokens: list[int]) -> tuple[list[int], list[int], int]:
    """Return how often each symbol occurs, without trailing unused ones, and the number of extra bits."""
    literals, distances, extra_bits = [0] * 286, [0] * 30, 0
    literals[_END_OF_BLOCK] = 1
    for token in tokens:
        if token < 256:
            literals[token] += 1
            continue
        symbol, width, _ = _LENGTHS[(token >> 16) - 3]
        literals[symbol] += 1
        distance = _distance_symbol(token & 0xFFFF)
        distances[distance] += 1
        extra_bits += width + _DISTANCE_EXTRAS[distance]
    while not literals[-1]:
        literals.pop()
    while distances and not distances[-1]:
        distances.pop()
    return literals, distances or [1], extra_bits


def _distance_symbol(distance: int) -> int:
    return bisect_left(_DISTANCE_STARTS, distance + 1) - 1


def _write_tokens(
    out: _BitWriter, tokens: list[int], literal_codes: list[tuple[int, int]], distance_codes: list[tuple[int, int]]
) -> None:
    write = out.bits
    for token in tokens:
        if token < 256:
            write(*literal_codes[token])
            continue
        symbol, width, value = _LENGTHS[(token >> 16) - 3]
        write(*literal_codes[symbol])
        if width:
            write(value, width)
        distance = token & 0xFFFF
        symbol = _distance_symbol(distance)
        write(*distance_codes[symbol])
        width = _DISTANCE_EXTRAS[symbol]
        if width:
            write(distance - _DISTANCE_STARTS[symbol], width)
    write(*literal_codes[_END_OF_BLOCK])


def _cost(frequencies: Sequence[int], lengths: Sequence[int]) -> int:
    return sum(count * width for count, width in zip(frequencies, lengths, strict=False))


def _run_lengths(lengths: list[int]) -> list[tuple[int, int, int]]:
    """Return code lengths as symbols with extra bits ``(symbol, width, value)``: repeats are 16 (last), 17 and 18
    (zero)."""
    runs: list[tuple[int, int, int]] = []
    at = 0
    while at < len(lengths):
        size, count = lengths[at], 1
        while at + count < len(lengths) and lengths[at + count] == size:
            count += 1
        at += count
        if size:
            runs.append((size, 0, 0))
            count -= 1
            while count >= 3:
                taken = min(6, count)
                runs.append((16, 2, taken - 3))
                count -= taken
        else:
            while count >= 11:
                taken = min(138, count)
                runs.append((18, 7, taken - 11))
                count -= taken
            if count >= 3:
                runs.append((17, 3, count - 3))
                count = 0
        runs.extend([(size, 0, 0)] * count)
    return runs


def huffman_lengths(frequencies: Sequence[int], longest: int) -> list[int]:
    """Return the lengths of an optimal prefix code with at most ``longest`` bits (package-merge); unused symbols get 0.

    Among several optimal codes the choice is Go's: packages go before leaves of equal weight, and the shortest codes go
    to the end of the order by frequency and symbol.
    """
    lengths = [0] * len(frequencies)
    used = sorted((count, symbol) for symbol, count in enumerate(frequencies) if count)
    if len(used) <= 2:
        for _, symbol in used:
            lengths[symbol] = 1
        return lengths
    weights = [count for count, _ in used]
    rows = [[(weight, True) for weight in weights]]
    for _ in range(min(longest, len(used) - 1) - 1):
        rows.append(_merged(weights, rows[-1]))
    needed = 2 * len(used) - 2
    for row in reversed(rows):
        leaves = sum(leaf for _, leaf in row[:needed])
        for _, symbol in used[:leaves]:
            lengths[symbol] += 1
        needed = 2 * (needed - leaves)
    return lengths


def _merged(weights: list[int], row: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
    packages = [(row[at][0] + row[at + 1][0], False) for at in range(0, len(row) - 1, 2)]
    # False sorts before True, so a package goes before a leaf of its weight.
    return sorted(packages + [(weight, True) for weight in weights])


def _codes(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the canonical code: for each symbol its bits and their number."""
    codes, code, width = [(0, 0)] * len(lengths), 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths) if length):
        code <<= length - width
        width = length
        codes[symbol] = (int(f"{code:0{width}b}"[::-1], 2), width)
        code += 1
    return codes


@cache
def _fixed_codes() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return _codes(_FIXED_LENGTHS), _codes([5] * 30)
