"""The role of operators: CatalogSources, Subscriptions, InstallPlans, ClusterServiceVersions and OperatorGroups.

``syncline up --operators`` runs it on the embedded cluster. A real cluster has its own OLM, which does this work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from syncline.assembly.operators.folders import FolderCatalogs
from syncline.assembly.operators.objects import operators_objects
from syncline.assembly.roles import Role
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.hosted import Hosted
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.control.informer import Scope
from syncline.kube.objects import Obj
from syncline.patterns.operators.behaving import Behaviours
from syncline.patterns.operators.catalogs.manifests import package_manifest_crd
from syncline.patterns.operators.controllers.adoption import adoption_controller, operator_controller
from syncline.patterns.operators.controllers.behaviours import behaviour_controller
from syncline.patterns.operators.controllers.certifying import Certify, CertifyHandler
from syncline.patterns.operators.controllers.groups import group_controller
from syncline.patterns.operators.controllers.idle import EXTENSIONS, idle_controllers
from syncline.patterns.operators.controllers.labels import label_controller
from syncline.patterns.operators.controllers.looking import MANAGER, SECRETS, Offers
from syncline.patterns.operators.controllers.namespaces import namespace_controller
from syncline.patterns.operators.controllers.plans import plan_controller
from syncline.patterns.operators.controllers.roles import role_controllers
from syncline.patterns.operators.controllers.sources import package_manifests, source_controller
from syncline.patterns.operators.controllers.versions import version_controller
from syncline.patterns.operators.controllers.yielding import yielding

OLM: Final = UserInfo(MANAGER, ("system:masters", "system:authenticated"))
"""The user on an embedded cluster: an operator may bring any object, as upstream's OLM."""
_SOURCES: Final = "operators.coreos.com/catalogsources"


def operators_role(
    offers: Offers, behaviours: Behaviours, objects: Sequence[Obj] = (), entropy: Entropy | None = None
) -> Role:
    """Return the role. ``offers``: the catalogues of CatalogSources; ``behaviours``: what installed operators do;
    ``objects``: what must exist first; ``entropy``: of keys, None: the operating system's."""
    drawn = entropy or Entropy()

    def handlers(_cache: Cache, clock: Clock) -> Mapping[type, Handler]:
        return {Certify: CertifyHandler(clock.now, drawn)}

    controllers: tuple[Controller[Any], ...] = (
        source_controller(offers),
        namespace_controller(offers),
        plan_controller(),
        version_controller(),
        group_controller(),
        behaviour_controller(behaviours),
        adoption_controller(),
        operator_controller(),
        *idle_controllers(EXTENSIONS),
        *role_controllers(),
        label_controller(),
    )
    return Role(
        name="operators",
        controllers=tuple(map(yielding, controllers)),
        user=OLM,
        manager=MANAGER,
        handlers=handlers,
        scopes={SECRETS: Scope(metadata=True)},
        objects=tuple(objects),
        hosted=(Hosted(package_manifest_crd(), _SOURCES, partial(package_manifests, offers)),),
    )


def folder_role(catalogs: FolderCatalogs, behaviours: Behaviours, entropy: Entropy | None = None) -> Role:
    """Return the role with the catalogues of an administrator."""
    return operators_role(catalogs, behaviours, operators_objects(catalogs.catalogs), entropy)
