"""Names of container images: what a container runtime can read, and why it cannot.

Called by plans (an image that no node can name never starts) and by kubelets. Grammar: the distribution project's
reference, as the kubelet normalises it (``ParseNormalizedNamed``).
"""

from __future__ import annotations

import re

from syncline.kube.objects import Obj, dig

__all__ = ["MAX_NAME", "image_problem", "image_problems"]

MAX_NAME = 255
"""Characters of a name without its tag and digest."""
_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_PART}(?:\.{_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_SEGMENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = rf"(?:{_HOST}/)?{_SEGMENT}(?:/{_SEGMENT})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_ALGORITHM = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*"
_REFERENCE = re.compile(rf"(?P<name>{_NAME})(?::{_TAG})?(?:@{_ALGORITHM}:[0-9a-fA-F]{{32,}})?")
_ID = re.compile(r"[a-f0-9]{64}")
MAX_READ = 1024
"""Characters beyond which no text is a reference: name, tag and digest together are shorter."""


def image_problem(image: str) -> str:
    """Why no container runtime can read this name, in the kubelet's words; empty where it can."""
    if _ID.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    if not image or len(image) > MAX_READ:
        return "invalid reference format"
    host, path = _split(image)
    bare = re.split(r"[:@]", path, maxsplit=1)[0]
    if bare.lower() != bare:
        return f"invalid reference format: repository name ({bare}) must be lowercase"
    found = _REFERENCE.fullmatch(f"{host}/{path}")
    if found is None:
        return "invalid reference format"
    if len(found["name"]) > MAX_NAME:
        return f"repository name must not be more than {MAX_NAME} characters"
    return ""


def _split(image: str) -> tuple[str, str]:
    """Registry and path; a first segment that looks like no host belongs to the path."""
    first, slash, rest = image.partition("/")
    is_host = any(mark in first for mark in ".:") or first == "localhost" or first.lower() != first
    if not slash or not is_host:
        return "docker.io", image if slash else f"library/{image}"
    return first, rest


_POD_SPECS = (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))


def image_problems(obj: Obj) -> list[str]:
    """Images of a pod, or of the pods that an object makes, which no node can read: each by its path."""
    found: list[str] = []
    for path in _POD_SPECS:
        for field in ("initContainers", "containers"):
            containers = dig(obj, *path, field)
            for index, container in enumerate(containers if isinstance(containers, list) else ()):
                image = dig(container, "image")
                why = image_problem(image) if isinstance(image, str) and image else ""
                if why:
                    place = f"{'.'.join(path)}.{field}[{index}].image"
                    shown = repr(image[:MAX_NAME])
                    found.append(f"{place}: found {shown}, which no node can pull (InvalidImageName: {why})")
    return found
