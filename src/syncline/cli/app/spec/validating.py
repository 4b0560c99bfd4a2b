"""Validates an Application before it is written, as argocd-server does: project, destination, sources, rendering.

Called by ``app create``, ``set`` and ``add-source``. The rules are the controllers'; repositories are read from this
machine, with the credentials that the user may read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from syncline.cli.access.connection import Connection
from syncline.cli.app.target import control_namespace
from syncline.cli.frame.failure import CommandFailed
from syncline.kube import client
from syncline.kube.objects import GVK, Obj, ObjectRef, dig, name_of, namespace_of

if TYPE_CHECKING:
    from syncline.control.cache import Cache

validate_option = click.option(
    "--validate/--no-validate",
    default=True,
    show_default=True,
    help="Read the sources first, and render them; project and destination are checked in any case.",
)
SECRET, CONFIG_MAP = GVK("", "v1", "Secret"), GVK("", "v1", "ConfigMap")
OF_DESTINATIONS = ("application destination", "there are no clusters with this name", "error getting cluster by server")
"""First words of problems that depend on the declared clusters."""
ANYWAY = "mend it, or give --validate=false to store it nevertheless"


def checked(link: Connection, read: bool) -> Callable[[Obj], None]:
    """Return a check of Applications before a write; it raises CommandFailed. ``read``: also read the sources."""

    def check(app: Obj) -> None:
        _check(link, app, read)

    return check


def _check(link: Connection, app: Obj, read: bool) -> None:
    from syncline.argo.clusters import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
    from syncline.argo.settings import CONFIG_MAP as SETTINGS
    from syncline.argo.settings import parse_system
    from syncline.argo.spec import validate_spec
    from syncline.control.cache import Cache
    from syncline.kube.kinds.argoproj import APP_PROJECT

    names = [str(one.get("name") or "") for one in dig(app, "spec", "sources", default=[]) or []]
    twice = next((one for one in names if one and names.count(one) > 1), "")
    if twice:
        raise CommandFailed(f"application {name_of(app)} has duplicate source name: {twice}")
    control = control_namespace(link, namespace_of(app))
    cache, unseen = Cache(link.mapper), []
    for gvk in (SECRET, CONFIG_MAP, APP_PROJECT):
        answer = link.send(client.list_(link.resource(gvk), control))
        if answer.status == 403:
            unseen.append(link.resource(gvk).plural)
            continue
        for one in link.check(answer).get("items") or []:
            cache.put(gvk.group_kind, {"apiVersion": gvk.api_version, "kind": gvk.kind} | one)
    projects = {name_of(one): one for one in cache.objects(APP_PROJECT.group_kind, control)}
    if "appprojects" in unseen:
        _unchecked("project, destination and sources", "appprojects", control)
        return
    hidden = "secrets" in unseen
    settings = cache.get(ObjectRef("", CONFIG_MAP.kind, control, SETTINGS))
    system = parse_system(dig(settings, "data", default={}) or {})
    clusters = system.clusters(cache.objects(SECRET.group_kind, control))
    name = str(dig(app, "spec", "project") or "default")
    project = projects.get(name)
    if project is None:
        raise CommandFailed(
            f'app is not allowed in project "{name}", or the project does not exist; see `syncline proj list`'
        )
    found = [one.message for one in validate_spec(app, project, control_namespace=control, clusters=clusters)]
    # Without the Secrets of clusters only remote destinations are unknown; other problems are certain.
    place = dig(app, "spec", "destination", default={}) or {}
    elsewhere = hidden and place.get("server") != IN_CLUSTER_SERVER and place.get("name") != IN_CLUSTER_NAME
    certain = [one for one in found if not (elsewhere and one.startswith(OF_DESTINATIONS))]
    if certain:
        raise _refused(app, certain, "mend it")
    if found:
        _unchecked("; ".join(found), "secrets", control)
    elif read and not dig(app, "spec", "sourceHydrator"):
        # The output of a hydrator may not exist yet.
        _read(link, app, cache, control, hidden=hidden)


def _read(link: Connection, app: Obj, cache: Cache, control: str, *, hidden: bool) -> None:
    """Read and render the sources."""
    from syncline.argo.application import AppView
    from syncline.cli.access.snapshots import source_reader
    from syncline.gitops.application.observing.observe import AppSettings, render_context

    view = AppView(app)
    with source_reader(link, cache, control) as reader:
        context = render_context(view, AppSettings(control_namespace=control))
        found = reader.read(view.sources, view.revisions_wanted, link.now(), context)
        far = (
            ""
            if not found.error
            else next(filter(None, (reader.unreachable(s, view.project) for s in view.sources)), "")
        )
    if not found.error:
        return
    if hidden:
        _unchecked(f"the sources ({found.error})", "secrets", control)
    else:
        problem = f"repository not accessible: {far}" if far else f"Unable to generate manifests: {found.error}"
        raise _refused(app, [problem], ANYWAY)


def _refused(app: Obj, problems: list[str], fix: str) -> CommandFailed:
    listed = ";".join(f"InvalidSpecError: {one}" for one in problems)
    return CommandFailed(f"application spec for {name_of(app)} is invalid: {listed}; {fix}")


def _unchecked(what: str, resource: str, namespace: str) -> None:
    """Warn about a check that needs a missing right; it is no reason to refuse, as the controllers check it too."""
    click.echo(f"warning: not checked: {what}; it takes the right to list {resource} in {namespace}", err=True)
