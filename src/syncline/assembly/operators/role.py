"""The role of operators: CatalogSources, Subscriptions, InstallPlans, ClusterServiceVersions and OperatorGroups.

``syncline up --operators`` runs it on the embedded cluster. A real cluster has its own OLM, which does this work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from syncline.assembly.operators.folders import FolderCatalogs
from syncline.assembly.roles import Role
from syncline.cluster.access.users import UserInfo
from syncline.kube.kinds.clusterextensions import extension_crds
from syncline.kube.kinds.operatorlifecycle import operator_crds
from syncline.kube.objects import Obj
from syncline.patterns.operators.behaving import Behaviours
from syncline.patterns.operators.catalogs.manifests import package_manifest_crd
from syncline.patterns.operators.controllers.adoption import adoption_controller, operator_controller
from syncline.patterns.operators.controllers.behaviours import behaviour_controller
from syncline.patterns.operators.controllers.extensions import extension_controllers
from syncline.patterns.operators.controllers.groups import group_controller
from syncline.patterns.operators.controllers.looking import GLOBAL_NAMESPACE, MANAGER, Offers
from syncline.patterns.operators.controllers.namespaces import namespace_controller
from syncline.patterns.operators.controllers.plans import plan_controller
from syncline.patterns.operators.controllers.sources import source_controller
from syncline.patterns.operators.controllers.versions import version_controller

OLM: Final = UserInfo(MANAGER, ("system:masters", "system:authenticated"))
"""The user on an embedded cluster: an operator may bring any object, as upstream's OLM."""
OPERATORS_NAMESPACE: Final = "openshift-operators"
"""Where operators for all namespaces go, as on OpenShift."""


def operators_role(offers: Offers, behaviours: Behaviours, objects: Sequence[Obj] = ()) -> Role:
    """Return the role. ``offers``: the catalogues of CatalogSources; ``behaviours``: what installed operators do;
    ``objects``: what must exist first."""
    return Role(
        name="operators",
        controllers=(
            source_controller(offers),
            namespace_controller(offers),
            plan_controller(),
            version_controller(),
            group_controller(),
            behaviour_controller(behaviours),
            adoption_controller(),
            operator_controller(),
            *extension_controllers(),
        ),
        user=OLM,
        manager=MANAGER,
        objects=tuple(objects),
    )


def operators_objects(catalogs: Iterable[str] = ()) -> list[Obj]:
    """Return what the role needs on the embedded cluster, and a CatalogSource for each name of :class:`FolderCatalogs`
    that names one of the global namespace."""
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (GLOBAL_NAMESPACE, OPERATORS_NAMESPACE)
    ]
    group = {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "global-operators", "namespace": OPERATORS_NAMESPACE},
        "spec": {},
    }
    sources = [_source(name) for name in catalogs if "/" not in name]
    return [*namespaces, *operator_crds(), *extension_crds(), package_manifest_crd(), group, *sources]


def _source(name: str) -> Obj:
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": GLOBAL_NAMESPACE},
        "spec": {"sourceType": "grpc", "image": f"{name}:local", "displayName": name, "publisher": "administrator"},
    }


def folder_role(catalogs: FolderCatalogs, behaviours: Behaviours) -> Role:
    """Return the role with the catalogues of an administrator."""
    return operators_role(catalogs, behaviours, operators_objects(catalogs.catalogs))
