"""Runs the GitOps controllers on a live port: opens and closes sources, other clusters, endpoints and loop together.

The embedded cluster and ``syncline controller`` both use it, with different drivers.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from syncline.assembly.destinations import ClosablePort, LiveWay, RemoteClusters, RoutedPort
from syncline.assembly.endpoints.gitops import gitops_endpoints
from syncline.assembly.gitops import GitOpsSettings, gitops
from syncline.assembly.rights import gitops_user
from syncline.assembly.roles import LiveDriver, start
from syncline.assembly.sources.hydrating import HydratingReader
from syncline.assembly.sources.reading import renderers_with
from syncline.base.entropy import Entropy
from syncline.cluster.access.users import UserInfo
from syncline.control.manager import Port
from syncline.control.vitals import Health
from syncline.kube.objects import ObjectRef
from syncline.kube.transport.kubeconfig import ClusterAccess

LOOKS_APART_S = 0.25
"""Seconds between two queries to one Git host; the first of a burst does not wait."""

Ports = dict[tuple[str, int], int]
"""Ports of the endpoints by requested address."""


def source_reader(settings: GitOpsSettings) -> HydratingReader:
    """Return the reader of repositories for one process; nothing is opened yet."""
    return HydratingReader(
        settings.cache_directory,
        allow_local=settings.allow_local_repos,
        renderers=renderers_with(settings.plugins),
        entropy=Entropy(),
        limits=settings.remotes,
        looks_apart_s=LOOKS_APART_S,
        reach=settings.application_sets.reach,
    )


@contextlib.asynccontextmanager
async def running_gitops(
    settings: GitOpsSettings,
    driver_of: Callable[[UserInfo], LiveDriver],
    port_of: Callable[[ClusterAccess], ClosablePort],
    *,
    inner: Port | None = None,
    admits: Callable[[ObjectRef], bool] = lambda _ref: True,
    health: Callable[[], Health] | None = None,
    reader: HydratingReader | None = None,
    user: UserInfo | None = None,
) -> AsyncIterator[tuple[LiveDriver, Ports]]:
    """Yield the driver, whose ``run`` is left to the caller, and the ports of the endpoints. ``port_of``: opens a port
    to another cluster; ``inner``: the port of webhooks (None: the controllers'); ``reader``: one that other roles
    use too; ``user``: who acts, for whom nothing is installed (None: the account of the controllers). Raises
    ListenError."""
    reader = reader or source_reader(settings)
    namespace = settings.application.control_namespace
    driver = driver_of(user or gitops_user(namespace, settings.rights))
    way = LiveWay(driver, port_of)
    remotes = RemoteClusters(way, namespace)
    sets, seed = settings.application_sets.enabled, Entropy().token()
    made = gitops(
        reader,
        settings.application,
        remotes,
        admits=admits,
        application_sets=sets,
        rights=settings.rights,
        seed=seed,
    )
    role = replace(made.role, work=settings.pools)
    if user is not None:
        role = replace(role, user=user, objects=())
    driver.port = RoutedPort(driver.port, way)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(way.close)
        closing.callback(start(role, driver))
        manager = driver.manager
        ports = await closing.enter_async_context(
            gitops_endpoints(
                settings,
                made,
                manager.loop,
                inner or driver.port,
                reader,
                admits,
                health=health or manager.health,
                work=manager.pools.counts,
            )
        )
        yield driver, ports
