"""``syncline app sync``, and the functions that it shares with other verbs that start an operation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from syncline.argo.application import AppView
from syncline.argo.project import window_problem
from syncline.argo.requests.operations import begins, check_idle, check_revisions, is_automated, sync_operation
from syncline.assembly.inspection.preview import SyncRequest
from syncline.cli.access.connection import Connection
from syncline.cli.access.snapshots import include, looking
from syncline.cli.app.diff import compared
from syncline.cli.app.revised import folder_reader, local_options, revised, revision_options
from syncline.cli.app.selected import expanded, labelled, selected
from syncline.cli.app.target import (
    CONTROL_NAMESPACE,
    USER,
    chosen,
    control_namespace,
    get_app,
    merge,
    namespace_options,
    refresh,
    refusals,
    selector_option,
    until,
)
from syncline.cli.frame.failure import BLOCKED, FAILED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.plan import plan_ahead
from syncline.cli.views.application import operation_block
from syncline.cli.views.diff import describe_difference
from syncline.cli.views.progress import Progress, progress_for
from syncline.gitops.application.observing.observe import AppSettings, render_context
from syncline.kube import client
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, dig, name_of, namespace_of

COMPLETED = ("Succeeded", "Failed", "Error")
OPTION_FLAGS = {
    "replace_": "Replace=true",
    "server_side": "ServerSideApply=true",
    "apply_out_of_sync_only": "ApplyOutOfSyncOnly=true",
}
"""Flag → its sync option; any of them replaces the spec's options, as upstream."""


@click.command()
@click.argument("names", nargs=-1)
@selector_option
@revision_options
@local_options
@click.option("--prune", is_flag=True, help="Delete what left the repository.")
@click.option("--dry-run", is_flag=True, help="Ask the API, change nothing.")
@click.option("--force", is_flag=True, help="Delete and recreate what cannot be changed.")
@click.option("--replace", "replace_", is_flag=True, help="Replace instead of apply.")
@click.option("--server-side", is_flag=True, help="Server-side apply.")
@click.option("--strategy", type=click.Choice(["apply", "hook"]), default=None, help="apply: without hooks.")
@click.option("--resource", "resources", multiple=True, metavar="[!]GROUP:KIND:NAME", help="Only this; repeatable.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only objects with it; repeatable.")
@click.option("--project", "projects", multiple=True, help="Applications of this project; repeatable.")
@click.option("--apply-out-of-sync-only", is_flag=True, help="Leave objects alone that are in sync.")
@click.option("--info", "infos", multiple=True, metavar="NAME=VALUE", help="Note on the operation; repeatable.")
@click.option("--retry-limit", type=int, default=0, help="Further attempts after a failure [default: the spec's].")
@click.option("--retry-backoff-duration", default="5s", show_default=True, help="Wait before the first of them.")
@click.option("--retry-backoff-max-duration", default="3m0s", show_default=True, help="Longest wait.")
@click.option("--retry-backoff-factor", type=int, default=2, show_default=True, help="How much longer each wait is.")
@click.option("--retry-refresh", is_flag=True, help="Each attempt takes the newest commit.")
@click.option("--preview-changes", is_flag=True, help="Show the differences and ask before anything is started.")
@click.option("--assumeYes", "-y", "assume_yes", is_flag=True, help="Do not ask after --preview-changes.")
@click.option("--async", "asynchronous", is_flag=True, help="Do not wait.")
@click.option("--timeout", default=0, help="Seconds to wait; 0 is for ever.")
@output_option("json", "yaml")
@namespace_options
def sync(names: tuple[str, ...], selector: str, output: str | None, app_namespace: str, **given: Any) -> None:
    """Sync Applications, one after the other, and watch their phases and waves.

    It waits for the operation, not for health. Exit code 1: the operation did not succeed, or something has to be
    pruned; 20: any other error, --timeout included (the operation continues then, as it does after Ctrl-C).

    \b
    Example:  syncline app sync shop --prune
              syncline app sync -l team=shop --async
              syncline app sync shop --resource apps:Deployment:web --revision v1.2.3
              syncline app sync shop --local deploy/
              syncline app sync --project team --preview-changes
    """
    failures: list[CommandFailed] = []
    finals: list[Obj] = []
    with Connection(given["kubeconfig"], given["context"]) as link:
        for where in chosen(link, names, selector, app_namespace, given["projects"]):
            try:
                final = _sync_one(link, where, given, quiet=bool(output))
                if final is not None:
                    finals.append(final)
                    judge(_settled(link, final), full=not given["resources"] and not given["labels"])
            except CommandFailed as failure:
                failures.append(failure)
    if output and finals:
        print_documents(finals[0] if len(finals) == 1 else finals, output)
    if failures:
        codes = {failure.code for failure in failures}
        raise CommandFailed("; ".join(map(str, failures)), codes.pop() if len(codes) == 1 else None)


