"""Label and field selectors: :func:`parse_label_selector`, :func:`label_selector_from`, :func:`parse_field_selector`.

Used by the embedded API (query parameters), by controllers (``spec.selector``) and by planners. They parse a text or a
LabelSelector object into a frozen selector, with the grammar and the errors of Kubernetes apimachinery (``pkg/labels``,
``pkg/fields``). A selector reads nothing but the maps that are passed to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from syncline.kube.schema.fieldcauses import quoted

MAX_SELECTOR_CHARS = 65_536
"""The longest selector text; request lines are shorter in practice."""


class SelectorError(ValueError):
    """An invalid selector; the text is Kubernetes' own."""


class Operator(StrEnum):
    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = "gt"
    LESS = "lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term. ``values`` are sorted, as Kubernetes prints them; those of an object may repeat."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator is Operator.EQUALS:
            return value is not None and value in self.values
        match self.operator:
            case Operator.IN | Operator.EQUALS | Operator.DOUBLE_EQUALS:
                return value is not None and value in self.values
            case Operator.NOT_IN | Operator.NOT_EQUALS:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER | Operator.LESS:
                return value is not None and self._compares(value)
            case _:
                assert_never(self.operator)

    def _compares(self, value: str) -> bool:
        if not _INTEGER.fullmatch(value):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator is Operator.GREATER else int(value) < bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(self.values)})"
            case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.NOT_EQUALS:
                return f"{self.key}{self.operator.value}{self.values[0]}"
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.GREATER:
                return f"{self.key}>{self.values[0]}"
            case Operator.LESS:
                return f"{self.key}<{self.values[0]}"
            case _:
                assert_never(self.operator)


FEW = 16
"""The most terms and values that are checked one by one."""


class _ByKey:
    """Many requirements, indexed so that matching takes time by the object's labels, not by the terms."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._needed: set[str] = set()
        self._absent: set[str] = set()
        self._among: dict[str, frozenset[str]] = {}
        self._refused: dict[str, set[str]] = {}
        self._compared: dict[tuple[str, Operator], Requirement] = {}
        for one in requirements:
            match one.operator:
                case Operator.IN | Operator.EQUALS | Operator.DOUBLE_EQUALS:
                    self._needed.add(one.key)
                    self._among[one.key] = self._among.get(one.key, frozenset(one.values)) & frozenset(one.values)
                case Operator.NOT_IN | Operator.NOT_EQUALS:
                    self._refused.setdefault(one.key, set()).update(one.values)
                case Operator.EXISTS:
                    self._needed.add(one.key)
                case Operator.DOES_NOT_EXIST:
                    self._absent.add(one.key)
                case Operator.GREATER | Operator.LESS:
                    self._needed.add(one.key)
                    self._compare(one)
                case _:
                    assert_never(one.operator)

    def _compare(self, one: Requirement) -> None:
        """Of several bounds for a key keep the narrowest."""
        kept = self._compared.get((one.key, one.operator))
        wider = kept is not None and (int(one.values[0]) <= int(kept.values[0])) is (one.operator is Operator.GREATER)
        if not wider:
            self._compared[one.key, one.operator] = one

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self._needed) > len(labels) or not all(key in labels for key in self._needed):
            return False
        for key, value in labels.items():
            if key in self._absent or value in self._refused.get(key, ()):
                return False
            if key in self._among and value not in self._among[key]:
                return False
            compared = (self._compared.get((key, operator)) for operator in (Operator.GREATER, Operator.LESS))
            if not all(one is None or one.matches(labels) for one in compared):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Selector:
    """Matches if all ``requirements`` hold; without any it matches everything, unless ``nothing``."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _many: _ByKey | None = field(init=False, compare=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if sum(1 + len(one.values) for one in self.requirements) > FEW:
            object.__setattr__(self, "_many", _ByKey(self.requirements))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.nothing:
            return False
        found = labels or {}
        if self._many is not None:
            return self._many.matches(found)
        if len(self.requirements) == 1:
            return self.requirements[0].matches(found)
        return all(requirement.matches(found) for requirement in self.requirements)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the labels and values that every match must have, for a lookup in an index."""
        equal = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)
        return [
            (each.key, each.values[0]) for each in self.requirements if each.operator in equal and len(each.values) == 1
        ]

    @property
    def empty(self) -> bool:
        """True when every object matches."""
        return not self.requirements and not self.nothing

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


# --- what keys and values may look like ---------------------------------------------------------------------------

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation "
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_RULE = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_QUALIFIED_RULE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)


def label_key_problems(key: str) -> list[str]:
    """Return what is wrong with a qualified name; empty if valid (apimachinery ``IsQualifiedName``)."""
    parts = key.split("/")
    if len(parts) > 2:
        return [_QUALIFIED_RULE]
    name = parts[-1]
    problems = _prefix_problems(parts[0]) if len(parts) == 2 else []
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        problems.append(_NAME_RULE)
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = ["prefix part must be no more than 253 bytes"] if len(prefix) > 253 else []
    if not _SUBDOMAIN.fullmatch(prefix):
        problems.append(_PREFIX_RULE)
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return what is wrong with a label value; empty if valid (apimachinery ``IsValidLabelValue``)."""
    problems = ["must be no more than 63 bytes"] if len(value) > 63 else []
    if value and not _NAME.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems


