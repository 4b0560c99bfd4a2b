"""Finds invalid image names in a manifest before it is applied: :func:`image_problems`, called by plans of a sync."""

from __future__ import annotations

from syncline.kube.objects import Obj, dig
from syncline.kube.text.imagenames import MAX_NAME, ImageNameError, image_name


def unreadable(image: str) -> str:
    """Return why no container runtime accepts this name; empty for a valid one."""
    try:
        image_name(image)
    except ImageNameError as error:
        return str(error)
    return ""


_POD_SPECS = (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))


def image_problems(obj: Obj) -> list[str]:
    """Return one problem per invalid image of a pod or pod template, each with its path."""
    found: list[str] = []
    for path in _POD_SPECS:
        for field in ("initContainers", "containers"):
            containers = dig(obj, *path, field)
            for index, container in enumerate(containers if isinstance(containers, list) else ()):
                image = dig(container, "image")
                why = unreadable(image) if isinstance(image, str) and image else ""
                if why:
                    place = f"{'.'.join(path)}.{field}[{index}].image"
                    shown = repr(image[:MAX_NAME])
                    found.append(f"{place}: found {shown}, which no node can pull (InvalidImageName: {why})")
    return found