def _sync_one(link: Connection, where: tuple[str, str], given: Mapping[str, Any], *, quiet: bool) -> Obj | None:
    """Start the operation and follow it to its end; None if the command does not wait for it."""
    known = get_app(link, where)
    _check_request(known, given)
    _check_windows(link, known, control_namespace(link, where[0]))
    if given["preview_changes"] and not _previewed(link, known, given):
        return None
    watched = not given["asynchronous"] and not quiet
    new, asked = revised(known, given), asked_from(given)
    _choose(link, known, given, asked)
    if given["local"] is not None:
        asked["manifests"] = _local_manifests(link, new, control_namespace(link, where[0]), given)
    revisions = AppView(new).revisions_wanted if given["revision"] or given["revisions"] else ()
    operation = sync_operation(known, asked, revisions, USER)
    ahead = watched and given["local"] is None
    planned = plan_ahead(link, new, SyncRequest(given["revision"], given["prune"])) if ahead else None
    begun = request_sync(link, known, operation)
    if given["asynchronous"]:
        return None
    final = _blame(follow(link, begun, given["timeout"], progress_for(planned) if watched else None), given)
    if watched:
        print(f"\n{operation_block(final)}")
    return final


def _previewed(link: Connection, app: Obj, given: Mapping[str, Any]) -> bool:
    """Return whether there are differences and the user confirms the sync."""
    found = compared(link, app, given).modified
    for one in found:
        print(describe_difference(one))
    if not found:
        print("====== No Differences found ======")
        return False
    question = (
        f"Please review changes to application {name_of(app)} shown above. Do you want to continue the sync process?"
    )
    return bool(given["assume_yes"] or click.confirm(question))


def _choose(link: Connection, app: Obj, given: Mapping[str, Any], wanted: Obj) -> None:
    """Resolve labels and globs to the objects that match now; ``wanted`` is the request."""
    if given["labels"] and given["resources"]:
        raise CommandFailed("give --resource or --label, not both", USAGE)
    if given["labels"]:
        found = compared(link, app, given)
        wanted["resources"] = labelled([*found.manifests, *found.live], given["labels"])
    elif given["resources"]:
        wanted["resources"] = expanded(app, wanted["resources"])


def _blame(final: Obj, given: Mapping[str, Any]) -> Obj:
    """Name the flag instead of the field in the error of an unresolvable revision from the command line."""
    flag = "--revision" if given["revision"] else "--revisions" if given["revisions"] else ""
    state = dig(final, "status", "operationState", default={})
    message = str(state.get("message") or "")
    if not flag or "spec.source.targetRevision" not in message:
        return final
    state = state | {"message": message.replace("spec.source.targetRevision", flag)}
    return final | {"status": final["status"] | {"operationState": state}}


def request_sync(link: Connection, app: Obj, operation: Obj) -> Obj:
    """Write ``.operation`` and remove the old operation's state, as the API server of Argo CD does."""
    return merge(link, app, begins(operation), _check_idle)


def _check_idle(app: Obj) -> None:
    with refusals(f"wait with `syncline app wait {name_of(app)} --operation`"):
        check_idle(app)


def _check_request(app: Obj, given: Mapping[str, Any]) -> None:
    """Refuse what the API server of Argo CD refuses before anything starts."""
    _check_idle(app)
    if given["dry_run"]:
        return
    if given["local"] is not None and is_automated(app):
        raise CommandFailed("Cannot use local sync when Automatic Sync Policy is enabled")
    wanted = AppView(revised(app, given)).revisions_wanted
    with refusals():
        check_revisions(app, wanted)


