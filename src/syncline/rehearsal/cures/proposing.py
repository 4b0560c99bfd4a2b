"""Which edits might cure what a rehearsal found: pure and bounded. Entry point: :func:`proposals`.

A proposal is only an idea: :mod:`~syncline.rehearsal.cures.proving` rehearses it before people see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.machineconfig.drain.budgets import covers
from syncline.rehearsal.answer.answer import Answer
from syncline.rehearsal.cures.editing import REMOVED, Edit
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.record import Record

MAX_PROPOSALS = 8
BUDGET, DEPLOYMENT = GroupKind("policy", "PodDisruptionBudget"), GroupKind("apps", "Deployment")
HOOK, WAVE = "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave"
OPTIONS = "argocd.argoproj.io/sync-options"
_MISSING = re.compile(
    r"(serviceaccount|configmap|secret|persistentvolumeclaim)s? \"?([a-z0-9.-]+/)?([a-z0-9.-]+)\"? not found"
)
_NODE = re.compile(r"\bNode (\S+) (?:drain|draining)")
_BUDGET = re.compile(r"by budget (\S+)")
_UNMANAGED = re.compile(r"Namespace (\S+) not managed: has no label (\S+)")
POLICY = ("spec", "syncPolicy")
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Proposal:
    """``edits`` are of the repository, or of the ``world``: its file, and the objects that it names."""

    text: str
    edits: tuple[Edit, ...]
    world: bool = False


@dataclass(frozen=True)
class Situation:
    """What proposals are made of."""

    asked: Asked
    record: Record
    answer: Answer

    @property
    def chains(self) -> str:
        """All that is waited for at the end, as text."""
        return "\n".join(link for wait in self.answer.waits if wait.until_s is None for link in wait.chain)

    def find(self, ref: ObjectRef) -> tuple[str, int, Obj, bool] | None:
        """Return file, document, object, and whether it is the world's: where an object is written."""
        for files, world in ((self.asked.files, False), (self.asked.world.objects, True)):
            for path, number, obj in written(files):
                if (
                    ref_of(obj)._replace(namespace="") == ref._replace(namespace="")
                    if _anywhere(obj)
                    else ref_of(obj) == ref
                ):
                    return path, number, obj, world
        return None


def _anywhere(obj: Obj) -> bool:
    return not namespace_of(obj)


def written(files: Files) -> Iterator[tuple[str, int, Obj]]:
    for path, number, document in files.documents():
        yield path, number, document.value


def proposals(found: Situation) -> tuple[Proposal, ...]:
    """Return what is worth a rehearsal, the least intrusive first; each edit once."""
    kept: dict[tuple[Edit, ...], Proposal] = {}
    for idea in IDEAS:
        for proposal in idea(found):
            kept.setdefault(proposal.edits, proposal)
    return tuple(kept.values())[:MAX_PROPOSALS]


# -- drains ------------------------------------------------------------------------------------------------------------


def _another_node(found: Situation) -> Iterator[Proposal]:
    world = found.asked.world
    waiting = set(_NODE.findall(found.chains))
    for place, group in enumerate(world.groups):
        if waiting & {node.name for node in group.nodes()}:
            count = (group.count or 1) + 1
            text = f"run {count} {group.shape.name} nodes instead of {count - 1}"
            yield Proposal(text, (Edit(world.name, 0, ("nodes", place, "count"), count),), world=True)


def _another_replica(found: Situation) -> Iterator[Proposal]:
    """A budget that wants all replicas lets none go; with one more it does."""
    for budget in _refusing(found):
        for deployment in found.record.last(DEPLOYMENT):
            template = {"metadata": {"labels": dig(deployment, "spec", "template", "metadata", "labels", default={})}}
            pod = {"metadata": {**template["metadata"], "namespace": namespace_of(deployment)}, "spec": {}}
            place = found.find(ref_of(deployment))
            if place is None or namespace_of(deployment) != namespace_of(budget) or not covers(budget, pod):
                continue
            file, number, obj, world = place
            replicas = int(dig(obj, "spec", "replicas", default=1) or 1)
            text = f"run {replicas + 1} replicas of Deployment {namespace_of(deployment)}/{name_of(deployment)}"
            yield Proposal(
                f"{text} instead of {replicas}", (Edit(file, number, ("spec", "replicas"), replicas + 1),), world
            )


def _relaxed_budget(found: Situation) -> Iterator[Proposal]:
    for budget in _refusing(found):
        place = found.find(ref_of(budget))
        if place is None:
            continue
        file, number, obj, world = place
        named = f"budget {namespace_of(budget)}/{name_of(budget)}"
        least, most = dig(obj, "spec", "minAvailable"), dig(obj, "spec", "maxUnavailable")
        healthy = int(dig(budget, "status", "desiredHealthy", default=0) or 0)
        if least is not None:
            lower = (least if isinstance(least, int) else healthy) - 1
            if lower >= 0:
                text = f"let {named} allow one more pod to leave (minAvailable {least} → {lower})"
                yield Proposal(text, (Edit(file, number, ("spec", "minAvailable"), lower),), world)
        elif most is not None:
            more = most + 1 if isinstance(most, int) else 1
            text = f"let {named} allow one more pod to leave (maxUnavailable {most} → {more})"
            yield Proposal(text, (Edit(file, number, ("spec", "maxUnavailable"), more),), world)


def _refusing(found: Situation) -> Iterator[Obj]:
    named = set(_BUDGET.findall(found.chains))
    for budget in found.record.last(BUDGET):
        if name_of(budget) in named:
            yield budget


# -- order -------------------------------------------------------------------------------------------------------------


