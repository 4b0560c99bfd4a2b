"""Go's fmt over template values: :func:`sprintf`, :func:`sprint`, :func:`sprintln`.

Texts and nesting are bounded (:data:`MAX_TEXT`, :data:`MAX_NESTING`): :class:`FunctionError` beyond. Where Go prints an
address in memory (``%p``), a fixed one is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from syncline.kube.gotemplate.functions import MAX_NESTING, FunctionError, check_text, spend
from syncline.kube.gotemplate.strconv import (
    MAX_RUNE,
    REPLACEMENT,
    can_backquote,
    format_float,
    quote,
    quote_rune,
    rune,
)
from syncline.kube.gotemplate.values import INVALID, Bytes, Opaque, encode, go_type, is_nil, normal

_MOST: Final = 1_000_000
"""The largest width and precision, as in Go."""
_ADDRESS: Final = 0xC000012345
_INTEGER_BASES: Final[Mapping[str, str]] = {"v": "d", "d": "d", "b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}
_FLOATS: Final[Mapping[str, tuple[str, int]]] = {
    "v": ("g", -1),
    "b": ("b", -1),
    "g": ("g", -1),
    "G": ("G", -1),
    "x": ("x", -1),
    "X": ("X", -1),
    "f": ("f", 6),
    "F": ("f", 6),
    "e": ("e", 6),
    "E": ("E", 6),
}


def sprint(*values: Any) -> str:
    """Format each value as ``%v``, with a space between two that are both no strings."""
    if len(values) == 1 and type(values[0]) is str:
        return values[0]
    printer = _Printer()
    string = True
    for at, value in enumerate(values):
        is_string = type(value) is str
        if at and not is_string and not string:
            printer.put(" ")
        printer.argument(value, "v")
        string = is_string
    return printer.text()


def sprintln(*values: Any) -> str:
    """Format each value as ``%v`` with spaces between, and a newline."""
    printer = _Printer()
    for at, value in enumerate(values):
        if at:
            printer.put(" ")
        printer.argument(value, "v")
    printer.put("\n")
    return printer.text()


def sprintf(template: str, *values: Any) -> str:
    """Format values after a template of verbs; a wrong verb or count shows in the text, as in Go."""
    printer = _Printer()
    _Formatting(printer, template, values).run()
    return printer.text()


class _Flags:
    """The flags, width and precision of one verb."""

    __slots__ = ("minus", "plus", "plus_v", "precision", "sharp", "sharp_v", "space", "width", "zero")

    def __init__(self) -> None:
        self.sharp = self.zero = self.plus = self.minus = self.space = False
        self.sharp_v = self.plus_v = False
        self.width: int | None = None
        self.precision: int | None = None

    def go_syntax(self) -> None:
        """Take ``#`` and ``+`` as those of ``%v``."""
        self.sharp_v, self.sharp = self.sharp, False
        self.plus_v, self.plus = self.plus, False


