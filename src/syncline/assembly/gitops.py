"""The role of the GitOps controllers: their settings, their loop, and the objects that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncline.apply.asking import AnswerCache, Ask, AskHandler
from syncline.apply.handler import SYNC_ACTIONS, SyncHandler
from syncline.apply.predicting import Predict, PredictHandler
from syncline.appset.asking import AnswerStore, AskRows, RowReader, RowsHandler
from syncline.appset.controller import CONTROLLER as SETS
from syncline.appset.controller import ApplicationSets
from syncline.appset.observing.kinds import ListHandler, ListKind, ListStore
from syncline.appset.observing.observe import Surroundings
from syncline.appset.questions import Question
from syncline.appset.tokens import read_references, references_of
from syncline.assembly.destinations import FIELD_MANAGER, ConnectHandler, RemoteClusters
from syncline.assembly.rights import Rights, gitops_user, rights_objects
from syncline.assembly.roles import Role, Wake
from syncline.assembly.scripts.expressions import Expressions
from syncline.assembly.sources.credentials import Taught, Teacher
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.secret import Secret
from syncline.control.cache import Cache, Snapshot
from syncline.control.controller import Controller
from syncline.control.executor import kube_handlers
from syncline.control.loop import ControlLoop
from syncline.control.pools import PoolSettings
from syncline.gitops.application.content import ContentHandler
from syncline.gitops.application.controller import Applications
from syncline.gitops.application.manifests import Join, ManifestStore, Render, RenderHandler, SourceReader
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.destinations import Connect, destination_controller
from syncline.gitops.holds.controllers import HOLD_CONTROLLER, bridge_controller
from syncline.gitops.hydration.controller import Hydrations
from syncline.gitops.hydration.work import Forget, Hydrate, HydrationCache, HydrationHandler, ResolveDry
from syncline.kube.kinds.applicationset import application_set_crd
from syncline.kube.kinds.argoproj import APPLICATION, crds
from syncline.kube.kinds.content import transferred_crds
from syncline.kube.kinds.syncline import hold_crd
from syncline.kube.objects import Obj, ObjectRef
from syncline.sources.git.process import RemoteLimits
from syncline.sources.providers.model import SecretReference
from syncline.sources.providers.reach import Reach
from syncline.telemetry.otlp import TraceSettings


@dataclass(frozen=True, slots=True)
class ApplicationSetSettings:
    """How the process works on ApplicationSets; what the cluster says is in ``argocd-cmd-params-cm``."""

    enabled: bool = True
    """False: they are left to another controller."""
    ca_pem: str = ""
    """Certificates that Git hosts of generators may be signed by, beside the system's."""
    proxy: Secret | None = None
    """For requests to Git hosts of generators; None: the proxy of the process."""
    no_proxy: str = ""
    """Hosts without the proxy, by comma."""

    @property
    def reach(self) -> Reach:
        return Reach(ca_pem=self.ca_pem, proxy=self.proxy, no_proxy=self.no_proxy)


@dataclass(frozen=True, slots=True)
class GitOpsSettings:
    """The GitOps controllers of ``syncline up``."""

    cache_directory: Path
    """Directory of the repository mirrors; used by one process at a time."""
    allow_local_repos: bool = False
    """Allow repositories by path or ``file://``, which read this machine's disk."""
    plugins: Path | None = None
    """A folder of ConfigManagementPlugin files; None: no plugins."""
    application: AppSettings = field(default_factory=AppSettings)
    webhook_listen: tuple[str, int] | None = None
    """Host and port for webhooks of Git hosts, in plain HTTP; None: off."""
    metrics_listen: tuple[str, int] | None = None
    """Host and port of /metrics and /healthz; None: off."""
    allowed_hosts: tuple[str, ...] = ()
    """Further host names of webhooks and metrics; see :class:`BrowserGuard`."""
    metrics_labels: tuple[str, ...] = ()
    """Labels of Applications that metrics include."""
    metrics_set_labels: tuple[str, ...] = ()
    """The same of ApplicationSets."""
    application_sets: ApplicationSetSettings = field(default_factory=ApplicationSetSettings)
    remotes: RemoteLimits = field(default_factory=RemoteLimits)
    """Time limits of Git remotes."""
    pools: PoolSettings = field(default_factory=PoolSettings)
    """Limits of concurrent reads of sources."""
    traces: TraceSettings | None = None
    """Where the spans of operations are sent; None: off."""
    rights: Rights = Rights.CLUSTER
    """Whose rights they have on the cluster of the Applications."""


