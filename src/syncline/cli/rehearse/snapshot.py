"""``syncline snapshot``: a cluster as a file for rehearsals, without the values of its Secrets."""

from __future__ import annotations

import json
import lzma
import os
import sys
from pathlib import Path

import click

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.base.entropy import Entropy
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import CommandFailed
from syncline.kube.objects import Obj
from syncline.rehearsal.given.renaming import renamed
from syncline.rehearsal.given.snapshot import snapshot_of, world_of
from syncline.rehearsal.given.snapshotfile import read_snapshot
from syncline.rehearsal.given.world import GivenWorld, world_of_state
from syncline.rehearsal.reality.files import is_recording, read_recording
from syncline.rehearsal.reality.measuring import measured
from syncline.rehearsal.scenario import ScenarioError

PRIVATE = 0o600


@click.command()
@click.option("-f", "--filename", type=click.Path(path_type=Path), default=None, help="Write here [default: stdout].")
@click.option("--rename", is_flag=True, help="Replace names that people gave; kinds, sizes and waves stay readable.")
@connection_options
def snapshot(filename: Path | None, rename: bool, kubeconfig: str | None, context: str | None) -> int:
    """Write a cluster to a file for `syncline rehearse --from`, packed by xz.

    It holds what people installed: nodes, workloads, budgets, configs, Applications; values of Secrets only as digests
    with a salt that is kept nowhere. Kinds that you may not list are named and left out.

    \b
    Example:  syncline snapshot > world.json.xz
    """
    if filename is None and sys.stdout.isatty():
        raise click.UsageError("a snapshot is packed: write it to a file with -f FILE, or > FILE")
    found = taken(kubeconfig, context)
    packed = lzma.compress(json.dumps(renamed(found) if rename else found, sort_keys=True).encode())
    if filename is None:
        sys.stdout.flush()
        _write_all(packed)
    else:
        with open(os.open(filename, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
            file.write(packed)
    return 0


def _write_all(packed: bytes) -> None:
    left = memoryview(packed)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]


def taken(kubeconfig: str | None, context: str | None) -> Obj:
    """Return the snapshot of a cluster. Raises CommandFailed."""
    with Connection(kubeconfig, context) as link:
        found = link.run(snapshot_of_cluster({}))
    for problem in found.unreadable:
        click.echo(f"warning: left out: {problem}", err=True)
    objects = [
        {"apiVersion": info.api_version, "kind": info.kind, **obj}
        for info in found.cache.mapper.all()
        for obj in found.cache.objects(info.group_kind)
    ]
    try:
        return snapshot_of(objects, Entropy().token().encode())
    except ScenarioError as error:
        raise CommandFailed(str(error)) from error


def world_from(place: str) -> GivenWorld:
    """Return the world of a snapshot's file, of a record's end, or of the cluster of a kubeconfig's context; empty: of
    the current one."""
    file = Path(place)
    if place and file.is_file() and is_recording(file):
        found = read_recording(file)
        said = f"the cluster is as at the end of {file.name}, in the middle of what it did"
        return world_of_state(file.name, found.last, measured(found.record()), said)
    if place and file.is_file():
        return read_snapshot(file)
    return world_of(taken(None, place or None), f"context {place}" if place else "the current context")
