"""What the controllers of a cluster's policies know of their surroundings: :class:`PolicyLink`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncline.control.cache import Snapshot


@dataclass(frozen=True, slots=True)
class PolicyLink:
    """An agent between its hub, which is the home of its loop, and its cluster, which is joined to it."""

    cluster: str
    """Name of the ManagedCluster, of its namespace on the hub, and of the namespace of its policies on the cluster."""
    spoke_name: str
    """Name of the agent's own cluster in its loop."""
    spoke: Callable[[], Snapshot | None]
    """Returns what is known of the cluster; None until every watched kind was listed once, or is unreadable."""
    problem: Callable[[], str]
    """Returns why the cluster does not answer now, or ""."""
