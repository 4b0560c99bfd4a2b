"""Putting objects into a cluster that may have them already; a generator of requests, driven live or in place."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, gvk_of, name_of

__all__ = ["ensure_objects"]


def ensure_objects(objects: Iterable[Obj]) -> Generator[Request, Response, list[str]]:
    """Create what is missing, in order; existing objects are left alone. Names of what was made.

    Discovery is asked again when a kind is unknown, since a definition earlier in the list may have brought it. Raises
    the ApiError of the first refusal.
    """
    made: list[str] = []
    mapper = Mapper((yield from discover()))
    for obj in objects:
        info = mapper.find(gvk_of(obj))
        if info is None:
            mapper.replace((yield from discover()))
            info = mapper.find(gvk_of(obj))
        if info is None:
            raise LookupError(f"{gvk_of(obj)}: the cluster does not serve this kind; apply its definition first")
        answer = yield client.create(info, obj, field_manager="syncline")
        if answer.status == 409:
            continue
        answer.or_raise()
        made.append(f"{info.kind}/{name_of(obj)}")
    return made
