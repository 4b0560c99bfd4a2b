"""An Application or ApplicationSet of a cluster, as what is rehearsed: ``app/shop``, ``appset/shops``. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.rehearsal.given.applications import Applications
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import GivenWorld
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.scenario import ScenarioError

KINDS = {"app": APPLICATION.kind, "appset": APPLICATION_SET.kind}


def is_target(path: Path) -> bool:
    """Return whether a PATH is ``app/NAME`` or ``appset/NAME``, and no file or folder."""
    parts = path.as_posix().split("/")
    return len(parts) == 2 and parts[0] in KINDS and bool(parts[1]) and not path.exists()


def asked_of(path: Path, world: GivenWorld, namespace: str = "", revision: str = "", after: str = "") -> Asked:
    """Return the question what a sync of an Application, or of those of a set, would do to its cluster as it is.

    ``revision``: instead of the revisions that its sources name, ``after``: what is deployed before; empty: the cluster
    stays as it is. Raises ScenarioError (usage) if there is none of the name, or several without a namespace."""
    short, name = path.as_posix().split("/")
    kind = KINDS[short]
    found = [
        one
        for one in world.applications
        if (one.get("kind"), name_of(one)) == (kind, name) and namespace in ("", namespace_of(one))
    ]
    if len(found) != 1:
        there = sorted({f"{short}/{name_of(one)}" for one in world.applications if one.get("kind") == kind})
        said = "none of this name" if not found else f"one in each of {', '.join(map(namespace_of, found))}"
        allowed = ", ".join(there[:10]) or "none is there" if not found else "-n NAMESPACE"
        raise ScenarioError(f"{path.as_posix()}: found {said}; allowed: {allowed}", usage=True)
    own = found[0]
    projects = [one for one in world.applications if one.get("kind") == APP_PROJECT.kind]
    used = next((one for one in projects if name_of(one) == dig(_spec(own), "project")), None)
    spaces = {namespace_of(own), str(dig(_spec(own), "destination", "namespace") or "")} - {""}
    before = None
    if after:
        before = Applications((*projects, _at(own, after)), (), tuple(sorted(spaces)))
    assumed = (f"the repository of {path.as_posix()} is read at its own address",)
    return Asked(
        name,
        Files({}),
        world,
        Files({}) if before is not None else None,
        pulled=Applications((*projects, _at(own, revision)), (), tuple(sorted(spaces)), assumed),
        pulled_before=before,
        control_namespace=namespace_of(used or own),
    )


def _spec(obj: Obj) -> Obj:
    found = dig(obj, "spec", "template", "spec") if obj["kind"] == APPLICATION_SET.kind else obj.get("spec")
    return found if isinstance(found, dict) else {}


def _at(obj: Obj, revision: str) -> Obj:
    """Return an Application, or a set with its template, at another revision of its Git repositories."""
    if not revision:
        return obj
    spec = dict(_spec(obj))
    if isinstance(spec.get("source"), dict):
        spec["source"] = _source(spec["source"], revision)
    if isinstance(spec.get("sources"), list):
        spec["sources"] = _sources(spec["sources"], revision)
    if obj["kind"] != APPLICATION_SET.kind:
        return {**obj, "spec": spec}
    return {**obj, "spec": {**obj["spec"], "template": {**obj["spec"]["template"], "spec": spec}}}


def _sources(sources: Sequence[Obj], revision: str) -> list[Obj]:
    return [_source(one, revision) for one in sources]


def _source(source: Obj, revision: str) -> Obj:
    return source if source.get("chart") else {**source, "targetRevision": revision}
