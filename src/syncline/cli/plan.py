"""``syncline plan``: what the next sync of an Application would do, from the functions that will do it."""

from __future__ import annotations

from pathlib import Path

import click

from syncline.assembly.inspect import PlannedSync, SyncRequest, Verdict, planned_sync
from syncline.cli.connection import Connection, connection_options
from syncline.cli.failure import BLOCKED, UNSAFE, USAGE, CommandFailed
from syncline.cli.looking import look_at, source_reader
from syncline.cli.output import output_option, print_documents
from syncline.cli.planview import describe_plan
from syncline.control.cache import Cache
from syncline.gitops.application.observe import AppSettings
from syncline.kube.errors import ApiError
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, name_of, namespace_of

DIFFERENCES = 2
"""Exit code where there is something to do, as ``diff`` has it."""


@click.command()
@click.argument("target", required=False, metavar="[APP | Application/APP]")
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Plan the Application of this file, as if it were in the cluster.",
)
@click.option("--revision", default="", help="Plan a sync to this branch, tag or commit.")
@click.option("--prune", is_flag=True, help="Plan as `app sync --prune` would run.")
@click.option("--all", "everything", is_flag=True, help="List unchanged objects too.")
@click.option("--diff", "differences", is_flag=True, help="Show what changes line by line; Secrets are masked.")
@output_option("json", "yaml")
@click.option("-N", "--app-namespace", default="argocd", show_default=True, help="Its namespace.")
@connection_options
def plan(
    target: str | None,
    file: Path | None,
    revision: str,
    prune: bool,
    everything: bool,
    differences: bool,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Print what the next sync of an Application would do: phases, waves, actions, gates, warnings.

    \b
    Exit codes: 0 nothing to do, 2 changes, 3 blocked, 4 unsafe (a change would be refused, or a mass deletion)
    """
    if (target is None) == (file is None):
        raise click.UsageError("give either APP or -f FILE")
    with Connection(kubeconfig, context) as link:
        settings = AppSettings(control_namespace=app_namespace)
        look = look_at(link, app_namespace)
        request = SyncRequest(revision, prune)
        found = [
            _planned(link, look, app, settings, request) for app in _applications(look, target, file, app_namespace)
        ]
    if output:
        print_documents(found[0].to_obj() if len(found) == 1 else [one.to_obj() for one in found], output)
    else:
        print("\n\n".join(describe_plan(one, everything=everything, differences=differences) for one in found))
    return max(exit_code(one.verdict) for one in found)


def exit_code(verdict: Verdict) -> int:
    """What scripts test."""
    match verdict:
        case Verdict.NOTHING:
            return 0
        case Verdict.CHANGES:
            return DIFFERENCES
        case Verdict.BLOCKED:
            return BLOCKED
        case Verdict.UNSAFE:
            return UNSAFE


def _applications(cache: Cache, target: str | None, file: Path | None, namespace: str) -> list[Obj]:
    if file is not None:
        from syncline.cli.app.create import applications_in

        return [_as_stored(cache, app) for app in applications_in(file, namespace)]
    assert target is not None, "one of them is given"
    ref = application_ref(target, namespace)
    found = cache.get(ref)
    if found is None:
        raise CommandFailed(f"Application {ref.namespace}/{ref.name} does not exist; see `syncline app list`")
    return [found]


def application_ref(target: str, namespace: str) -> ObjectRef:
    """``shop``, ``argocd/shop``, ``app/shop`` or ``Application/shop``."""
    head, slash, name = target.rpartition("/")
    kind, _, inner = head.partition("/")
    if kind.lower() in ("app", "apps", "application", "applications"):
        head = inner
    if not name:
        raise CommandFailed(f"{target!r} names no Application; write APP, NAMESPACE/APP or Application/APP", USAGE)
    return ObjectRef(APPLICATION.group, APPLICATION.kind, head if slash and head else namespace, name)


def _as_stored(cache: Cache, app: Obj) -> Obj:
    """The Application of a file on top of the one in the cluster, if there is one: its spec wins."""
    ref = ObjectRef(APPLICATION.group, APPLICATION.kind, namespace_of(app), name_of(app))
    known = cache.get(ref)
    return app if known is None else known | {"spec": app.get("spec") or {}}


def plan_ahead(link: Connection, app: Obj, request: SyncRequest) -> PlannedSync | None:
    """The plan of a sync that is about to be asked for, for its live view; None where it cannot be made."""
    settings = AppSettings(control_namespace=namespace_of(app))
    try:
        return _planned(link, look_at(link, settings.control_namespace), app, settings, request)
    except (CommandFailed, ApiError, OSError):
        return None  # the sync itself will say what is wrong


def _planned(link: Connection, cache: Cache, app: Obj, settings: AppSettings, request: SyncRequest) -> PlannedSync:
    with source_reader(link, cache, settings.control_namespace) as reader:
        return planned_sync(cache, app, reader, settings, link.now(), request)