class _Printer:
    """Collects text."""

    __slots__ = ("_made", "_parts", "erroring", "flags")

    def __init__(self) -> None:
        self.flags = _Flags()
        self.erroring = False
        self._parts: list[str] = []
        self._made = 0

    def put(self, text: str) -> None:
        """Append text as it is."""
        self._made += len(text)
        check_text(self._made)
        self._parts.append(text)

    def text(self) -> str:
        """Return what was put. Its pieces count as steps: long lists give short texts for much work."""
        spend(len(self._parts))
        return normal("".join(self._parts))

    def pad(self, text: str, *, zeros: bool = True) -> None:
        """Append text, padded to the width: left with spaces or zeros, or right with spaces."""
        flags = self.flags
        missing = (flags.width or 0) - len(text)
        if missing <= 0:
            self.put(text)
        elif flags.minus:
            self.put(text + " " * missing)
        else:
            self.put(("0" if flags.zero and zeros else " ") * missing + text)

    def bad(self, value: Any, verb: str) -> None:
        """Say that the verb does not fit the value."""
        self.erroring = True
        self.put(f"%!{verb}(")
        if value is None:
            self.put("<nil>")
        else:
            self.put(go_type(value) + "=")
            self.argument(value, "v")
        self.put(")")
        self.erroring = False

    def argument(self, value: Any, verb: str) -> None:
        """Format an argument."""
        if value is INVALID:
            value = None
        if value is None:
            if verb in "Tv":
                self.pad("<nil>")
            else:
                self.bad(None, verb)
        elif verb == "T":
            self._string(go_type(value), "s")
        elif verb == "p":
            self._pointer(value)
        elif isinstance(value, Bytes) and verb in "vd":
            self._bytes(value, verb)
        elif isinstance(value, Opaque):
            self._opaque(value, verb, 0)
        elif verb == "w" and isinstance(value, list | dict):
            self.bad(value, verb)
        else:
            self._value(value, verb, 0)

    def _value(self, value: Any, verb: str, depth: int) -> None:
        if depth > MAX_NESTING:
            raise FunctionError(f"the value is nested more than {MAX_NESTING} levels deep")
        if value is None:
            self.put("interface {}(nil)" if self.flags.sharp_v else "<nil>")
        elif isinstance(value, str):
            self._string(value, verb)
        elif isinstance(value, bool):
            if verb in "tv":
                self.pad("true" if value else "false")
            else:
                self.bad(value, verb)
        elif isinstance(value, int):
            self._integer(value, verb)
        elif isinstance(value, float):
            self._float(value, verb)
        elif isinstance(value, dict):
            self._map(value, verb, depth)
        elif isinstance(value, list):
            self._list(value, verb, depth)
        elif isinstance(value, Opaque):
            self._opaque(value, verb, depth)
        else:
            raise FunctionError(f"a value of type {go_type(value)} cannot be printed")

    def _string(self, value: str, verb: str) -> None:
        flags = self.flags
        if verb in "sv" and not flags.sharp_v:
            self.pad(value if flags.precision is None else value[: flags.precision])
        elif verb in "qv":
            value = value if flags.precision is None else value[: flags.precision]
            if flags.sharp and can_backquote(value):
                self.pad(f"`{value}`")
            else:
                self.pad(quote(value, ascii_only=flags.plus))
        elif verb in "xX":
            self._hexadecimal(encode(value), verb)
        else:
            self.bad(value, verb)

    def _hexadecimal(self, data: bytes, verb: str) -> None:
        flags = self.flags
        if flags.precision is not None:
            data = data[: flags.precision]
        if not data:
            self.pad("")
            return
        prefix = "0" + verb if flags.sharp else ""
        text = prefix + (data.hex(" ") if flags.space else data.hex()).replace(" ", " " + prefix)
        self.pad(text.upper().replace("0X", prefix) if verb == "X" else text)

    def _integer(self, value: int, verb: str) -> None:
        flags, unsigned = self.flags, go_type(value).startswith("uint")
        if verb == "v" and flags.sharp_v and unsigned:
            self._number(value, "x", sharp=True)
        elif verb in _INTEGER_BASES:
            self._number(value, verb, sharp=flags.sharp)
        elif verb == "c":
            self.pad(rune(value))
        elif verb == "q":
            self.pad(quote_rune(value if 0 <= value <= MAX_RUNE else REPLACEMENT, ascii_only=flags.plus))
        elif verb == "U":
            code = value & 0xFFFFFFFFFFFFFFFF
            shown = f" '{chr(code)}'" if flags.sharp and code <= MAX_RUNE and chr(code).isprintable() else ""
            self.pad(f"U+{code:0{max(4, flags.precision or 0)}X}{shown}", zeros=False)
        else:
            self.bad(value, verb)

    def _number(self, value: int, verb: str, *, sharp: bool) -> None:
        flags, base = self.flags, _INTEGER_BASES[verb]
        least = flags.precision
        if least is None:
            least = 0
            if flags.zero and not flags.minus and flags.width is not None:
                least = flags.width - (1 if value < 0 or flags.plus or flags.space else 0)
        elif least == 0 and value == 0:
            self.put(" " * (flags.width or 0))
            return
        digits = format(abs(value), base).rjust(least, "0")
        if sharp and base == "o":
            digits = digits if digits[0] == "0" else "0" + digits
        elif sharp and base in "bxX":
            digits = f"0{base}{digits}"
        if verb == "O":
            digits = "0o" + digits
        sign = "-" if value < 0 else "+" if flags.plus else " " if flags.space else ""
        self.pad(sign + digits, zeros=False)

    def _float(self, value: float, verb: str) -> None:
        if verb not in _FLOATS:
            self.bad(value, verb)
            return
        flags, (form, precision) = self.flags, _FLOATS[verb]
        if flags.precision is not None:
            precision = flags.precision
        text = format_float(value, form, precision)
        if text[0] not in "+-":
            text = "+" + text
        if flags.space and text[0] == "+" and not flags.plus:
            text = " " + text[1:]
        if text[1] in "IN":
            signed = flags.space or flags.plus or text[1] == "I"
            self.pad(text if signed else text[1:], zeros=False)
            return
        if flags.sharp and form != "b":
            text = _with_point(text, form, precision)
        if not flags.plus and text[0] == "+":
            self.pad(text[1:])
        elif flags.zero and not flags.minus and (flags.width or 0) > len(text):
            self.put(text[0] + "0" * ((flags.width or 0) - len(text)) + text[1:])
        else:
            self.pad(text)

    def _map(self, value: dict[str, Any], verb: str, depth: int) -> None:
        go = self.flags.sharp_v
        if go and is_nil(value):
            self.put(go_type(value) + "(nil)")
            return
        self.put(go_type(value) + "{" if go else "map[")
        for at, key in enumerate(sorted(value, key=str)):
            if at:
                self.put(", " if go else " ")
            self._value(key, verb, depth + 1)
            self.put(":")
            self._value(value[key], verb, depth + 1)
        self.put("}" if go else "]")

    def _list(self, value: list[Any], verb: str, depth: int) -> None:
        go = self.flags.sharp_v
        if isinstance(value, Bytes) and verb in "sqxX":
            self._bytes(value, verb)
            return
        if go and is_nil(value):
            self.put(go_type(value) + "(nil)")
            return
        self.put(go_type(value) + "{" if go else "[")
        for at, one in enumerate(value):
            if at:
                self.put(", " if go else " ")
            self._value(one, verb, depth + 1)
        self.put("}" if go else "]")

    def _bytes(self, value: Bytes, verb: str) -> None:
        if verb == "s":
            self._string(normal(bytes(value).decode("utf-8", "surrogateescape")), verb)
        elif verb == "q":
            self._string(bytes(value).decode("utf-8", "surrogateescape"), verb)
        elif verb in "xX":
            self._hexadecimal(bytes(value), verb)
        else:
            go = self.flags.sharp_v
            self.put("[]byte{" if go else "[")
            for at, one in enumerate(value):
                if at:
                    self.put(", " if go else " ")
                self._number(one, "x" if go else "d", sharp=go)
            self.put("}" if go else "]")

    def _opaque(self, value: Opaque, verb: str, depth: int) -> None:
        text = value.text() if not self.erroring and not self.flags.sharp_v and verb in "vsxXq" else None
        if text is not None:
            self._string(text, verb)
            return
        if verb == "w" or (value.kind == "ptr" and depth > 0):
            self.bad(value, verb) if verb == "w" else self._pointer(value, "v")
            return
        flags = self.flags
        self.put("&" if value.kind == "ptr" else "")
        self.put(go_type(value).lstrip("*") if flags.sharp_v else "")
        self.put("{")
        for at, (name, one) in enumerate(value.fields().items()):
            if at:
                self.put(", " if flags.sharp_v else " ")
            self.put(name + ":" if flags.plus_v or flags.sharp_v else "")
            self._value(one, verb, depth + 1)
        self.put("}")

    def _pointer(self, value: Any, verb: str = "p") -> None:
        if isinstance(value, list | dict) or getattr(value, "kind", "") == "ptr":
            self._number(_ADDRESS, "x", sharp=not self.flags.sharp)
        else:
            self.bad(value, verb)


