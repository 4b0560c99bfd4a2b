"""Validation rules as data: a kind is a table of small checks, in Kubernetes' order.

A :data:`Rule` takes a value and its path and returns causes. Rules of values (``choice``, ``within``, ``label``) are
parts of rules of fields (``field``, ``need``, ``each``), and these of ``every`` or ``when``; for relations, a plain
function of this signature is a rule too. Tables are created once, at import. Begin at :func:`every`; kinds name their
table in ``Kind.rules``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.causes import (
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.text.quantity import Quantity, QuantityError, parse_quantity

Rule: TypeAlias = Callable[[Any, str], Iterable[FieldCause]]
"""Returns what is wrong with the value at a path."""
Table: TypeAlias = Callable[[Any, str], list[FieldCause]]
"""A rule composed of others."""
Test: TypeAlias = Callable[[Any], object]
NATURAL = "must be greater than or equal to 0"


def amount(value: Any) -> Quantity | None:
    """Parse a quantity; return None if it is malformed (decoding has refused it)."""
    try:
        return parse_quantity(value) if value is not None else None
    except QuantityError:
        return None


def list_of(owner: Any, key: str) -> list[Obj]:
    """Return the objects of a list; empty if it is missing."""
    listed = owner.get(key) if isinstance(owner, dict) else None
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def nothing(value: Any, path: str) -> list[FieldCause]:
    return []


def every(*rules: Rule) -> Table:
    """Apply all rules to one value and concatenate their causes."""

    def judge(value: Any, path: str) -> list[FieldCause]:
        causes: list[FieldCause] = []
        for rule in rules:
            causes += rule(value, path)
        return causes

    return judge


def first(*rules: Rule) -> Rule:
    """Return the causes of the first rule that has any."""

    def judge(value: Any, path: str) -> Iterable[FieldCause]:
        for rule in rules:
            if causes := list(rule(value, path)):
                return causes
        return ()

    return judge


def _one(rules: tuple[Rule, ...]) -> Rule:
    return rules[0] if len(rules) == 1 else every(*rules)


def below(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key


# --- values --------------------------------------------------------------------------------------------------------


def named(problems: Callable[[str], list[str]]) -> Rule:
    """Require a text without ``problems``."""

    def judge(value: Any, path: str) -> Iterable[FieldCause]:
        found = problems(str(value))
        return [invalid(path, value, problem) for problem in found] if found else ()

    return judge


label, subdomain, qualified = named(names.dns_label), named(names.dns_subdomain), named(names.qualified_name)
segment = named(names.path_segment)


def choice(*allowed: str) -> Rule:
    """Require one of a closed list, printed in this order."""
    return lambda value, path: () if value in allowed else (unsupported(path, value, allowed),)


def must(test: Test, why: str) -> Rule:
    return lambda value, path: () if test(value) else (invalid(path, value, why),)


def within(low: int, high: int, why: str = "") -> Rule:
    why = why or f"must be between {low} and {high}, inclusive"
    return lambda value, path: (
        (invalid(path, value, why),) if isinstance(value, int) and not low <= value <= high else ()
    )


def at_least(low: int, why: str) -> Rule:
    return must(lambda value: value >= low, why)


def at_most(high: int, why: str) -> Rule:
    return must(lambda value: value <= high, why)


def not_negative(value: Any, path: str) -> Iterable[FieldCause]:
    """Require a quantity that is not negative; decoding refuses malformed ones."""
    size = amount(value)
    return (invalid(path, str(size), NATURAL),) if size is not None and size.nano < 0 else ()


def members(*allowed: str) -> Rule:
    """Require that each entry is in a closed list; causes name the list, not the entry."""
    return lambda value, path: [unsupported(path, one, allowed) for one in value if one not in allowed]


def most(longest: int) -> Rule:
    """Limit the bytes of a text, or the entries of a list."""

    def judge(value: Any, path: str) -> Iterable[FieldCause]:
        if isinstance(value, list):
            return (too_many(path, len(value), longest),) if len(value) > longest else ()
        return (too_long(path, longest),) if len(str(value).encode()) > longest else ()

    return judge


def port(value: Any, path: str) -> Iterable[FieldCause]:
    fits = isinstance(value, int) and 0 < value < 65536
    return () if fits else (invalid(path, value, "must be between 1 and 65535, inclusive"),)


# --- fields of an object -------------------------------------------------------------------------------------------


def field(key: str, *rules: Rule, shown: str = "") -> Rule:
    """Apply rules to a field that is set. ``shown``: its name in causes, if different."""
    rule, shown = _one(rules), shown or key

    def judge(owner: Any, path: str) -> Iterable[FieldCause]:
        value = owner.get(key)
        return () if value is None else rule(value, f"{path}.{shown}" if path else shown)

    return judge


def filled(key: str, *rules: Rule, shown: str = "") -> Rule:
    """Apply rules to a field that is neither missing nor empty."""
    rule, shown = _one(rules), shown or key

    def judge(owner: Any, path: str) -> Iterable[FieldCause]:
        value = owner.get(key)
        return rule(value, f"{path}.{shown}" if path else shown) if value else ()

    return judge


def always(key: str, *rules: Rule, default: Any = None, shown: str = "") -> Rule:
    """Apply rules to a field, or to ``default`` if it is missing or empty."""
    rule, shown = _one(rules), shown or key
    return lambda owner, path: rule(owner.get(key) or default, f"{path}.{shown}" if path else shown)


def text(key: str, *rules: Rule, shown: str = "") -> Rule:
    return always(key, *rules, default="", shown=shown)


def part(key: str, *rules: Rule) -> Rule:
    """Apply rules to a nested object, empty if it is missing."""
    return always(key, *rules, default={})


def spec(*rules: Rule) -> Rule:
    return part("spec", *rules)


def number(key: str, *rules: Rule) -> Rule:
    return always(key, *rules, default=0)


def need(key: str, *rules: Rule, why: str = "", shown: str = "") -> Rule:
    """Require a field that is neither missing nor empty, then apply rules."""
    rule, shown = _one(rules) if rules else nothing, shown or key

    def judge(owner: Any, path: str) -> Iterable[FieldCause]:
        value, at = owner.get(key), f"{path}.{shown}" if path else shown
        return rule(value, at) if value else (required(at, why),)

    return judge


def needs(*keys: str) -> Rule:
    """Require fields that are neither missing nor empty."""
    return lambda owner, path: [required(below(path, key)) for key in keys if not owner.get(key)]


def natural(*keys: str) -> Rule:
    """Refuse negative numbers in the given fields."""
    return lambda owner, path: [
        invalid(below(path, key), owner[key], NATURAL)
        for key in keys
        if key in owner and isinstance(owner[key], int) and owner[key] < 0
    ]


class unique:
    """Within :func:`each`: refuse two entries with the same ``keys``. ``at``: the field named in causes, empty for the
    entry; ``blank``: whether empty values may repeat; ``show``: the printed value; ``first``: rules only for entries
    that are not duplicates."""

    def __init__(
        self,
        *keys: str,
        at: str | None = None,
        blank: bool = False,
        show: Callable[[Obj], Any] | None = None,
        first: Rule = nothing,
    ) -> None:
        self.keys, self.at, self.blank, self.first = keys, keys[0] if at is None else at, blank, first
        self.show = show or (lambda entry: str(entry.get(keys[0]) or ""))

    def begin(self) -> Rule:
        seen: set[tuple[str, ...]] = set()
        keys = self.keys

        def judge(entry: Any, path: str) -> Iterable[FieldCause]:
            key = tuple([str(entry.get(one) or "") for one in keys])
            if key not in seen:
                if not self.blank or any(key):
                    seen.add(key)
                return self.first(entry, path)
            return (duplicate(below(path, self.at), self.show(entry)),)

        return judge


def each(key: str, *rules: Rule | unique, shown: str = "") -> Rule:
    """Apply rules to each entry of a list of objects."""
    shown = shown or key
    plain = not any(isinstance(rule, unique) for rule in rules)

    def judge(owner: Any, path: str) -> Iterable[FieldCause]:
        listed = owner.get(key)
        if not listed or not isinstance(listed, list):
            return ()
        judges: Any = rules if plain else [one.begin() if isinstance(one, unique) else one for one in rules]
        causes: list[FieldCause] = []
        start = below(path, shown)
        for index, entry in enumerate(listed):
            if isinstance(entry, dict):
                at = f"{start}[{index}]"
                for rule in judges:
                    causes += rule(entry, at)
        return causes

    return judge


def inside(key: str, *rules: Rule) -> Rule:
    """Apply rules to each entry of a list of objects; causes name the list's parent."""
    rule = _one(rules)
    return lambda owner, path: [cause for entry in list_of(owner, key) for cause in rule(entry, path)]


