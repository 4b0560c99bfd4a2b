"""The Subscription of the GitOps operator that a Pattern's operator wants; pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``subscription.go``.
"""

from __future__ import annotations

from typing import Final

from syncline.kube.objects import Obj, dig
from syncline.patterns.installing.config import (
    APPROVAL,
    CATALOG_SOURCE,
    CHANNEL,
    CSV,
    GITOPS_PACKAGE,
    SOURCE_NAMESPACE,
    OperatorConfig,
    Places,
)

COMPARED: Final = ("sourceNamespace", "source", "channel", "name", "installPlanApproval", "startingCSV")


def gitops_subscription(config: OperatorConfig, places: Places, *, disable_default: bool) -> Obj:
    """Return the Subscription. ``disable_default``: the operator must not make its own Argo CD."""
    env = [{"name": "ARGOCD_CLUSTER_CONFIG_NAMESPACES", "value": "*"}]
    if disable_default:
        env.append({"name": "DISABLE_DEFAULT_ARGOCD_INSTANCE", "value": "true"})
    spec: Obj = {
        "source": config.text(CATALOG_SOURCE),
        "sourceNamespace": config.text(SOURCE_NAMESPACE),
        "name": GITOPS_PACKAGE,
        "installPlanApproval": "Manual" if config.text(APPROVAL) == "Manual" else "Automatic",
        "config": {"env": env},
    }
    optional = {"channel": config.text(CHANNEL), "startingCSV": config.text(CSV)}
    spec |= {key: value for key, value in optional.items() if value}
    metadata = {"name": GITOPS_PACKAGE, "namespace": places.subscription_namespace}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": metadata,
        "spec": spec,
    }


def subscription_differs(wanted: Obj, current: Obj) -> bool:
    """Return whether the current Subscription is to be changed."""
    here, there = wanted["spec"], current.get("spec") or {}
    if any((here.get(field) or "") != (there.get(field) or "") for field in COMPARED):
        return True
    return bool(dig(here, "config", "env") != dig(there, "config", "env"))
