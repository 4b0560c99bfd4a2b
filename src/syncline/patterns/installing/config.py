"""The operator's settings (ConfigMap ``patterns-operator-config``) and where it and its Argo CD are; pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``patterns_operator_config.go`` and ``defaults.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

CONFIG_MAP: Final = "patterns-operator-config"
LEGACY_OPERATOR_NAMESPACE: Final = "openshift-operators"
ARGO: Final = "vp-gitops"
"""Namespace and name of the Argo CD of all groups."""
LEGACY_ARGO: Final = "openshift-gitops"
"""Both where the GitOps operator's own instance is used: it exists already."""
GITOPS_PACKAGE: Final = "openshift-gitops-operator"
CHARTS: Final = "https://charts.validatedpatterns.io/"

CATALOG_SOURCE: Final = "gitops.catalogSource"
SOURCE_NAMESPACE: Final = "gitops.sourceNamespace"
CHANNEL: Final = "gitops.channel"
APPROVAL: Final = "gitops.installApprovalPlan"
CSV: Final = "gitops.csv"
ADMINS: Final = "gitops.additionalArgoAdmins"
APPLICATION_HEALTH: Final = "gitops.applicationHealthCheckEnabled"
CUSTOM_HEALTH: Final = "gitops.customHealthChecks"
ARGO_RBAC: Final = "gitops.argoRBAC"
CUSTOM_ARGO: Final = "gitops.customArgoYaml"
GIT_CHARTS: Final = "gitea.helmRepoUrl"
GIT_CHART: Final = "gitea.chartName"
GIT_CHART_VERSION: Final = "gitea.chartVersion"
DEFAULTS: Final[Mapping[str, str]] = {
    CATALOG_SOURCE: "redhat-operators",
    SOURCE_NAMESPACE: "openshift-marketplace",
    CHANNEL: "gitops-1.21",
    APPROVAL: "Automatic",
    APPLICATION_HEALTH: "false",
    GIT_CHARTS: CHARTS,
    GIT_CHART: "gitea",
    GIT_CHART_VERSION: "0.0.*",
}


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """``data``: of the ConfigMap; a key that is there wins over the default, empty or not."""

    data: Mapping[str, str] = field(default_factory=dict)

    def text(self, key: str) -> str:
        return self.data.get(key, DEFAULTS.get(key, ""))

    def flag(self, key: str) -> bool:
        return self.text(key).lower() == "true"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the operator runs, and the Argo CD that all cluster groups share."""

    operator_namespace: str = LEGACY_OPERATOR_NAMESPACE
    argo_namespace: str = ARGO
    argo_name: str = ARGO

    @property
    def subscription_namespace(self) -> str:
        """The namespace of the GitOps operator's Subscription."""
        legacy = self.operator_namespace == LEGACY_OPERATOR_NAMESPACE
        return LEGACY_OPERATOR_NAMESPACE if legacy else GITOPS_PACKAGE

    @property
    def legacy_argo(self) -> bool:
        return self.argo_namespace == LEGACY_ARGO
