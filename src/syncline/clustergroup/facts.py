"""What follows from the values for all objects: namespaces and whether the cluster is a hub; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.printing import NO_RELEASE, Printer, Release, first, is_empty, printed
from syncline.kube.objects import Obj


@dataclass(frozen=True, eq=False)
class Facts:
    """``values``: with the chart's defaults. Raises :class:`RenderFailed` where global values are missing."""

    values: Obj
    release: Release = NO_RELEASE

    def printer(self, part: str) -> Printer:
        return Printer(part, self.values, self.release)

    @property
    def shared(self) -> Obj:
        found = self.values.get("global")
        if not isinstance(found, dict):
            raise RenderFailed("global", "the values have no global section")
        return found

    @property
    def group(self) -> Obj:
        found: Obj = self.values["clusterGroup"]
        return found

    @property
    def options(self) -> Obj:
        found = self.shared.get("options")
        return found if isinstance(found, dict) else {}

    @property
    def imperative(self) -> Obj:
        found = self.group.get("imperative")
        if not isinstance(found, dict):
            raise RenderFailed("imperative", "the values have no clusterGroup.imperative")
        return found

    @property
    def argocd(self) -> Obj:
        found = self.group.get("argoCD")
        if not isinstance(found, dict):
            raise RenderFailed("plumbing/argocd", "the values have no clusterGroup.argoCD")
        return found

    @property
    def single(self) -> bool:
        """One Argo CD for all groups, instead of one of the group's own."""
        return not is_empty(self.shared.get("singleArgoCD"))

    @property
    def own_namespace(self) -> str:
        return f"{printed(self.shared.get('pattern'))}-{printed(self.group.get('name'))}"

    @property
    def argo_namespace(self) -> str:
        """Where Applications live."""
        return (printed(self.shared.get("vpArgoNamespace")) if self.single else self.own_namespace).strip()

    @property
    def plumbing(self) -> bool:
        """Only Argo CD and its surroundings are wanted."""
        return self.printer("enabled").same(self.values.get("enabled"), "plumbing", "enabled")

    @property
    def is_hub(self) -> bool:
        said = self.group.get("isHubCluster")
        if said is not None:
            return printed(said) == "true"
        hub = self.shared.get("hubClusterDomain")
        return not is_empty(hub) and first(self.shared.get("localClusterDomain"), hub) == hub

    @property
    def unseals_vault(self) -> bool:
        """A Vault inside the cluster is unsealed by a job: on hubs, and where an application is its chart."""
        store = self.shared.get("secretStore")
        if not isinstance(store, dict):
            raise RenderFailed("imperative/unsealjob", "the values have no global.secretStore")
        out = self.printer("imperative/unsealjob")
        if self.plumbing or not out.same(store.get("backend", "vault"), "vault", "global.secretStore.backend"):
            return False
        charts = [
            out.field(one, "chart", "clusterGroup.applications") for one in self.applications if not is_empty(one)
        ]
        by_chart = [out.same(one, "hashicorp-vault", "clusterGroup.applications: chart") for one in charts]
        return self.is_hub or any(by_chart)

    @property
    def applications(self) -> list[Any]:
        return self.printer("plumbing/applications").each(self.group.get("applications"), "clusterGroup.applications")
