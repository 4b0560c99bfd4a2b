"""``syncline pattern render``: prints the objects of a cluster group and of those that it manages, without Helm and
without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import print_documents
from syncline.clustergroup.acm import render as acm
from syncline.clustergroup.defaults import layered
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.clustergroup.naming import too_long
from syncline.clustergroup.printing import is_empty
from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj, dig
from syncline.sources.errors import SourceError
from syncline.sources.helm.values import parameters_into, read_values

MAX_BYTES = 4 * 1024 * 1024
"""Size limit of one values file."""
GROUP, MANAGED = "clustergroup", "acm"
CHARTS: Final = (GROUP, MANAGED)


@click.command("render")
@click.option(
    "-f",
    "--values",
    "files",
    multiple=True,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Values file; repeatable, later ones override.",
)
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A value, as `helm --set` reads it.")
@click.option("--set-string", "texts", multiple=True, metavar="NAME=VALUE", help="A value that is a text.")
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
        values = layered(_values(path) for path in files)
        pairs = [*((one, False) for one in given), *((one, True) for one in texts)]
        warnings = parameters_into(values, [(*_pair(one), force) for one, force in pairs], ())
        found = {name: objects for name, objects in _rendered(values, chart).items() if objects}
    except (SourceError, RenderFailed) as error:
        raise CommandFailed(str(error)) from None
    except ValuesRefused as refused:
        lines = "\n".join(f"  {one}" for one in refused.violations)
        raise CommandFailed(f"the values are not those of a cluster group:\n{lines}") from None
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


def _values(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_BYTES:
        raise CommandFailed(f"{path} is larger than {MAX_BYTES} bytes", USAGE)
    return read_values(path.read_bytes(), str(path))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise CommandFailed(f"--set {text}: expected NAME=VALUE", USAGE)
    return name, value
