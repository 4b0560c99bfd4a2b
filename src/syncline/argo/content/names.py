"""Annotations by which an Application travels with its rendered manifests."""

from __future__ import annotations

from typing import Final

from syncline.kube.objects import Obj, annotations_of

CONTENT: Final = "syncline.dev/content"
"""Annotation of an Application on the hub, with the value :data:`AGENT`."""
AGENT: Final = "agent"
RENDERED: Final = "syncline.dev/rendered"
"""Annotation of the Application on its cluster: the digest of the version of its content."""


def wants_content(app: Obj) -> bool:
    """Return whether the hub renders an Application and its agent brings the manifests."""
    return annotations_of(app).get(CONTENT) == AGENT
