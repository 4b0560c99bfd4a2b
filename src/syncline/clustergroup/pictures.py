"""The picture of Argo CD in the console's menu, which cluster groups that are rendered without their chart do not have
(docs/decisions/0025): :func:`with_pictures`; pure."""

from __future__ import annotations

from typing import Any, Final

from syncline.clustergroup.objects.argocd import ICON
from syncline.kube.objects import Obj

_KINDS: Final = frozenset(
    (("console.openshift.io/v1", "ConsoleLink"), ("policy.open-cluster-management.io/v1", "Policy"))
)
"""What holds a picture: the link, and the policy that brings it to other clusters."""
_PICTURE: Final = "data:image/"
MOST: Final = 100_000
"""Characters of a picture that is kept."""
_DEPTH: Final = 16


def with_pictures(target: Obj, live: Obj | None) -> Obj:
    """Return a manifest with the pictures of the live object in place of the dots that stand for them. The manifest
    itself where there is none."""
    if live is None or (target.get("apiVersion"), target.get("kind")) not in _KINDS:
        return target
    found: Obj = _kept(target, live, _DEPTH)
    return found


def _kept(target: Any, live: Any, depth: int) -> Any:
    if target == ICON:
        return live if isinstance(live, str) and live.startswith(_PICTURE) and len(live) <= MOST else target
    if not depth:
        return target
    if isinstance(target, dict) and isinstance(live, dict):
        made: Any = {key: _kept(one, live.get(key), depth - 1) for key, one in target.items()}
        same = all(made[key] is one for key, one in target.items())
    elif isinstance(target, list) and isinstance(live, list):
        there = [*live, *[None] * (len(target) - len(live))]
        made = [_kept(one, other, depth - 1) for one, other in zip(target, there, strict=False)]
        same = all(one is other for one, other in zip(made, target, strict=True))
    else:
        return target
    return target if same else made
