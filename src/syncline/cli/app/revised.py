"""``--revision``, ``--revisions`` with ``--source-positions`` or ``--source-names``, and ``--local``: replace the
revisions of an Application's sources for one command. Rules: Argo CD ``cmd/argocd/commands/app.go``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncline.argo.application import AppView
from syncline.cli.access.snapshots import local_reader
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj

if TYPE_CHECKING:
    from syncline.assembly.sources.reading import FolderReader
    from syncline.control.cache import Cache


def revision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that :func:`revised` reads."""
    for option in (
        click.option("--source-names", multiple=True, help="Source of a --revisions, by its name; repeatable."),
        click.option("--source-positions", type=int, multiple=True, help="The same by its place, from 1; repeatable."),
        click.option("--revisions", multiple=True, help="Revision of one of several sources; repeatable."),
        click.option("--revision", default="", help="This branch, tag or commit instead of the spec's."),
    ):
        command = option(command)
    return command


def local_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that :func:`folder_reader` reads."""
    place = click.Path(exists=True, file_okay=False, path_type=Path)
    for option in (
        click.option("--local-repo-root", type=place, help="Root of the repository; found by itself without it."),
        click.option("--local", type=place, help="Render this folder as it lies here instead of the repository."),
    ):
        command = option(command)
    return command


def revised(app: Obj, given: Mapping[str, Any]) -> Obj:
    """Return ``app`` with the revisions of the flags; unchanged without any. Raises CommandFailed."""
    sources = list(AppView(app).sources)
    several = bool(app["spec"].get("sources"))
    if given.get("local") is not None and (given["revision"] or given["revisions"]):
        raise CommandFailed("--local is what lies on the disk; it has no --revision", USAGE)
    if given["revision"] and several:
        raise CommandFailed("--revision is for one source; write --revisions with --source-positions", USAGE)
    if given["revision"]:
        return _with_sources(app, [sources[0] | {"targetRevision": given["revision"]}])
    wanted = _positions(sources, given)
    if len(wanted) != len(given["revisions"]):
        message = "--revisions goes with one --source-positions or --source-names each"
        raise CommandFailed(f"{message}: there are {len(given['revisions'])} and {len(wanted)}", USAGE)
    for at, revision in zip(wanted, given["revisions"], strict=True):
        sources[at - 1] = sources[at - 1] | {"targetRevision": revision}
    return _with_sources(app, sources) if wanted else app


def _positions(sources: list[Obj], given: Mapping[str, Any]) -> list[int]:
    if given["source_positions"] and given["source_names"]:
        raise CommandFailed("Only one of source-positions and source-names can be specified.", USAGE)
    names = [str(one.get("name") or "") for one in sources]
    found = list(given["source_positions"])
    for name in given["source_names"]:
        if name not in names:
            known = ", ".join(one for one in names if one) or "none has a name"
            raise CommandFailed(f"--source-names {name}: no source is called so ({known})", USAGE)
        found.append(names.index(name) + 1)
    for at in found:
        if not 1 <= at <= len(sources):
            raise CommandFailed(f"--source-positions {at}: the Application has {len(sources)} sources", USAGE)
    return found


def _with_sources(app: Obj, sources: list[Obj]) -> Obj:
    spec = {key: value for key, value in app["spec"].items() if key != "sourceHydrator"}
    field: Obj = {"sources": sources} if spec.get("sources") else {"source": sources[0]}
    return app | {"spec": spec | field}


def folder_reader(given: Mapping[str, Any], cache: Cache, namespace: str) -> FolderReader | None:
    """Return a reader of ``--local`` in place of the Application's single source, with the settings of ``namespace`` in
    ``cache``; None without the flag."""
    if given.get("local") is None:
        return None
    return local_reader(given["local"], given["local_repo_root"], cache, namespace)
