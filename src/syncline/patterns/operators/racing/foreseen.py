"""Which operators Subscriptions will bring, before there is a cluster; pure.

The resolver of namespaces decides, with catalogues at hand, and what known operators subscribe to follows. Only what
it says is known here: an operator that cannot be resolved is listed with the reason, and so is one without a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from syncline.kube.objects import Obj, ObjectRef, dig, gvk_of, namespace_of, ref_of
from syncline.patterns.operators.behaving import Behaviour, Behaviours
from syncline.patterns.operators.catalogs.model import Catalog, SourceKey
from syncline.patterns.operators.controllers.looking import DEFINITIONS, GLOBAL_NAMESPACE, GROUPS, SUBSCRIPTIONS
from syncline.patterns.operators.groups import Api
from syncline.patterns.operators.resolver.constraints import installed_properties, package_named, requirements
from syncline.patterns.operators.resolver.resolve import Request, resolve

MOST_ROUNDS: Final = 10
"""How often operators that are subscribed to by operators are looked for."""
OPEN: Final = "openshift-operators"
"""Where OpenShift has a group for operators of all namespaces."""
MOST_SUBSCRIPTIONS: Final = 500


@dataclass(frozen=True, slots=True)
class Foreseen:
    """An operator that will be there. ``subscription``: the one of the pattern that brings it, by itself or as a
    requirement (``brought_by``, a package). ``definitions``: names of those that come with it. ``unresolved``: why no
    version is found. ``behaviour`` None: what it does is unknown."""

    package: str
    subscription: ObjectRef
    behaviour: Behaviour | None
    definitions: frozenset[str] = frozenset()
    brought_by: str = ""
    unresolved: str = ""


@dataclass(slots=True)
class _Found:
    """What is known so far, by package."""

    behaviours: Behaviours
    catalogs: Mapping[str, Catalog]
    made: dict[str, Foreseen] = field(default_factory=dict)

    def add(self, package: str, subscription: ObjectRef, names: Iterable[str], by: str = "", why: str = "") -> None:
        if package and package not in self.made:
            does = self.behaviours.of(package)
            self.made[package] = Foreseen(package, subscription, does, frozenset(names), by, why)


def foreseen(objects: Sequence[Obj], catalogs: Mapping[str, Catalog], behaviours: Behaviours) -> tuple[Foreseen, ...]:
    """Return the operators that the Subscriptions among ``objects`` bring. ``catalogs``: by the name of their
    CatalogSource, as ``name`` (in ``openshift-marketplace``) or ``namespace/name``."""
    found, given = _Found(behaviours, catalogs), list(objects)
    roots: dict[ObjectRef, tuple[ObjectRef, str]] = {}
    for _ in range(MOST_ROUNDS):
        subscriptions = [one for one in given if gvk_of(one).group_kind == SUBSCRIPTIONS][:MOST_SUBSCRIPTIONS]
        for namespace in dict.fromkeys(map(namespace_of, subscriptions)):
            _resolve(found, namespace, [one for one in given if namespace_of(one) == namespace], roots)
        known = {ref_of(one) for one in given}
        more = [(each, who) for who in found.made.values() for each in _brought(who) if ref_of(each) not in known]
        if not more:
            break
        for each, who in more:
            roots.setdefault(ref_of(each), (who.subscription, who.package))
            given.append(each)
    return tuple(found.made[name] for name in sorted(found.made))


def _brought(one: Foreseen) -> Iterator[Obj]:
    """Yield the Subscriptions and OperatorGroups that an operator makes."""
    for line in one.behaviour.lines if one.behaviour is not None else ():
        for obj in line.creates:
            if gvk_of(obj).group_kind in (SUBSCRIPTIONS, GROUPS) and "${" not in json.dumps(obj["metadata"]):
                yield obj


def _resolve(
    found: _Found, namespace: str, here: Sequence[Obj], roots: Mapping[ObjectRef, tuple[ObjectRef, str]]
) -> None:
    """Add the operators of a namespace: those that its Subscriptions name, and those that they require."""
    asked = {
        str(dig(one, "spec", "name") or ""): ref_of(one) for one in here if gvk_of(one).group_kind == SUBSCRIPTIONS
    }
    subscriptions = [one for one in here if ref_of(one) in asked.values()]
    groups = [one for one in here if gvk_of(one).group_kind == GROUPS]
    if namespace == OPEN and not groups:
        groups = [{"metadata": {"name": "global-operators", "namespace": OPEN}, "spec": {}}]
    answer = resolve(Request(namespace, subscriptions, {}, groups, _usable(found.catalogs, namespace)))
    bundles = {one.package: one for one in _bundles(answer.steps)}
    for package, ref in asked.items():
        root, by = roots.get(ref, (ref, ""))
        one = bundles.get(package)
        why = answer.error or ("" if one is not None else "no version of it is found")
        found.add(package, root, one.definitions if one is not None else (), by, why)
    for package, one in bundles.items():
        requirer = _requirer(package, bundles, asked)
        if package not in asked and requirer:
            root, _ = roots.get(asked[requirer], (asked[requirer], ""))
            found.add(package, root, one.definitions, requirer)


def _usable(catalogs: Mapping[str, Catalog], namespace: str) -> dict[SourceKey, Catalog]:
    made = {}
    for name, one in sorted(catalogs.items()):
        place, slash, short = name.rpartition("/")
        key = SourceKey(short, place if slash else GLOBAL_NAMESPACE)
        if key.namespace in (namespace, GLOBAL_NAMESPACE):
            made[key] = one
    return made


@dataclass(frozen=True, slots=True)
class _Bundle:
    """``provides``: packages and APIs as texts; ``requires``: the same."""

    package: str
    definitions: tuple[str, ...]
    provides: frozenset[str]
    requires: frozenset[str]


def _bundles(steps: Iterable[Obj]) -> Iterator[_Bundle]:
    """Yield what is installed."""
    versions: dict[str, Obj] = {}
    definitions: dict[str, list[str]] = {}
    for one in steps:
        resource, bundle = one["resource"], str(one["resolving"])
        if resource["kind"] == "ClusterServiceVersion":
            versions[bundle] = json.loads(resource["manifest"])
        elif (resource["group"], resource["kind"]) == DEFINITIONS:
            definitions.setdefault(bundle, []).append(str(resource["name"]))
    for name, csv in versions.items():
        properties = installed_properties(csv)
        package = package_named(properties)
        wanted = requirements(properties, {})
        apis = (Api(**one.value) for one in properties if one.kind == "olm.gvk")
        yield _Bundle(
            package,
            tuple(definitions.get(name, ())),
            frozenset((package, *map(str, apis))),
            frozenset(one.package or str(one.api) for one in wanted if one.package or one.api),
        )


def _requirer(package: str, bundles: Mapping[str, _Bundle], asked: Mapping[str, ObjectRef]) -> str:
    """Return the package with a Subscription that requires another one, by itself or along others; "" if none does."""
    wanted, seen = [package], {package}
    while wanted:
        one = bundles[wanted.pop(0)]
        for name, other in bundles.items():
            if name not in seen and other.requires & one.provides:
                if name in asked:
                    return name
                seen.add(name)
                wanted.append(name)
    return ""
