"""``syncline appset create``."""

from __future__ import annotations

from typing import Any

import click

from syncline.cli.access.connection import Connection
from syncline.cli.app.target import CONTROL_NAMESPACE, MANAGER, MAX_CONFLICTS
from syncline.cli.appset.checks import check_project, check_set
from syncline.cli.appset.files import read_sets
from syncline.cli.appset.target import condition, follow, get_set, place_of, set_options
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.appset import describe_set, qualified
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj, annotations_of, meta, name_of, namespace_of

REFRESH = "argocd.argoproj.io/application-set-refresh"
UP_TO_DATE = "ResourcesUpToDate"


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|URL...")
@click.option("--upsert", is_flag=True, help="Change an ApplicationSet of this name.")
@click.option("--wait", "wait_", is_flag=True, help="Wait until its Applications are up to date.")
@output_option("wide", "json", "yaml")
@set_options("Namespace of those that name none [default: argocd].")
def create(
    files: tuple[str, ...],
    upsert: bool,
    wait_: bool,
    output: str | None,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Create the ApplicationSets of files, URLs or the standard input (-); a file may hold several.

    \b
    Example:  syncline appset create fleet.yaml
              syncline appset create fleet.yaml --upsert --wait
    """
    wanted = [one for place in files for one in read_sets(place, namespace or CONTROL_NAMESPACE)]
    for one in wanted:
        check_set(one)
    with Connection(kubeconfig, context) as link:
        for one in wanted:
            check_project(link, one)
        for one in wanted:
            stored, action = _written(link, one, upsert=upsert)
            click.echo(f"ApplicationSet '{name_of(one)}' {action}", err=True)
            if output in ("json", "yaml"):
                print_documents(stored, output)
            else:
                print(describe_set(stored))
            if wait_:
                _wait(link, stored)


def _written(link: Connection, wanted: Obj, *, upsert: bool) -> tuple[Obj, str]:
    """Return the stored ApplicationSet and what was done. Raises CommandFailed."""
    info = link.resource(APPLICATION_SET)
    answer = link.send(client.create(info, wanted, field_manager=MANAGER, field_validation="Strict"))
    if answer.status != 409:
        made: Obj = link.check(answer)
        return made, "created"
    where = place_of(name_of(wanted), namespace_of(wanted))
    for attempt in range(1, MAX_CONFLICTS + 1):
        known = get_set(link, where)
        if _same(known, wanted):
            return known, "unchanged"
        if not upsert:
            raise CommandFailed(
                "existing ApplicationSet spec is different, use upsert flag to force update: "
                f"--upsert changes '{name_of(wanted)}'"
            )
        request = client.update(info, merged(known, wanted), field_manager=MANAGER, field_validation="Strict")
        answer = link.send(request)
        if answer.status != 409 or attempt == MAX_CONFLICTS:
            break
    stored: Obj = link.check(answer)
    return stored, "updated"


def _same(known: Obj, wanted: Obj) -> bool:
    """Return whether nothing of what a person writes differs, as upstream compares them."""
    fields = ("labels", "annotations", "finalizers")
    return known.get("spec") == wanted.get("spec") and all(
        (meta(known).get(field) or None) == (meta(wanted).get(field) or None) for field in fields
    )


def merged(known: Obj, wanted: Obj) -> Obj:
    """Return the stored set with the spec and finalizers of ``wanted``; labels and annotations are added."""
    metadata = dict(meta(known))
    for field in ("labels", "annotations"):
        both = {**(metadata.get(field) or {}), **(meta(wanted).get(field) or {})}
        metadata |= {field: both} if both else {}
    metadata["finalizers"] = meta(wanted).get("finalizers") or []
    return known | {"metadata": metadata, "spec": wanted.get("spec") or {}}


def _wait(link: Connection, stored: Obj) -> None:
    """Wait until a reconcile that began after the write found all Applications up to date. What the controller says
    meanwhile goes to stderr."""
    where = place_of(name_of(stored), namespace_of(stored))
    # The conditions do not say of which spec they are. The controller removes the annotation when it has worked.
    body: dict[str, Any] = {"metadata": {"annotations": {REFRESH: "true"}}}
    link.ask(client.patch(link.resource(APPLICATION_SET), *where, PatchType.MERGE, body, field_manager=MANAGER))
    said: list[str] = []

    def done(found: Obj | None) -> bool:
        if found is None:
            raise CommandFailed(f'ApplicationSet "{qualified(stored)}" was deleted before reaching {UP_TO_DATE}')
        if REFRESH not in annotations_of(found) and condition(found, UP_TO_DATE).get("status") == "True":
            return True
        text = str(condition(found, "ErrorOccurred").get("message") or "the controller reads it")
        if text not in said:
            said.append(text)
            click.echo(f"waiting for ApplicationSet '{where[1]}': {text}", err=True)
        return False

    follow(link, where, done, 0, lambda: f"ApplicationSet {where[1]}")
    click.echo(f"ApplicationSet '{where[1]}' resources are up to date", err=True)
