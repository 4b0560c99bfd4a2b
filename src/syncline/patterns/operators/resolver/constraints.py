"""What a bundle requires of others: properties become predicates with OLM's words (``predicateForProperty``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.patterns.operators.catalogs.model import Entry, Property
from syncline.patterns.operators.groups import Api
from syncline.patterns.operators.resolver.expressions import ExpressionError, holding
from syncline.patterns.operators.resolver.versions import parse_range, parse_version

MOST_DEEP: Final = 16
"""How deep constraints may stand in one another."""
MOST_PARTS: Final = 200
"""Constraints that one may join."""
MOST_BYTES: Final = 2 << 16
"""Size of a constraint, as upstream's ``maxConstraintSize``."""


class ConstraintError(ValueError):
    """A property cannot be read."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """``text``: as OLM prints it in a message. ``package``, ``api``: no entry without this package or API fulfils it.
    ``key``: equal for equal requirements."""

    holds: Callable[[Entry], bool]
    text: str
    package: str = ""
    api: Api | None = None
    key: str = ""


def _and(parts: Sequence[Predicate]) -> Predicate:
    package = next((one.package for one in parts if one.package), "")
    api = next((one.api for one in parts if one.api is not None), None)
    text = _joined(" and ", parts)
    return Predicate(lambda one: all(part.holds(one) for part in parts), text, package, api)


def _or(parts: Sequence[Predicate]) -> Predicate:
    return Predicate(lambda one: any(part.holds(one) for part in parts), _joined(" or ", parts))


def _not(parts: Sequence[Predicate]) -> Predicate:
    return Predicate(lambda one: not any(part.holds(one) for part in parts), _joined(" and not ", parts))


def _joined(word: str, parts: Iterable[Predicate]) -> str:
    return word.join(part.text for part in parts)


def providing(api: Api) -> Predicate:
    return Predicate(
        lambda one: one.bundle.provides(api),
        f"providing an API with group: {api.group}, version: {api.version}, kind: {api.kind}",
        api=api,
    )


def in_package(name: str) -> Predicate:
    def holds(one: Entry) -> bool:
        return one.package == name or any(each.get("packageName") == name for each in packages_of(one))

    return Predicate(holds, f"with package: {name}", name)


def packages_of(entry: Entry) -> list[Mapping[str, Any]]:
    """Return the values of the properties that name a package."""
    values = (one.value for one in entry.bundle.properties if one.kind == "olm.package")
    return [one for one in values if isinstance(one, dict)]


def _required_package(value: Any) -> Predicate:
    name, ranged = str(value.get("packageName") or ""), str(value.get("versionRange") or "")
    try:
        holds = parse_range(ranged)
    except ValueError as error:
        raise ConstraintError(f"package {name}: {error}") from None

    def inside(one: Entry) -> bool:
        if one.bundle.version is not None and holds(one.bundle.version):
            return True
        for each in packages_of(one):
            try:
                if holds(parse_version(str(each.get("version") or ""))):
                    return True
            except ValueError:
                continue
        return False

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


_FIELDS: Final[dict[str, frozenset[str]]] = {
    "gvk": frozenset(("group", "kind", "version")),
    "package": frozenset(("packageName", "versionRange")),
    "cel": frozenset(("rule",)),
    **dict.fromkeys(("all", "any", "not"), frozenset(("constraints",))),
}
_JOINED: Final = {"all": _and, "any": _or, "not": _not}


def _constraint(value: Any) -> Predicate:
    """Read the value of ``olm.constraint``."""
    if len(json.dumps(value)) > MOST_BYTES:
        text = f"olm.constraint value is greater than max constraint size {MOST_BYTES} bytes"
        raise ConstraintError(f"parse olm.constraint: {text}")
    _parse(value, 0)
    return _converted(value)


def _parse(value: Any, depth: int) -> None:
    """Check the shape of a constraint: no other fields, objects and lists where they belong."""
    if depth > MOST_DEEP or not isinstance(value, dict):
        text = f"constraints stand in one another at most {MOST_DEEP} deep, and each is an object"
        raise ConstraintError(f"parse olm.constraint: {text}")
    for field, part in value.items():
        if field == "failureMessage" or part is None:
            continue
        if field not in _FIELDS:
            raise ConstraintError(f'parse olm.constraint: json: unknown field "{field}"')
        if not isinstance(part, dict):
            raise ConstraintError(f"parse olm.constraint: {field} is an object, found {json.dumps(part)[:64]}")
        for name in part:
            if name not in _FIELDS[field]:
                raise ConstraintError(f'parse olm.constraint: json: unknown field "{name}"')
        if field in _JOINED:
            parts = part.get("constraints") or []
            if not isinstance(parts, list) or len(parts) > MOST_PARTS:
                raise ConstraintError(f"parse olm.constraint: {field}.constraints is a list of at most {MOST_PARTS}")
            for one in parts:
                _parse(one, depth + 1)


def _converted(value: Any) -> Predicate:
    """Return the predicate of a constraint; the first of its kinds counts, in upstream's order."""
    if value.get("gvk") is not None:
        return providing(_api(value["gvk"]))
    if value.get("package") is not None:
        return _required_package(value["package"])
    for word, join in _JOINED.items():
        if value.get(word) is not None:
            return join([_converted(one) for one in value[word].get("constraints") or ()])
    if value.get("cel") is not None:
        return _expression(str(value["cel"].get("rule") or ""), str(value.get("failureMessage") or ""))
    raise ConstraintError("convert olm.constraint to resolver predicate: constraint is empty")


