"""Add-ons of one's own: a function that returns manifests for a cluster, run as a process beside a hub.

``docs/addons.md`` shows one in thirty lines. The hub installs and configures such an add-on as every other; this
process makes its works, and says in its status how they are.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.assembly.embedded.install import install_missing
from syncline.assembly.ports import HttpPort
from syncline.assembly.roles import LiveDriver, Role, start
from syncline.base.action import Handler
from syncline.base.clock import Clock, SystemClock
from syncline.base.journal import Journal
from syncline.cluster.access.users import service_account_user
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.control.manager import drive
from syncline.fleet.addons import BUILT_IN, CLUSTER_WIDE, DEPLOYMENT_CONFIGS
from syncline.fleet.hub.addons.agentcontroller import agent_controller, request_controller
from syncline.fleet.hub.addons.agents import Agent, Health, Permission, client_registration
from syncline.fleet.hub.registration.approving import Approve, ApproveHandler
from syncline.kube.errors import ApiError
from syncline.kube.kinds.managedaddons import CLUSTER_ADDON, DEFAULT_NAMESPACE, GROUP
from syncline.kube.objects import GroupKind, Obj, annotations_of, dig, labels_of, name_of, namespace_of
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig

log = logging.getLogger("syncline.addon")

MOST_MANIFESTS: Final = 1000
MOST_TEXT: Final = 1000
"""Characters of an error in a status."""
_CONFIG_KIND: Final = next(kind for kind, config in BUILT_IN.items() if config == DEPLOYMENT_CONFIGS)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A managed cluster, as the function of an add-on sees it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    """What the cluster says of itself: ``platform.open-cluster-management.io``, ``id.k8s.io`` and so on."""
    version: str = ""
    """Its Kubernetes version."""
    namespace: str = DEFAULT_NAMESPACE
    """Where the add-on is to run there."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """``customizedVariables`` of its AddOnDeploymentConfig."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The ``spec`` of that object, whole."""


@dataclass(frozen=True, slots=True)
class AddOn:
    """An add-on. ``manifests`` returns the objects that a cluster gets; it is called again whenever something of the
    cluster or its configuration changes, so it should be quick, and depend on nothing else."""

    name: str
    manifests: Callable[[Cluster], Iterable[Obj]]
    description: str = ""
    placement: str = ""
    """``NAMESPACE/NAME`` of a Placement: the clusters that it chooses get the add-on. Empty: those get it where a
    person creates a ManagedClusterAddOn."""
    hub_role: str = ""
    """A ClusterRole that the add-on's agent has in the namespace of its cluster on the hub. Its kubeconfig is then in
    the Secret ``NAME-hub-kubeconfig`` on the cluster. Empty: it has no access to the hub."""
    health: Health = Health.WORKLOADS
    """Who says whether it runs: what works report of its Deployments and DaemonSets, or the lease of its agent."""


def cluster_addon(addon: AddOn) -> Obj:
    """Return the ClusterManagementAddOn, which is created where it is missing."""
    strategy: Obj = {"type": "Manual"}
    if addon.placement:
        namespace, _, name = addon.placement.partition("/")
        strategy = {"type": "Placements", "placements": [{"namespace": namespace, "name": name}]}
    return {
        "apiVersion": CLUSTER_ADDON.api_version,
        "kind": CLUSTER_ADDON.kind,
        "metadata": {"name": addon.name},
        "spec": {
            "addOnMeta": {"displayName": addon.name, "description": addon.description},
            "supportedConfigs": [{"group": GROUP, "resource": "addondeploymentconfigs"}],
            "installStrategy": strategy,
        },
    }


def addon_role(addon: AddOn) -> Role:
    """Return the add-on's controllers as a role."""

    def make(cluster: Obj, managed: Obj, configs: Mapping[GroupKind, Obj | None]) -> Agent:
        return _agent(addon, cluster, managed, configs)

    def mine(managed: Obj, _parent: Obj | None) -> bool:
        return name_of(managed) == addon.name

    controllers: list[Controller[Any]] = [agent_controller(f"addon/{addon.name}", make, mine, seen=_seen)]
    if addon.hub_role:
        controllers.append(request_controller(f"addon/{addon.name}/requests", make, mine))

    def handlers(cache: Cache, _clock: Clock) -> Mapping[type, Handler]:
        return {Approve: ApproveHandler(cache.mapper)}

    name = f"addon-{addon.name}"
    return Role(
        name=name,
        controllers=tuple(controllers),
        user=service_account_user("open-cluster-management-hub", name),
        manager=name,
        handlers=handlers,
        objects=(cluster_addon(addon),),
    )


