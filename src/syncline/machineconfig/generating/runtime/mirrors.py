"""Adds the cluster's mirrors, insecure and blocked registries to the templates' registries.conf.

Mirrors of several objects for one source are merged into an order that keeps each object's order if possible. Flags and
mirrors of a scope are repeated for nested scopes, since the container tools read only the most specific entry. Source:
``openshift/runtime-utils`` ``pkg/registries``.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj, dig
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.generating.runtime import toml

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REPOSITORY = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
_MIRROR = re.compile(_REPOSITORY)
_SOURCE = re.compile(rf"\*(?:\.{_LABEL})+|{_REPOSITORY}")
ALLOW, NEVER = "AllowContactingSource", "NeverContactSource"

_ENDPOINT: toml.Shape = {"location": str, "insecure": bool, "pull-from-mirror": str}
_REGISTRY: toml.Shape = (
    {"prefix": str}
    | dict(_ENDPOINT)
    | {
        "mirror": [_ENDPOINT],
        "blocked": bool,
        "mirror-by-digest-only": bool,
    }
)
CONF: toml.Shape = {
    "registry": [_REGISTRY],
    "unqualified-search-registries": [str],
    "credential-helpers": [str],
    "short-name-mode": str,
    "additional-layer-store-auth-helper": str,
    "aliases": dict,
}


class RegistryError(ValueError):
    """The rules cannot be written; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class MirrorRules:
    """The objects that define mirrors. Policies of the older kind count as digest mirrors."""

    digest_sets: tuple[Obj, ...] = ()
    tag_sets: tuple[Obj, ...] = ()
    source_policies: tuple[Obj, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.digest_sets or self.tag_sets or self.source_policies)

    def digest(self) -> list[Obj]:
        """Return digest mirrors: entries with ``source``, ``mirrors`` and optionally ``mirrorSourcePolicy``."""
        entries = list(_entries(self.digest_sets, "imageDigestMirrors"))
        older = _entries(self.source_policies, "repositoryDigestMirrors")
        return entries + [{"source": one.get("source"), "mirrors": one.get("mirrors")} for one in older]

    def tag(self) -> list[Obj]:
        return list(_entries(self.tag_sets, "imageTagMirrors"))


def _entries(objects: Iterable[Obj], field: str) -> Iterable[Obj]:
    for obj in objects:
        yield from dig(obj, "spec", field, default=[]) or []


def is_nested(scope: str, outer: str) -> bool:
    """Return whether ``scope`` equals ``outer`` or is inside it; ``*.example.com`` is the only wildcard form."""
    if scope == outer or scope.startswith(f"{outer}/"):
        return True
    if not outer.startswith("*."):
        return False
    if ":" in scope:
        host = scope.split(":")[0]
        return host.endswith(outer[1:]) and "/" not in host
    return scope.split("/")[0].endswith(outer[1:])


def valid_scope(scope: str) -> bool:
    """Return whether registries.conf accepts the scope."""
    if not scope or "*" not in scope:
        return bool(scope)
    return scope.startswith("*.") and not any(sign in scope[2:] for sign in "/@:*")


def check_scopes(listed: Iterable[tuple[str, Sequence[str]]], rules: MirrorRules) -> None:
    """Raise RegistryError for the first invalid list entry, source or mirror."""
    for name, scopes in listed:
        for scope in scopes:
            if not valid_scope(scope):
                raise RegistryError(f"invalid entry for {name} registries {quoted(scope)}")
    policies: dict[str, str] = {}
    for entry in rules.digest() + rules.tag():
        _check_entry(entry, policies)


def _check_entry(entry: Obj, policies: dict[str, str]) -> None:
    source, policy = str(entry.get("source") or ""), str(entry.get("mirrorSourcePolicy") or ALLOW)
    if not _SOURCE.fullmatch(source):
        raise RegistryError(f"invalid format for source {quoted(source)}")
    if policies.setdefault(source, policy) != policy:
        kinds = "imagedigestmirrorsets, imagetagmirrorsets, or imagecontentsourcepolicies"
        raise RegistryError(f"conflicting mirrorSourcePolicy is set for the same source {quoted(source)} in {kinds}")
    for mirror in entry.get("mirrors") or ():
        if not _MIRROR.fullmatch(mirror):
            raise RegistryError(f"invalid format for mirror {quoted(mirror)}")
        if policy == NEVER and mirror == source:
            message = f"if the source {quoted(source)} is one of the mirrors"
            raise RegistryError(f"cannot set mirrorSourcePolicy: NeverContactSource {message}")


@dataclass(slots=True)
class _Merged:
    source: str
    mirrors: list[str]
    never: bool


def _merged(entries: Iterable[Obj]) -> list[_Merged]:
    """Return one entry per source, sorted; entries that only repeat the source are dropped."""
    lists: dict[str, list[list[str]]] = {}
    never = set()
    for entry in entries:
        source, mirrors = str(entry.get("source") or ""), [str(one) for one in entry.get("mirrors") or ()]
        if all(mirror == source for mirror in mirrors):
            continue
        if entry.get("mirrorSourcePolicy") == NEVER:
            never.add(source)
        lists.setdefault(source, []).append(mirrors)
    return [_Merged(source, _order(source, lists[source]), source in never) for source in sorted(lists, key=str.encode)]


