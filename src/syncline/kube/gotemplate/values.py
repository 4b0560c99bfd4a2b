"""Values of templates as Go types them: those that Python lacks, and what Go's ``reflect`` says of each.

``dict`` is ``map[string]interface {}``, ``list`` is ``[]interface {}``, ``str``, ``bool``, ``int`` and ``float`` are
``string``, ``bool``, ``int`` and ``float64``, None is nil. A ``str`` holds bytes that are no UTF-8 as lone surrogates
(``surrogateescape``); :func:`encode` and :func:`decode` convert.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from syncline.kube.gotemplate.functions import Function

_BYTES: Final = re.compile("[\ud800-\udfff]")
_STRANGE: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class _Invalid:
    """No value at all: a missing key. Go's ``reflect.Value{}``."""

    __slots__ = ()
    go_type: ClassVar[str] = "<nil>"
    kind: ClassVar[str] = "invalid"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "INVALID"


INVALID: Final = _Invalid()


class Int64(int):
    """Go's int64."""

    __slots__ = ()
    go_type: ClassVar[str] = "int64"
    kind: ClassVar[str] = "int64"


class Int32(int):
    """Go's int32, also called rune."""

    __slots__ = ()
    go_type: ClassVar[str] = "int32"
    kind: ClassVar[str] = "int32"


class Uint8(int):
    """Go's uint8, also called byte: what indexing a string gives."""

    __slots__ = ()
    go_type: ClassVar[str] = "uint8"
    kind: ClassVar[str] = "uint8"


class Uint32(int):
    """Go's uint32."""

    __slots__ = ()
    go_type: ClassVar[str] = "uint32"
    kind: ClassVar[str] = "uint32"


class Uint64(int):
    """Go's uint64."""

    __slots__ = ()
    go_type: ClassVar[str] = "uint64"
    kind: ClassVar[str] = "uint64"


class Strings(list[str]):
    """Go's []string."""

    __slots__ = ()
    go_type: ClassVar[str] = "[]string"
    kind: ClassVar[str] = "slice"


class Ints(list[int]):
    """Go's []int."""

    __slots__ = ()
    go_type: ClassVar[str] = "[]int"
    kind: ClassVar[str] = "slice"


class Lists(list[list[Any]]):
    """Go's [][]interface {}."""

    __slots__ = ()
    go_type: ClassVar[str] = "[][]interface {}"
    kind: ClassVar[str] = "slice"


class Bytes(list[int]):
    """Go's []uint8: numbers from 0 to 255."""

    __slots__ = ()
    go_type: ClassVar[str] = "[]uint8"
    kind: ClassVar[str] = "slice"


class StringMap(dict[str, str]):
    """Go's map[string]string."""

    __slots__ = ()
    go_type: ClassVar[str] = "map[string]string"
    kind: ClassVar[str] = "map"


class NilList(list[Any]):
    """A nil []interface {}: what a parameter of that type gets for nil. Empty, not to be changed."""

    __slots__ = ()
    go_type: ClassVar[str] = "[]interface {}"
    kind: ClassVar[str] = "slice"


class NilDict(dict[str, Any]):
    """A nil map[string]interface {}: what a parameter of that type gets for nil. Empty, not to be changed; Go says
    ``assignment to entry in nil map``."""

    __slots__ = ()
    go_type: ClassVar[str] = "map[string]interface {}"
    kind: ClassVar[str] = "map"


class NilStrings(Strings):
    """A nil []string: empty, not to be changed."""

    __slots__ = ()


class Opaque:
    """Base of other Go types (times, versions, errors): subclasses name their type and what templates see of it."""

    __slots__ = ()
    go_type: ClassVar[str] = "struct {}"
    kind: ClassVar[str] = "struct"
    """``ptr`` for a pointer to a struct."""

    def text(self) -> str | None:
        """Return what its ``String`` or ``Error`` method gives; None without either."""
        return None

    def fields(self) -> Mapping[str, Any]:
        """Return the exported fields in their order."""
        return {}

    def methods(self) -> Mapping[str, Function]:
        """Return the methods by name, without the receiver among the parameters."""
        return {}


_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}
_KINDS: Final[Mapping[type, str]] = {
    str: "string",
    bool: "bool",
    int: "int",
    float: "float64",
    list: "slice",
    dict: "map",
    type(None): "invalid",
}


def go_type(value: Any) -> str:
    """Return the name of the value's Go type, as ``%T`` prints it; ``<nil>`` for nil."""
    return _TYPES.get(type(value)) or _described(value, "go_type", _TYPES)


def go_kind(value: Any) -> str:
    """Return the name of the value's kind, as Go's ``reflect.Kind`` prints it; ``invalid`` for nil."""
    return _KINDS.get(type(value)) or _described(value, "kind", _KINDS)


def _described(value: Any, attribute: str, names: Mapping[type, str]) -> str:
    """What a class says of itself, else the name of the class that it extends."""
    own = getattr(type(value), attribute, None)
    if isinstance(own, str):
        return own
    return next((names[base] for base in type(value).__mro__ if base in names), type(value).__name__)


def is_nil(value: Any) -> bool:
    """Whether the value is nil, or a nil list or map of some type."""
    return value is None or value is INVALID or isinstance(value, NilList | NilDict | NilStrings)


def encode(text: str) -> bytes:
    """Return the bytes of a Go string."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte: Go's decoders make U+FFFD of it
        return _STRANGE.sub("\ufffd", text).encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Return the Go string of bytes; those that are no UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def normal(text: str) -> str:
    """Return the text with bytes that became characters by being joined as such."""
    return text if text.isascii() or not _BYTES.search(text) else decode(encode(text))


def characters(text: str) -> str:
    """Return the text with U+FFFD for each byte that is no character."""
    return text if text.isascii() or not _BYTES.search(text) else _BYTES.sub("\ufffd", decode(encode(text)))