def items(key: str, *rules: Rule, distinct: bool = False, shown: str = "") -> Rule:
    """Apply rules to each entry of a list of plain values. ``distinct``: refuse duplicates."""
    rule, shown = every(*rules), shown or key

    def judge(owner: Any, path: str) -> Iterable[FieldCause]:
        listed: Any = owner.get(key)
        if not listed:
            return ()
        start, causes = below(path, shown), []
        for index, value in enumerate(listed):
            causes += rule(value, f"{start}[{index}]")
            if distinct and value in listed[:index]:
                causes.append(duplicate(f"{start}[{index}]", value))
        return causes

    return judge


# --- relations of fields -------------------------------------------------------------------------------------------


def has(*keys: str) -> Test:
    """Return a test: is one of the fields set?"""
    return lambda owner: any(owner.get(key) is not None for key in keys)


def given(*keys: str) -> Test:
    """Return a test: are all fields set and not empty?"""
    return lambda owner: all(owner.get(key) for key in keys)


def lacks(key: str) -> Test:
    return lambda owner: owner.get(key) is None


def where(**wanted: Any) -> Test:
    """Return a test: do all fields have these values?"""
    return lambda owner: all(owner.get(key) == value for key, value in wanted.items())


def when(test: Test, *rules: Rule, otherwise: Rule = nothing) -> Rule:
    rule = _one(rules)
    return lambda value, path: rule(value, path) if test(value) else otherwise(value, path)


def refuse(test: Test, key: str, why: str, default: Any = None) -> Rule:
    """Refuse the value at ``key`` of an object for which ``test`` holds."""
    return lambda owner, path: (invalid(below(path, key), owner.get(key) or default, why),) if test(owner) else ()


def forbid(test: Test, key: str, why: str) -> Rule:
    return lambda owner, path: (forbidden(below(path, key), why),) if test(owner) else ()


def demand(test: Test, key: str, why: str = "") -> Rule:
    return lambda owner, path: (required(below(path, key), why),) if test(owner) else ()