def _order(source: str, lists: list[list[str]]) -> list[str]:
    after: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}

    def edge(first: str, second: str) -> None:
        for node in (first, second):
            after.setdefault(node, set())
            before.setdefault(node, set())
        after[first].add(second)
        before[second].add(first)

    for mirrors in lists:
        for first, second in itertools.pairwise(mirrors):
            edge(first, second)
        if source not in mirrors:
            edge(mirrors[-1], source)
    found = _topological(after, before)
    # The source itself is always tried last.
    return found[:-1] if found[-1] == source else found


def _topological(after: dict[str, set[str]], before: dict[str, set[str]]) -> list[str]:
    """Return the nodes in an order that respects the edges; a cycle is broken at its first node by name."""
    names = sorted(after, key=str.encode)
    ready = deque(node for node in names if not before[node])
    rest = deque(names)
    found: list[str] = []
    used: set[str] = set()
    while ready or rest:
        node = ready.popleft() if ready else rest.popleft()
        if node in used:
            continue
        used.add(node)
        found.append(node)
        freed = []
        for following in after[node]:
            before[following].discard(node)
            if not before[following] and following not in used:
                freed.append(following)
        ready.extend(sorted(freed, key=str.encode))
    return found


def _scope(entry: Obj) -> str:
    return str(entry.get("prefix") or entry.get("location") or "")


def _entry(registries: list[Obj], scope: str) -> Obj:
    """Return the entry for ``scope``; create it if missing."""
    for entry in registries:
        if _scope(entry) == scope:
            return entry
    made: Obj = {"prefix": scope} if scope.startswith("*.") else {"location": scope}
    registries.append(made)
    return made


def edited(conf: Obj, insecure: Sequence[str], blocked: Sequence[str], rules: MirrorRules) -> Obj:
    """Return a copy of ``conf`` (fields of registries.conf) with the rules of the cluster."""
    registries: list[Obj] = [
        dict(one) | {"mirror": list(one.get("mirror") or ())} for one in conf.get("registry") or ()
    ]
    merged = []
    for entries, pull in ((rules.digest(), "digest-only"), (rules.tag(), "tag-only")):
        for each in _merged(entries):
            merged.append(each)
            entry = _entry(registries, each.source)
            if each.never:
                entry["blocked"] = True
            mirrors = [{"location": mirror, "pull-from-mirror": pull} for mirror in each.mirrors]
            entry["mirror"] = [*(entry.get("mirror") or ()), *mirrors]
    for scope in blocked:
        _entry(registries, scope)
    for scope in insecure:
        _spread_insecure(registries, scope)
    for scope in blocked:
        for entry in registries:
            if is_nested(_scope(entry), scope):
                entry["blocked"] = True
    for each in merged:
        _spread_mirrors(registries, each.source)
    return dict(conf) | {"registry": registries}


def _spread_insecure(registries: list[Obj], scope: str) -> None:
    _entry(registries, scope)["insecure"] = True
    for entry in registries:
        if is_nested(_scope(entry), scope):
            entry["insecure"] = True
        entry["mirror"] = [
            mirror | {"insecure": True} if is_nested(mirror["location"], scope) else mirror
            for mirror in entry.get("mirror") or ()
        ]


def _spread_mirrors(registries: list[Obj], source: str) -> None:
    """Add the mirrors of a source to nested scopes that have none."""
    mirrored = _entry(registries, source)
    outer = _scope(mirrored)
    for entry in registries:
        scope = _scope(entry)
        if scope == outer or not is_nested(scope, outer) or entry.get("mirror"):
            continue
        if outer.startswith("*."):
            raise RegistryError(f"internal error: mirrorsAdjustedForNestedScope for a wildcard scope {quoted(outer)}")
        tail = scope[len(outer) :]
        entry["mirror"] = [mirror | {"location": mirror["location"] + tail} for mirror in mirrored["mirror"]]


def registries_conf(template: str, insecure: Sequence[str], blocked: Sequence[str], rules: MirrorRules) -> str:
    """Return the text of /etc/containers/registries.conf. Raises RegistryError."""
    try:
        conf = toml.read(template, CONF)
    except toml.TomlError as error:
        raise RegistryError(f"error unmarshalling registries config: {error}") from error
    check_scopes((("insecure", insecure), ("blocked", blocked)), rules)
    return conf_text(edited(conf, insecure, blocked, rules))


def conf_text(conf: Obj) -> str:
    """Return the fields as the container tools' library writes them, without absent lists."""
    written: dict[str, Any] = {
        "unqualified-search-registries": conf.get("unqualified-search-registries"),
        "credential-helpers": conf.get("credential-helpers"),
        "short-name-mode": conf.get("short-name-mode") or "",
        "additional-layer-store-auth-helper": conf.get("additional-layer-store-auth-helper") or "",
        "registry": [_registry(one) for one in conf.get("registry") or ()] or None,
    }
    if conf.get("aliases"):
        written["aliases"] = {key: conf["aliases"][key] for key in sorted(conf["aliases"])}
    return toml.write(written)


def _registry(entry: Obj) -> Obj:
    found: Obj = {"prefix": entry.get("prefix") or ""} | _endpoint(entry)
    for flag in ("blocked", "mirror-by-digest-only"):
        if entry.get(flag):
            found[flag] = True
    if entry.get("mirror"):
        found["mirror"] = [_endpoint(mirror) for mirror in entry["mirror"]]
    return found


def _endpoint(entry: Obj) -> Obj:
    return {name: entry[name] for name in _ENDPOINT if entry.get(name)}
