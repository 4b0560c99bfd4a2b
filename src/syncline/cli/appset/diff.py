"""``syncline appset diff``."""

from __future__ import annotations

from pathlib import Path

import click

from syncline.assembly.inspection.setplan import SetVerb, together
from syncline.assembly.inspection.sets import planned_set
from syncline.cli.app.target import CONTROL_NAMESPACE
from syncline.cli.appset.files import read_sets
from syncline.cli.appset.rows import rows
from syncline.cli.appset.stage import as_stored, checked_set, stage_options, staged
from syncline.cli.appset.target import set_options
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.diff import describe_difference


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|URL...")
@click.option("--exit-code/--no-exit-code", default=True, show_default=True, help="End with 1 if something changes.")
@output_option("json", "yaml")
@stage_options
@set_options("Namespace of sets that name none [default: argocd].")
def diff(
    files: tuple[str, ...],
    exit_code: bool,
    output: str | None,
    against: str | None,
    folder: Path | None,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Show what the ApplicationSets of files would change in each Application, line by line.

    \b
    Exit codes: 0 no differences, 1 differences, 20 they cannot be known
    Example:    syncline appset diff fleet.yaml
                syncline appset diff fleet.yaml --local .
    """
    wanted = [one for place in files for one in read_sets(place, namespace or CONTROL_NAMESPACE)]
    found = []
    with staged(against, namespace or CONTROL_NAMESPACE, kubeconfig, context) as stage:
        for one in wanted:
            checked_set(stage, one)
            with rows(stage, folder) as ask:
                found.append(planned_set(stage.cache, as_stored(stage, one), stage.control, ask, stage.now))
    failed = [f"{one}{more}" for plan in found for one, more in together(plan.failures).items()]
    if failed:
        raise CommandFailed("\n  ".join(failed))
    changed = [
        one
        for plan in found
        for one in plan.applications
        if one.verb not in (SetVerb.UNCHANGED, SetVerb.KEEP, SetVerb.REFUSE)
    ]
    if output:
        print_documents([one.to_obj() for one in changed], output)
    for planned in () if output else changed:
        if planned.difference is not None:
            print(describe_difference(planned.difference))
    return 1 if changed and exit_code else 0
