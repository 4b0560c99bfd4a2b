"""The destination clusters of Applications, for one command: one snapshot and one connection each, on demand.

``plan``, ``explain`` and the verbs of ``app`` use it to find an Application's destination. It connects with the cluster
Secrets of the control namespace, if the user may read them, and only reads.
"""

from __future__ import annotations

from types import TracebackType

from syncline.argo.clusters import ClusterError, cluster_access, clusters_of, destination_of, is_cluster_secret
from syncline.argo.settings import CONFIG_MAP, SystemSettings, parse_system
from syncline.assembly.inspection.pulled import PulledCache, pulled
from syncline.assembly.inspection.snapshot import application_indices, index_as
from syncline.cli.access.connection import Connection
from syncline.cli.frame.failure import CommandFailed
from syncline.control.cache import Cache
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.errors import ApiError, Forbidden
from syncline.kube.objects import GVK, Obj, dig

SECRET = GVK("", "v1", "Secret")
SETTINGS = GVK("", "v1", "ConfigMap")
UNREAD = "its Secret cannot be read with this kubeconfig"


class Elsewhere:
    """``home``: the kubeconfig's cluster, None without one; ``cache``: its snapshot, if there is one. Implements
    ``Destinations`` of observation. Use as a context manager."""

    def __init__(self, home: Connection | None, control_namespace: str, cache: Cache | None = None) -> None:
        self._home = home
        self._namespace = control_namespace
        self._cache = cache
        self._declared: list[Obj] | None = None
        self._links: dict[str, Connection] = {}
        self._looks: dict[str, PulledCache] = {}
        self._problems: dict[str, str] = {}
        self._unread = ""
        """Why the declared clusters are unknown, or ""."""

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server, snapshot in self._looks.items():
            if self._cache is not None and isinstance(self._cache, PulledCache):
                for text in snapshot.sentences(aside=value is not None):
                    self._cache.note(f"cluster {server}: {text}")
        for link in self._links.values():
            link.__exit__(kind, value, trace)

    # -- for observation -----------------------------------------------------------------------------------------

    def snapshot(self, server: str) -> Cache | None:
        if server not in self._looks and server not in self._problems:
            try:
                self._looks[server] = self._looked(self._link(server))
            except (CommandFailed, OSError, ApiError) as error:
                self._problems[server] = f"cluster {server}: {str(error).removeprefix(f'{server}: ')}"
        return self._looks.get(server)

    def _looked(self, link: Connection) -> PulledCache:
        settings = AppSettings(control_namespace=self._namespace)
        snapshot = pulled(link, application_indices(settings))
        if self._cache is not None:
            index_as(self._cache, snapshot, settings)
        if isinstance(self._cache, PulledCache):
            snapshot.followed = self._cache.followed
        return snapshot

    def problem(self, server: str) -> str:
        self.snapshot(server)
        return self._problems.get(server, "")

    # -- for commands --------------------------------------------------------------------------------------------

    def link(self, server: str) -> Connection:
        """Return a connection to a cluster; "" means the kubeconfig's. Raises CommandFailed."""
        assert self._home is not None, "without a cluster there is nothing to connect to"
        return self._link(server) if server else self._home

    def link_to(self, app: Obj) -> Connection:
        """Return a connection to an Application's destination. Raises CommandFailed."""
        assert self._home is not None, "commands that write have a cluster"
        server = self._server_of(app)
        try:
            return self._link(server) if server else self._home
        except CommandFailed as error:
            raise CommandFailed(f"cluster {server}: {error}") from error

    def look_for(self, app: Obj, home: Cache) -> Cache:
        """Return the snapshot of an Application's destination; ``home``: the local one. Raises CommandFailed."""
        server = self._server_of(app)
        found = self.snapshot(server) if server else home
        if found is None:
            raise CommandFailed(self._problems[server])
        return found

    def _server_of(self, app: Obj) -> str:
        """Return the server URL of an Application's destination; "" if it is the Applications' own cluster."""
        cluster = destination_of(app, self._system().clusters(self._secrets()))
        if isinstance(cluster, str):
            raise CommandFailed(self._unread or cluster)
        return "" if cluster.is_here else cluster.server

    def _link(self, server: str) -> Connection:
        if server not in self._links:
            known = next(
                (one for one in self._secrets() if server in {each.server for each in clusters_of([one])}), None
            )
            if known is None:
                raise CommandFailed(UNREAD)
            try:
                self._links[server] = Connection.to(cluster_access(known))
            except ClusterError as error:
                raise CommandFailed(str(error)) from error
        return self._links[server]

    def _system(self) -> SystemSettings:
        """Return the controllers' settings; the defaults if unreadable, as the API judges each request."""
        if self._home is None:
            return SystemSettings()
        answer = self._home.send(client.get(self._home.resource(SETTINGS), self._namespace, CONFIG_MAP))
        return parse_system(dig(answer.obj, "data", default={}) or {}) if answer.ok else SystemSettings()

    def _secrets(self) -> list[Obj]:
        """Return the cluster Secrets; empty if they cannot be listed."""
        if self._declared is None:
            self._declared = []
            if self._home is not None:
                answer = self._home.send(client.list_(self._home.resource(SECRET), self._namespace))
                if answer.status == Forbidden.code:
                    self._unread = f"which clusters are declared is not known: {answer.refusal()}"
                items = (answer.obj.get("items") or []) if answer.ok else []
                self._declared = [one for one in items if is_cluster_secret(one)]
        return self._declared