@dataclass(frozen=True, slots=True)
class GitOps:
    """The GitOps controllers as a role, and what webhooks and metrics need of them."""

    role: Role
    applications: Applications
    sets: ApplicationSets | None
    """None: ApplicationSets are left to another controller."""
    answers: AnswerStore
    """Answers to what generators ask."""

    def works_on(self, cache: Snapshot, ref: ObjectRef) -> bool:
        """Return whether the settings enable the namespace of an Application or a set."""
        if ref.kind == APPLICATION.kind:
            return self.applications.works_on(cache, ref)
        return self.sets is not None and self.sets.works_on(cache, ref)


def gitops(
    reader: SourceReader,
    settings: AppSettings,
    remotes: RemoteClusters,
    *,
    admits: Callable[[ObjectRef], bool] = lambda _ref: True,
    application_sets: bool = True,
    rights: Rights = Rights.CLUSTER,
    seed: str,
) -> GitOps:
    """Build the controllers for one loop. ``admits``: whether this replica works on an Application or a set; ``seed``:
    a secret from which templates of sets draw."""
    rows, lists, around = AnswerStore(), ListStore(), Surroundings(settings.control_namespace)
    store, hydrated, answers = ManifestStore(), HydrationCache(), AnswerCache()
    book = remotes.predictions
    applications = Applications(store, settings, remotes, book, answers)

    def handlers(cache: Cache, clock: Clock) -> Mapping[type, Handler]:
        mapper, teacher = cache.mapper, Teacher(reader, cache, settings.control_namespace)
        mine: dict[type, Handler] = dict.fromkeys(SYNC_ACTIONS, SyncHandler(mapper))
        read = Taught(RenderHandler(reader, store, clock, settings.read_patience_s), teacher)
        mine[Render] = mine[Join] = ContentHandler(read, cache, store, clock, settings.read_patience_s)
        hydrations = HydrationHandler(reader, hydrated, clock, patience_s=settings.read_patience_s)
        mine |= dict.fromkeys((ResolveDry, Hydrate, Forget), Taught(hydrations, teacher))
        mine[Predict] = PredictHandler(mapper, book, clock)
        mine |= kube_handlers(mapper, clock, FIELD_MANAGER)
        mine[Ask] = AskHandler(Expressions(), answers, clock, settings.script_costs_s)
        mine[Connect] = ConnectHandler(remotes, cache)
        mine[ListKind] = ListHandler(cache, lists, clock)
        if isinstance(reader, RowReader):

            def secrets(question: Question) -> Mapping[SecretReference, Secret]:
                asked = references_of(question, settings.control_namespace)
                return read_references(cache, asked, strict=around.settings(cache).strict_tokens)

            mine[AskRows] = Taught(RowsHandler(reader, rows, secrets, clock, settings.read_patience_s), teacher)
        return mine

    def follow(_loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        rows.wake = lambda ref: wake(SETS, ref)
        return remotes.close

    sets = None
    if application_sets and isinstance(reader, RowReader):
        sets = ApplicationSets(
            rows,
            settings.control_namespace,
            expressions=answers,
            lists=lists,
            around=around,
            seed=seed,
        )

    controllers: tuple[Controller[Any], ...] = (
        applications.controller(admits),
        Hydrations(hydrated, settings, admits, remotes).controller(),
        HOLD_CONTROLLER,
        bridge_controller(settings.control_namespace),
        destination_controller(settings.control_namespace, remotes.connected),
        *([sets.controller(admits)] if sets is not None else ()),
    )
    made = Role(
        name="gitops",
        controllers=controllers,
        user=gitops_user(settings.control_namespace, rights),
        manager=FIELD_MANAGER,
        handlers=handlers,
        follow=follow,
        elsewhere=remotes.handlers,
        objects=tuple(gitops_objects(settings.control_namespace, rights)),
    )
    return GitOps(made, applications, sets, rows)


def foreign_objects(control_namespace: str) -> list[Obj]:
    """Return the objects that the GitOps controllers need on another team's cluster; its owner grants their rights."""
    namespace: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": control_namespace}}
    kinds = (*crds(), application_set_crd(), hold_crd(), *transferred_crds())
    return [namespace, *kinds, _default_project(control_namespace)]


def gitops_objects(control_namespace: str, rights: Rights = Rights.CLUSTER) -> list[Obj]:
    """Return the objects that the GitOps controllers need: namespace, CRDs, RBAC, the project ``default``."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": control_namespace}},
        *crds(),
        application_set_crd(),
        hold_crd(),
        *transferred_crds(),
        *rights_objects(control_namespace, rights),
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
