"""What commands look at that need more than one object: the whole cluster once, and repositories."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

from syncline.assembly.reading import GitSourceReader
from syncline.assembly.snapshot import application_indices, look_at_cluster
from syncline.cli.connection import Connection
from syncline.cli.failure import CommandFailed
from syncline.control.cache import Cache
from syncline.gitops.application.observe import AppSettings
from syncline.kube.errors import ApiError

__all__ = ["look_at", "source_reader"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def look_at(link: Connection, control_namespace: str) -> Cache:
    """Everything that may be listed. What may not is said on stderr: the answer knows less then."""
    settings = AppSettings(control_namespace=control_namespace)
    try:
        look = link.run(look_at_cluster(application_indices(settings)))
    except ApiError as error:
        raise CommandFailed(f"{link.server}: {error}") from error
    for problem in look.unreadable:
        click.echo(f"warning: not seen: {problem}", err=True)
    return look.cache


@contextlib.contextmanager
def source_reader(link: Connection) -> Iterator[GitSourceReader]:
    """Repositories by path only where the cluster runs on this machine."""
    local = (urlsplit(link.server).hostname or "") in LOOPBACK
    with tempfile.TemporaryDirectory(prefix="syncline-") as scratch:
        yield GitSourceReader(Path(scratch), allow_local=local)
