"""``syncline app diff`` and ``app manifests``: manifests and live objects of an Application, and their differences."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from syncline.apply.diff import Prediction
from syncline.apply.diff.model import MANAGER
from syncline.assembly.inspection.differences import AppDifferences, DryRun, ObjectDifference, application_differences
from syncline.base.scratch import credentials_folder
from syncline.cli.access.connection import Connection
from syncline.cli.access.destinations import Elsewhere
from syncline.cli.access.snapshots import include, looking, source_reader
from syncline.cli.app.revised import folder_reader, local_options, revised, revision_options
from syncline.cli.app.target import control_namespace, get_app, namespace_options, refresh, split
from syncline.cli.fleet.asking import about, asked, cluster_of, timeout_option
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.diff import describe_difference, header, object_text
from syncline.cli.views.plan import short_ref
from syncline.fleet.pull.queries.model import Ask
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.comparison.compare import asks_server
from syncline.kube import client
from syncline.kube.objects import Obj, ObjectRef, gvk_of, namespace_of

GENERAL_ERROR = 20
"""argocd's exit code of a failed comparison; 1 means differences."""
SHOWN = 5
"""Objects that a message names."""
EXTERNAL_DIFF = "KUBECTL_EXTERNAL_DIFF"


@click.command()
@click.argument("name")
@revision_options
@local_options
@click.option("--refresh", "soft", is_flag=True, help="Have the controller read the repository first.")
@click.option("--hard-refresh", "hard", is_flag=True, help="And render again.")
@click.option(
    "--server-side-diff/--no-server-side-diff",
    default=None,
    help="As a server-side apply would merge; changes nothing [default: the Application's compare options].",
)
@click.option("--exit-code/--no-exit-code", default=True, show_default=True, help="End with a code if they differ.")
@click.option("--diff-exit-code", default=1, show_default=True, help="That code.")
@output_option("json", "yaml")
@timeout_option
@namespace_options
def diff(name: str, exit_code: bool, diff_exit_code: int, output: str | None, **given: Any) -> int:
    """Show what a sync would change, object by object. Values of Secrets are masked, hooks are left out.

    $KUBECTL_EXTERNAL_DIFF names a program that is called with two files for each object.

    \b
    Exit codes: 0 no differences, 1 differences, 20 the comparison could not be made
    Example:    syncline app diff shop --revision feature/new-menu
                syncline app diff shop --local deploy/
    """
    try:
        found = _compared(name, given, Ask.DIFF)
    except CommandFailed as error:
        raise CommandFailed(str(error), GENERAL_ERROR) from error
    if output:
        print_documents([_as_obj(one) for one in found.modified], output)
    for one in () if output else found.modified:
        print(_external(one) if os.environ.get(EXTERNAL_DIFF) else describe_difference(one))
    if found.unread:
        names = ", ".join(map(short_ref, found.unread[:SHOWN]))
        raise CommandFailed(
            f"{len(found.unread)} objects may not be read and were not compared: {names}", GENERAL_ERROR
        )
    return diff_exit_code if found.modified and exit_code else 0


@click.command()
@click.argument("name")
@click.option("--source", type=click.Choice(["git", "live"]), default="git", show_default=True, help="Which side.")
@revision_options
@local_options
@output_option("json", "yaml")
@timeout_option
@namespace_options
def manifests(name: str, source: str, output: str | None, **given: Any) -> None:
    """Print the manifests of an Application; hooks too where a revision or a folder is named. Secrets are masked.

    \b
    Example:  syncline app manifests shop --source live
              syncline app manifests shop --local deploy/
    """
    found = _compared(name, {**given, "source": source}, Ask.MANIFESTS)
    hooks = found.hooks if given["revision"] or given["revisions"] or given["local"] else ()
    objects = list(found.live) if source == "live" else [*found.manifests, *hooks]
    if output:
        print_documents(objects, output)
        return
    for obj in objects:
        print("---")
        print(object_text(obj), end="")


