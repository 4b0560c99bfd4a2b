"""Explains policies of Open Cluster Management, and kinds that nothing here acts on. Pure."""

from __future__ import annotations

from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.explain.fleet.clusters import cluster_cause
from syncline.explain.view import Found, View
from syncline.kube.kinds.governance import AUTOMATION, CERTIFICATE_POLICY, CONFIGURATION_POLICY, OPERATOR_POLICY, POLICY
from syncline.kube.kinds.hive import HIVE_KINDS, MULTI_CLUSTER_HUB
from syncline.kube.objects import Obj, dig, ref_of
from syncline.patterns.policies.hub.explaining import explain_local, explain_root

POLICIES = POLICY.group_kind
LOCAL = tuple(one.group_kind for one in (CERTIFICATE_POLICY, CONFIGURATION_POLICY, OPERATOR_POLICY))
WITHOUT_CONTROLLER = {
    AUTOMATION.group_kind: "no Ansible job runs for it: run the playbook, or use the operator of Ansible",
    MULTI_CLUSTER_HUB.group_kind: "a hub is made by `syncline up --hub`, or the roles hub, pull and policies",
    **{
        gvk.group_kind: "no cluster is made: install Hive on a hub of its own, and join the cluster"
        for gvk in HIVE_KINDS
    },
}
"""What to do instead."""


def explain_policy(view: View, policy: Obj) -> Found:
    """Explain a Policy: its bindings, the clusters that do not comply or answer, their messages."""
    found = explain_root(view.cluster, policy, lambda name: cluster_cause(view, name))
    return Found(found.cause, blocked=found.blocked)


def explain_local_policy(_view: View, policy: Obj) -> Found:
    """Explain a ConfigurationPolicy or OperatorPolicy on its cluster."""
    found = explain_local(policy)
    return Found(found.cause, blocked=found.blocked)


def explain_idle(_view: View, obj: Obj) -> Found:
    """Explain an object of a kind that no controller acts on here."""
    text = f"no controller of {obj.get('kind')} is here: the object is stored, and nothing comes of it"
    since = time_or_none(dig(obj, "metadata", "creationTimestamp"))
    advice = WITHOUT_CONTROLLER[ref_of(obj).group_kind]
    return Found(Cause(str(ref_of(obj)), "NoController", text, since, next_action=advice), blocked=True)
