"""The types of expressions: tuples, and objects with declared fields.

Used by ``checker``, ``cost`` and the conversion of schemas. ``("list", T)``, ``("map", K, V)``, ``("type", T)``,
``("optional_type", T)``; the rest are names alone. ``("object", Declared)`` has fields.
"""

from __future__ import annotations

import re
from typing import Any

Type = tuple[Any, ...]
BOOL: Type = ("bool",)
INT: Type = ("int",)
UINT: Type = ("uint",)
DOUBLE: Type = ("double",)
STRING: Type = ("string",)
BYTES: Type = ("bytes",)
NULL: Type = ("null",)
DYN: Type = ("dyn",)
TIMESTAMP: Type = ("timestamp",)
DURATION: Type = ("duration",)

_WORD = re.compile(r"[A-Za-z_][\w.]*|[<>,]")
_KINDS = frozenset({"list", "map", "type", "optional_type"})


def shown(kind: Type) -> str:
    """Return a type as cel-go prints it in errors."""
    if kind[0] == "object":
        return str(kind[1])
    if kind[0] == "param":
        return str(kind[1])
    if len(kind) == 1:
        return str(kind[0])
    return f"{kind[0]}({', '.join(shown(part) for part in kind[1:])})"


_DECLARED = {"null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def declared_name(kind: Type) -> str:
    """Return the name that cel-go prints for a type used as value."""
    if kind[0] in ("object", "param") or len(kind) == 1:
        return _DECLARED.get(kind[0], shown(kind))
    return f"{kind[0]}({', '.join(declared_name(part) for part in kind[1:])})"


def type_of_text(text: str) -> Type:
    """Parse ``list<A>``; a single capital letter is a parameter."""
    words = _WORD.findall(text)

    def read() -> Type:
        word = words.pop(0)
        if len(word) == 1 and word.isupper():
            return ("param", word)
        if word in _KINDS and words and words[0] == "<":
            parts = []
            while words.pop(0) != ">":
                parts.append(read())
            return (word, *parts)
        return (word,)

    return read()
