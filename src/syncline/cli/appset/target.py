"""Finds, reads and follows ApplicationSets. Shared by the verbs of ``syncline appset``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.following import followed
from syncline.cli.app.target import CONTROL_NAMESPACE, split
from syncline.cli.frame.failure import BLOCKED, CommandFailed
from syncline.cli.frame.suggesting import suggestion
from syncline.kube import client
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj

Place = tuple[str, str]
"""Namespace and name."""


def set_options(about: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds ``-N`` and the options of the connection."""
    option = click.option("-N", "--appset-namespace", "--app-namespace", "namespace", default="", help=about)
    return lambda command: option(connection_options(command))


def place_of(name: str, namespace: str) -> Place:
    """Return (namespace, name); ``NAMESPACE/NAME`` wins over ``-N``."""
    return split(name, namespace or CONTROL_NAMESPACE)


def find_set(link: Connection, where: Place) -> Obj | None:
    """Return the ApplicationSet, None if there is none. Raises CommandFailed."""
    answer = link.send(client.get(link.resource(APPLICATION_SET), *where))
    if answer.status == 404:
        return None
    found: Obj = link.check(answer)
    return found


def get_set(link: Connection, where: Place) -> Obj:
    """Return the ApplicationSet. Raises CommandFailed."""
    found = find_set(link, where)
    if found is None:
        near = suggestion(link, link.resource(APPLICATION_SET), *where)
        raise CommandFailed(
            f"ApplicationSet {'/'.join(where)} does not exist; `syncline appset list` shows those that do{near}"
        )
    return found


def follow(
    link: Connection, where: Place, reached: Callable[[Obj | None], bool], timeout_s: float, what: Callable[[], str]
) -> None:
    """Watch one ApplicationSet until ``reached``, which gets None when it is gone; 0 seconds: for ever. ``what`` is
    named in the error when the time is over."""
    for found in followed(link, link.resource(APPLICATION_SET), where, timeout_s):
        if reached(found):
            return
    raise CommandFailed(f"timed out after {timeout_s:g} s waiting for {what()}", BLOCKED)
