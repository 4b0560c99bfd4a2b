""":class:`AppView`: typed access to an Application, which never raises."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from syncline.argo.clusters import HERE, IN_CLUSTER_NAME, IN_CLUSTER_SERVER, Cluster, resolve_destination
from syncline.argo.hydrator import sync_source
from syncline.base.masking import Masker
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, name_of, namespace_of, ref_of

__all__ = ["HYDRATE", "HYDRATE_STAMP", "IN_CLUSTER_NAME", "IN_CLUSTER_SERVER", "REFRESH", "AppView"]

RESOURCES_FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""With it the objects of an Application are deleted before it is."""
REFRESH = "argocd.argoproj.io/refresh"
HYDRATE = "argocd.argoproj.io/hydrate"
HYDRATE_STAMP = "argocd.argoproj.io/hydrate-timestamp"
RELEASE = "syncline.dev/release"
"""Annotation of the copy of an Application that a hub rolls out over clusters in order: the release that it is."""
SKIP_RECONCILE = "argocd.argoproj.io/skip-reconcile"
DEFAULT_HISTORY = 10
"""Default of ``revisionHistoryLimit`` (application_defaults.go)."""

USUAL_NAMESPACE = "argocd"
"""Namespace in which commands look for Applications and sets."""


def typed_name(name: str, namespace: str) -> str:
    """Return what people write after a command: the name, and ``-N NAMESPACE`` unless it is the usual one."""
    return name if namespace in ("", USUAL_NAMESPACE) else f"{name} -N {namespace}"


@dataclass(frozen=True)
class AppView:
    """A read-only view of one Application."""

    obj: Obj
    mask: Masker = field(default_factory=Masker, compare=False)
    """Masks known values of its Secrets in all messages about it."""
    beside: Obj | None = field(default=None, compare=False, repr=False)
    """The status from this reconcile's comparison, while an operation runs."""
    answered: bool = True
    """Whether the requested refresh has been done."""
    control_namespace: str = ""
    """Namespace of the controllers' own objects; empty: the Application's."""

    @property
    def typed(self) -> str:
        """What people write for it after a command."""
        return typed_name(self.name, self.namespace)

    @property
    def ref(self) -> ObjectRef:
        return ref_of(self.obj)

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def namespace(self) -> str:
        return namespace_of(self.obj)

    @property
    def terminating(self) -> bool:
        return is_terminating(self.obj)

    @property
    def skipped(self) -> bool:
        return annotations_of(self.obj).get(SKIP_RECONCILE) == "true"

    @property
    def refresh(self) -> str:
        """Return the requested refresh: ``normal``, ``hard`` or empty."""
        value = annotations_of(self.obj).get(REFRESH)
        return "" if value is None else ("hard" if value == "hard" else "normal")

    @cached_property
    def spec(self) -> Obj:
        found = dig(self.obj, "spec", default={})
        return found if isinstance(found, dict) else {}

    @cached_property
    def status(self) -> Obj:
        found = dig(self.obj, "status", default={})
        return found if isinstance(found, dict) else {}

    @property
    def current(self) -> Obj:
        """Return the status that a write builds on: this reconcile's comparison, else the stored status."""
        return self.status if self.beside is None else self.beside

    @cached_property
    def hydrator(self) -> Obj | None:
        """Return ``sourceHydrator``, if set: the sources are rendered into Git before the sync."""
        found = self.spec.get("sourceHydrator")
        return found if isinstance(found, dict) else None

    @cached_property
    def sources(self) -> tuple[Obj, ...]:
        """Return the sources to sync: the hydrated branch if there is a hydrator, else ``sources``, else ``source``."""
        if self.hydrator is not None:
            return (sync_source(self.hydrator),)
        several = self.spec.get("sources")
        if isinstance(several, list) and several:
            return tuple(several)
        single = self.spec.get("source")
        return (single,) if isinstance(single, dict) else ()

    @property
    def multi_source(self) -> bool:
        return self.hydrator is None and bool(self.spec.get("sources"))

    @property
    def revisions_wanted(self) -> tuple[str, ...]:
        return tuple(str(source.get("targetRevision") or "") for source in self.sources)

    @property
    def project(self) -> str:
        return str(self.spec.get("project") or "default")

    @property
    def destination(self) -> Obj:
        found = self.spec.get("destination")
        return found if isinstance(found, dict) else {}

    @property
    def destination_namespace(self) -> str:
        return str(self.destination.get("namespace") or "")

    def is_in(self, clusters: tuple[Cluster, ...]) -> bool:
        """Return whether the destination resolves to one of these clusters."""
        return isinstance(resolve_destination(self.destination, clusters), Cluster)

    @property
    def in_cluster(self) -> bool:
        """As :meth:`is_in` for the Application's own cluster, under its default names only."""
        return self.is_in((HERE,))

    @property
    def policy(self) -> Obj:
        found = self.spec.get("syncPolicy")
        return found if isinstance(found, dict) else {}

    @property
    def sync_options(self) -> tuple[str, ...]:
        return tuple(str(option) for option in self.policy.get("syncOptions") or ())

    @property
    def history_limit(self) -> int:
        limit = self.spec.get("revisionHistoryLimit")
        return limit if isinstance(limit, int) else DEFAULT_HISTORY

    @property
    def operation(self) -> Obj | None:
        """Return the requested operation; an empty request counts too and fails with what it lacks."""
        found = self.obj.get("operation")
        return found if isinstance(found, dict) else None

    @property
    def operation_state(self) -> Obj | None:
        found = self.status.get("operationState")
        return found if isinstance(found, dict) and found else None
