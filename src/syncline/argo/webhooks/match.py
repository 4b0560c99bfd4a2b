"""Finds the Applications that a push affects."""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncline.argo.application import AppView
from syncline.argo.hydrator import dry_source
from syncline.argo.webhooks.payload import Push
from syncline.kube.objects import Obj, ObjectRef
from syncline.sources.errors import SourceError
from syncline.sources.remote.address import parse_address
from syncline.sources.revision import Version, parse_constraint

_SSH_HOST = re.compile(r"^(?:alt)?ssh\.")


def same_place(url: str) -> tuple[str, str] | None:
    """Return host and path, equal for all URLs of one repository whatever their scheme, user, port and ``.git``."""
    try:
        address = parse_address(url.strip())
    except SourceError:
        return None
    authority, _, path = address.key.rpartition("://")[2].partition("/")
    host = address.host or ("localhost" if address.scheme == "file" else authority.partition(":")[0])
    return (_SSH_HOST.sub("", host, count=1), path) if host and path else None


def affected(apps: Iterable[Obj], pushes: Iterable[Push]) -> tuple[ObjectRef, ...]:
    """Return the Applications with a source (dry ones too) in a pushed repository at a pushed revision, sorted."""
    report = _by_place(pushes)
    return tuple(sorted(AppView(app).ref for app in apps if report and _concerns(_sources(AppView(app)), report)))


def moved(url: str, revision: str, pushes: Iterable[Push]) -> bool:
    """Return whether one of the pushes may have moved ``revision`` (empty: HEAD) of the repository at ``url``."""
    return _concerns(({"repoURL": url, "targetRevision": revision},), _by_place(pushes))


def touches_dry_source(app: Obj, pushes: Iterable[Push]) -> bool:
    """Return whether the push changes a dry source, which is hydrated before the sync."""
    hydrator = AppView(app).hydrator
    return hydrator is not None and _concerns((dry_source(hydrator),), _by_place(pushes))


def _by_place(pushes: Iterable[Push]) -> dict[tuple[str, str], list[Push]]:
    fields: dict[tuple[str, str], list[Push]] = {}
    for push in pushes:
        for place in {same_place(url) for url in push.urls} - {None}:
            if place is not None:
                fields.setdefault(place, []).append(push)
    return fields


def _sources(view: AppView) -> tuple[Obj, ...]:
    return view.sources if view.hydrator is None else (*view.sources, dry_source(view.hydrator))


def _concerns(sources: Iterable[Obj], fields: dict[tuple[str, str], list[Push]]) -> bool:
    for source in sources:
        place = same_place(str(source.get("repoURL") or ""))
        target = str(source.get("targetRevision") or "")
        if place is not None and any(_moves(target, push) for push in fields.get(place, ())):
            return True
    return False


def _moves(target: str, push: Push) -> bool:
    """Return whether ``push`` may have moved the revision ``target``."""
    if target in ("", "HEAD"):
        return push.touched_head
    for prefix in ("refs/heads/", "refs/tags/"):
        if target.startswith(prefix):
            return target.removeprefix(prefix) == push.revision
    if target == push.revision:
        return True
    constraint = None if Version.parse(target) else parse_constraint(target)  # an exact version is a name, not a range
    version = Version.parse(push.revision)
    return constraint is not None and version is not None and constraint(version)
