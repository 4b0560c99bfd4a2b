"""What the controllers of an agent know of their surroundings: :class:`Link`.

The home of an agent's control loop is its hub: its keys are objects there. The cluster itself is joined to the loop as
:data:`SPOKE`; an action for it has ``cluster=SPOKE``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from syncline.control.cache import Snapshot
from syncline.kube.objects import ObjectRef

SPOKE: Final = "spoke"
"""Name of the agent's own cluster in its control loop."""


@dataclass(frozen=True, slots=True)
class Link:
    """An agent between one hub and its cluster."""

    cluster: str
    """Name of the ManagedCluster, and of its namespace on the hub."""
    agent: str
    """Id of the agent, the end of its user name on the hub."""
    hub_url: str
    """URL of the hub's API server; its hash names AppliedManifestWorks."""
    spoke: Callable[[], Snapshot | None]
    """Returns what is known of the cluster; None until every watched kind was listed once, or is unreadable."""
    problem: Callable[[], str]
    """Returns why the cluster does not answer now, or ""."""
    draw: Callable[[], float]
    """Returns a number from 0 to 1, to spread what many agents do at equal intervals."""

    def cluster_ref(self, group: str, kind: str) -> ObjectRef:
        """Return the reference to a cluster-scoped object of the agent's cluster on the hub."""
        return ObjectRef(group, kind, "", self.cluster)