def _local_manifests(link: Connection, app: Obj, namespace: str, given: Mapping[str, Any]) -> list[str]:
    """Return the rendered objects of the folder, each as JSON, as upstream's client sends them."""
    settings = AppSettings(control_namespace=namespace)
    view = AppView(app)
    with looking(link, namespace) as cache:
        include(cache, app, namespace)
        reader = folder_reader(given, cache, namespace)
        assert reader is not None, "--local was given"
        found = reader.read(view.sources, view.revisions_wanted, link.now(), render_context(view, settings))
    if found.error:
        raise CommandFailed(f"--local {given['local']}: {found.error}")
    return [json.dumps(obj, separators=(",", ":")) for obj in found.objects]


def _check_windows(link: Connection, app: Obj, namespace: str) -> None:
    """Refuse a request at once if a sync window is closed; without the right to read the project, the controller
    refuses it."""
    name = str(dig(app, "spec", "project") or "default")
    answer = link.send(client.get(link.resource(APP_PROJECT), namespace, name))
    problem = window_problem(answer.obj, app, link.now(), manual=True) if answer.ok else ""
    if problem:
        raise CommandFailed(f"cannot sync: {problem}; see `syncline proj windows list {name}`", BLOCKED)


def follow(link: Connection, app: Obj, timeout_s: float, progress: Progress | None) -> Obj:
    """Show the operation until it ends; return the Application at its end."""

    def ended(state: Obj) -> bool:
        if progress is not None:
            progress.update(state, link.now())
        phase = dig(state, "status", "operationState", "phase", default="")
        return phase in COMPLETED and not state.get("operation")

    try:
        return until(link, (namespace_of(app), name_of(app)), ended, timeout_s, "the operation")
    except KeyboardInterrupt:
        place = "" if namespace_of(app) == CONTROL_NAMESPACE else f" -N {namespace_of(app)}"
        click.echo(
            f"the operation goes on; follow it with `syncline app wait {name_of(app)} --operation{place}`, "
            f"end it with `syncline app terminate-op {name_of(app)}{place}`",
            err=True,
        )
        raise
    finally:
        if progress is not None:
            progress.close()


def _settled(link: Connection, final: Obj) -> Obj:
    """Return ``final`` after one more comparison by the controller, if that decides whether pruning is needed."""
    if not _unpruned(final) or dig(final, "status", "sync", "status") == "Synced":
        return final
    return refresh(link, (namespace_of(final), name_of(final)))


def judge(final: Obj, *, full: bool = True) -> None:
    """Raise CommandFailed if the operation failed, or left objects that need pruning and is not Synced."""
    phase = dig(final, "status", "operationState", "phase")
    if phase != "Succeeded":
        message = dig(final, "status", "operationState", "message", default="")
        raise CommandFailed(f"Operation has completed with phase: {phase} ({message})", FAILED)
    pruning = _unpruned(final)
    if pruning and full and dig(final, "status", "sync", "status") != "Synced":
        raise CommandFailed(f"{len(pruning)} resources require pruning", FAILED)


def _unpruned(final: Obj) -> list[Obj]:
    return [
        row
        for row in dig(final, "status", "operationState", "syncResult", "resources", default=[])
        if row.get("status") == "PruneSkipped" and "no prune" not in str(row.get("message"))
    ]


def asked_from(given: Mapping[str, Any]) -> Obj:
    """Return the request that the flags of ``app sync`` make, as upstream's client sends it."""
    asked: Obj = {"prune": given["prune"], "dryRun": given["dry_run"]}
    if given["strategy"] or given["force"]:
        asked["strategy"] = {given["strategy"] or "hook": {"force": True} if given["force"] else {}}
    options = [text for flag, text in OPTION_FLAGS.items() if given[flag]]
    if options:
        asked["syncOptions"] = {"items": options}
    if given["resources"]:
        asked["resources"] = [selected(text) for text in given["resources"]]
    if given["infos"]:
        notes = [text.partition("=") for text in given["infos"]]
        asked["infos"] = [{"name": name, "value": value} for name, _, value in notes]
    if given["retry_limit"]:
        fields = ("duration", "maxDuration", "factor")
        flags = ("retry_backoff_duration", "retry_backoff_max_duration", "retry_backoff_factor")
        backoff = {field: given[flag] for field, flag in zip(fields, flags, strict=True)}
        retry = {"limit": given["retry_limit"], "backoff": backoff}
        asked["retryStrategy"] = retry | ({"refresh": True} if given["retry_refresh"] else {})
    return asked
