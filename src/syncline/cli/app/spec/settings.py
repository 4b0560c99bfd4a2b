"""``syncline app set`` and ``app unset``: change fields of an Application's spec by flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from syncline.cli.access.connection import Connection
from syncline.cli.app.spec.flags import image_name, position_of, spec_options, with_flags
from syncline.cli.app.spec.validating import checked, validate_option
from syncline.cli.app.target import change_spec, namespace_options, split
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj

SCALARS = {
    "nameprefix": ("kustomize", "namePrefix"),
    "namesuffix": ("kustomize", "nameSuffix"),
    "kustomize_namespace": ("kustomize", "namespace"),
    "kustomize_version": ("kustomize", "version"),
    "values_literal": ("helm", "values"),
    "ignore_missing_value_files": ("helm", "ignoreMissingValueFiles"),
    "pass_credentials": ("helm", "passCredentials"),
    "ignore_missing_components": ("kustomize", "ignoreMissingComponents"),
}
"""Flag → the field that it removes."""
LISTS = {
    "parameters": ("helm", "parameters"),
    "values_files": ("helm", "valueFiles"),
    "kustomize_images": ("kustomize", "images"),
    "kustomize_replicas": ("kustomize", "replicas"),
    "plugin_envs": ("plugin", "env"),
}
"""Flag → the list from which it removes entries, by name or whole value."""


@click.command("set")
@click.argument("name")
@spec_options
@click.option("--source-position", type=int, default=0, help="Which of several sources, from 1.")
@validate_option
@namespace_options
def set_spec(name: str, source_position: int, **given: Any) -> None:
    """Change fields of an Application's spec.

    \b
    Example:  syncline app set shop --revision v1.2.3 --sync-policy auto --self-heal
              syncline app set shop --sync-option CreateNamespace=true --sync-option '!Replace'
    """
    where = split(name, given["app_namespace"])
    # As upstream, one flag has two uses: with several sources it selects one, with a single source it names it.
    wanted = given["source_name"] or ""

    def change(spec: Obj) -> Obj:
        if not wanted or not spec.get("sources"):
            return with_flags(spec, given, source_position)
        return with_flags(spec, given | {"source_name": None}, position_of(spec, source_position, wanted))

    with Connection(given["kubeconfig"], given["context"]) as link:
        changed = change_spec(link, where, change, checked(link, given["validate"]))
    print(f"application '{where[1]}' {'updated' if changed else 'unchanged'}")


@click.command()
@click.argument("name")
@click.option("-p", "--parameter", "parameters", multiple=True, help="Helm parameter; repeatable.")
@click.option("--values", "values_files", multiple=True, help="Helm values file; repeatable.")
@click.option("--values-literal", is_flag=True, help="Inline Helm values.")
@click.option("--ignore-missing-value-files", is_flag=True, help="The Helm option of this name.")
@click.option("--pass-credentials", is_flag=True, help="The Helm option of this name.")
@click.option("--nameprefix", is_flag=True, help="Kustomize name prefix.")
@click.option("--namesuffix", is_flag=True, help="Kustomize name suffix.")
@click.option("--kustomize-namespace", is_flag=True, help="Kustomize namespace.")
@click.option("--kustomize-version", is_flag=True, help="Kustomize version.")
@click.option("--kustomize-image", "kustomize_images", multiple=True, help="Kustomize image; repeatable.")
@click.option("--kustomize-replica", "kustomize_replicas", multiple=True, help="Kustomize replicas; repeatable.")
@click.option("--ignore-missing-components", is_flag=True, help="The Kustomize option of this name.")
@click.option("--ref", is_flag=True, help="The name by which other sources call this one.")
@click.option("--plugin-env", "plugin_envs", multiple=True, help="Variable of a plugin; repeatable.")
@click.option("--source-position", type=int, default=0, help="Which of several sources, from 1.")
@click.option("--source-name", default="", help="The same by its name.")
@namespace_options
def unset(name: str, source_position: int, source_name: str, **given: Any) -> None:
    """Remove overrides from an Application's source.

    \b
    Example:  syncline app unset shop --kustomize-image nginx --namesuffix
    """
    where = split(name, given["app_namespace"])
    with Connection(given["kubeconfig"], given["context"]) as link:
        changed = change_spec(
            link, where, lambda spec: without(spec, given, position_of(spec, source_position, source_name))
        )
    print(f"application '{where[1]}' {'updated' if changed else 'unchanged'}")


def without(spec: Obj, given: Mapping[str, Any], position: int = 0) -> Obj:
    """Return ``spec`` without the flags' fields and without empty tool blocks. Raises CommandFailed."""
    if not any(given.get(flag) for flag in (*SCALARS, *LISTS, "ref")):
        raise CommandFailed("say what to remove, for example --kustomize-image NAME; see --help", USAGE)
    several = spec.get("sources") or []
    if not several:
        return spec | {"source": _without(spec.get("source") or {}, given)}
    if not 1 <= position <= len(several):
        raise CommandFailed(
            f"the Application has {len(several)} sources; say which with --source-position 1 to {len(several)}", USAGE
        )
    changed = [_without(one, given) if at == position else one for at, one in enumerate(several, 1)]
    return spec | {"sources": changed}


def _without(source: Obj, given: Mapping[str, Any]) -> Obj:
    blocks: dict[str, Obj] = {}
    for flag, (block, field) in SCALARS.items():
        if given.get(flag):
            held = blocks.setdefault(block, dict(source.get(block) or {}))
            held.pop(field, None)
            if flag == "values_literal":
                held.pop("valuesObject", None)
    for flag, (block, field) in LISTS.items():
        if given.get(flag):
            held = blocks.setdefault(block, dict(source.get(block) or {}))
            held[field] = [entry for entry in held.get(field) or [] if _entry_name(entry) not in given[flag]]
            if not held[field]:
                del held[field]
    gone = {*blocks, "ref"} if given.get("ref") else {*blocks}
    kept = {key: value for key, value in source.items() if key not in gone}
    return kept | {block: held for block, held in blocks.items() if held}


def _entry_name(entry: Any) -> str:
    """Return a mapping's name, an image's name (before ``=``, ``:`` or ``@``), or the text itself."""
    return str(entry.get("name")) if isinstance(entry, dict) else image_name(str(entry))
