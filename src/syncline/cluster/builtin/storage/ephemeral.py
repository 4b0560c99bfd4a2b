"""Create the claims of pods' ephemeral volumes, which their pods own.

Source: Kubernetes' ephemeral-volume-controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.owners import owner_reference
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.storage.matching import CLAIM
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Create, Emit, Plan
from syncline.kube.objects import Obj, ObjectRef, dig, is_terminating, name_of, namespace_of, ref_of, uid_of
from syncline.kube.scheduling.volumes import ephemeral_claim_name, is_made_for

COMPONENT = "ephemeral_volume"


@dataclass(frozen=True, slots=True)
class Observed:
    """``claims`` are the existing ones by name, with any creator."""

    pod: Obj
    claims: dict[str, Obj]


def _volumes(pod: Obj) -> list[Obj]:
    return [each for each in dig(pod, "spec", "volumes", default=[]) if "ephemeral" in each]


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None for pods without such volumes, for terminating ones, and before claims are listed."""
    pod = cache.get(ref)
    if pod is None or is_terminating(pod) or not _volumes(pod) or not cache.has_synced(CLAIM):
        return None
    names = [ephemeral_claim_name(pod, each) for each in _volumes(pod)]
    found = {name: cache.get(ObjectRef("", CLAIM.kind, namespace_of(pod), name)) for name in names}
    return Observed(pod, {name: claim for name, claim in found.items() if claim is not None})


def plan(observed: Observed, now: datetime) -> Plan:
    """Create the missing claims. An equally named claim that is not the pod's stays unchanged. Pure."""
    made: list[Create] = []
    events: list[Emit] = []
    for volume in _volumes(observed.pod):
        name = ephemeral_claim_name(observed.pod, volume)
        known = observed.claims.get(name)
        if known is None:
            made.append(
                Create(_claim(observed.pod, volume, name), f"the volume {volume.get('name')} of its pod needs it")
            )
        elif not is_made_for(known, observed.pod):
            where = namespace_of(observed.pod)
            text = f"PVC {where}/{name} was not created for pod {where}/{name_of(observed.pod)} (pod is not owner)"
            events.append(
                Emit(observed.pod, "FailedBinding", f"ephemeral volume {volume.get('name')}: {text}", COMPONENT, True)
            )
    return Plan(tuple(step for step in (tuple(made), tuple(events)) if step), why="claims of ephemeral volumes")


def _claim(pod: Obj, volume: Obj, name: str) -> Obj:
    template = dig(volume, "ephemeral", "volumeClaimTemplate", default={})
    metadata: Obj = {"name": name, "namespace": namespace_of(pod), "ownerReferences": [owner_reference(pod)]}
    for field in ("labels", "annotations"):
        if dig(template, "metadata", field):
            metadata[field] = dict(template["metadata"][field])
    return {
        "apiVersion": "v1",
        "kind": CLAIM.kind,
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def _owner(claim: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Yield the pod that owns a claim, to recreate a deleted one."""
    for owner in dig(claim, "metadata", "ownerReferences", default=[]):
        pod = cache.get(ObjectRef("", POD.kind, namespace_of(claim), str(owner.get("name"))))
        if owner.get("controller") and pod is not None and uid_of(pod) == owner.get("uid"):
            yield ref_of(pod)


EPHEMERAL_CLAIM_CONTROLLER = Controller(
    name="ephemeral-volume",
    kind=POD,
    watches=(Watch(CLAIM, _owner),),
    predicate=lambda old, new: new is not None and bool(_volumes(new)),
    observe=observe,
    plan=plan,
)