def _seen(cluster: Obj) -> object:
    """What of a ManagedCluster the function may read."""
    return _view(cluster, "", {})


def _view(cluster: Obj, namespace: str, config: Mapping[str, Any]) -> Cluster:
    claims = dig(cluster, "status", "clusterClaims") or ()
    variables = config.get("customizedVariables") or ()
    return Cluster(
        name_of(cluster),
        labels_of(cluster),
        annotations_of(cluster),
        {str(one.get("name")): str(one.get("value")) for one in claims},
        str(dig(cluster, "status", "version", "kubernetes") or ""),
        namespace,
        {str(one.get("name")): str(one.get("value") or "") for one in variables},
        config,
    )


def _agent(addon: AddOn, cluster: Obj, managed: Obj, configs: Mapping[GroupKind, Obj | None]) -> Agent:
    supported = (_CONFIG_KIND,)
    found = configs.get(DEPLOYMENT_CONFIGS)
    if found is None and DEPLOYMENT_CONFIGS in configs:
        return Agent(supported=supported, waits="the AddOnDeploymentConfig of the add-on does not exist")
    config = (found or {}).get("spec") or {}
    namespace = str(
        config.get("agentInstallNamespace") or dig(managed, "spec", "installNamespace") or DEFAULT_NAMESPACE
    )
    registrations = (client_registration(managed, addon.name),) if addon.hub_role else None
    rights = (Permission(namespace_of(managed), "ClusterRole", addon.hub_role, owned=True),) if addon.hub_role else ()
    try:
        manifests = checked(addon.manifests(_view(cluster, namespace, config)))
        problem = ""
    except Exception as error:  # a function of a user: whatever it raises goes into the status
        log.exception("the manifests of add-on %s for cluster %s", addon.name, name_of(cluster))
        manifests, problem = (), f"{type(error).__name__}: {error}"[:MOST_TEXT]
    return Agent(
        manifests=manifests,
        registrations=registrations,
        permissions=rights,
        namespace=namespace,
        supported=supported,
        health=addon.health,
        problem=problem,
    )


def checked(manifests: Iterable[Obj]) -> tuple[Obj, ...]:
    """Return the manifests as plain JSON. Raises ValueError for one that is no object with a name, and for too many."""
    found = []
    for number, one in enumerate(manifests):
        if number >= MOST_MANIFESTS:
            raise ValueError(f"there are more than {MOST_MANIFESTS} manifests; make several add-ons")
        whole = isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("apiVersion", "kind"))
        if not whole or not isinstance(one.get("metadata"), dict) or not name_of(one):
            raise ValueError(f"manifest {number} needs apiVersion, kind and metadata.name")
        try:
            found.append(json.loads(json.dumps(one)))
        except TypeError as error:
            raise ValueError(f"manifest {number} ({one['kind']} {name_of(one)}) is not JSON: {error}") from None
    return tuple(found)


async def serve(addon: AddOn, access: ClusterAccess, stop: asyncio.Event) -> None:
    """Run an add-on against a hub until ``stop``. Raises ApiError, and LookupError where there is no hub."""
    port, role = HttpPort(access), addon_role(addon)
    try:
        left = await drive(install_missing(role.objects), port)
        if left:
            raise LookupError(f"{access.server} serves no {CLUSTER_WIDE}; is it a hub?")
        driver = LiveDriver(SystemClock(), Journal(limit=10_000), port, where=f"hub {access.server}")
        end = start(role, driver)
        running = asyncio.create_task(driver.run(), name=role.name)
        stopping = asyncio.create_task(stop.wait(), name="stop")
        try:
            done, _ = await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (running, stopping):
                task.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)
            end()
    finally:
        await port.close()


def main(addon: AddOn, arguments: Sequence[str] | None = None) -> None:
    """Run an add-on as a program: ``--kubeconfig`` and ``--context`` name the hub; SIGINT and SIGTERM end it."""
    parser = argparse.ArgumentParser(description=addon.description or f"the add-on {addon.name}")
    parser.add_argument("--kubeconfig", help="of the hub; default: KUBECONFIG, ~/.kube/config, or the pod's account")
    parser.add_argument("--context", help="of the kubeconfig; default: its current one")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

    async def run() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # no signal handlers here: Ctrl-C raises instead
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(addon, load_kubeconfig(chosen.kubeconfig, chosen.context), stop)

    try:
        asyncio.run(run())
    except (ApiError, KubeconfigError, LookupError, OSError) as error:
        sys.exit(f"{addon.name}: {error}")
