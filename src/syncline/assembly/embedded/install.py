"""Creates missing objects in a cluster; generators of requests, driven live or in process."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from syncline.kube import client
from syncline.kube.client import Request, Response
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ResourceInfo, dig, gvk_of, name_of, namespace_of


def ensure_objects(objects: Iterable[Obj]) -> Generator[Request, Response, list[str]]:
    """Create missing objects in order; existing ones are left alone. Returns the names of created objects.

    Discovery is repeated for an unknown kind, as an earlier CRD in the list may define it. Raises the ApiError of the
    first refusal.
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


def install_missing(objects: Iterable[Obj]) -> Generator[Request, Response, list[Obj]]:
    """As :func:`ensure_objects`, for a cluster of another team: each object is read first, so that the right to create
    is needed only for missing ones. Stops at the first kind that is not served yet; returns the rest."""
    mapper = Mapper((yield from discover()))
    rest = list(objects)
    while rest:
        info = mapper.find(gvk_of(rest[0]))
        if info is None:
            break
        yield from _install(info, rest.pop(0))
    return rest


def _install(info: ResourceInfo, obj: Obj) -> Generator[Request, Response, None]:
    answer = yield client.get(info, namespace_of(obj), name_of(obj))
    if answer.status != 404:
        answer.or_raise()
        return
    answer = yield client.create(info, obj, field_manager="syncline")
    if answer.status != 409:
        answer.or_raise()


def not_established(definitions: Iterable[Obj]) -> Generator[Request, Response, list[str]]:
    """Return the names of the CRDs that the cluster does not serve yet."""
    mapper = Mapper((yield from discover()))
    waiting: list[str] = []
    for obj in definitions:
        info = mapper.find(gvk_of(obj))
        answer = None if info is None else (yield client.get(info, "", name_of(obj)))
        conditions = [] if answer is None else dig(answer.or_raise(), "status", "conditions", default=[])
        if not any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
            waiting.append(name_of(obj))
    return waiting
