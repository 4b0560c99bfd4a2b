"""Where a set is generated and planned: a cluster, or a folder in its place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncline.appset.checking import project_of
from syncline.base.clock import SystemClock
from syncline.cli.access.connection import Connection
from syncline.cli.access.snapshots import looking, stand_offline
from syncline.cli.app.target import control_namespace
from syncline.cli.appset.checks import check_set, unknown_project
from syncline.cli.frame.failure import CommandFailed
from syncline.control.cache import Cache
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, ObjectRef, annotations_of, meta, ref_of

if TYPE_CHECKING:
    from syncline.rehearsal.exported import Exported


@dataclass(frozen=True, slots=True)
class Stage:
    """``link`` None: the only cluster is the one in ``cache``."""

    link: Connection | None
    cache: Cache
    control: str
    """The namespace of settings and projects."""
    now: datetime
    stand: Exported | None = None


def stage_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that :func:`staged` and :func:`~syncline.cli.appset.rows.rows` read."""
    place = click.Path(exists=True, file_okay=False, path_type=Path)
    for option in (
        click.option(
            "--against",
            default=None,
            metavar="empty|FILE|DIR",
            help="Without a cluster: against none, or what `kubectl get -o yaml` wrote of one.",
        ),
        click.option("--local", "folder", type=place, help="Git generators read this folder in place of repositories."),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def staged(against: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> Iterator[Stage]:
    """Yield the cluster of the kubeconfig, or the one that ``against`` names. ``namespace``: of the set."""
    if against is not None:
        stand = stand_offline(against, namespace)
        yield Stage(None, stand.snapshot.cache, namespace, SystemClock().now(), stand)
        return
    with Connection(kubeconfig, context) as link:
        control = control_namespace(link, namespace)
        with looking(link, control) as cache:
            yield Stage(link, cache, control, link.now())


def checked_set(stage: Stage, found: Obj) -> Obj:
    """Return the set if argocd-server would take it. Raises CommandFailed."""
    check_set(found)
    name = project_of(found)
    ref = ObjectRef(*APP_PROJECT.group_kind, stage.control, name)
    if name and stage.cache.get(ref) is None and not stage.cache.unread(ref):
        raise unknown_project(found, "" if stage.link is not None else "put it into what --against names")
    return found


def stored(stage: Stage, ref: ObjectRef) -> Obj:
    """Return the set in the cluster. Raises CommandFailed."""
    found = stage.cache.get(ref)
    if found is None:
        raise CommandFailed(
            stage.cache.unread(ref)
            or f"ApplicationSet {ref.namespace}/{ref.name} does not exist; see `syncline appset list`"
        )
    return found


def as_stored(stage: Stage, wanted: Obj) -> Obj:
    """Return a set of a file laid over the stored one, if any: its spec, labels and annotations win."""
    known = stage.cache.get(ref_of(wanted))
    if known is None:
        return wanted
    annotations = {**annotations_of(known), **annotations_of(wanted)}
    metadata = {**meta(known), **meta(wanted), "annotations": annotations}
    merged = known | {"metadata": metadata, "spec": wanted.get("spec") or {}}
    stage.cache.put(APPLICATION_SET.group_kind, merged)
    return merged
