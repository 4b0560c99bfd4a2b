"""Snapshots of an Application's cluster and its destination, for verbs that show its objects."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from syncline.cli.access.connection import Connection
from syncline.cli.access.destinations import Elsewhere
from syncline.cli.access.snapshots import looking
from syncline.cli.app.target import control_namespace, get_app
from syncline.control.cache import Cache
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, ObjectRef, dig


@dataclass(frozen=True, slots=True)
class Looked:
    app: Obj
    settings: AppSettings
    home: Cache
    others: Elsewhere
    there: Cache
    """Snapshot of the destination."""

    @property
    def project(self) -> Obj:
        """The Application's project; empty if missing or unreadable."""
        name = str(dig(self.app, "spec", "project") or "default")
        found = self.home.get(ObjectRef(*APP_PROJECT.group_kind, self.settings.control_namespace, name))
        return found or {}


@contextlib.contextmanager
def looked_for(link: Connection, where: tuple[str, str], app: Obj | None = None) -> Iterator[Looked]:
    """Yield the snapshots for the Application at (namespace, name), or for ``app``. Raises CommandFailed."""
    app = app or get_app(link, where)
    settings = AppSettings(control_namespace=control_namespace(link, where[0]))
    with (
        looking(link, settings.control_namespace) as home,
        Elsewhere(link, settings.control_namespace, home) as others,
    ):
        yield Looked(app, settings, home, others, others.look_for(app, home))
