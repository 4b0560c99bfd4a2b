"""A Policy with what binds it to clusters: its PlacementBinding and its Placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from syncline.clustergroup.acm.facts import GROUPS, Facts
from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.printing import Printer, is_empty, printed
from syncline.kube.objects import Obj

POLICIES: Final = "policy.open-cluster-management.io"
CLUSTERS: Final = "cluster.open-cluster-management.io"
LATER: Final = {"argocd.argoproj.io/sync-options": "SkipDryRunOnMissingResource=true"}
"""Annotations of objects whose definitions the same sync may bring."""
_OURS: Final = {**LATER, "argocd.argoproj.io/compare-options": "IgnoreExtraneous"}
STANDARDS: Final = {
    f"{POLICIES}/standards": "NIST-CSF",
    f"{POLICIES}/categories": "PR.DS Data Security",
    f"{POLICIES}/controls": "PR.DS-1 Data-at-rest",
}
EXACTLY, AT_LEAST = "mustonlyhave", "musthave"


class Names(NamedTuple):
    """Names of the four objects; ``{}`` is the group."""

    policy: str
    config: str
    binding: str
    placement: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a policy holds. ``objects``: pairs of how strictly and what; ``include``: where its templates may look;
    ``more``: further fields of the ConfigurationPolicy."""

    objects: Sequence[tuple[str, Obj]]
    include: tuple[str, ...] = ("default",)
    annotations: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)


def bundle(out: Printer, names: Names, group: Any, content: Content, placed: Obj) -> list[Obj]:
    """Return the three objects. ``group``: the name in :class:`Names`; ``placed``: ``spec`` of the Placement."""
    policy, config, binding, placement = (out.plain(one.format(printed(group))) for one in names)
    templates = [{"complianceType": kind, "objectDefinition": obj} for kind, obj in content.objects]
    configuration: Obj = {
        "apiVersion": f"{POLICIES}/v1",
        "kind": "ConfigurationPolicy",
        "metadata": {"name": config},
        "spec": {
            **content.more,
            "remediationAction": "enforce",
            "severity": "medium",
            "namespaceSelector": {"include": list(content.include)},
            "object-templates": templates,
        },
    }
    spec = {
        "remediationAction": "enforce",
        "disabled": False,
        "policy-templates": [{"objectDefinition": configuration}],
    }
    annotations = {**content.annotations, **_OURS}
    return [
        {
            "apiVersion": f"{POLICIES}/v1",
            "kind": "Policy",
            "metadata": {"name": policy, "annotations": annotations},
            "spec": spec,
        },
        {
            "apiVersion": f"{POLICIES}/v1",
            "kind": "PlacementBinding",
            "metadata": {"name": binding, "annotations": LATER},
            "placementRef": {"name": placement, "kind": "Placement", "apiGroup": CLUSTERS},
            "subjects": [{"name": policy, "kind": "Policy", "apiGroup": POLICIES}],
        },
        {
            "apiVersion": f"{CLUSTERS}/v1beta1",
            "kind": "Placement",
            "metadata": {"name": placement, "annotations": LATER},
            "spec": placed,
        },
    ]


def _predicate(selector: Any) -> Obj:
    return {"predicates": [{"requiredClusterSelector": {"labelSelector": selector}}]}


def hub_only() -> Obj:
    """Return the ``spec`` of a Placement on the hub itself."""
    return _predicate({"matchExpressions": [{"key": "local-cluster", "operator": "In", "values": ["true"]}]})


def placed(out: Printer, group: Obj) -> Obj:
    """Return the ``spec`` of a group's Placement: its own selector as it is, else its labels without the hub."""
    labels = group.get("acmlabels")
    if not is_empty(labels) and not isinstance(labels, str | list | dict):
        raise RenderFailed(out.part, f"{GROUPS}: acmlabels: len of {printed(labels)[:80]}")
    if not is_empty(own := group.get("clusterSelector")):
        return _predicate(own)
    if is_empty(labels) or isinstance(labels, str):
        found: Any = {"clusterGroup": out.plain(group.get("name"))}
    else:
        found = out.lines(named(out, labels) if isinstance(labels, list) else out.pairs(labels, GROUPS))
    not_hub = {"key": "local-cluster", "operator": "NotIn", "values": ["true"]}
    return _predicate({"matchExpressions": [not_hub], "matchLabels": found})


def named(out: Printer, labels: Any) -> list[tuple[Any, Any]]:
    """Return labels that are given as names and values."""
    what = f"{GROUPS}: acmlabels"
    return [(out.field(one, "name", what), one.get("value")) for one in out.each(labels, what)]


def for_groups(facts: Facts, out: Printer, names: Names, content: Content) -> list[Obj]:
    """Return the bundles of a policy that is the same for all groups."""
    found = facts.groups(out)
    return [made for one in found for made in bundle(out, names, one.get("name"), content, placed(out, one))]
