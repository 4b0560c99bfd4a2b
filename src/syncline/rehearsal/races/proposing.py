"""Which orderings may rule a race out, as layers of values, the smallest first: ideas only, which
:mod:`~syncline.rehearsal.races.examining` explores and rehearses; pure.

An ordering is made of what a cluster group has: waves, a gate or a Job behind which later waves wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.apply.annotations import wave
from syncline.gitops.gates.checks import CRD_ESTABLISHED, STORAGE_CLASS
from syncline.gitops.gates.placing import WAIT
from syncline.gitops.gates.sequence import SEQUENCE_JOB
from syncline.gitops.sync.conditions import WAIT_FOR
from syncline.kube.objects import GroupKind, Obj, ObjectRef, copied, dig, ref_of
from syncline.kube.yaml.loading import YamlError, load
from syncline.patterns.operators.controllers.looking import DEFINITIONS
from syncline.patterns.operators.racing.pairs import Race

WAVE: Final = "argocd.argoproj.io/sync-wave"
STEP: Final = 5
"""Between two waves, so that a person can put something between them."""
STORAGE: Final = GroupKind("storage.k8s.io", "StorageClass")
_GATES: Final[Mapping[GroupKind, str]] = {STORAGE: STORAGE_CLASS, DEFINITIONS: CRD_ESTABLISHED}
_RESOURCES: Final[Mapping[GroupKind, str]] = {STORAGE: "sc", DEFINITIONS: "crd"}
"""As ``oc get`` takes them; other kinds by their name."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A value in the entry of a Subscription. ``key``: of the entry, in a map or a list."""

    key: str | int
    path: tuple[str, ...]
    value: Any

    def __str__(self) -> str:
        return f"clusterGroup.subscriptions.{'.'.join((str(self.key), *self.path))}: {self.value}"


@dataclass(frozen=True, slots=True)
class Ordering:
    """``name``: wave, gate, wait or jobs; ``layer``: values to lay over those of the pattern."""

    name: str
    text: str
    edits: tuple[Edit, ...]
    layer: Obj


def orderings(race: Race, values: Obj, objects: Sequence[Obj]) -> tuple[Ordering, ...]:
    """Return what may rule a race out. ``objects``: those that the values render to."""
    given = dig(values, "clusterGroup", "subscriptions") or {}
    reader, maker = (_entry(given, one.subscription) for one in (race.reader, race.maker))
    if reader is None or maker is None or reader == maker:
        return ()
    waves = {ref_of(one): wave(one) for one in objects}
    before, after = (waves.get(one.subscription, 0) for one in (race.maker, race.reader))
    later = () if after > before else (Edit(reader, ("annotations", WAVE), str(before + STEP)),)
    made = [
        Ordering(name, text, edits, _layer(given, edits))
        for name, text, edits in _ideas(race, given, reader, maker, before, later)
        if edits
    ]
    return tuple(sorted(made, key=lambda one: len(one.edits)))


def _ideas(
    race: Race, given: Any, reader: str | int, maker: str | int, before: int, later: tuple[Edit, ...]
) -> Iterator[tuple[str, str, tuple[Edit, ...]]]:
    best, first, second = race.target, race.maker.subscription.name, race.reader.subscription.name
    what = f"{best.kind.kind} {best.name}"
    yield "wave", f"{second} in a wave after {first}", later
    annotations = dig(given[reader], "annotations") or {}
    gate = Edit(reader, ("annotations", WAIT_FOR), _with_gate(str(annotations.get(WAIT_FOR) or ""), race))
    text = f"{second} waits for {what} without a pod, in a wave after {first}: the whole wave waits"
    yield "gate", text, (gate, *later)
    entry = given[maker]
    job: Obj = {"resourceType": _RESOURCES.get(best.kind, best.kind.kind.lower()), "resourceName": best.name}
    job |= {"disabled": False} if dig(entry, "sequenceJob", "disabled") else {}
    placed = () if WAVE in (entry.get("annotations") or {}) else (Edit(maker, ("annotations", WAVE), str(before)),)
    jobs = (*placed, Edit(maker, ("sequenceJob",), job), *later)
    yield "jobs", f"a Job waits for {what} behind the wave of {first}, {second} comes in a later one", jobs
    wait = (*jobs, Edit(maker, ("annotations", SEQUENCE_JOB), WAIT))
    yield "wait", f"a wait without a pod for {what} behind the wave of {first}, {second} comes in a later one", wait


def _with_gate(before: str, race: Race) -> str:
    """Return the annotation with one more gate."""
    best = race.target
    if best.kind in _GATES:
        gate = f"{{gate: {_GATES[best.kind]}, name: {best.name}}}"
    else:
        gate = f"{{group: {best.kind.group}, kind: {best.kind.kind}, name: {best.name}}}"
    if not before:
        return gate
    try:
        known = load(before, file=WAIT_FOR)
    except YamlError:
        return gate
    inner = before.strip()
    return f"{inner[:-1]}, {gate}]" if isinstance(known, list) and inner.endswith("]") else f"[{inner}, {gate}]"


def _entry(given: Any, subscription: ObjectRef) -> str | int | None:
    """Return the key of the entry that gives a Subscription; None: none does."""
    pairs: Iterator[tuple[str | int, Any]] = iter(given.items() if isinstance(given, dict) else enumerate(given))
    for key, one in pairs:
        if isinstance(one, dict) and one.get("name") == subscription.name:
            places = one.get("namespaces") or [one.get("namespace") or "openshift-operators"]
            if subscription.namespace in places:
                return key
    return None


def _layer(given: Any, edits: Sequence[Edit]) -> Obj:
    """Return values that make these edits; a list is given as a whole, as layers replace it."""
    made: Any = copied(given) if isinstance(given, list) else {}
    for edit in edits:
        at = made[edit.key] if isinstance(edit.key, int) else made.setdefault(edit.key, {})
        for step in edit.path[:-1]:
            at[step] = at = dict(at.get(step) or {})
        at[edit.path[-1]] = edit.value
    return {"clusterGroup": {"subscriptions": made}}
