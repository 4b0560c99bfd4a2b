r"""Parses ``--set`` expressions as Helm does, ``a.b=1,list[0].name=x,c={1,2}``: :func:`set_with`.

``sources/helm/rendering.py`` applies parameters to a mapping of values, which is changed in place. Rules, limits and
messages: Helm ``pkg/strvals`` with its quirks (``a={}`` is a list of one empty text, a number with a leading zero stays
text, ``\`` escapes the next letter).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_INDEX = 65536
MAX_LEVELS = 30

_INT = re.compile(r"[+-]?[0-9]+")
_LARGEST = 2**63


class SetError(ValueError):
    """An invalid expression; the message is Helm's."""


def set_text(values: dict[str, Any], expression: str) -> None:
    """Apply ``--set-string``: every value is text. Raises :class:`SetError`."""
    set_with(values, expression, lambda text: text)


def set_with(values: dict[str, Any], expression: str, read: Callable[[str], Any]) -> None:
    """Apply an expression; ``read`` converts the text to the value (``--set-file`` reads a file)."""
    parser = _Parser(expression, read)
    while parser.more:
        parser.key(values, 0)


def typed(text: str) -> Any:
    """Return a value typed as by ``--set``."""
    folded = text.lower()
    if folded in ("true", "false"):
        return folded == "true"
    if folded == "null":
        return None
    if text == "0":
        return 0
    if not text.startswith("0") and _INT.fullmatch(text) and -_LARGEST <= int(text) < _LARGEST:
        return int(text)
    return text


@dataclass(slots=True)
class _Parser:
    text: str
    read: Callable[[str], Any]
    at: int = 0

    @property
    def more(self) -> bool:
        return self.at < len(self.text)

    def until(self, stops: str) -> tuple[str, str]:
        """Return the text up to one of ``stops``, and which one, empty at the end; the stop is consumed."""
        found: list[str] = []
        while self.at < len(self.text):
            letter = self.text[self.at]
            self.at += 1
            if letter in stops:
                return "".join(found), letter
            if letter == "\\":
                if self.at < len(self.text):
                    found.append(self.text[self.at])
                self.at += 1
            else:
                found.append(letter)
        return "".join(found), ""

    def key(self, values: dict[str, Any], level: int) -> None:
        """Parse one ``key=value`` into ``values``."""
        name, stop = self.until("=[,.")
        match stop:
            case "":
                if name:
                    raise SetError(f'key "{name}" has no value')
            case ",":
                raise SetError(f'key "{name}" has no value (cannot end with ,)')
            case "=":
                _put(values, name, self.value())
            case "[":
                there = values.get(name)
                if name in values and not isinstance(there, list):
                    raise _wrong_shape(there, "[]interface {}")
                index = self.index()
                _put(values, name, self.item(list(there or ()), index, level))
            case _:
                self.nested(values, name, level + 1)

    def nested(self, values: dict[str, Any], name: str, level: int) -> None:
        if level > MAX_LEVELS:
            raise SetError(f"value name nested level is greater than maximum supported nested level of {MAX_LEVELS}")
        inner = values.get(name, {})
        if not isinstance(inner, dict):
            raise _wrong_shape(inner, "map[string]interface {}")
        inner = dict(inner)
        self.key(inner, level)
        if not inner:
            raise SetError(f'key map "{name}" has no value')
        _put(values, name, inner)

    def item(self, items: list[Any], index: int, level: int) -> list[Any]:
        """Return ``items`` with the value after ``[index]`` set."""
        if level > MAX_LEVELS:
            raise SetError(f"value name nested level is greater than maximum supported nested level of {MAX_LEVELS}")
        if index < 0:
            raise SetError(f"negative {index} index not allowed")
        name, stop = self.until("[.=")
        if name:
            raise SetError(f"unexpected data at end of array index: {name!r}")
        there = items[index] if index < len(items) else None
        match stop:
            case "":
                return items
            case "=":
                return _placed(items, index, self.value())
            case "[":
                following = self.index()
                inner_list = list(there) if isinstance(there, list) else []
                return _placed(items, index, self.item(inner_list, following, level + 1))
            case _:
                inner = dict(there) if isinstance(there, dict) else {}
                self.key(inner, level)
                return _placed(items, index, inner)

    def index(self) -> int:
        text, _ = self.until("]")
        if not _INT.fullmatch(text):
            raise SetError(f'error parsing index: strconv.Atoi: parsing "{text}": invalid syntax')
        return int(text)

    def value(self) -> Any:
        """Parse a list in braces, or the text up to the next comma."""
        if self.text[self.at : self.at + 1] != "{":
            return self.read(self.until(",")[0]) if self.more else ""
        self.at += 1
        found: list[Any] = []
        while True:
            text, stop = self.until(",}")
            if not stop:
                raise SetError("list must terminate with '}'")
            found.append(self.read(text))
            if stop == "}":
                if self.text[self.at : self.at + 1] == ",":
                    self.at += 1
                return found


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    if name:
        values[name] = value


def _placed(items: list[Any], index: int, value: Any) -> list[Any]:
    if index > MAX_INDEX:
        raise SetError(f"index of {index} is greater than maximum supported index of {MAX_INDEX}")
    items += [None] * (index + 1 - len(items))
    items[index] = value
    return items


def _wrong_shape(found: Any, wanted: str) -> SetError:
    names = {bool: "bool", int: "int64", str: "string", dict: "map[string]interface {}", list: "[]interface {}"}
    kind = names.get(type(found), "nil" if found is None else "float64")
    return SetError(f"unable to parse key: interface conversion: interface {{}} is {kind}, not {wanted}")
