"""``syncline pattern render``: prints the objects of a cluster group and of those that it manages, without Helm and
without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import print_documents
from syncline.cli.pattern.values import merged, refusal, values_options
from syncline.clustergroup.acm import render as acm
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.clustergroup.naming import too_long
from syncline.clustergroup.printing import is_empty
from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj, dig
from syncline.sources.errors import SourceError

GROUP, MANAGED = "clustergroup", "acm"
CHARTS: Final = (GROUP, MANAGED)


@click.command("render")
@values_options
@click.option("--chart", type=click.Choice(CHARTS), default=None, help="Only the objects of this chart.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def render_group(
    files: tuple[Path, ...], given: tuple[str, ...], texts: tuple[str, ...], chart: str | None, output: str
) -> int:
    """Print the objects that values of a cluster group stand for, as the clusterGroup chart renders them; then, where
    the values have managedClusterGroups, what the acm chart gives the hub for them.

    \b
    Example:  syncline pattern render -f values-global.yaml -f values-hub.yaml
              syncline pattern render -f values-hub.yaml --set global.clusterPlatform=AWS -o json
    """
    try:
        values, warnings = merged(files, given, texts)
        found = {name: objects for name, objects in _rendered(values, chart).items() if objects}
    except (SourceError, RenderFailed) as error:
        raise CommandFailed(str(error)) from None
    except ValuesRefused as refused:
        raise refusal(refused) from None
    names = (str(dig(values, *path) or "") for path in (("global", "pattern"), ("clusterGroup", "name")))
    if long := too_long(*names):
        warnings.append(long)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if output == "json":
        print_documents([one for objects in found.values() for one in objects], output)
        return 0
    for name, objects in found.items():
        if len(found) > 1:
            print(f"# chart {name}")
        for one in objects:
            print("---")
            print_documents(one, output)
    return 0


def _rendered(values: dict[str, Any], chart: str | None) -> dict[str, list[Obj]]:
    """Return the objects by chart. Without a choice those of the managed groups follow if there are any."""
    manages = not is_empty(dig(values, "clusterGroup", "managedClusterGroups"))
    wanted = (chart,) if chart is not None else CHARTS if manages else (GROUP,)
    makers = {GROUP: lambda: render(values_of([values])), MANAGED: lambda: acm.render(acm.values_of([values]))}
    return {name: makers[name]() for name in wanted}
