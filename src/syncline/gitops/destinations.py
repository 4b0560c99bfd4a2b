"""Keeps the connections to other clusters up to date with the cluster Secrets.

One plan for all of them compares declared servers with connected ones. The action contains references to Secrets, never
their content; its handler in ``assembly`` reads the credentials when it connects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.argo.clusters import clusters_of, declared_twice, is_cluster_secret, is_placeholder
from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Plan
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of, ref_of, resource_version

SECRETS = GroupKind("", "Secret")


@dataclass(frozen=True, slots=True, order=True)
class Declared:
    """The current version of a cluster Secret: server, name and resourceVersion."""

    server: str
    secret: str
    version: str


@dataclass(frozen=True, slots=True)
class Connect(Action):
    """Connect to exactly these clusters, and close other connections."""

    wanted: tuple[Declared, ...]
    reason: str

    def describe(self) -> str:
        return f"connect to {', '.join(one.server for one in self.wanted) or 'no other cluster'}"


@dataclass(frozen=True, slots=True)
class ObservedDestinations:
    declared: tuple[Declared, ...]
    connected: tuple[Declared, ...]


def _plan(observed: ObservedDestinations, now: datetime) -> Plan:
    if observed.declared == observed.connected:
        return Plan(why="connected to what is declared")
    why = "the cluster Secrets changed"
    return Plan(steps=((Connect(observed.declared, why),),), why=why)


def destination_controller(
    control_namespace: str, connected: Callable[[], tuple[Declared, ...]]
) -> Controller[ObservedDestinations]:
    """Return the controller of kind Secret; each change of a cluster Secret reads all of them."""

    def observe(cache: Snapshot, ref: ObjectRef) -> ObservedDestinations | None:
        if ref.namespace != control_namespace:
            return None
        found = [
            obj
            for obj in cache.objects(SECRETS, control_namespace)
            if is_cluster_secret(obj) and not is_placeholder(obj)
        ]
        twice = declared_twice(clusters_of(found))
        elsewhere: Mapping[str, Obj] = {
            one.server: secret
            for secret in found
            for one in clusters_of([secret])
            if not one.is_here and one.server not in twice
        }
        declared = (Declared(server, name_of(obj), resource_version(obj)) for server, obj in elsewhere.items())
        return ObservedDestinations(tuple(sorted(declared)), connected())

    return Controller(
        name="destination",
        kind=SECRETS,
        observe=observe,
        plan=_plan,
    )


def applications_in(cache: Snapshot, server: str, control_namespace: str) -> Iterable[ObjectRef]:
    """Yield the Applications whose destination is this cluster."""
    secrets = cache.objects(SECRETS, control_namespace)
    names = {one.name for one in clusters_of(secrets) if one.server == server}
    for app in cache.objects(APPLICATION.group_kind):
        destination = (app.get("spec") or {}).get("destination") or {}
        if str(destination.get("server") or "").rstrip("/") == server or destination.get("name") in names:
            yield ref_of(app)
