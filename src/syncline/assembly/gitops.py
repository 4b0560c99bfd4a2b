"""The role of the GitOps controllers: their settings, their loop, and what they need on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncline.apply.addressed import Addressed, AddressedHandler
from syncline.apply.handler import SYNC_ACTIONS, SyncHandler
from syncline.apply.predicting import Predict, PredictHandler, PredictionBook
from syncline.assembly.destinations import RemoteClusters
from syncline.assembly.scripts.expressions import Expressions
from syncline.assembly.sources.credentials import Taught, Teacher
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo, service_account_user
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.control.executor import kube_handlers
from syncline.control.loop import ControlLoop
from syncline.control.pools import PoolSettings
from syncline.gitops.application.asking import AnswerBook, Ask, AskHandler
from syncline.gitops.application.controller import CONTROLLER, Applications
from syncline.gitops.application.manifests import Join, ManifestStore, Render, RenderHandler, SourceReader
from syncline.gitops.application.observe import INSTANCE_INDEX, AppSettings
from syncline.gitops.destinations import Connect, destination_controller
from syncline.gitops.holds.controllers import HOLD_CONTROLLER, bridge_controller
from syncline.gitops.hydration.controller import Hydrations
from syncline.gitops.hydration.work import Forget, Hydrate, HydrationBook, HydrationHandler, LookDry
from syncline.kube.kinds.argoproj import crds
from syncline.kube.kinds.syncline import hold_crd
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef
from syncline.sources.git.process import RemoteLimits
from syncline.telemetry.otlp import TraceSettings

__all__ = [
    "LOOKS_APART_S",
    "GitOps",
    "GitOpsSettings",
    "foreign_objects",
    "gitops_loop",
    "gitops_objects",
    "gitops_user",
]

GITOPS_ACCOUNT = "syncline-application-controller"
LOOKS_APART_S = 0.25
"""Between two questions to one Git host what it has; the first of a burst does not wait."""


@dataclass(frozen=True, slots=True)
class GitOpsSettings:
    """The GitOps controllers of ``syncline up``."""

    cache_directory: Path
    """Where mirrors of repositories live; one process at a time."""
    allow_local_repos: bool = False
    """Repositories by path or ``file://``: they read this machine's disk."""
    plugins: Path | None = None
    """A folder of ConfigManagementPlugin files; None: there are no plugins."""
    application: AppSettings = field(default_factory=AppSettings)
    webhook_listen: tuple[str, int] | None = None
    """Host and port on which Git hosts may tell of pushes, in plain HTTP; None: nowhere."""
    metrics_listen: tuple[str, int] | None = None
    """Host and port of /metrics and /healthz; None: nowhere."""
    allowed_hosts: tuple[str, ...] = ()
    """Names by which webhooks and metrics may be asked beside the address; see :class:`BrowserGuard`."""
    metrics_labels: tuple[str, ...] = ()
    """Labels of Applications that metrics show."""
    remotes: RemoteLimits = field(default_factory=RemoteLimits)
    """How long a Git remote may take."""
    pools: PoolSettings = field(default_factory=PoolSettings)
    """How many reads of sources run at once, and whose."""
    traces: TraceSettings | None = None
    """Where the spans of operations are sent; None: nowhere."""


def gitops_user(control_namespace: str) -> UserInfo:
    """Who the GitOps controllers are on the embedded cluster."""
    return service_account_user(control_namespace, GITOPS_ACCOUNT)


@dataclass(frozen=True, slots=True)
class GitOps:
    """The GitOps controllers in a loop, and what webhooks and metrics ask of them."""

    loop: ControlLoop
    applications: Applications


def gitops_loop(
    clock: Clock,
    journal: Journal,
    reader: SourceReader,
    settings: AppSettings,
    *,
    admits: Callable[[ObjectRef], bool] = lambda _ref: True,
    leaves_out: Callable[[GroupKind], bool] = lambda _kind: False,
    strict: bool = False,
    remotes: RemoteClusters | None = None,
) -> GitOps:
    """The loop of the GitOps controllers; ``admits`` says which Applications this replica works on."""
    mapper = Mapper()
    store = ManifestStore()
    syncs = SyncHandler(mapper)
    book = PredictionBook()
    mine: dict[type, Handler] = dict.fromkeys(SYNC_ACTIONS, syncs)
    cache = Cache(mapper)
    teacher, hydrated = Teacher(reader, cache, settings.control_namespace), HydrationBook()
    renders = RenderHandler(reader, store, clock, settings.read_patience_s)
    mine[Render] = mine[Join] = Taught(renders, teacher)
    hydrations = HydrationHandler(reader, hydrated, clock, patience_s=settings.read_patience_s)
    mine |= dict.fromkeys((LookDry, Hydrate, Forget), Taught(hydrations, teacher))
    mine[Predict] = PredictHandler(mapper, book, clock)
    mine |= kube_handlers(mapper, clock, "argocd-controller")
    mine[Addressed] = AddressedHandler(lambda cluster: remotes.handlers(cluster) if cluster and remotes else mine)
    answers = AnswerBook()
    mine[Ask] = AskHandler(Expressions(), answers, clock, settings.script_costs_s)
    applications = Applications(store, settings, remotes, book, answers)
    controllers: list[Controller[Any]] = [
        applications.controller(admits),
        Hydrations(hydrated, settings, admits, remotes).controller(),
        HOLD_CONTROLLER,
        bridge_controller(settings.control_namespace),
    ]
    if remotes is not None:
        mine[Connect] = remotes
        controllers.append(destination_controller(settings.control_namespace, remotes.connected))
    loop = ControlLoop(
        controllers,
        mapper=mapper,
        handlers=mine,
        clock=clock,
        journal=journal,
        cache=cache,
        strict=strict,
        leaves_out=leaves_out,
    )
    if remotes is not None:
        remotes.predictions = book
        remotes.home, remotes.control_namespace = cache, settings.control_namespace
        remotes.index = {INSTANCE_INDEX: applications.instances}
        remotes.applications_of = applications.applications_of
        remotes.wake = lambda ref: loop.wake(CONTROLLER, ref)
    return GitOps(loop, applications)


def foreign_objects(control_namespace: str) -> list[Obj]:
    """What the GitOps controllers need on a cluster of somebody else; their rights are given by its owner."""
    namespace: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": control_namespace}}
    return [namespace, *crds(), hold_crd(), _default_project(control_namespace)]


def gitops_objects(control_namespace: str) -> list[Obj]:
    """What the GitOps controllers need on a cluster: namespace, definitions, rights, the project ``default``."""
    account = {"kind": "ServiceAccount", "name": GITOPS_ACCOUNT, "namespace": control_namespace}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": control_namespace}},
        *crds(),
        hold_crd(),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": GITOPS_ACCOUNT, "namespace": control_namespace},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": GITOPS_ACCOUNT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [account],
        },
        _default_project(control_namespace),
    ]


def _default_project(control_namespace: str) -> Obj:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": control_namespace},
        "spec": {
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            "destinations": [{"namespace": "*", "server": "*"}],
            "sourceRepos": ["*"],
        },
    }
