"""``syncline app create``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from syncline.argo.application import IN_CLUSTER_SERVER, RESOURCES_FINALIZER
from syncline.cli.access.connection import Connection
from syncline.cli.app.spec.flags import spec_options, with_flags
from syncline.cli.app.spec.validating import checked, validate_option
from syncline.cli.app.target import change_spec, get_app, namespace_options, split
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ResourceInfo, meta, name_of

MAX_FILE = 16 * 1024 * 1024
"""Limit of bytes read from standard input."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Read the Application from it, from the standard input for -; further flags change it.",
)
@click.option("--name", "named", default="", help="Its name; better as an argument.")
@spec_options
@click.option("-l", "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label; repeatable.")
@click.option("--annotations", multiple=True, metavar="KEY=VALUE", help="Annotation; repeatable.")
@click.option("--set-finalizer", is_flag=True, help="Delete its resources with it.")
@click.option("--upsert", is_flag=True, help="Change an Application of this name.")
@validate_option
@namespace_options
def create(
    name: str | None, file: str | None, named: str, upsert: bool, validate: bool, app_namespace: str, **given: Any
) -> None:
    """Create an Application from flags or from a file.

    \b
    Example:  syncline app create shop --repo https://github.com/org/shop --path deploy --dest-namespace shop \\
                  --sync-policy auto --sync-option CreateNamespace=true
              syncline app create -f shop.yaml --upsert
    """
    if name and named and name != named:
        raise CommandFailed(f"--name argument '{named}' does not match app name {name}", USAGE)
    if file:
        read = applications_in(Path(file), app_namespace)
        wanted = [with_overrides(one, name, named, given, single=len(read) == 1) for one in read]
    else:
        wanted = [from_flags(name or named, app_namespace, given)]
    with Connection(given["kubeconfig"], given["context"]) as link:
        info, check = link.resource(APPLICATION), checked(link, validate)
        for obj in wanted:
            check(obj)
            _create_one(link, info, obj, upsert)


def with_overrides(app: Obj, name: str | None, named: str, given: dict[str, Any], *, single: bool) -> Obj:
    """Apply the flags to an Application from a file, but not to several sources. Raises CommandFailed."""
    if named and single:
        app = app | {"metadata": {**meta(app), "name": named}}
    if name and name != name_of(app):
        raise CommandFailed(f"app name '{name}' does not match app spec metadata.name '{name_of(app)}'", USAGE)
    metadata = dict(meta(app))
    for field in ("labels", "annotations"):
        if given[field]:
            metadata[field] = {**(metadata.get(field) or {}), **_pairs(given[field])}
    if given["set_finalizer"]:
        metadata["finalizers"] = list(dict.fromkeys([*(metadata.get("finalizers") or []), RESOURCES_FINALIZER]))
    spec: Obj = app.get("spec") or {}
    spec = spec if spec.get("sources") else with_flags(spec, given)
    return {**app, "metadata": metadata, "spec": {**spec, "project": spec.get("project") or "default"}}


def applications_in(path: Path, namespace: str) -> list[Obj]:
    """Return the Applications in a manifest file, in ``namespace`` by default. Also used by ``plan -f``."""
    from syncline.kube.yaml.loading import load_all

    text = sys.stdin.buffer.read(MAX_FILE) if str(path) == "-" else path.read_bytes()
    loaded = load_all(text, file="the standard input" if str(path) == "-" else str(path))
    if loaded.report.errors:
        raise CommandFailed(str(loaded.report.errors[0]))
    found = [d.value for d in loaded.documents if isinstance(d.value, dict) and d.value.get("kind") == "Application"]
    if not found:
        raise CommandFailed(f"{path}: no object of kind Application in it")
    return [obj | {"metadata": {"namespace": namespace} | obj.get("metadata", {})} for obj in found]


def from_flags(name: str | None, namespace: str, given: dict[str, Any]) -> Obj:
    """Return the Application that the flags describe."""
    if not name or not given["repo"]:
        raise click.UsageError("give NAME and --repo, or -f FILE")
    namespace, name = split(name, namespace)
    spec = with_flags({"project": "default"}, _with_defaults(given))
    metadata: Obj = {"name": name, "namespace": namespace}
    for field, flag in (("labels", "labels"), ("annotations", "annotations")):
        if given[flag]:
            metadata[field] = _pairs(given[flag])
    if given["set_finalizer"]:
        metadata["finalizers"] = [RESOURCES_FINALIZER]
    return {"apiVersion": APPLICATION.api_version, "kind": "Application", "metadata": metadata, "spec": spec}


def _with_defaults(given: dict[str, Any]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"revision": "HEAD"}
    if not given.get("helm_chart"):
        defaults["path"] = "."
    if not given.get("dest_name"):
        defaults["dest_server"] = IN_CLUSTER_SERVER
    return given | {flag: value for flag, value in defaults.items() if given.get(flag) is None}


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise click.UsageError(f"{key!r}: write KEY=VALUE")
    return {key: value for key, _, value in pairs}


def _create_one(link: Connection, info: ResourceInfo, obj: Obj, upsert: bool) -> None:
    name = name_of(obj)
    request = client.create(info, obj, field_manager="syncline", field_validation="Strict")
    answer = link.send(request)
    if answer.status != 409:
        link.check(answer)
        print(f"application '{name}' created")
        return
    known = get_app(link, (str(meta(obj).get("namespace")), name))
    if known.get("spec") == obj.get("spec"):
        print(f"application '{name}' unchanged")
        return
    if not upsert:
        raise CommandFailed(
            f"existing application spec is different, use upsert flag to force update: --upsert changes '{name}'"
        )
    change_spec(link, (str(meta(obj).get("namespace")), name), lambda _known: obj["spec"])
    print(f"application '{name}' updated")
