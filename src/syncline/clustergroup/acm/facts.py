"""What follows from the values for all objects: the groups, and whether the cluster is a hub; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncline.clustergroup.acm.defaults import ARGO_NAMESPACE
from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.printing import NO_RELEASE, Printer, Release, first, is_empty, printed
from syncline.kube.objects import Obj

GROUPS = "clusterGroup.managedClusterGroups"


@dataclass(frozen=True, eq=False)
class Facts:
    """``values``: with the chart's defaults. Raises :class:`RenderFailed` where a section is missing."""

    values: Obj
    release: Release = NO_RELEASE

    def printer(self, part: str) -> Printer:
        return Printer(part, self.values)

    def section(self, name: str) -> Obj:
        found = self.values.get(name)
        if not isinstance(found, dict):
            raise RenderFailed(name, f"the values have no section {name}")
        return found

    @property
    def shared(self) -> Obj:
        return self.section("global")

    def groups(self, out: Printer) -> list[Any]:
        """The managed cluster groups, each with fields. Raises :class:`RenderFailed` for what is none."""
        found = out.each(self.section("clusterGroup").get("managedClusterGroups"), GROUPS)
        for one in found:
            out.field(one, "name", GROUPS)
        return found

    @property
    def argo_namespace(self) -> Any:
        """Where the Argo CD of a managed cluster runs that serves its groups."""
        return self.shared.get("vpArgoNamespace")

    def own_argo(self, out: Printer) -> bool:
        """Argo CD does not run where its operator puts it by itself."""
        chosen = first(self.argo_namespace, ARGO_NAMESPACE)
        return not out.same(chosen, ARGO_NAMESPACE, "global.vpArgoNamespace")

    def deletes(self, out: Printer, *phases: str) -> bool:
        """The pattern is in one of these phases of its deletion."""
        return any(out.same(self.shared.get("deletePattern"), one, "global.deletePattern") for one in phases)

    def is_hub(self, out: Printer) -> bool:
        said = self.section("clusterGroup").get("isHubCluster")
        if said is not None:
            return printed(said) == "true"
        hub = self.shared.get("hubClusterDomain")
        if is_empty(hub):
            return False
        local = first(self.shared.get("localClusterDomain"), hub)
        if not isinstance(local, type(hub)) or isinstance(hub, dict | list):
            raise RenderFailed(out.part, "global.localClusterDomain: incompatible types for comparison")
        return bool(local == hub)
