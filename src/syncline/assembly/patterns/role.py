"""The role ``patterns``: Patterns, and the instances of ``ArgoCD`` objects."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from syncline.assembly.patterns.instances import Begin, RunningInstances
from syncline.assembly.roles import Role, Wake
from syncline.assembly.sources.credentials import Taught, Teacher
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.fetching import FetchHandler
from syncline.control.loop import ControlLoop
from syncline.kube.kinds.applicationset import application_set_crd
from syncline.kube.kinds.argoproj import crds
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.kinds.operatorlifecycle import operator_crds
from syncline.kube.kinds.validatedpatterns import argo_cd_crd, openshift_platform_crds, pattern_crd
from syncline.kube.objects import Obj
from syncline.patterns.argocd.controller import ArgoSettings, argocd_controller
from syncline.patterns.argocd.plan import MANAGER
from syncline.patterns.installing.admission import pattern_admission
from syncline.patterns.installing.config import ARGO, LEGACY_ARGO, LEGACY_OPERATOR_NAMESPACE
from syncline.patterns.installing.controller import PATTERN_CONTROLLER, pattern_controller
from syncline.patterns.installing.reading import CheckoutReader, CheckoutStore, Found, ReadCheckout

NAMESPACE: Final = LEGACY_OPERATOR_NAMESPACE
"""Of the operator, as upstream's."""


@dataclass(frozen=True, slots=True)
class PatternSettings:
    """``namespaces``: where Patterns are acted on, whose right to be made gives all rights on the cluster.
    ``cluster_wide``: namespaces in which an ArgoCD object has an instance that may do everything."""

    control_namespace: str = "argocd"
    namespaces: frozenset[str] = frozenset({NAMESPACE, "patterns-operator"})
    cluster_wide: frozenset[str] = frozenset({ARGO, LEGACY_ARGO})


def patterns_role(
    settings: PatternSettings,
    reader: CheckoutReader,
    begin: Begin | None,
    *,
    learner: object = None,
    entropy: Entropy | None = None,
    objects: tuple[Obj, ...] = (),
) -> Role:
    """Return the role. ``begin`` starts an instance (None: none is run here); ``learner``: who reads repositories, with
    the credentials in the namespace of the patterns' Argo CD; ``entropy``: of passwords; ``objects``: what must
    exist first."""
    store, instances, draw = CheckoutStore(), RunningInstances(begin), partial(_password, entropy or Entropy())
    argo = ArgoSettings(settings.control_namespace, settings.cluster_wide)

    def handlers(cache: Cache, clock: Clock) -> Mapping[type, Handler]:
        read = FetchHandler(reader.checkout, Found, store, clock)
        return {ReadCheckout: Taught(read, Teacher(learner, cache, ARGO)), **instances.handlers()}

    def follow(_loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        store.wake = lambda ref: wake(PATTERN_CONTROLLER, ref)
        return instances.stop

    return Role(
        name="patterns",
        controllers=(
            pattern_controller(store, settings.namespaces, draw),
            argocd_controller(instances, argo),
        ),
        user=service_account_user(NAMESPACE, MANAGER),
        manager=MANAGER,
        handlers=handlers,
        follow=follow,
        objects=objects,
    )


def _password(entropy: Entropy) -> str:
    return base64.urlsafe_b64encode(entropy.key())[:20].decode()


def foreign_pattern_objects() -> list[Obj]:
    """Return what the role needs on another team's cluster, whose owner grants its rights."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        pattern_crd(),
        argo_cd_crd(),
        *openshift_platform_crds(),
        *crds(),
        application_set_crd(),
    ]


def pattern_objects() -> list[Obj]:
    """As :func:`foreign_pattern_objects`, with OLM's kinds, and the account of the controllers with its rights, for the
    embedded cluster."""
    account = {"kind": "ServiceAccount", "name": MANAGER, "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    return [
        *foreign_pattern_objects(),
        *operator_crds(),
        *hub_cluster_crds(),
        *pattern_admission(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": MANAGER, "namespace": NAMESPACE}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": MANAGER},
            "roleRef": role,
            "subjects": [account],
        },
    ]