# --- the string form ----------------------------------------------------------------------------------------------


class _Token(StrEnum):
    IDENTIFIER = "identifier"
    SYMBOL = "symbol"
    END = "end"
    ERROR = "error"


_SYMBOLS = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "("})
_SYMBOL_CHARS = frozenset("=!(),><")
_SPACE = frozenset(" \t\r\n")
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}
_OPERATOR_LIST = "in, notin, =, ==, !=, gt, lt"


def _tokens(text: str) -> list[tuple[_Token, str]]:
    found: list[tuple[_Token, str]] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in _SPACE:
            at += 1
            continue
        end = at
        if char in _SYMBOL_CHARS:
            end = _symbol_end(text, at)
            found.append((_Token.SYMBOL, text[at:end]))
        else:
            while end < len(text) and text[end] not in _SYMBOL_CHARS and text[end] not in _SPACE:
                end += 1
            found.append((_Token.IDENTIFIER, text[at:end]))
        at = end
    found.append((_Token.END, ""))
    return found


def _symbol_end(text: str, start: int) -> int:
    """Return the end of the longest known symbol: ``!=`` before ``!``."""
    return start + 2 if text[start : start + 2] in _SYMBOLS else start + 1


class _Parser:
    """A recursive-descent parser over tokens, with the errors of apimachinery ``labels.Parser``."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def selector(self) -> Selector:
        requirements: list[Requirement] = []
        while True:
            token, text = self._peek()
            if token is _Token.END:
                return _selector_of(requirements)
            if token is not _Token.IDENTIFIER and text != "!":
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            if self._comma_or_end():
                return _selector_of(requirements)

    def _comma_or_end(self) -> bool:
        token, text = self._next()
        if token is _Token.END:
            return True
        if text != ",":
            raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
        token, text = self._peek()
        if token is not _Token.IDENTIFIER and text != "!":
            raise SelectorError(f"found '{text}', expected: identifier after ','")
        return False

    def _requirement(self) -> Requirement:
        token, text = self._next()
        absent = token is _Token.SYMBOL and text == "!"
        if absent:
            token, text = self._next()
        if token is not _Token.IDENTIFIER:
            raise SelectorError(f"found '{text}', expected: identifier")
        key = text
        problems = label_key_problems(key)
        if problems:
            raise SelectorError(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')
        token, text = self._peek()
        if absent:
            return Requirement(key, Operator.DOES_NOT_EXIST)
        if token is _Token.END or text == ",":
            return Requirement(key, Operator.EXISTS)
        operator = self._operator()
        values = self._value_list() if operator in (Operator.IN, Operator.NOT_IN) else self._exact_value()
        return _checked(key, operator, sorted(set(values)))

    def _operator(self) -> Operator:
        _, text = self._next()
        operator = _OPERATORS.get(text)
        if operator is None:
            raise SelectorError(f"found '{text}', expected: {_OPERATOR_LIST}")
        return operator

    def _exact_value(self) -> list[str]:
        token, text = self._peek()
        if token is _Token.END or text == ",":
            return [""]
        token, text = self._next()
        if token is not _Token.IDENTIFIER:
            raise SelectorError(f"found '{text}', expected: identifier")
        return [text]

    def _value_list(self) -> list[str]:
        _, text = self._next()
        if text != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        token, text = self._peek()
        if text == ")":
            self._next()
            return [""]
        if token is not _Token.IDENTIFIER and text != ",":
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values: list[str] = []
        while True:
            self._value_into(values)
            if self._peek()[1] == ")":
                self._next()
                return values

    def _value_into(self, values: list[str]) -> None:
        token, text = self._next()
        if token is _Token.IDENTIFIER:
            values.append(text)
            token, text = self._peek()
            if text not in (",", ")"):
                raise SelectorError(f"found '{text}', expected: ',' or ')'")
        elif text == ",":
            if not values or self._peek()[1] in (")", ","):
                values.append("")
            if self._peek()[1] == ",":
                self._next()
        else:
            raise SelectorError(f"found '{text}', expected: ',', or identifier")

    def _peek(self) -> tuple[_Token, str]:
        return self._tokens[self._at]

    def _next(self) -> tuple[_Token, str]:
        token = self._tokens[self._at]
        if self._at < len(self._tokens) - 1:
            self._at += 1
        return token


def _selector_of(requirements: list[Requirement]) -> Selector:
    return Selector(tuple(sorted(requirements, key=lambda r: r.key)))


def _checked(
    key: str, operator: Operator, values: list[str], problems: Sequence[str] = (), *, any_value: bool = False
) -> Requirement:
    found = [*problems]
    if operator in (Operator.GREATER, Operator.LESS):
        what = "for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values):
            if not _INTEGER.fullmatch(value):
                found.append(f"values[{index}]: Invalid value: {quoted(value)}: {what}")
    for index, value in enumerate(() if any_value else values):
        wrong = label_value_problems(value)
        if wrong:
            found.append(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    if found:
        raise SelectorError(found[0] if len(found) == 1 else "[" + ", ".join(found) + "]")
    return Requirement(key, operator, tuple(sorted(values)))


def parse_label_selector(text: str) -> Selector:
    """Parse ``app=web,tier in (a,b),!legacy``; an empty text selects everything. Raises :class:`SelectorError`."""
    if len(text) > MAX_SELECTOR_CHARS:
        raise SelectorError(f"selector is {len(text)} characters long; at most {MAX_SELECTOR_CHARS} are allowed")
    if not text.strip():
        return EVERYTHING
    return _Parser(text).selector()


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """Return a selector that requires every entry (``spec.selector`` of a Service or ReplicationController)."""
    return Selector(tuple(Requirement(key, Operator.EQUALS, (labels[key],)) for key in sorted(labels)))


_OBJECT_OPERATORS = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def label_selector_from(obj: Mapping[str, Any] | None, *, any_value: bool = False) -> Selector:
    """Convert a LabelSelector object: None selects nothing, an empty one everything (metav1
    ``LabelSelectorAsSelector``). Raises :class:`SelectorError`.

    ``any_value``: values need not be label values (Argo CD's copy of that function, for parameters such as URLs).
    """
    if obj is None:
        return NOTHING
    labels: Mapping[str, str] = obj.get("matchLabels") or {}
    requirements = [_keyed(key, Operator.EQUALS, [str(labels[key])], any_value) for key in sorted(labels)]
    for expression in obj.get("matchExpressions") or ():
        operator = _OBJECT_OPERATORS.get(str(expression.get("operator", "")))
        if operator is None:
            given = quoted(str(expression.get("operator", "")))
            what = "pod selector" if any_value else "label selector"
            raise SelectorError(f"{given} is not a valid {what} operator")
        values = [str(value) for value in expression.get("values") or ()]
        requirements.append(_keyed(str(expression.get("key", "")), operator, values, any_value))
    return _selector_of(requirements)


def _keyed(key: str, operator: Operator, values: list[str], any_value: bool) -> Requirement:
    """Convert one term of an object; errors list all problems."""
    wrong = label_key_problems(key)
    problems = [f"key: Invalid value: {quoted(key)}: {'; '.join(wrong)}"] if wrong else []
    if operator in (Operator.IN, Operator.NOT_IN) and not values:
        problems.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and values:
        given = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        message = "values set must be empty for exists and does not exist"
        problems.append(f"values: Invalid value: {given}: {message}")
    return _checked(key, operator, values, problems, any_value=any_value)


# --- field selectors ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """``field`` must (``equal``) or must not have ``value``; a missing field is the empty string."""

    field: str
    value: str
    equal: bool = True


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Matches if all ``terms`` hold."""

    terms: tuple[FieldTerm, ...] = ()
    _by_field: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = field(
        init=False, compare=False, repr=False, default=()
    )
    """For each field the values it must equal, and those it must not."""

    def __post_init__(self) -> None:
        wanted: dict[str, tuple[set[str], set[str]]] = {}
        for term in self.terms:
            wanted.setdefault(term.field, (set(), set()))[0 if term.equal else 1].add(term.value)
        made = tuple((name, frozenset(equal), frozenset(others)) for name, (equal, others) in wanted.items())
        object.__setattr__(self, "_by_field", made)

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Return True if all terms hold; ``value_of`` is called once per field."""
        for name, equal, others in self._by_field:
            value = value_of(name)
            if value in others or (equal and equal != {value}):
                return False
        return True

    @property
    def empty(self) -> bool:
        return not self.terms

    def exact(self, field: str) -> str | None:
        """Return the value that ``field`` must equal, or None."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)

    def fields(self) -> Iterable[str]:
        return (term.field for term in self.terms)

    def __str__(self) -> str:
        return ",".join(f"{t.field}{'=' if t.equal else '!='}{_escape(t.value)}" for t in self.terms)


EVERY_FIELD = FieldSelector()
_TERM = re.compile(r"(?:[^\\,]|\\.|\\$)+", re.DOTALL)
"""A term: anything up to a comma without a backslash before it."""


def parse_field_selector(text: str) -> FieldSelector:
    """Parse ``metadata.name=a,status.phase!=Running`` (apimachinery ``fields.ParseSelector``).

    ``\\\\``, ``\\,`` and ``\\=`` escape in values. Raises :class:`SelectorError`.
    """
    if len(text) > MAX_SELECTOR_CHARS:
        raise SelectorError(f"selector is {len(text)} characters long; at most {MAX_SELECTOR_CHARS} are allowed")
    terms = [_field_term(part, text) for part in _TERM.findall(text)]
    return FieldSelector(tuple(sorted(terms, key=lambda t: t.field)))


def _field_term(part: str, whole: str) -> FieldTerm:
    for at, char in enumerate(part):
        if char == "!" and part[at + 1 : at + 2] == "=":
            return FieldTerm(part[:at], _unescape(part[at + 2 :]), equal=False)
        if char == "=":
            skip = 2 if part[at + 1 : at + 2] == "=" else 1
            return FieldTerm(part[:at], _unescape(part[at + skip :]))
    raise SelectorError(f"invalid selector: '{whole}'; can't understand '{part}'")


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescape(value: str) -> str:
    out: list[str] = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            out.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {char}")
        else:
            out.append(char)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(out)
