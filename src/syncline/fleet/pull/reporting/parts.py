"""Reports in parts, where they would outgrow an object; pure.

The first part has what is there once (a summary, totals) and the beginning of the lists, further ones the rest. A
reader joins them; parts of another version of the report count as missing, and the totals of the first say how much.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from syncline.kube.kinds.syncline import MAX_FAILED, MAX_PARTS, MAX_REPORTED, MAX_WAITS
from syncline.kube.objects import Obj

MAX_BYTES: Final = 900_000
"""Size of one part as JSON."""
MAX_NAME: Final = 253
_SUFFIX: Final = ".part-"
_LISTS: Final = {"conditions": 100, "waits": MAX_WAITS, "failed": MAX_FAILED, "resources": MAX_REPORTED}
"""The lists of an ApplicationReport, the most important first, and their entries in one part."""
_COUNTED: Final = ("failed", "resources")
_encode: Final = msgspec.json.Encoder().encode
_SPARE: Final = 500
"""Bytes for what is not known while a part is filled."""


def part_name(name: str, number: int) -> str:
    """Return the name of a part; that of part 1 is the name of the report."""
    return name if number == 1 else f"{name}{_SUFFIX}{number}"


def whole_name(name: str) -> str:
    """Return the name of the report that a part of this name belongs to."""
    before, suffix, number = name.rpartition(_SUFFIX)
    return before if suffix and number.isdigit() else name


def has_room_for_parts(name: str) -> bool:
    """Return whether the names of parts are short enough."""
    return len(part_name(name, MAX_PARTS)) <= MAX_NAME


def size_of(value: Any) -> int:
    """Return the bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def fits(content: Any, entries: int, limit: int) -> bool:
    """Return whether a content with so many entries surely is one part; quicker than :func:`portions`."""
    try:
        return len(_encode(content)) + entries + _SPARE <= limit
    except UnicodeEncodeError:  # a lone surrogate
        return False


@dataclass(frozen=True, slots=True)
class Portions:
    """``parts``: for each part the entries of each list; ``left``: entries that fit into none."""

    parts: tuple[dict[str, list[Obj]], ...]
    left: int


def portions(
    lists: Mapping[str, Sequence[Obj]], most: Mapping[str, int], first: int, further: int, limit: int, parts: int
) -> Portions:
    """Divide lists over at most ``parts`` parts in order. ``first``, ``further``: bytes that a part has besides;
    ``most``: entries of a list in one part."""
    made: list[dict[str, list[Obj]]] = [{}]
    used, left = first + _SPARE, 0
    for key, entries in lists.items():
        for one in entries:
            size = size_of(one) + 1
            full = used + size > limit or len(made[-1].get(key) or ()) >= most.get(key, limit)
            if full and (size + further + _SPARE > limit or len(made) >= parts):
                left += 1
                continue
            if full:
                made.append({})
                used = further + _SPARE
            made[-1].setdefault(key, []).append(one)
            used += size
    return Portions(tuple(made), left)


# -- ApplicationReports ------------------------------------------------------------------------------------------------


def in_parts(content: Obj, *, limit: int = MAX_BYTES, parts: int = MAX_PARTS) -> list[Obj]:
    """Return the contents of the parts of a report; what does not fit into them is counted in ``omitted``."""
    head = {key: value for key, value in content.items() if key not in _LISTS}
    lists = {key: content[key] for key in _LISTS if content.get(key)}
    further = {"application": content.get("application") or {}}
    found = portions(lists, _LISTS, size_of(head), size_of(further), limit, parts)
    if found.left:
        head["omitted"] = head.get("omitted", 0) + found.left
    if len(found.parts) == 1:
        return [head | found.parts[0]]
    totals = {key: len(lists.get(key) or ()) for key in _COUNTED}
    same = {"of": len(found.parts), "digest": _digest(content)}
    made = [head | found.parts[0] | {"part": {"number": 1, **same, **totals}}]
    for number, one in enumerate(found.parts[1:], 2):
        made.append(further | one | {"part": {"number": number, **same}})
    return made


def _digest(content: Obj) -> str:
    text = json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


def joined(content: Obj, get: Callable[[int], Obj | None]) -> Obj:
    """Return the content of a whole report from that of its first part. ``get`` returns the content of a further part,
    None if it is not there. What is missing, or of another version, is counted in ``omitted``."""
    part = content.get("part") or {}
    made = {key: value for key, value in content.items() if key != "part"}
    of = part.get("of")
    if not isinstance(of, int):
        return made
    for number in range(2, min(of, MAX_PARTS) + 1):
        other = get(number) or {}
        own = other.get("part") or {}
        if (own.get("number"), own.get("digest")) == (number, part.get("digest")):
            for key in _LISTS:
                if other.get(key):
                    made[key] = [*(made.get(key) or ()), *other[key]]
    missing = sum(max(int(part.get(key) or 0) - len(made.get(key) or ()), 0) for key in _COUNTED)
    if missing > int(made.get("omitted") or 0):
        made["omitted"] = missing
    return made
