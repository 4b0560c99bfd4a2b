"""A release: what the work of an Application carries, named by its content; pure.

The *release* of an Application is a hash of the manifests that its cluster gets, with each targetRevision in place of
the commit that it stood for; the *release of a group* is a hash of template and revisions, equal for all its clusters,
and the same when a cluster is added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.argo.application import REFRESH, RELEASE
from syncline.fleet.pull.order.annotations import STRIPPED
from syncline.fleet.pull.order.revisions import Looks, Tracked, pinned
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig

LENGTH: Final = 12
"""Hexadecimal digits of a release."""
DEFAULT_PROJECT: Final = "default"


def digest(value: Any) -> str:
    """Return the name of a content: digits of the hash of its canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def sources_of(app: Obj) -> list[Obj]:
    """Return the sources of an Application, as they are written."""
    spec = app.get("spec")
    found = spec.get("sources") if isinstance(spec, dict) else None
    if not isinstance(found, list) or not found:
        found = [spec.get("source")] if isinstance(spec, dict) else []
    return [one for one in found if isinstance(one, dict)]


def tracked_of(app: Obj) -> tuple[Tracked, ...]:
    """Return what the sources of an Application follow, in order."""
    project = str(dig(app, "spec", "project") or DEFAULT_PROJECT)
    return tuple(Tracked.of(one, project) for one in sources_of(app))


@dataclass(frozen=True, slots=True)
class Pins:
    """The commits of an Application's sources, in order; empty: they travel as they are. ``problem``: why one is not
    known."""

    commits: tuple[str, ...] = ()
    problem: str = ""
    awaited: bool = False
    """The first look has not ended."""


def pins_of(app: Obj, looks: Looks | None) -> Pins:
    """Return the commits; ``looks`` None: revisions are left to the cluster."""
    if looks is None:
        return Pins()
    tracked = tracked_of(app)
    missing = next((one for one in tracked if not looks.commit(one)), None)
    if missing is not None:
        return Pins(problem=looks.problem(missing), awaited=missing not in looks.known)
    return Pins(tuple(map(looks.commit, tracked)))


def is_application(manifest: Obj) -> bool:
    return manifest.get("kind") == APPLICATION.kind and str(manifest.get("apiVersion")).startswith(APPLICATION.group)


def manifests_of(work: Obj) -> list[Obj]:
    found = dig(work, "spec", "workload", "manifests") or []
    return [one for one in found if isinstance(one, dict)]


def bare(manifests: Iterable[Obj], pins: Pins | None = None) -> list[Obj]:
    """Return the manifests as a release has them: at their commits, without what asks for one sync or refresh, and
    without what only the hub reads."""
    return [_bare(one, pins or Pins()) if is_application(one) else one for one in manifests]


def _bare(app: Obj, pins: Pins) -> Obj:
    gone = {*STRIPPED, RELEASE, REFRESH}
    annotations = {key: value for key, value in annotations_of(app).items() if key not in gone}
    made = {key: value for key, value in app.items() if key != "operation"}
    made["metadata"] = {**app["metadata"], "annotations": annotations}
    spec = app.get("spec")
    if pins.commits and isinstance(spec, dict):
        at = [pinned(*each) for each in zip(sources_of(app), pins.commits, strict=True)]
        several = isinstance(spec.get("sources"), list) and bool(spec["sources"])
        made["spec"] = {**spec, **({"sources": at} if several else {"source": at[0]})}
    return made


def stamped(manifests: Iterable[Obj], release: str) -> list[Obj]:
    """Return the manifests of a release with its name on the Application."""
    return [
        {**one, "metadata": {**one["metadata"], "annotations": {**annotations_of(one), RELEASE: release}}}
        if is_application(one)
        else one
        for one in manifests
    ]


def carried_release(work: Obj | None) -> str:
    """Return the release that a work carries; empty: there is no work. A work from before the order has no name in it
    and is named by its content."""
    if work is None:
        return ""
    manifests = manifests_of(work)
    said = next((annotations_of(one).get(RELEASE, "") for one in manifests if is_application(one)), "")
    return said[:64] or digest(bare(manifests))


def group_release(template: Obj, revisions: Iterable[Mapping[str, str]]) -> str:
    """Return the release of a group."""
    return digest([template, unique(revisions)])


def unique(revisions: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return revisions sorted, each once."""
    found = {tuple(sorted(one.items())) for one in revisions}
    return [dict(one) for one in sorted(found)]


def revisions_of(app: Obj, pins: Pins) -> list[dict[str, str]]:
    """Return what each source of an Application stands for, as a status says it."""
    commits: Sequence[str] = pins.commits or [""] * len(sources_of(app))
    rows = []
    for source, commit in zip(sources_of(app), commits, strict=True):
        row = {key: str(source.get(key) or "")[:1024] for key in ("repoURL", "chart", "targetRevision")}
        rows.append({key: text for key, text in {**row, "commit": commit}.items() if text})
    return rows


def template_of(owner: Obj, *, is_set: bool) -> Obj:
    """Return what of a set, or of a stand-alone Application, makes a release."""
    spec = owner.get("spec")
    if not isinstance(spec, dict):
        return {}
    keys = ("template", "templatePatch", "goTemplate", "goTemplateOptions") if is_set else tuple(spec)
    return {key: spec[key] for key in keys if key in spec}
