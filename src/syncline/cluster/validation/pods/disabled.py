"""Drop pod fields that Kubernetes serves but ignores while a feature gate is off.

The strategies of Pods and of kinds with pod templates call it before validation. Source: Kubernetes
``DropDisabledPodFields`` and the default feature gates of 1.36.
"""

from __future__ import annotations

from typing import Any

PROJECTIONS = ("clusterTrustBundle", "podCertificate")
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def drop_disabled(spec: Any) -> None:
    """Remove the fields in place. A malformed pod spec is left for validation."""
    if not isinstance(spec, dict):
        return
    for volume in spec.get("volumes") or ():
        projected = volume.get("projected") if isinstance(volume, dict) else None
        for part in projected.get("sources") or () if isinstance(projected, dict) else ():
            for kind in PROJECTIONS:
                if isinstance(part, dict):
                    part.pop(kind, None)
    for key in CONTAINERS:
        for container in spec.get(key) or ():
            lifecycle = container.get("lifecycle") if isinstance(container, dict) else None
            if isinstance(lifecycle, dict) and lifecycle.pop("stopSignal", None) is not None and not lifecycle:
                del container["lifecycle"]
    spec.pop("schedulingGroup", None)
