"""Apply a StatefulSet's ``persistentVolumeClaimRetentionPolicy`` with owner references on its claims.

The garbage collector does the rest. Source: Kubernetes' StatefulSet controller: a claim that is deleted with the set is
owned by it; one that is deleted on scale-down is owned by the pod to be deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from syncline.cluster.builtin.owners import owner_reference, set_owners
from syncline.cluster.builtin.workloads.statefulset.identity import claims_of
from syncline.control.plan import Patch
from syncline.kube.objects import Obj, dig, is_terminating, name_of, owner_references, uid_of


def retention_patches(
    statefulset: Obj, pods: Mapping[int, Obj], wanted: frozenset[int], claims: Mapping[str, Obj]
) -> tuple[Patch, ...]:
    """Return patches for the claims of existing pods; ``wanted`` are the ordinals to retain. Other owners stay."""
    found = []
    for ordinal in sorted(pods):
        for named in claims_of(statefulset, ordinal):
            claim = claims.get(name_of(named))
            if claim is None or is_terminating(claim):
                continue
            owners = _owners(statefulset, pods[ordinal], claim, condemned=ordinal not in wanted)
            if owners != owner_references(claim):
                found.append(set_owners(claim, owners, "persistentVolumeClaimRetentionPolicy"))
    return tuple(found)


def _owners(statefulset: Obj, pod: Obj, claim: Obj, *, condemned: bool) -> list[Obj]:
    policy = dig(statefulset, "spec", "persistentVolumeClaimRetentionPolicy", default={})
    goes_with_pod = condemned and policy.get("whenScaled") == "Delete"
    goes_with_set = not goes_with_pod and policy.get("whenDeleted") == "Delete"
    mine = {uid_of(statefulset), uid_of(pod)}
    others = [each for each in owner_references(claim) if each.get("uid") not in mine]
    if goes_with_pod:
        return [*others, owner_reference({"apiVersion": "v1", "kind": "Pod"} | pod)]
    return [*others, owner_reference(statefulset)] if goes_with_set else others
