"""The sync engine's rules of project, installation and cluster, from the Application's observation.

Made by ``operation.py`` for each reconcile. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from syncline.apply.health import Health
from syncline.argo.clusters import Cluster
from syncline.argo.project import sync_permission
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.sync.model import Rules
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ResourceInfo, name_of, namespace_of


@dataclass(frozen=True)
class ObservedRules(Rules):
    """The rules, answered from one observation."""

    observed: AppObserved

    def permits(self, obj: Obj, info: ResourceInfo) -> str:
        observed, cluster = self.observed, self._cluster
        destination = {"server": cluster.server, "name": cluster.name, "namespace": observed.view.destination_namespace}
        refused = sync_permission(observed.project or {}, obj, info, destination, observed.project_clusters)
        return refused or cluster.refuses(info.kind, namespace_of(obj) if info.namespaced else "", name_of(obj))

    @cached_property
    def _cluster(self) -> Cluster:
        return self.observed.cluster

    def health(self, obj: Obj) -> Health | None:
        return self.observed.health(obj)

    def refuses(self, ref: ObjectRef) -> str:
        return self.observed.reach.refuses(ref)

    def follows(self, kind: GroupKind) -> bool:
        return kind in self.observed.followed

    def lookup(self, ref: ObjectRef) -> Obj | None:
        return self.observed.lookup(ref)

    def behind_gate(self, ref: ObjectRef) -> Obj | None:
        return self.observed.referred.objects.get(ref)

    def unread(self, ref: ObjectRef) -> str:
        return self.observed.unread_there(ref)