def _compared(name: str, given: dict[str, Any], what: Ask) -> AppDifferences:
    where = split(name, given["app_namespace"])
    with Connection(given["kubeconfig"], given["context"]) as link:
        if cluster_of(known := get_app(link, where)):
            return _pulled(link, known, given, what)
        if given.get("soft") or given.get("hard"):
            app = refresh(link, where, "hard" if given["hard"] else "normal")
        else:
            app = known
        return compared(link, app, given)


def _pulled(link: Connection, app: Obj, given: Mapping[str, Any], what: Ask) -> AppDifferences:
    """Return what the agent of the cluster that pulls ``app`` answers. Raises CommandFailed."""
    unfit = ("revision", "revisions", "source_names", "source_positions", "local", "soft", "hard", "server_side_diff")
    for key in unfit:
        if given.get(key):
            flag = {"soft": "refresh", "hard": "hard-refresh"}.get(key, key).replace("_", "-")
            raise CommandFailed(f"--{flag}: cluster {cluster_of(app)} compares the revision of the Application", USAGE)
    rows = asked(link, app, about(app, what, source=given.get("source") or "git"), given["timeout"])
    large = tuple(_ref(row) for row in rows if row.get("tooLarge") or row.get("unread"))
    shown = [row for row in rows if not (row.get("tooLarge") or row.get("unread"))]
    if what is Ask.DIFF:
        found = tuple(ObjectDifference(_ref(row), row.get("live"), row.get("wanted"), modified=True) for row in shown)
        return AppDifferences(objects=found, unread=large)
    for ref in large:
        click.echo(f"warning: {short_ref(ref)} is too large for an answer", err=True)
    return AppDifferences(manifests=tuple(shown), live=tuple(shown))


def _ref(row: Obj) -> ObjectRef:
    return ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))


def compared(link: Connection, app: Obj, given: Mapping[str, Any]) -> AppDifferences:
    """Compare manifests and live objects of ``app``, with the sources in ``given``. Raises CommandFailed."""
    app = revised(app, given)
    namespace = control_namespace(link, namespace_of(app))
    settings = AppSettings(control_namespace=namespace)
    with looking(link, namespace) as cache, Elsewhere(link, namespace, cache) as others:
        include(cache, app, namespace)
        with source_reader(link, cache, namespace) as remote:
            reader = folder_reader(given, cache, namespace) or remote
            asked = given.get("server_side_diff")
            server_side = asks_server(app, False) if asked is None else asked
            dry_run = _dry_run(others.link_to(app)) if server_side else None
            found = application_differences(cache, app, reader, settings, link.now(), others, dry_run)
    if found.problems:
        raise CommandFailed("; ".join(found.problems))
    return found


def _dry_run(link: Connection) -> DryRun:
    """Return a function that dry-runs a server-side apply in the cluster of ``link``."""

    def ask(target: Obj) -> Prediction:
        request = client.server_side_apply(
            link.resource(gvk_of(target)), target, field_manager=MANAGER, force=True, dry_run=True
        )
        answer = link.send(request)
        if answer.ok:
            return Prediction("", msgspec.json.encode(answer.obj))
        return Prediction("", error=str(answer.refusal()))

    return ask


def _as_obj(one: ObjectDifference) -> Obj:
    ref = one.ref
    return {
        "group": ref.group,
        "kind": ref.kind,
        "namespace": ref.namespace,
        "name": ref.name,
        "live": one.live,
        "wanted": one.wanted,
    }


def _external(one: ObjectDifference) -> str:
    """Return the output of the user's diff program for the two files; its exit code 1 means a difference."""
    with tempfile.TemporaryDirectory(prefix="syncline-diff-", dir=credentials_folder()) as folder:
        files = [Path(folder) / f"{side}.yaml" for side in ("live", "wanted")]
        for path, obj in zip(files, (one.live, one.wanted), strict=True):
            path.write_text(object_text(obj), encoding="utf-8")
        command = [*shlex.split(os.environ[EXTERNAL_DIFF]), *map(str, files)]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        except OSError as error:
            raise CommandFailed(f"${EXTERNAL_DIFF} {command[0]}: {error.strerror}; unset it", GENERAL_ERROR) from error
    return f"{header(one.ref)}\n{done.stdout.rstrip()}"
