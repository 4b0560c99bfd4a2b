"""``syncline plan``: previews the next sync of an Application, with the functions of the sync itself."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncline.assembly.inspection.preview import PlannedSync, SyncRequest, Verdict, planned_sync
from syncline.assembly.inspection.refusals import Questions
from syncline.base.clock import SystemClock
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.destinations import Elsewhere
from syncline.cli.access.snapshots import include, local_reader, looking, source_reader, stand_offline
from syncline.cli.app.selected import expanded, selected
from syncline.cli.app.target import control_namespace
from syncline.cli.frame.failure import BLOCKED, UNSAFE, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.plan import describe_plan
from syncline.control.cache import Cache
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, meta, name_of, namespace_of

if TYPE_CHECKING:
    from syncline.assembly.inspection.order import PlannedOrder
    from syncline.cli.appset.plan import Wanted
    from syncline.cli.appset.stage import Stage
    from syncline.rehearsal.exported import Exported

DIFFERENCES = 2
"""Exit code if there are changes, as ``diff`` has it."""


@click.command()
@click.argument("target", required=False, metavar="[APP | app/APP | appset/NAME | rollout/NAME]")
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Plan the Applications or ApplicationSets of this file, as if they were in the cluster.",
)
@click.option("--revision", default="", help="Plan a sync to this branch, tag or commit.")
@click.option("--prune", is_flag=True, help="Plan as `app sync --prune` would run.")
@click.option("--resource", "resources", multiple=True, metavar="[!]GROUP:KIND:NAME", help="Only this; repeatable.")
@click.option("--all", "everything", is_flag=True, help="List unchanged objects too.")
@click.option("--diff", "differences", is_flag=True, help="Show what changes line by line; Secrets are masked.")
@click.option(
    "--local",
    "folder",
    type=click.Path(exists=True, path_type=Path),
    help="Take this folder, committed or not, for the source; without APP, as an Application of its own. For a set: "
    "a file with it, or the folder that Git generators read.",
)
@click.option("--applications", "below", is_flag=True, help="Of a set: also plan the next sync of each Application.")
@click.option(
    "--against",
    default=None,
    metavar="empty|FILE|DIR",
    help="Plan without a cluster: against none, or what `kubectl get -o yaml` wrote of one.",
)
@output_option("json", "yaml")
@click.option("-N", "--app-namespace", default="argocd", show_default=True, help="Its namespace.")
@connection_options
def plan(
    target: str | None,
    file: Path | None,
    revision: str,
    prune: bool,
    resources: tuple[str, ...],
    everything: bool,
    differences: bool,
    folder: Path | None,
    below: bool,
    against: str | None,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Print what the next sync of an Application would do: phases, waves, actions, gates, warnings. The cluster is
    asked by dry runs what it would refuse, as far as you may write there.

    Of an ApplicationSet: which Applications its next reconcile creates, changes, orphans or deletes, from which row of
    which generator, and the steps of a rollout with what each waits for. Where clusters pull them, also the whole order
    over clusters: each wave with its gates, what begins now, what waits for what, the earliest end; rollout/NAME shows
    that alone.

    \b
    Exit codes: 0 nothing to do, 2 changes, 3 blocked, 4 unsafe (a change would be refused, or a mass deletion)
    Examples:   syncline plan shop --revision next --diff
                syncline plan --local deploy/ --against empty
                syncline plan appset/fleet --applications
                syncline plan appset/fleet --local fleet.yaml
                syncline plan rollout/fleet
    """
    if (target or "").lower().startswith(("rollout/", "fleetrollout/")):
        if file or folder or revision or prune or resources or below:
            raise click.UsageError("rollout/NAME is planned as the hub has it; give the set: plan appset/NAME -f FILE")
        return _plan_rollout(str(target), against, app_namespace, kubeconfig, context, output)
    wanted = _wanted_sets(target, file, folder, against, app_namespace, kubeconfig, context)
    if wanted is not None:
        return _plan_sets(wanted, below, everything, differences, output, given=bool(revision or prune or resources))
    if folder is not None and folder.is_file():
        raise click.UsageError(f"--local {folder}: a folder is wanted; a file is planned with -f")
    given = [one for one in (target, file) if one is not None]
    if len(given) > 1 or not (given or folder):
        raise click.UsageError("give either APP, -f FILE or --local FOLDER")
    if folder is not None and revision:
        raise click.UsageError("--local is what lies on the disk; it has no --revision")
    with contextlib.ExitStack() as stack:
        link = None if against is not None else stack.enter_context(Connection(kubeconfig, context))
        control = app_namespace
        stand = None
        if link is not None:
            place = application_ref(target, app_namespace).namespace if target else app_namespace
            control = control_namespace(link, place)
            snapshot: Cache = stack.enter_context(looking(link, control))
        else:
            stand = stand_offline(against or "", control)
            snapshot = stand.snapshot.cache
        settings = AppSettings(control_namespace=control)
        chosen = [selected(text) for text in resources]
        found = [
            _planned(
                link,
                snapshot,
                app,
                settings,
                SyncRequest(revision, prune, tuple(expanded(app, chosen))),
                folder,
                partial(_questions, stand),
            )
            for app in _applications(snapshot, target, file, folder, app_namespace)
        ]
    if output:
        print_documents(found[0].to_obj() if len(found) == 1 else [one.to_obj() for one in found], output)
    else:
        print("\n\n".join(describe_plan(one, everything=everything, differences=differences) for one in found))
    return max(exit_code(one.verdict) for one in found)


