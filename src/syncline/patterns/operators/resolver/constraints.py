"""What a bundle requires of others: properties become predicates with OLM's words (``predicateForProperty``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.patterns.operators.catalogs.model import Entry, Property
from syncline.patterns.operators.groups import Api
from syncline.patterns.operators.resolver.versions import parse_range

MOST_DEEP: Final = 16
"""How deep constraints may stand in one another."""
MOST_PARTS: Final = 200
"""Constraints that one may join."""


class ConstraintError(ValueError):
    """A property cannot be read."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """``text``: as OLM prints it in a message."""

    holds: Callable[[Entry], bool]
    text: str


def _and(parts: Sequence[Predicate]) -> Predicate:
    return Predicate(lambda one: all(part.holds(one) for part in parts), _joined("all of", parts))


def _or(parts: Sequence[Predicate]) -> Predicate:
    return Predicate(lambda one: any(part.holds(one) for part in parts), _joined("any of", parts))


def _not(parts: Sequence[Predicate]) -> Predicate:
    return Predicate(lambda one: not any(part.holds(one) for part in parts), _joined("none of", parts))


def _joined(word: str, parts: Iterable[Predicate]) -> str:
    return f"{word} [{', '.join(part.text for part in parts)}]"


def providing(api: Api) -> Predicate:
    return Predicate(
        lambda one: one.bundle.provides(api),
        f"providing an API with group: {api.group}, version: {api.version}, kind: {api.kind}",
    )


def in_package(name: str) -> Predicate:
    return Predicate(lambda one: one.package == name, f"with package: {name}")


def _required_package(value: Any) -> Predicate:
    name, ranged = str(value.get("packageName") or ""), str(value.get("versionRange") or "")
    try:
        holds = parse_range(ranged)
    except ValueError as error:
        raise ConstraintError(f"package {name}: {error}") from None

    def inside(one: Entry) -> bool:
        return one.bundle.version is not None and holds(one.bundle.version)

    return _and((in_package(name), Predicate(inside, f"with version in range: {ranged}")))


def _api(value: Any) -> Api:
    return Api(*(str(value.get(part) or "") for part in ("group", "version", "kind")))


def _labelled(value: Any) -> Predicate:
    label = str(value.get("label") or "")

    def holds(one: Entry) -> bool:
        found = (
            each.value for each in one.bundle.properties if each.kind == "olm.label" and isinstance(each.value, dict)
        )
        return any(each.get("label") == label for each in found)

    return Predicate(holds, f"with label: {label}")


def _constraint(value: Any, depth: int = 0) -> Predicate:
    """Read the value of ``olm.constraint``."""
    if depth > MOST_DEEP or not isinstance(value, dict):
        raise ConstraintError(f"constraints stand in one another at most {MOST_DEEP} deep, and each is an object")
    known = ("gvk", "package", "all", "any", "not")
    if any(value.get(word) is not None and not isinstance(value[word], dict) for word in known):
        raise ConstraintError(f"each of {', '.join(known)} is an object")
    if value.get("gvk"):
        return providing(_api(value["gvk"]))
    if value.get("package"):
        return _required_package(value["package"])
    for word, join in (("all", _and), ("any", _or), ("not", _not)):
        if value.get(word):
            parts = value[word].get("constraints")
            if not isinstance(parts, list) or len(parts) > MOST_PARTS:
                raise ConstraintError(f"{word}: constraints is a list of at most {MOST_PARTS}")
            return join([_constraint(one, depth + 1) for one in parts])
    if value.get("cel"):
        raise ConstraintError("constraints in CEL are not evaluated here; use gvk, package, all, any or not")
    raise ConstraintError("constraint is empty")


_READ: Final[dict[str, Callable[[Any], Predicate]]] = {
    "olm.gvk.required": lambda value: providing(_api(value)),
    "olm.package.required": _required_package,
    "olm.label.required": _labelled,
    "olm.constraint": _constraint,
}


def requirements(properties: Iterable[Property]) -> list[Predicate]:
    """Return what these properties require. Raises :class:`ConstraintError`."""
    made: list[Predicate] = []
    for one in properties:
        read = _READ.get(one.kind)
        if read is not None:
            if not isinstance(one.value, dict):
                raise ConstraintError(f"{one.kind}: {one.value!r} is not an object")
            made.append(read(one.value))
    return made


PROPERTIES: Final = "operatorframework.io/properties"
"""Annotation of a ClusterServiceVersion: the properties of its bundle."""


def installed_properties(csv: Obj) -> tuple[Property, ...]:
    """Return the properties of an installed operator: those that it was installed with, else what it describes."""
    text = annotations_of(csv).get(PROPERTIES)
    if text is not None:
        return _noted(text, name_of(csv))
    kinds = (csv.get("spec") or {}).get("customresourcedefinitions") or {}
    return tuple(Property("olm.gvk", _described(one)) for one in kinds.get("owned") or ())


def _noted(text: str, name: str) -> tuple[Property, ...]:
    try:
        noted = json.loads(text).get("properties") or ()
        return tuple(Property(str(one["type"]), one["value"]) for one in noted)
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise ConstraintError(f'failed to retrieve properties of csv "{name}": {error}') from None


def package_named(properties: Iterable[Property]) -> str:
    """Return the package that properties name; "" if they name none."""
    given = (one.value for one in properties if one.kind == "olm.package" and isinstance(one.value, dict))
    return str(next(given, {}).get("packageName") or "")


def _described(one: Obj) -> Obj:
    group = str(one.get("name") or "").partition(".")[2]
    return {"group": group, "version": str(one.get("version") or ""), "kind": str(one.get("kind") or "")}