def _earlier(found: Situation) -> Iterator[Proposal]:
    """What a hook or an earlier wave needs, and what comes only after it, is brought before it."""
    kinds = {
        "serviceaccount": "ServiceAccount",
        "configmap": "ConfigMap",
        "secret": "Secret",
        "persistentvolumeclaim": "PersistentVolumeClaim",
    }
    for kind, _, name in sorted(set(_MISSING.findall(found.chains.lower()))):
        needed = [
            (path, number, obj)
            for path, number, obj in written(found.asked.files)
            if obj.get("kind") == kinds[kind] and name_of(obj) == name
        ]
        waiters = [obj for _, _, obj in written(found.asked.files) if f'"{name}"' in _text(obj) and "spec" in obj]
        hooks = {annotations_of(obj).get(HOOK, "") for obj in waiters}
        if not needed:
            continue
        rights = list(_rights(found.asked.files, name)) if kind == "serviceaccount" else []
        wave = min([_wave(obj) for obj in waiters], default=0) - 1
        new = {HOOK: "PreSync", WAVE: str(wave)} if "PreSync" in hooks else {WAVE: str(wave)}
        edits = tuple(
            Edit(path, number, ("metadata", "annotations", key), value)
            for path, number, _ in (*needed, *rights)
            for key, value in new.items()
        )
        with_rights = " with its rights" if rights else ""
        where = f"into PreSync, wave {wave}" if HOOK in new else f"into wave {wave}"
        yield Proposal(f"bring {kinds[kind]} {name}{with_rights} {where}, before what needs it", edits)


def _rights(files: Files, account: str) -> Iterator[tuple[str, int, Obj]]:
    """Yield the bindings of a service account, and the roles that they name."""
    roles = set()
    for path, number, obj in written(files):
        if str(obj.get("apiVersion")).startswith(RBAC) and any(
            s.get("name") == account for s in obj.get("subjects") or ()
        ):
            roles.add((dig(obj, "roleRef", "kind"), dig(obj, "roleRef", "name")))
            yield path, number, obj
    for path, number, obj in written(files):
        if (obj.get("kind"), name_of(obj)) in roles:
            yield path, number, obj


def _wave(obj: Obj) -> int:
    found = annotations_of(obj).get(WAVE, "0")
    return int(found) if re.fullmatch(r"-?[0-9]{1,9}", found) else 0


def _text(obj: Obj) -> str:
    import json

    return json.dumps(obj)


# -- pauses and refusals -----------------------------------------------------------------------------------------------


def _unpaused(found: Situation) -> Iterator[Proposal]:
    for path, number, obj in written(found.asked.files):
        if obj.get("kind") == "MachineConfigPool" and dig(obj, "spec", "paused") is True:
            yield Proposal(f"do not pause pool {name_of(obj)}", (Edit(path, number, ("spec", "paused"), REMOVED),))


def _managed(found: Situation) -> Iterator[Proposal]:
    """A namespace in which the controllers may not write gets the label that lets them, where it is made; or an
    administrator makes it with the label before."""
    for space, label in sorted(set(_UNMANAGED.findall(found.chains))):
        edits, value = [], found.asked.control
        for path, number, obj in written(found.asked.files):
            above: tuple[str, ...] = ("spec", "template") if obj.get("kind") == "ApplicationSet" else ()
            creates = "CreateNamespace=true" in (dig(obj, *above, *POLICY, "syncOptions") or ())
            if obj.get("kind") == "Namespace" and name_of(obj) == space:
                edits.append(Edit(path, number, ("metadata", "labels", label), value))
            elif creates and dig(obj, *above, "spec", "destination", "namespace") == space:
                place = (*above, *POLICY, "managedNamespaceMetadata", "labels", label)
                edits.append(Edit(path, number, place, value))
        text = f"namespace {space} with the label {label}={value}"
        if edits:
            yield Proposal(f"make {text} with the Application", tuple(edits))
        world = found.asked.world
        yield Proposal(f"make {text} before", (Edit(world.name, 0, ("namespaces", space, label), value),), world=True)


def _resumed_on_failure(found: Situation) -> Iterator[Proposal]:
    """A hook that resumes what another one paused runs after a failed sync, too."""
    if not any(breach.law == "nothing-stays-paused" for breach in found.answer.breaches):
        return
    for path, number, obj in written(found.asked.files):
        hook = annotations_of(obj).get(HOOK, "")
        if hook == "PostSync" and "paused" in _text(obj):
            edit = Edit(path, number, ("metadata", "annotations", HOOK), "PostSync,SyncFail")
            yield Proposal(f"let hook {name_of(obj)} run after a failed sync, too", (edit,))


def _replaced(found: Situation) -> Iterator[Proposal]:
    """An immutable field is changed: the object is recreated."""
    for app in found.record.by_ref.values():
        obj = app[-1].obj
        for row in dig(obj, "status", "operationState", "syncResult", "resources", default=[]) or ():
            if "immutable" not in str(row.get("message")) or row.get("status") != "SyncFailed":
                continue
            ref = ObjectRef(*(str(row.get(key) or "") for key in ("group", "kind", "namespace", "name")))
            place = found.find(ref)
            if place is not None and OPTIONS not in annotations_of(place[2]):
                edit = Edit(place[0], place[1], ("metadata", "annotations", OPTIONS), "Replace=true,Force=true")
                yield Proposal(f"delete {ref.kind} {ref.name} and create it again with each change of it", (edit,))


IDEAS: tuple[Callable[[Situation], Iterator[Proposal]], ...] = (
    _earlier,
    _unpaused,
    _resumed_on_failure,
    _replaced,
    _managed,
    _another_node,
    _another_replica,
    _relaxed_budget,
)
"""All ideas, the least intrusive first."""
