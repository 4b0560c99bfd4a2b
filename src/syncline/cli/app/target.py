"""Finds, reads, changes and follows an Application. Shared by the verbs of ``syncline app``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from syncline.argo.application import HYDRATE, HYDRATE_STAMP, REFRESH, AppView
from syncline.argo.requests.refused import Refused
from syncline.base.clock import format_time
from syncline.cli.access.connection import Connection, namespaced
from syncline.cli.access.following import followed
from syncline.cli.frame.failure import BLOCKED, CommandFailed
from syncline.cli.frame.suggesting import suggestion
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import Obj, ResourceInfo, annotations_of, dig, name_of, namespace_of, resource_version

USER = "syncline"
"""Who begins operations that commands ask for."""
MANAGER = "syncline"
"""Field manager of users' changes through this command."""
CONTROL_NAMESPACE = "argocd"
"""Namespace of settings and projects, unless ``-N`` names another one that has them."""
MAX_CONFLICTS = 5
"""Attempts to write despite the controller's concurrent writes."""
REFRESH_S = 60.0
"""Seconds that a refresh may take before the command gives up."""

selector_option = click.option("-l", "--selector", default="", help="All Applications with these labels.")
namespace_options = namespaced("Its namespace.", "-N", "--app-namespace")


@contextlib.contextmanager
def refusals(hint: str = "") -> Iterator[None]:
    """Raise a refusal of the block as CommandFailed; ``hint``: what to do, after its text."""
    try:
        yield
    except Refused as refused:
        raise CommandFailed(f"{refused}; {hint}" if hint else str(refused)) from None


def split(name: str, namespace: str) -> tuple[str, str]:
    """Return (namespace, name); ``ns/name`` wins over ``--app-namespace``."""
    before, slash, after = name.rpartition("/")
    return (before, after) if slash else (namespace, name)


def chosen(
    link: Connection,
    names: Sequence[str],
    selector: str,
    namespace: str,
    projects: Sequence[str] = (),
    none: str = "No matching apps found for filter:",
) -> list[tuple[str, str]]:
    """Return the selected Applications, by name, label or project, as (namespace, name). ``none``: start of the error
    message if there are none."""
    if bool(names) == bool(selector or projects):
        raise click.UsageError("give either names of Applications, -l SELECTOR or --project PROJECT")
    if names:
        return [split(name, namespace) for name in names]
    request = client.list_(link.resource(APPLICATION), namespace, label_selector=selector)
    found = sorted(
        (namespace_of(one), name_of(one))
        for one in link.ask(request).get("items") or []
        if not projects or (dig(one, "spec", "project") or "default") in projects
    )
    if not found:
        what = [f"selector {selector}"] if selector else []
        what += [f"projects {' '.join(projects)}"] if projects else []
        raise CommandFailed(f"{none} {' '.join(what)} in namespace {namespace}; see `syncline app list`")
    return found


def control_namespace(link: Connection, namespace: str) -> str:
    """Return the namespace of settings and projects for an Application in ``namespace``: this one if it has projects,
    else the usual one. ``-N`` is the Application's namespace."""
    if namespace == CONTROL_NAMESPACE:
        return namespace
    known = link.send(client.get(link.resource(APP_PROJECT), namespace, "default")).ok
    return namespace if known else CONTROL_NAMESPACE


def get_app(link: Connection, where: tuple[str, str]) -> Obj:
    """Return the Application at (namespace, name). Raises CommandFailed."""
    answer = link.send(client.get(link.resource(APPLICATION), *where))
    if answer.status == 404:
        near = suggestion(link, link.resource(APPLICATION), *where)
        raise CommandFailed(
            f"Application {'/'.join(where)} does not exist; `syncline app list -N {where[0]}` shows those that do{near}"
        )
    found: Obj = link.check(answer)
    return found


