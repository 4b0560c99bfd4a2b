"""Events about the policy that the object of a template came with, as upstream's controllers write them; pure."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.control.plan import Emit
from syncline.kube.kinds.governance import POLICY
from syncline.kube.objects import Obj, name_of, namespace_of, owner_references
from syncline.patterns.policies.cluster.concluding import News
from syncline.patterns.policies.names import State


def events_of(policy: Obj, news: tuple[News, ...]) -> Iterable[Emit]:
    """Return Events about the policy that this one came with, as upstream's."""
    owner = next((one for one in owner_references(policy) if one.get("kind") == POLICY.kind), None)
    if owner is None:
        return
    place = namespace_of(policy)
    metadata = {"name": owner.get("name"), "namespace": place, "uid": owner.get("uid")}
    regarding = {"apiVersion": owner.get("apiVersion"), "kind": owner.get("kind"), "metadata": metadata}
    for one in news:
        reason = f"policy: {place}/{name_of(policy)}"
        bad = one.state is not State.COMPLIANT
        yield Emit(
            regarding,
            reason[:128],
            one.message[:1024],
            "configuration-policy-controller",
            warning=bad,
            event_action="ComplianceStateUpdate",
            limited=True,
        )
