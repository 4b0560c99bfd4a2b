"""The role of the pull model on a hub: Applications travel to clusters as works, and their status returns.

It needs the role of the hub beside it (``hub.py``), in the same process or in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from syncline.assembly.fleet.rendering import ContentRenderer, HubRenderings
from syncline.assembly.roles import Role, Wake
from syncline.assembly.sources.credentials import Taught, Teacher
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.informer import Scope
from syncline.control.loop import ControlLoop
from syncline.fleet.hub.confinement import question_policy
from syncline.fleet.pull.content.observe import Surroundings
from syncline.fleet.pull.content.rendering import RenderContent
from syncline.fleet.pull.controller import pull_controllers
from syncline.fleet.pull.controllers.parts import ORDER, PullSettings
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.order.revisions import (
    POLL_S,
    ResolveRevision,
    RevisionHandler,
    RevisionReader,
    RevisionStore,
)
from syncline.gitops.application.manifests import SourceReader
from syncline.kube.kinds.applicationfleet import gitops_cluster_crd
from syncline.kube.kinds.applicationfleet import report_crd as set_report_crd
from syncline.kube.kinds.applicationqueries import query_crd
from syncline.kube.kinds.applicationset import application_set_crd
from syncline.kube.kinds.argoproj import crds
from syncline.kube.kinds.content import CHUNK, content_crds
from syncline.kube.kinds.fleetrollouts import fleet_rollout_crd
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.kinds.manifestworks import manifest_work_crd
from syncline.kube.kinds.syncline import report_crd
from syncline.kube.objects import Obj

PULL_MANAGER: Final = "syncline-pull-controller"
"""Field manager and service account."""


def pull_settings(argo_namespace: str, variant: str, manifest_limit: int, poll_s: float = POLL_S) -> PullSettings:
    """Return the settings of the role. ``variant``: ``basic``, ``acm``, or empty. Raises ValueError for another one."""
    return PullSettings(Variant(variant) if variant else None, argo_namespace, manifest_limit, poll_s)


def foreign_pull_objects(settings: PullSettings) -> list[Obj]:
    """Return what the role needs on another team's cluster, whose owner grants its rights."""
    namespace: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.argo_namespace}}
    kinds = (*crds(), application_set_crd(), *hub_cluster_crds(), manifest_work_crd())
    own = (report_crd(), query_crd(), *content_crds(), fleet_rollout_crd(), *question_policy())
    return [namespace, *kinds, gitops_cluster_crd(), set_report_crd(), *own]


def pull_objects(settings: PullSettings) -> list[Obj]:
    """As :func:`foreign_pull_objects`, with the account of the controllers and its rights, for the embedded cluster."""
    account = {"kind": "ServiceAccount", "name": PULL_MANAGER, "namespace": settings.argo_namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    return [
        *foreign_pull_objects(settings),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": PULL_MANAGER, "namespace": settings.argo_namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": PULL_MANAGER},
            "roleRef": role,
            "subjects": [account],
        },
    ]


def pull_role(
    settings: PullSettings,
    *,
    reader: RevisionReader | None = None,
    renderer: SourceReader | None = None,
    objects: tuple[Obj, ...] = (),
    entropy: Entropy | None = None,
) -> Role:
    """Return the role. ``reader`` resolves the branches that ordered Applications track; None: they travel as they are.
    ``renderer`` renders for clusters that reach no repository; None: nothing is rendered here. ``objects``: what must
    exist first; ``entropy``: of the keys that seal, None: the operating system's."""
    draws, renderings = entropy or Entropy(), HubRenderings()
    around = Surroundings(settings, renderings, draws.key) if renderer is not None else None
    store = RevisionStore() if reader is not None else None
    settings = replace(settings, revisions=store)

    def handlers(cache: Cache, clock: Clock) -> Mapping[type, Handler]:
        made: dict[type, Handler] = {}
        if reader is not None and store is not None:
            teacher = Teacher(reader, cache, settings.argo_namespace)
            made[ResolveRevision] = Taught(RevisionHandler(reader, store, clock), teacher)
        if renderer is not None:
            teacher = Teacher(renderer, cache, settings.argo_namespace)
            made[RenderContent] = Taught(ContentRenderer(renderer, renderings, clock), teacher)
        return made

    def follow(_loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        if store is not None:
            store.wake = lambda ref: wake(ORDER, ref)
        return lambda: None

    return Role(
        name="pull",
        controllers=pull_controllers(settings, around),
        user=service_account_user(settings.argo_namespace, PULL_MANAGER),
        manager=PULL_MANAGER,
        handlers=handlers,
        follow=follow,
        scopes={CHUNK.group_kind: Scope(metadata=True)},
        objects=objects,
    )
