"""``syncline admin export`` and ``import``: settings, projects, Applications and the Secrets of repositories and
clusters, in the form of ``argocd admin``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from syncline.argo.parameters import PARAMETERS_MAP, enables_namespace, parse_parameters, patterns_of
from syncline.cli.access.connection import Connection, namespaced
from syncline.cli.admin.files import text_of, written
from syncline.cli.admin.plan import KINDS, Change, ImportOptions, Step, belongs, exported, plan_import
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube import client
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import GVK, Obj, dig, finalizers, gvk_of, meta, name_of, namespace_of
from syncline.kube.yaml.loading import Budget, load_all

CONFIG_MAP, SECRET = GVK("", "v1", "ConfigMap"), GVK("", "v1", "Secret")
MAX_EXPORT = 256 * 1024 * 1024
"""Limit of a file in bytes."""
MAX_CONFLICTS = 5

namespace_options = namespaced("Of settings.", "-N", "-n", "--app-namespace", "--namespace", "namespace")
spaces_option = click.option(
    "--application-namespaces",
    "spaces",
    default="",
    help="Further namespaces of Applications, globs with commas [default: application.namespaces of the settings].",
)
sets_option = click.option("--applicationset-namespaces", "set_spaces", default="", help="The same of ApplicationSets.")


@click.command()
@click.option("-o", "--out", "out", default="-", show_default=True, help="File to write; - is the standard output.")
@spaces_option
@sets_option
@namespace_options
def export(out: str, spaces: str, set_spaces: str, namespace: str, **given: Any) -> None:
    """Write settings, projects, Applications and their Secrets as YAML. The file is for its owner alone; on a terminal
    nothing is shown, for there are credentials in it.

    \b
    Example:  syncline admin export -o argocd.yaml
    """
    if out == "-" and sys.stdout.isatty():
        raise CommandFailed(
            "an export holds credentials and is not shown on a terminal; give -o FILE, or a pipe", USAGE
        )
    with Connection(given["kubeconfig"], given["context"]) as link:
        found = [exported(one, namespace) for one in _there(link, namespace, _patterns(link, namespace, spaces))]
    if out == "-":
        print(text_of(found), end="")
    else:
        written(Path(out), found)


def _patterns(link: Connection, namespace: str, spaces: str) -> tuple[str, ...]:
    if spaces:
        return patterns_of(spaces)
    answer = link.send(client.get(link.resource(CONFIG_MAP), namespace, PARAMETERS_MAP))
    return parse_parameters(dig(answer.obj, "data", default={}) or {}).application_namespaces if answer.ok else ()


def _there(link: Connection, namespace: str, patterns: tuple[str, ...]) -> list[Obj]:
    """Return the objects of an installation in the order of an export."""
    found: list[Obj] = []
    for gvk in (CONFIG_MAP, SECRET, APP_PROJECT, APPLICATION, APPLICATION_SET):
        info = link.mapper.find(gvk)
        if info is None:
            continue
        anywhere = gvk in (APPLICATION, APPLICATION_SET)
        listed = link.ask(client.list_(info, "" if anywhere and patterns else namespace)).get("items") or []
        objects = [{"apiVersion": gvk.api_version, "kind": gvk.kind} | one for one in listed]
        if gvk in (CONFIG_MAP, SECRET):
            objects = [one for one in objects if belongs(one)]
        found += [one for one in objects if enables_namespace(namespace_of(one), namespace, patterns)]
    return found


@click.command("import")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@click.option("--prune", is_flag=True, help="Delete Applications, projects and Secrets that the file does not have.")
@click.option("--stop-operation", is_flag=True, help="End operations in progress.")
@click.option("--ignore-tracking", is_flag=True, help="Keep the tracking data of what is there.")
@click.option("--override-on-conflict", is_flag=True, help="Write over what changes meanwhile.")
@click.option("--skip-resources-with-label", "skip_label", default="", metavar="KEY=VALUE", help="Leave these alone.")
@click.option("--verbose", is_flag=True, help="Say what is unchanged, too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before --prune deletes.")
@spaces_option
@sets_option
@namespace_options
def import_(source: str, verbose: bool, yes: bool, namespace: str, **given: Any) -> None:
    """Put back what `admin export` or `argocd admin export` wrote; - reads the standard input. Applications that are
    pruned leave what they have deployed.

    \b
    Example:  syncline admin import argocd.yaml --dry-run
    """
    key, equals, value = given["skip_label"].partition("=")
    if given["skip_label"] and not (key and equals and value):
        raise CommandFailed(f"--skip-resources-with-label {given['skip_label']}: write KEY=VALUE", USAGE)
    wanted = _read(source)
    with Connection(given["kubeconfig"], given["context"]) as link:
        patterns = _patterns(link, namespace, given["spaces"])
        flags = ("prune", "stop_operation", "ignore_tracking", "skip_label")
        options = ImportOptions(namespace, patterns, **{flag: given[flag] for flag in flags})
        steps = plan_import(wanted, _there(link, namespace, patterns), options)
        gone = [step for step in steps if step.change is Change.PRUNE]
        if gone and not yes and not given["dry_run"]:
            names = ", ".join(f"{one.obj['kind']}/{name_of(one.obj)}" for one in gone[:10])
            if not click.confirm(f"Delete {len(gone)} objects that the file does not have ({names})?", err=True):
                raise CommandFailed("nothing was imported; give --yes to be asked nothing")
        for step in steps:
            if not given["dry_run"]:
                _do(link, step, override=given["override_on_conflict"])
            if verbose or step.change is not Change.KEEP:
                print(_line(step, dry=given["dry_run"]))


def _read(source: str) -> list[Obj]:
    name = "the standard input" if source == "-" else source
    raw = sys.stdin.buffer.read(MAX_EXPORT) if source == "-" else Path(source).read_bytes()
    loaded = load_all(raw, file=name, budget=Budget(bytes=MAX_EXPORT))
    if loaded.report.errors:
        raise CommandFailed(str(loaded.report.errors[0]), USAGE)
    found = [document.value for document in loaded.documents if document.value is not None]
    for one in found:
        if not isinstance(one, dict) or one.get("kind") not in KINDS or not one.get("apiVersion") or not name_of(one):
            kind = one.get("kind") if isinstance(one, dict) else type(one).__name__
            raise CommandFailed(f"{name}: found {kind}; an export holds {', '.join(KINDS)}, each with a name", USAGE)
    return found


def _do(link: Connection, step: Step, *, override: bool) -> None:
    if step.change not in (Change.CREATE, Change.UPDATE, Change.PRUNE):
        return
    info, where = link.resource(gvk_of(step.obj)), (namespace_of(step.obj), name_of(step.obj))
    match step.change:
        case Change.CREATE:
            link.ask(client.create(info, step.obj, field_manager="syncline"))
        case Change.PRUNE:
            if step.obj["kind"] == APPLICATION.kind and finalizers(step.obj):
                # Its deployed objects stay, as upstream.
                bare = {key: value for key, value in meta(step.obj).items() if key != "finalizers"}
                link.ask(client.update(info, step.obj | {"metadata": bare}, field_manager="syncline"))
            link.ask(client.delete(info, *where))
        case Change.UPDATE:
            wanted = step.obj
            for _ in range(MAX_CONFLICTS):
                answer = link.send(client.update(info, wanted, field_manager="syncline"))
                if answer.status != 409 or not override:
                    break
                newest = link.ask(client.get(info, *where))
                version = {"resourceVersion": meta(newest).get("resourceVersion")}
                wanted = wanted | {"metadata": {**meta(wanted), **version}}
            link.check(answer)


def _line(step: Step, *, dry: bool) -> str:
    group = gvk_of(step.obj).group
    what = f"{group}/{step.obj['kind']} {name_of(step.obj)} in namespace {namespace_of(step.obj)} {step.change}"
    return f"{what} (dry run)" if dry and step.change in (Change.CREATE, Change.UPDATE, Change.PRUNE) else what
