"""Parses the names of objects that users type. Entry point: :func:`object_ref`."""

from __future__ import annotations

from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.mapper import Mapper
from syncline.kube.objects import ObjectRef

OF_ARGO = (APPLICATION.group_kind, APPLICATION_SET.group_kind, ROLLOUT.group_kind)
"""Kinds that live in the namespace of Applications by default."""
SHORT = {
    "app": "applications",
    "cluster": "managedclusters",
    "pool": "machineconfigpools",
    "work": "manifestworks",
    "mwrs": "manifestworkreplicasets",
    "addon": "managedclusteraddons",
    "rollout": "fleetrollouts",
}
"""Resources by short word; all other words are resolved as kubectl does."""
MACHINES = ("machineconfigpools", "mcp", "machineconfig", "mc", "kubeletconfig", "ctrcfg", "machineconfignode")
"""Words for kinds that only a cluster with machine configuration has."""

OF_A_HUB = (
    "managedclusters",
    "managedcluster",
    "cluster",
    "manifestworks",
    "manifestwork",
    "placement",
    "managedclusteraddons",
    "mwrs",
    "fleetrollouts",
)
"""Words for kinds that only a hub has."""
SERVED = ((MACHINES, "`syncline up --machine-config` serves it"), (OF_A_HUB, "`syncline up --hub` serves it"))


class NamingError(ValueError):
    """The typed words name no object; the message says what to write."""


def object_ref(mapper: Mapper, target: str, spaces: tuple[str, str]) -> ObjectRef:
    """Return what a user typed as an ObjectRef. ``spaces``: default namespaces of objects and of Applications."""
    parts = target.split("/")
    if len(parts) == 1:
        return ObjectRef(APPLICATION.group, APPLICATION.kind, spaces[1], target)
    if len(parts) > 3 or not all(parts):
        raise NamingError(f"{target!r}: write KIND/NAME, KIND/NAMESPACE/NAME or the name of an Application")
    kind = SHORT.get(parts[0].lower(), parts[0])
    info = mapper.by_name(kind)
    if info is None:
        fix = next(
            (text for words, text in SERVED if {kind.lower(), parts[0].lower()} & {*words}),
            "see `kubectl api-resources`",
        )
        raise NamingError(f"{target!r}: the cluster serves no kind {parts[0]!r}; {fix}")
    default = spaces[1] if info.group_kind in OF_ARGO else spaces[0]
    space = parts[1] if len(parts) == 3 else default
    return ObjectRef(info.group, info.kind, space if info.namespaced else "", parts[-1])
