"""What became of a pattern's installation, from the objects of a cluster: operators, Applications, and who waited for
what; pure. ``timeline.py`` has when.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from syncline.base.clock import format_time, time_or_none
from syncline.base.masking import mask_credentials
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, labels_of, name_of, namespace_of
from syncline.patterns.installing.pattern import LABEL
from syncline.patterns.installing.timeline import Row

TRACKING: Final = "argocd.argoproj.io/tracking-id"
UNKNOWN: Final = "OperatorUnknown"
"""Reason of the Event that says so (``patterns/operators``)."""
_HOLDS: Final = re.compile(r" holds what comes after wave | waits: gate ")
_OBJECT: Final = re.compile(r"(?:^|/)(?P<kind>[A-Z][A-Za-z]+)(?:/[^/ ]*/| )(?P<name>[a-z0-9][a-z0-9./-]*)")
_AGAIN: Final = re.compile(r"\.? ?(Retrying attempt #\d+ at [^.]*|\(retried \d+ times\))\.?")
"""What changes with each attempt."""
MAX_WAITS: Final = 2_000
MAX_NAMED: Final = 4
MAX_TEXT: Final = 400


@dataclass(frozen=True, slots=True)
class Operator:
    """A Subscription. ``csv``: the installed version; ``ended``: when it succeeded; ``why``: what is in its way;
    ``unknown``: what the operator does is not known here."""

    namespace: str
    name: str
    package: str
    catalog: str
    channel: str
    csv: str
    phase: str
    began: datetime | None
    ended: datetime | None
    why: str = ""
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Child:
    """An Application. ``source``: what it is made of; ``why``: why it is not Synced and Healthy."""

    namespace: str
    name: str
    source: str
    sync: str
    health: str
    why: str = ""

    @property
    def well(self) -> bool:
        return (self.sync, self.health) == ("Synced", "Healthy")


@dataclass(frozen=True, slots=True)
class Wait:
    """``who`` waited for ``what``; ``until`` None: still."""

    who: str
    what: str
    since: datetime
    until: datetime | None = None

    @property
    def obj(self) -> Obj:
        until = format_time(self.until) if self.until is not None else None
        return {"who": self.who, "what": self.what, "since": format_time(self.since), "until": until}


def held_rows(waits: Iterable[Wait]) -> list[Row]:
    """Return rows of what held a sync without a pod: gates, and waits in place of Jobs."""
    held = (one for one in waits if _HOLDS.search(one.what))
    return [Row(f"wait for {_awaited(one.what)}", one.since, one.until, "held") for one in held]


def _awaited(text: str) -> str:
    """Return ``StorageClass NAME`` where a message ends so, else its end."""
    end = text.rpartition(": ")[2]
    found = _OBJECT.search(end)
    return f"{found['kind']} {found['name']}" if found else end[:60]


def belongs(one: Obj, pattern: str) -> bool:
    """Return whether an Application is of a pattern."""
    return gvk_of(one).kind == "Application" and labels_of(one).get(LABEL) == pattern


def children_of(pattern: str, objects: Iterable[Obj]) -> list[Child]:
    """Return the Applications of a pattern, its parent first."""
    made = [_child(one) for one in objects if belongs(one, pattern)]
    return sorted(made, key=lambda one: (one.namespace != "vp-gitops", one.namespace, one.name))


def operators_of(pattern: str, objects: Iterable[Obj]) -> list[Operator]:
    """Return the Subscriptions that Applications of a pattern made, in the order in which they succeeded."""
    listed = list(objects)
    apps = {name_of(one) for one in listed if belongs(one, pattern)}
    versions = {(namespace_of(one), name_of(one)): one for one in listed if gvk_of(one).kind == "ClusterServiceVersion"}
    strange = {
        str(dig(one, "involvedObject", "name"))
        for one in listed
        if gvk_of(one).kind == "Event" and one.get("reason") == UNKNOWN
    }
    made = [
        _operator(one, versions, strange)
        for one in listed
        if gvk_of(one).kind == "Subscription" and annotations_of(one).get(TRACKING, "").partition(":")[0] in apps
    ]
    far = max((one.ended for one in made if one.ended is not None), default=None)
    return sorted(made, key=lambda one: (one.ended is None, one.ended or far, one.namespace, one.name))


def _operator(one: Obj, versions: Mapping[tuple[str, str], Obj], strange: set[str]) -> Operator:
    spec, status = one.get("spec") or {}, one.get("status") or {}
    name = str(status.get("installedCSV") or "")
    csv = versions.get((namespace_of(one), name)) or {}
    phase = str(dig(csv, "status", "phase") or status.get("state") or "requested")
    ended = time_or_none(dig(csv, "status", "lastTransitionTime")) if phase == "Succeeded" else None
    wrong = [
        str(said.get("message") or said.get("reason") or said.get("type"))
        for said in status.get("conditions") or ()
        if said.get("status") == "True" and said.get("type") in _WRONG
    ]
    return Operator(
        namespace_of(one),
        name_of(one),
        str(spec.get("name") or ""),
        str(spec.get("source") or ""),
        str(spec.get("channel") or ""),
        name,
        phase,
        time_or_none(dig(one, "metadata", "creationTimestamp")),
        ended,
        _short("; ".join(wrong)) if ended is None else "",
        name in strange,
    )


_WRONG: Final = (
    "ResolutionFailed",
    "InstallPlanFailed",
    "InstallPlanPending",
    "CatalogSourcesUnhealthy",
    "BundleUnpackFailed",
)


def _child(one: Obj) -> Child:
    status = one.get("status") or {}
    sync, health = (str(dig(status, part, "status") or "Unknown") for part in ("sync", "health"))
    why = "" if (sync, health) == ("Synced", "Healthy") else _why(status, sync)
    return Child(namespace_of(one), name_of(one), _source(one), sync, health, why)


def _source(one: Obj) -> str:
    """Return the source that is rendered: a chart of a registry, or a path of a repository."""
    sources = dig(one, "spec", "sources") or [dig(one, "spec", "source") or {}]
    made = [source for source in sources if source.get("chart") or source.get("path")]
    text = []
    for source in made or sources[:1]:
        url = mask_credentials(str(source.get("repoURL") or ""))
        revision = str(source.get("targetRevision") or "")
        chart = f"chart {source.get('chart')} {revision} of {url}"
        text.append(chart if source.get("chart") else f"path {source.get('path')}")
    return ", ".join(text)


def _why(status: Obj, sync: str) -> str:
    """Return the first that says more: an error of the source, of the operation, then what is not healthy."""
    errors = [
        str(said.get("message")) for said in status.get("conditions") or () if str(said.get("type")).endswith("Error")
    ]
    state = status.get("operationState") or {}
    if not errors and state.get("phase") != "Succeeded" and state.get("message"):
        errors = [_failed(state) or str(state["message"])]
    if not errors:
        errors = [_behind(status, sync)]
    return _short("; ".join(dict.fromkeys(errors)))


def _failed(state: Obj) -> str:
    """Return what an operation could not apply, by message."""
    found: dict[str, list[str]] = {}
    for one in dig(state, "syncResult", "resources") or ():
        if one.get("status") == "SyncFailed" or one.get("hookPhase") in ("Failed", "Error"):
            found.setdefault(str(one.get("message") or "failed"), []).append(f"{one.get('kind')}/{one.get('name')}")
    return "; ".join(f"{_names(names)}: {message}" for message, names in found.items())


def _behind(status: Obj, sync: str) -> str:
    found: dict[str, list[str]] = {}
    for one in status.get("resources") or ():
        health = str(dig(one, "health", "status") or "")
        named = f"{one.get('kind')}/{one.get('name')}"
        if health and health != "Healthy":
            found.setdefault(health, []).append(named)
        elif sync != "Synced" and one.get("status") != "Synced":
            found.setdefault(str(one.get("status")), []).append(named)
    return "; ".join(f"{state}: {_names(names)}" for state, names in found.items())


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _short(text: str) -> str:
    line = " ".join(mask_credentials(text).split())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


@dataclass(slots=True)
class Waits:
    """Remembers what Applications and Subscriptions waited for: call :meth:`look` whenever something changed."""

    made: list[Wait] = field(default_factory=list)
    _open: dict[tuple[str, str], int] = field(default_factory=dict)

    def look(self, pattern: str, objects: Iterable[Obj], now: datetime) -> None:
        """Take in what is waited for now."""
        listed = list(objects)
        apps = {name_of(one) for one in listed if belongs(one, pattern)}
        here = {pair for one in listed for pair in _waited(one, apps)}
        for pair in sorted(set(self._open) - here):
            number = self._open.pop(pair)
            one = self.made[number]
            self.made[number] = Wait(one.who, one.what, one.since, now)
        for pair in sorted(here - set(self._open)):
            if len(self.made) < MAX_WAITS:
                self._open[pair] = len(self.made)
                self.made.append(Wait(*pair, now))


def _waited(one: Obj, apps: set[str]) -> Iterator[tuple[str, str]]:
    kind = gvk_of(one).kind
    if kind == "Application" and name_of(one) in apps:
        state: Any = dig(one, "status", "operationState") or {}
        if state.get("phase") == "Running" and state.get("message"):
            yield f"sync of {name_of(one)}", _short(_AGAIN.sub("; it tries again", str(state["message"])))
    if kind == "Subscription" and annotations_of(one).get(TRACKING, "").partition(":")[0] in apps:
        for said in dig(one, "status", "conditions") or ():
            if said.get("status") == "True" and said.get("type") in _WRONG:
                what = str(said.get("message") or said.get("reason") or said.get("type"))
                yield f"operator {name_of(one)}", _short(what)
