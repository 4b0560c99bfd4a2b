"""``syncline health``: prints the health of objects in a file, by the rules that a sync waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from syncline.apply.health import Health, HealthStatus
from syncline.apply.health.overrides import checked_with, parse_overrides
from syncline.assembly.scripts.lua import LuaWorker
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.kube.objects import Obj, name_of, namespace_of, ref_of
from syncline.kube.yaml.loading import YamlError, load_all

NOT_HEALTHY = 1
CONFIG_MAP = "ConfigMap"
Judged = list[tuple[Obj, Health | None]]


@click.command()
@click.option(
    "-f", "--file", "file", required=True, type=click.Path(path_type=Path), help="YAML or JSON objects; - reads stdin."
)
@click.option(
    "--customizations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A ConfigMap like argocd-cm, whose resource.customizations hold health scripts.",
)
@output_option("json", "yaml")
def health(file: Path, customizations: Path | None, output: str | None) -> int:
    """Print status and message of each object, as a sync would judge it.

    \b
    Exit codes: 0 all are Healthy or have no health, 1 some are not
    """
    objects = _objects_in(file)
    with LuaWorker() as worker:
        check = _check(customizations, worker)
        judged = [(obj, check(obj)) for obj in objects]
    if output:
        print_documents([_entry(obj, found) for obj, found in judged], output)
    else:
        print(_table(judged))
    return NOT_HEALTHY if any(found and found.status is not HealthStatus.HEALTHY for _, found in judged) else 0


def _objects_in(file: Path) -> list[Obj]:
    """Return the objects of all documents; a List yields its items."""
    text = sys.stdin.read() if str(file) == "-" else _read(file)
    loaded = load_all(text, file=str(file))
    if not loaded.report.ok:
        raise CommandFailed(str(loaded.report), USAGE)
    found: list[Obj] = []
    for value in (document.value for document in loaded.documents):
        items = value.get("items") if isinstance(value, dict) else None
        found += items if isinstance(items, list) else [value]
    wrong = next((one for one in found if not isinstance(one, dict) or not {"apiVersion", "kind"} <= set(one)), None)
    if wrong is not None:
        raise CommandFailed(f"{file}: found an entry without apiVersion and kind; give Kubernetes objects", USAGE)
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise CommandFailed(f"{file}: {error}", USAGE) from error


def _check(customizations: Path | None, worker: LuaWorker) -> Callable[[Obj], Health | None]:
    """Return a health check by ``data`` of the ConfigMap, or by a file that contains the data alone."""
    if customizations is None:
        return checked_with({}, worker)
    try:
        maps = [one.value for one in load_all(_read(customizations), file=str(customizations)).documents]
        data = next((one.get("data") or {} if one.get("kind") == CONFIG_MAP else one for one in maps), {})
        return checked_with(parse_overrides(data), worker)
    except (YamlError, ValueError, AttributeError) as error:
        raise CommandFailed(f"{customizations}: {error}", USAGE) from error


def _entry(obj: Obj, found: Health | None) -> dict[str, Any]:
    ref = ref_of(obj)
    entry: dict[str, Any] = {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    return entry | {"health": None if found is None else {"status": str(found.status), "message": found.message}}


def _table(judged: Judged) -> str:
    rows = [
        (
            namespace_of(obj) or "-",
            f"{ref_of(obj).kind}/{name_of(obj)}",
            (found.status or "-") if found else "-",
            found.message.strip().replace("\n", "; ") if found and found.message else "-",
        )
        for obj, found in judged
    ]
    return table(("NAMESPACE", "OBJECT", "HEALTH", "MESSAGE"), rows)
