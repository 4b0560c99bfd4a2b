"""``syncline appset generate``."""

from __future__ import annotations

from pathlib import Path

import click

from syncline.assembly.inspection.sets import failure_lines, generated_set
from syncline.cli.app.target import CONTROL_NAMESPACE
from syncline.cli.appset.files import read_sets
from syncline.cli.appset.rows import rows
from syncline.cli.appset.stage import Stage, checked_set, stage_options, staged
from syncline.cli.appset.target import set_options
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.application import app_rows
from syncline.cli.views.appset import qualified
from syncline.kube.objects import Obj, name_of


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|URL...")
@output_option("wide", "json", "yaml", "name")
@stage_options
@set_options("Namespace of sets that name none [default: argocd].")
def generate(
    files: tuple[str, ...],
    output: str | None,
    against: str | None,
    folder: Path | None,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Print the Applications that the ApplicationSets of files make; nothing is stored.

    Git generators read repositories from this machine, or --local FOLDER; other generators see the objects of the
    cluster, or of --against.

    \b
    Example:  syncline appset generate fleet.yaml -o yaml
              syncline appset generate fleet.yaml --local . --against empty
    """
    wanted = [one for place in files for one in read_sets(place, namespace or CONTROL_NAMESPACE)]
    with staged(against, namespace or CONTROL_NAMESPACE, kubeconfig, context) as stage:
        made = [app for one in wanted for app in generated(stage, one, folder)]
    if output in ("json", "yaml"):
        print_documents(made[0] if len(made) == 1 else made, output)
    elif output == "name":
        for app in made:
            print(qualified(app))
    else:
        print(app_rows(made, wide=True))


def generated(stage: Stage, wanted: Obj, folder: Path | None) -> list[Obj]:
    """Return the Applications of a set, by name. Raises CommandFailed with every failure."""
    checked_set(stage, wanted)
    with rows(stage, folder) as ask:
        found = generated_set(stage.cache, wanted, stage.control, ask, stage.now)
    if found.failures:
        lines = "\n  ".join(failure_lines(wanted, found.failures))
        raise CommandFailed(f"unable to generate Applications of ApplicationSet: {name_of(wanted)}: {lines}")
    return sorted((one.app for one in found.made), key=name_of)
