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
from syncline.assembly.source_rules import source_rules
from syncline.cli.connection import Connection
from syncline.cli.failure import CommandFailed
from syncline.control.cache import Cache
from syncline.gitops.application.observe import AppSettings
from syncline.kube.errors import ApiError
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GroupKind
from syncline.sources.credentials import credential_book

__all__ = ["is_local", "look_at", "source_reader"]

SECRETS = GroupKind("", "Secret")
CONFIG_MAPS = GroupKind("", "ConfigMap")
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
def source_reader(link: Connection, cache: Cache, control_namespace: str) -> Iterator[GitSourceReader]:
    """Repositories with the credentials that may be read; by path only where the cluster runs on this machine."""
    with tempfile.TemporaryDirectory(prefix="syncline-") as scratch:
        reader = GitSourceReader(Path(scratch), allow_local=is_local(link))
        secrets, maps = (cache.objects(kind, control_namespace) for kind in (SECRETS, CONFIG_MAPS))
        reader.learn(credential_book(secrets, maps))
        reader.learn_rules(source_rules(cache.objects(APP_PROJECT.group_kind, control_namespace), maps))
        yield reader


def is_local(link: Connection) -> bool:
    """Whether the cluster runs on this machine, and so may read its disk."""
    return (urlsplit(link.server).hostname or "") in LOOPBACK