def merge(link: Connection, app: Obj, body: Obj, check: Callable[[Obj], None] | None = None) -> Obj:
    """Apply a merge patch to the state that was read; after a conflict, retry on the newest state.

    ``check`` is called with each state before it is changed, and may raise.
    """
    info = link.resource(APPLICATION)
    where = (namespace_of(app), name_of(app))
    for _ in range(MAX_CONFLICTS):
        if check is not None:
            check(app)
        metadata = dict(body.get("metadata") or {}) | {"resourceVersion": resource_version(app)}
        wanted = body | {"metadata": metadata}
        answer = link.send(client.patch(info, *where, PatchType.MERGE, wanted, field_manager=MANAGER))
        if answer.status != 409:
            break
        app = get_app(link, where)
    if not answer.ok:
        raise CommandFailed(str(dig(answer.obj, "message", default="refused")))
    found: Obj = answer.obj
    return found


def change_spec(
    link: Connection,
    where: tuple[str, str],
    change: Callable[[Obj], Obj],
    check: Callable[[Obj], None] = lambda _app: None,
) -> bool:
    """Write the spec that ``change`` returns; after a conflict, read and change it again. Returns False if nothing
    changes. ``check`` is called with the Application before the write, and may raise."""
    info: ResourceInfo = link.resource(APPLICATION)
    for attempt in range(1, MAX_CONFLICTS + 1):
        found = get_app(link, where)
        spec = change(found["spec"])
        if spec == found["spec"]:
            return False
        check(found | {"spec": spec})
        request = client.update(info, found | {"spec": spec}, field_manager=MANAGER, field_validation="Strict")
        answer = link.send(request)
        if answer.status != 409 or attempt == MAX_CONFLICTS:
            link.check(answer)
            break
    return True


def replace_spec(link: Connection, app: Obj, spec: Obj) -> Obj:
    """PUT with this spec; refused if the Application changed since it was read, or a field is unknown."""
    info: ResourceInfo = link.resource(APPLICATION)
    wanted = app | {"spec": spec}
    found: Obj = link.ask(client.update(info, wanted, field_manager=MANAGER, field_validation="Strict"))
    return found


def refresh(link: Connection, where: tuple[str, str], kind: str = "normal", timeout_s: float = REFRESH_S) -> Obj:
    """Make the controller read the repository; ``hard`` also discards its cached renders."""
    ask_refresh(link, where, kind, get_app(link, where))
    return until(link, where, lambda app: not is_refreshing(app), timeout_s, "the refresh")


def ask_refresh(link: Connection, where: tuple[str, str], kind: str, app: Obj) -> None:
    """Request a refresh without waiting; for a hydrated Application also of its dry source."""
    asked = {REFRESH: kind}
    if AppView(app).hydrator is not None:
        asked |= {HYDRATE: kind, HYDRATE_STAMP: format_time(link.now())}
    body = {"metadata": {"annotations": asked}}
    link.ask(client.patch(link.resource(APPLICATION), *where, PatchType.MERGE, body))


def is_refreshing(app: Obj) -> bool:
    """Return whether a refresh is still pending."""
    return REFRESH in annotations_of(app)


def until(
    link: Connection,
    where: tuple[str, str],
    reached: Callable[[Obj], Any],
    timeout_s: float,
    what: str | Callable[[], str],
) -> Obj:
    """Watch one Application until ``reached``; the deadline is checked at every event and every watch timeout.
    ``what``: named in the error when the time is over."""
    seen = False
    for found in followed(link, link.resource(APPLICATION), where, timeout_s):
        if found is None and seen:
            raise CommandFailed(f"Application {'/'.join(where)} was deleted meanwhile")
        one, seen = found or get_app(link, where), True
        if reached(one):
            return one
    message = dig(get_app(link, where), "status", "operationState", "message", default="")
    hint = f": {message}" if message else ""
    awaited = what if isinstance(what, str) else what()
    raise CommandFailed(f"timed out after {timeout_s:g} s waiting for {awaited}{hint}", BLOCKED)