def _wanted_sets(
    target: str | None,
    file: Path | None,
    folder: Path | None,
    against: str | None,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> Wanted | None:
    """Return the ApplicationSets that are to be planned; None if none is meant."""
    local_file = folder if folder is not None and folder.is_file() else None
    words = ("appset", "applicationset")
    if not (target or "").lower().startswith(words) and file is None and local_file is None:
        return None
    from syncline.cli.appset.plan import Wanted, holds_sets, set_ref

    ref, place = set_ref(target, namespace), file or local_file
    if ref is None and (target is not None or place is None or not holds_sets(place)):
        return None
    if file is not None and local_file is not None:
        raise click.UsageError("give the set's file once, with -f or --local")
    return Wanted(ref, place, None if local_file is not None else folder, against, namespace, kubeconfig, context)


def _plan_sets(
    wanted: Wanted, below: bool, everything: bool, differences: bool, output: str | None, *, given: bool
) -> int:
    from syncline.cli.appset.plan import plan_sets
    from syncline.cli.views.setplan import describe_set_plan

    if given:
        raise click.UsageError("--revision, --prune and --resource are of one Application, not of an ApplicationSet")
    found = plan_sets(wanted, _own_plan if below else None, everything=everything)
    if output:
        from syncline.cli.views.fleet.order import order_obj

        made = [one.to_obj() | ({"order": order_obj(order)} if order is not None else {}) for one, order in found]
        print_documents(made[0] if len(made) == 1 else made, output)
    else:
        texts = []
        for one, order in found:
            texts.append(describe_set_plan(one, everything=everything, differences=differences))
            texts += [_order_text(order)] if order is not None else []
        print("\n\n".join(texts))
    return max(max(exit_code(one.verdict), _order_code(order)) for one, order in found)


def _order_text(order: PlannedOrder) -> str:
    from syncline.cli.views.fleet.order import describe_order

    return describe_order(order)


def _order_code(order: PlannedOrder | None) -> int:
    """Return the exit code of an order: changes if something is left, blocked if nothing of it goes on."""
    left = [one for one in order.forecast.ahead if one.standing.counts and not one.standing.done] if order else []
    if not left:
        return 0
    return DIFFERENCES if any(one.ends is not None for one in left) else BLOCKED


def _plan_rollout(
    target: str, against: str | None, namespace: str, kubeconfig: str | None, context: str | None, output: str | None
) -> int:
    from syncline.cli.appset.plan import Wanted, plan_rollout, rollout_ref
    from syncline.cli.views.fleet.order import order_obj

    ref = rollout_ref(target, namespace)
    assert ref is not None, "the target begins as one"
    order = plan_rollout(Wanted(ref, None, None, against, namespace, kubeconfig, context))
    if order is None:
        raise CommandFailed(
            f"{ref.namespace}/{ref.name} has no order over clusters in force: its Applications are written at once, if "
            f"it has any that clusters pull; `syncline rollout list -A` shows the roll-outs"
        )
    if output:
        print_documents(order_obj(order), output)
    else:
        print(_order_text(order))
    return _order_code(order)


def _own_plan(stage: Stage, app: Obj) -> PlannedSync:
    """Plan the next sync of an Application of a set."""
    settings = AppSettings(control_namespace=stage.control)
    return _planned(stage.link, stage.cache, app, settings, SyncRequest(), None, partial(_questions, stage.stand))


def exit_code(verdict: Verdict) -> int:
    """Return the exit code of a verdict."""
    match verdict:
        case Verdict.NOTHING:
            return 0
        case Verdict.CHANGES:
            return DIFFERENCES
        case Verdict.BLOCKED:
            return BLOCKED
        case Verdict.UNSAFE:
            return UNSAFE


def _applications(
    cache: Cache, target: str | None, file: Path | None, folder: Path | None, namespace: str
) -> list[Obj]:
    if file is not None:
        from syncline.cli.app.spec.create import applications_in

        return [_as_stored(cache, app) for app in applications_in(file, namespace)]
    if target is None:
        assert folder is not None, "one of them is given"
        return [_of_folder(folder, namespace)]
    ref = application_ref(target, namespace)
    found = cache.get(ref)
    if found is None:
        raise CommandFailed(
            cache.unread(ref) or f"Application {ref.namespace}/{ref.name} does not exist; see `syncline app list`"
        )
    return [found]


def _of_folder(folder: Path, namespace: str) -> Obj:
    """Return an Application that deploys the folder to namespace ``default``."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "local"
    spec = {
        "project": "default",
        "source": {"repoURL": folder.resolve().as_uri(), "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}


def application_ref(target: str, namespace: str) -> ObjectRef:
    """Parse ``shop``, ``argocd/shop``, ``app/shop`` or ``Application/shop``."""
    head, slash, name = target.rpartition("/")
    kind, _, inner = head.partition("/")
    if kind.lower() in ("app", "apps", "application", "applications"):
        head = inner
    if not name:
        raise CommandFailed(f"{target!r} names no Application; write APP, NAMESPACE/APP or Application/APP", USAGE)
    return ObjectRef(APPLICATION.group, APPLICATION.kind, head if slash and head else namespace, name)


def _as_stored(cache: Cache, app: Obj) -> Obj:
    """Return a file's Application merged over the stored one, if any: its spec and annotations win."""
    ref = ObjectRef(APPLICATION.group, APPLICATION.kind, namespace_of(app), name_of(app))
    known = cache.get(ref)
    if known is None:
        return app
    metadata = {**meta(known), "annotations": {**annotations_of(known), **annotations_of(app)}}
    return known | {"metadata": metadata, "spec": app.get("spec") or {}}


def plan_ahead(link: Connection, app: Obj, request: SyncRequest) -> PlannedSync | None:
    """Return the plan of a sync that is about to be requested, for its live view; None if planning fails."""
    settings = AppSettings(control_namespace=control_namespace(link, namespace_of(app)))
    try:
        with looking(link, settings.control_namespace, tell=False) as snapshot:
            return _planned(link, snapshot, app, settings, request, None, None)
    except (CommandFailed, OSError):
        return None  # the sync itself will report the error


def _planned(
    link: Connection | None,
    cache: Cache,
    app: Obj,
    settings: AppSettings,
    request: SyncRequest,
    folder: Path | None,
    ask: Callable[[Elsewhere, str], Questions | None] | None,
) -> PlannedSync:
    """Plan the sync. ``ask`` returns where to send dry runs, among the clusters of the command."""
    now = link.now() if link is not None else SystemClock().now()
    namespace = settings.control_namespace
    include(cache, app, namespace)
    with Elsewhere(link, namespace, cache) as others:
        asked = partial(ask, others) if ask is not None else None
        if folder is not None:
            reader = local_reader(folder, None, cache, namespace)
            return planned_sync(cache, app, reader, settings, now, request, others, asked)
        with source_reader(link, cache, namespace) as sources:
            return planned_sync(cache, app, sources, settings, now, request, others, asked)


def _questions(stand: Exported | None, others: Elsewhere, server: str) -> Questions | None:
    """Return where to send dry runs: the cluster itself, or its offline stand-in."""
    return stand.questions if stand is not None else Questions(others.link(server))
