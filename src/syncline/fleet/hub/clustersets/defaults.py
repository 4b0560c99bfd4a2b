"""The sets that always exist: ``default``, of clusters that name no other, and ``global``, of all; pure.

Rules: ``default_…`` and ``global_managedclusterset_controller.go`` of upstream (reference ocm-pull-model §2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syncline.fleet.hub.sets import BY_LABELS, EXCLUSIVE
from syncline.kube.kinds.managedclusters import CLUSTER_SET
from syncline.kube.objects import Obj, annotations_of, api_version, dig

AUTO_UPDATE: Final = "cluster.open-cluster-management.io/autoupdate"
"""``false``: people may change the selector of the set."""
DEFAULT, GLOBAL = "default", "global"
SELECTORS: Final[dict[str, Obj]] = {
    DEFAULT: {"selectorType": EXCLUSIVE},
    GLOBAL: {"selectorType": BY_LABELS, "labelSelector": {}},
}


@dataclass(frozen=True, slots=True)
class Kept:
    """What to do about a set: create it, or give it back its selector; neither if it is as it should be."""

    why: str
    create: Obj | None = None
    selector: Obj | None = None


def kept(name: str, live: Obj | None) -> Kept:
    """Decide about the set ``default`` or ``global``; ``live``: what exists."""
    selector = SELECTORS[name]
    if live is None:
        kind = {"apiVersion": api_version(CLUSTER_SET.group, CLUSTER_SET.version), "kind": CLUSTER_SET.kind}
        made = {**kind, "metadata": {"name": name}, "spec": {"clusterSelector": selector}}
        return Kept(f"the set {name} is missing", create=made)
    if annotations_of(live).get(AUTO_UPDATE) == "false":
        return Kept(f"the annotation {AUTO_UPDATE} leaves the set to people")
    if dig(live, "spec", "clusterSelector") == selector:
        return Kept("the selector is as it should be")
    return Kept("the selector was changed", selector=selector)
