"""Image mode: a node runs an image of its pool in place of the image in its MachineConfig; pure.

:func:`embedded` puts the image into a copy of the MachineConfig, so that staging reads one field only; the disk records
the original MachineConfig and the image separately. Source: Machine Config Operator ``pkg/daemon/ocl.go``.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, annotations_of, dig
from syncline.machineconfig.names import annotation

ORIGINAL = annotation("original-osimageurl")
OWN = annotation("ocl-osimageurl")


def embedded(config: Obj, image: str) -> Obj:
    """Return ``config`` with ``image`` in place of its own, or unchanged without one."""
    if not image:
        return config
    metadata: Obj = config.get("metadata") or {}
    spec: Obj = config.get("spec") or {}
    notes = annotations_of(config) | {ORIGINAL: str(spec.get("osImageURL") or ""), OWN: image}
    return config | {"metadata": metadata | {"annotations": notes}, "spec": spec | {"osImageURL": image}}


def extracted(config: Obj) -> tuple[Obj, str]:
    """Return the config as it was before :func:`embedded`, and its image or an empty string."""
    notes = annotations_of(config)
    if ORIGINAL not in notes and OWN not in notes:
        return config, ""
    image = notes.get(OWN, "")
    kept = {key: value for key, value in notes.items() if key not in (ORIGINAL, OWN)}
    metadata = {key: value for key, value in (config.get("metadata") or {}).items() if key != "annotations"}
    spec = (config.get("spec") or {}) | {"osImageURL": notes.get(ORIGINAL, "")}
    return config | {"metadata": metadata | ({"annotations": kept} if kept else {}), "spec": spec}, image


def own_image(config: Obj | None) -> str:
    return str(dig(config, "metadata", "annotations", OWN, default="") or "")
