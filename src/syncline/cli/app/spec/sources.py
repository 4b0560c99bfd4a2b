"""``syncline app add-source`` and ``app remove-source``: change the list of an Application's sources."""

from __future__ import annotations

from typing import Any

import click

from syncline.cli.access.connection import Connection
from syncline.cli.app.spec.flags import position_of, spec_options, with_flags
from syncline.cli.app.spec.validating import checked, validate_option
from syncline.cli.app.target import change_spec, namespace_options, split
from syncline.cli.frame.failure import CommandFailed
from syncline.kube.objects import Obj


@click.command("add-source")
@click.argument("name")
@spec_options
@validate_option
@namespace_options
def add_source(name: str, app_namespace: str, **given: Any) -> None:
    """Append a source to an Application that has several (spec.sources).

    \b
    Example:  syncline app add-source shop --repo https://github.com/org/values --ref values
    """
    where = split(name, app_namespace)
    with Connection(given["kubeconfig"], given["context"]) as link:
        change_spec(link, where, lambda spec: with_source(spec, where[1], given), checked(link, given["validate"]))
    print(f"Application '{where[1]}' updated successfully")


def with_source(spec: Obj, name: str, given: dict[str, Any]) -> Obj:
    """Return ``spec`` with one more source, described by the flags."""
    if not given.get("repo") or not any(given.get(flag) for flag in ("path", "helm_chart", "ref")):
        raise CommandFailed("ApplicationSource needs atleast repoUrl, path or chart or ref field. No source to add.")
    if not spec.get("sources"):
        raise CommandFailed(f"Cannot add source: application {name} does not have spec.sources defined")
    made = with_flags({"source": {}}, given)["source"]
    return spec | {"sources": [*spec["sources"], made]}


@click.command("remove-source")
@click.argument("name")
@click.option("--source-position", type=int, default=0, help="Which of several sources, from 1.")
@click.option("--source-name", default="", help="The same by its name.")
@namespace_options
def remove_source(name: str, source_position: int, source_name: str, app_namespace: str, **given: Any) -> None:
    """Remove one of several sources.

    \b
    Example:  syncline app remove-source shop --source-position 2
    """
    where = split(name, app_namespace)
    with Connection(given["kubeconfig"], given["context"]) as link:
        change_spec(link, where, lambda spec: without_source(spec, source_position, source_name))
    print(f"Application '{where[1]}' updated successfully")


def without_source(spec: Obj, position: int, name: str) -> Obj:
    """Return Return ``spec`` without one of its sources."""
    several = spec.get("sources") or []
    if not several:
        raise CommandFailed("Application does not have multiple sources configured")
    if len(several) == 1:
        raise CommandFailed("Cannot remove the only source remaining in the app")
    at = position_of(spec, position, name)
    if not 1 <= at <= len(several):
        raise CommandFailed(f"Application does not have source at {at}; it has 1 to {len(several)}")
    return spec | {"sources": [one for number, one in enumerate(several, 1) if number != at]}