def _expression(rule: str, message: str) -> Predicate:
    try:
        holds = holding(rule)
    except ExpressionError as error:
        raise ConstraintError(f"convert olm.constraint to resolver predicate: {error}") from None

    def fulfilled(one: Entry) -> bool:
        try:
            return holds(one.bundle.properties)
        except ExpressionError as error:
            raise ConstraintError(f"olm.constraint of a bundle: {error}") from None

    shown = (json.dumps(part, ensure_ascii=False) for part in (rule, message))
    return Predicate(fulfilled, "with constraint: {} and message: {}".format(*shown))


_READ: Final[dict[str, Callable[[Any], Predicate]]] = {
    "olm.gvk.required": lambda value: providing(_api(value)),
    "olm.package.required": _required_package,
    "olm.label.required": _labelled,
    "olm.constraint": _constraint,
}


def requirements(properties: Iterable[Property], known: dict[str, Predicate]) -> list[Predicate]:
    """Return what these properties require. ``known``: what was read before, by key; it grows. Raises
    :class:`ConstraintError`."""
    made: list[Predicate] = []
    for one in properties:
        read = _READ.get(one.kind)
        if read is not None:
            if not isinstance(one.value, dict):
                raise ConstraintError(f"{one.kind}: {one.value!r} is not an object")
            key = f"{one.kind} {json.dumps(one.value, sort_keys=True)}"
            made.append(replace(known[key] if key in known else read(one.value), key=key))
            known[key] = made[-1]
    return made


PROPERTIES: Final = "operatorframework.io/properties"
"""Annotation of a ClusterServiceVersion: the properties of its bundle."""


def installed_properties(csv: Obj) -> tuple[Property, ...]:
    """Return the properties of an installed operator: those that it was installed with, else what it describes."""
    text = annotations_of(csv).get(PROPERTIES)
    if text is not None:
        return _noted(text, name_of(csv))
    made: list[Property] = []
    for which, kind in (("owned", "olm.gvk"), ("required", "olm.gvk.required")):
        for part, read in (("customresourcedefinitions", _described), ("apiservicedefinitions", _aggregated)):
            described = ((csv.get("spec") or {}).get(part) or {}).get(which) or ()
            made += [Property(kind, read(one)) for one in described]
    return tuple(made)


def _noted(text: str, name: str) -> tuple[Property, ...]:
    try:
        noted = json.loads(text).get("properties") or ()
        return tuple(Property(str(one["type"]), one["value"]) for one in noted)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ConstraintError(f'failed to retrieve properties of csv "{name}": {error}') from None


def package_named(properties: Iterable[Property]) -> str:
    """Return the package that properties name; "" if they name none."""
    given = (one.value for one in properties if one.kind == "olm.package" and isinstance(one.value, dict))
    return str(next(given, {}).get("packageName") or "")


def _aggregated(one: Obj) -> Obj:
    return {part: str(one.get(part) or "") for part in ("group", "version", "kind")}


def _described(one: Obj) -> Obj:
    group = str(one.get("name") or "").partition(".")[2]
    return {"group": group, "version": str(one.get("version") or ""), "kind": str(one.get("kind") or "")}
