"""A ``Pattern`` object, read; and the defaults that its operator fills in, without writing them. Pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``api/v1alpha1/pattern_types.go`` and ``applyDefaults``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from syncline.kube.objects import Obj, annotations_of, copied, dig, is_terminating, name_of, namespace_of
from syncline.patterns.installing.config import CHARTS

FINALIZER: Final = "foregroundDeletePattern"
PRUNE: Final = "patterns.gitops.hybrid-cloud-patterns.io/prune"
LABEL: Final = "validatedpatterns.io/pattern"
"""Label of all Applications of a pattern."""
HEAD: Final = "HEAD"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What is known of the cluster: the kinds of OpenShift's configuration say it. Empty texts: not known."""

    cluster_id: str = ""
    platform: str = ""
    version: str = ""
    """Major and minor."""
    domain: str = ""
    """Of applications: ``apps.NAME.REST``."""

    @property
    def status(self) -> dict[str, str]:
        """The fields of a Pattern's status that say it."""
        rest = self.domain.split(".")[1:]
        return {
            "clusterID": self.cluster_id,
            "clusterPlatform": self.platform,
            "clusterVersion": self.version,
            "clusterName": rest[0] if rest else "",
            "appClusterDomain": self.domain,
            "clusterDomain": ".".join(rest),
        }


@dataclass(frozen=True, slots=True)
class Pattern:
    """A Pattern as its operator works with it."""

    obj: Obj

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def namespace(self) -> str:
        return namespace_of(self.obj)

    @property
    def group(self) -> str:
        return self.text("clusterGroupName")

    @property
    def application_name(self) -> str:
        return f"{self.name}-{self.group}"

    def text(self, *path: str) -> str:
        return _text(dig(self.obj, "spec", *path))

    def git(self, field: str) -> str:
        return self.text("gitSpec", field)

    def status(self, field: str) -> str:
        return _text(dig(self.obj, "status", field))

    @property
    def multi_source(self) -> bool:
        return dig(self.obj, "spec", "multiSourceConfig", "enabled") is not False

    @property
    def manual_sync(self) -> bool:
        return dig(self.obj, "spec", "gitOpsSpec", "manualSync") is True

    @property
    def deleting(self) -> bool:
        return is_terminating(self.obj)

    @property
    def prunes(self) -> bool:
        return annotations_of(self.obj).get(PRUNE, "").lower() == "true"

    @property
    def extra_files(self) -> list[str]:
        return [str(one) for one in dig(self.obj, "spec", "extraValueFiles") or ()]

    @property
    def extra_parameters(self) -> list[tuple[str, str]]:
        listed = dig(self.obj, "spec", "extraParameters") or ()
        return [(_text(one.get("name")), _text(one.get("value"))) for one in listed if isinstance(one, Mapping)]


def with_defaults(obj: Obj, cluster: ClusterFacts) -> Pattern:
    """Return the Pattern with what its operator fills in. ``variant`` wins over ``clusterGroupName``."""
    made: Obj = copied(obj)
    spec: Obj = made.setdefault("spec", {})
    git: Obj = spec.setdefault("gitSpec", {})
    sources: Obj = spec.setdefault("multiSourceConfig", {})
    spec.setdefault("gitOpsSpec", {})
    for field in ("targetRevision", "originRevision"):
        git[field] = git.get(field) or HEAD
    sources["enabled"] = sources.get("enabled") is not False
    sources["helmRepoUrl"] = sources.get("helmRepoUrl") or CHARTS
    spec["clusterGroupName"] = spec.get("variant") or spec.get("clusterGroupName") or ""
    made["status"] = {**(made.get("status") or {}), **cluster.status}
    return Pattern(made)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