def _with_point(text: str, form: str, precision: int) -> str:
    """Add the decimal point and the trailing zeros that ``#`` asks for. ``text`` begins with a sign."""
    digits = (6 if precision == -1 else precision) if form in "gGx" else 0
    cut = next((at for at, char in enumerate(text) if char in ("pP" if form in "xX" else "pPeE")), len(text))
    head, tail = text[:cut], text[cut:]
    significant = head[1:].replace(".", "").lstrip("0")
    digits -= len(significant)
    if "." not in head:
        if head[1:] == "0":
            digits -= 1
        head += "."
    return head + "0" * max(0, digits) + tail


class _Formatting:
    """One ``sprintf``: goes through the template."""

    __slots__ = ("_after_index", "_at", "_good", "_last_bracket", "_next", "_out", "_reordered", "_template", "_values")

    def __init__(self, out: _Printer, template: str, values: Sequence[Any]) -> None:
        self._out, self._template, self._values = out, template, values
        self._at = self._next = 0
        self._last_bracket = template.rfind("]")
        self._good = True
        self._reordered = self._after_index = False

    def run(self) -> None:
        template, out = self._template, self._out
        while self._at < len(template):
            found = template.find("%", self._at)
            if found != self._at:
                out.put(template[self._at : found] if found >= 0 else template[self._at :])
            if found < 0:
                break
            self._at = found + 1
            if not self._plain():
                self._verb()
        if not self._reordered and self._next < len(self._values):
            self._extra()

    def _plain(self) -> bool:
        """Take the short way for a string or integer without flags."""
        verb, at = self._template[self._at : self._at + 1], self._next
        if at >= len(self._values) or not verb or verb not in "svd":
            return False
        value = self._values[at]
        kind = type(value)
        if not (kind is str and verb != "d") and not (kind is int and verb != "s"):
            return False
        self._out.put(str(value))
        self._at += 1
        self._next += 1
        return True

    def _extra(self) -> None:
        out = self._out
        out.flags = _Flags()
        out.put("%!(EXTRA ")
        for at, value in enumerate(self._values[self._next :]):
            if at:
                out.put(", ")
            if value is None:
                out.put("<nil>")
            else:
                out.put(go_type(value) + "=")
                out.argument(value, "v")
        out.put(")")

    def _verb(self) -> None:
        out, template = self._out, self._template
        self._good = True
        out.flags = flags = _Flags()
        while self._at < len(template) and template[self._at] in "#0+- ":
            name = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}[template[self._at]]
            setattr(flags, name, True)
            self._at += 1
        verb = template[self._at : self._at + 1]
        if not ("a" <= verb <= "z" and self._next < len(self._values)):
            self._after_index = False
            self._index()
            self._width(flags)
            self._precision(flags)
            if not self._after_index:
                self._index()
            verb = template[self._at : self._at + 1]
        self._at += 1
        if not verb:
            out.put("%!(NOVERB)")
            return
        if 0xD800 <= ord(verb) <= 0xDFFF:
            verb = chr(REPLACEMENT)
        if verb == "%":
            out.put("%")
        elif not self._good:
            out.put(f"%!{verb}(BADINDEX)")
        elif self._next >= len(self._values):
            out.put(f"%!{verb}(MISSING)")
        else:
            if verb in "vw":
                flags.go_syntax()
            out.argument(self._values[self._next], verb)
            self._next += 1

    def _index(self) -> None:
        """Read an explicit index such as ``[2]``."""
        template = self._template
        self._after_index = False
        if template[self._at : self._at + 1] != "[":
            return
        self._reordered = True
        short = len(template) - self._at < 3 and len(encode(template[self._at :])) < 3
        if self._at > self._last_bracket or short:
            self._good = False
            self._at += 1
            return
        end = template.find("]", self._at)
        number, stop = _number_in(template, self._at + 1, end)
        self._at = end + 1
        if number is None or stop != end:
            self._good = False
            return
        self._after_index = True
        if 1 <= number <= len(self._values):
            self._next = number - 1
        else:
            self._good = False

    def _star(self) -> int | None:
        """Take the next argument as a width or precision."""
        self._at += 1
        value: int | None = None
        if self._next < len(self._values):
            found = self._values[self._next]
            self._next += 1
            if isinstance(found, int) and not isinstance(found, bool) and -_MOST <= found <= _MOST:
                value = int(found)
        self._after_index = False
        return value

    def _width(self, flags: _Flags) -> None:
        if self._template[self._at : self._at + 1] == "*":
            flags.width = self._star()
            if flags.width is None:
                self._out.put("%!(BADWIDTH)")
            elif flags.width < 0:
                flags.width, flags.minus, flags.zero = -flags.width, True, False
            return
        flags.width, self._at = _number_in(self._template, self._at, len(self._template))
        if self._after_index and flags.width is not None:
            self._good = False

    def _precision(self, flags: _Flags) -> None:
        template = self._template
        if self._at + 1 >= len(template) or template[self._at] != ".":
            return
        self._at += 1
        if self._after_index:
            self._good = False
        self._index()
        if template[self._at : self._at + 1] == "*":
            flags.precision = self._star()
            if flags.precision is not None and flags.precision < 0:
                flags.precision = None
            if flags.precision is None:
                self._out.put("%!(BADPREC)")
        else:
            flags.precision, self._at = _number_in(template, self._at, len(template))
            if flags.precision is None:
                flags.precision = 0


def _number_in(text: str, start: int, end: int) -> tuple[int | None, int]:
    """Return a decimal number and where it stops; one beyond a million is none, and stops at the end."""
    if start >= end:
        return None, end
    at, number = start, None
    while at < end and "0" <= text[at] <= "9":
        if number is not None and number > _MOST:
            return None, end
        number = (number or 0) * 10 + int(text[at])
        at += 1
    return number, at
