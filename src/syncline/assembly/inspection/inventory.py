"""What an inventory shows of a cluster: nodes, pools, Holds, clusters, Placements and their decisions.

Each kind is listed once, in pages. A kind that the server does not serve is *absent*, one that may not be listed is
*refused* with the server's reason; so a caller never takes the second for an empty cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field

from syncline.assembly.inspection.pulled import listed
from syncline.kube.client import Request, Response
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL
from syncline.kube.kinds.managedclusters import CLUSTER_SET, MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import GVK, Obj

NODE = GVK("", "v1", "Node")
READS: Mapping[str, tuple[GVK, ...]] = {
    "nodes": (NODE, MACHINE_CONFIG_POOL),
    "pools": (MACHINE_CONFIG_POOL, HOLD),
    "clusters": (MANAGED_CLUSTER, CLUSTER_SET),
    "placements": (PLACEMENT, PLACEMENT_DECISION),
}
"""Section → the kinds that it needs."""
PAGES = 100
"""Pages of one kind: 50,000 objects, ten times the nodes of the largest clusters."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Objects by kind; a kind is in one of the three. ``refused``: the server's reason."""

    objects: Mapping[GVK, list[Obj]] = field(default_factory=dict)
    refused: Mapping[GVK, str] = field(default_factory=dict)
    absent: frozenset[GVK] = frozenset()

    def of(self, kind: GVK) -> list[Obj]:
        return self.objects.get(kind, [])


def inventory(sections: Collection[str]) -> Generator[Request, Response, Inventory]:
    """List the kinds of these sections (keys of ``READS``). Raises the ApiError of any failure but a refused list."""
    mapper = Mapper((yield from discover()))
    objects: dict[GVK, list[Obj]] = {}
    refused: dict[GVK, str] = {}
    absent: set[GVK] = set()
    for kind in dict.fromkeys(kind for section in sections for kind in READS[section]):
        info = mapper.preferred(kind.group_kind)
        if info is None:
            absent.add(kind)
            continue
        try:
            objects[kind] = yield from listed(info, pages=PAGES)
        except Forbidden as error:
            refused[kind] = str(error)
    return Inventory(objects, refused, frozenset(absent))
