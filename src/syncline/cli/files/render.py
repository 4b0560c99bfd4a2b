"""``syncline render``: prints the manifests of a folder, without a cluster."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from syncline.base.clock import SystemClock
from syncline.cli.access.snapshots import local_reader, look_offline
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.terminal import print_exact
from syncline.kube.objects import Obj
from syncline.sources.rendering.environment import RenderContext

TYPES = ("directory", "helm", "kustomize")


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--type", "kind", type=click.Choice(TYPES), default=None, help="What it has to be [default: found].")
@click.option("--release-name", default="", help="Helm release name [default: the name of the folder].")
@click.option("--namespace", default="default", show_default=True, help="The namespace that templates see.")
@click.option("--values", "values_files", multiple=True, help="Helm values file below PATH; repeatable.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def render(path: Path, kind: str | None, output: str, **given: Any) -> None:
    """Print the manifests of a folder, as a sync would render them.

    Nothing is fetched and no cluster is asked. Values of Secrets are printed as they are written.

    \b
    Example:  syncline render examples/shop
              syncline render charts/web --release-name web --namespace shop -o json
    """
    folder = path.resolve()
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "local"
    helm: Obj = {key: value for key, value in (("releaseName", given["release_name"]),) if value}
    helm |= {"valueFiles": list(given["values_files"])} if given["values_files"] else {}
    source: Obj = {"repoURL": folder.as_uri(), "path": "."} | ({"helm": helm} if helm else {})
    context = RenderContext(application=name, project="default", namespace=given["namespace"])
    found = local_reader(folder, None, look_offline("empty", "argocd"), "argocd").read(
        (source,), ("local",), SystemClock().now(), context
    )
    if found.error:
        raise CommandFailed(f"{path}: {found.error}")
    types = [one.lower() for one in found.source_types]
    if kind is not None and types != [kind]:
        raise CommandFailed(f"{path}: --type {kind}: the folder is of type {', '.join(types)}", USAGE)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    print_exact(_text(list(found.objects), output))


def _text(objects: list[Obj], output: str) -> str:
    if output == "json":
        import json

        return json.dumps(objects, indent=2, ensure_ascii=False) + "\n"
    from syncline.kube.yaml.loading import dump

    return "".join(f"---\n{dump(obj)}" for obj in objects)
