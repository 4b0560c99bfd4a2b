"""Endpoints of the GitOps controllers, as configured: webhooks, metrics, probes and traces.

The live cluster and ``syncline controller`` open them around their loop; without an address nothing listens or is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial

from syncline.assembly.endpoints.listening import Answer, Endpoint, listening
from syncline.assembly.endpoints.pushes import Touched
from syncline.assembly.endpoints.webhooks import PATH, Webhooks
from syncline.assembly.gitops import GitOps, GitOpsSettings
from syncline.assembly.machines.role import machine_config_gauges
from syncline.assembly.sources.reading import GitSourceReader
from syncline.control.loop import ControlLoop
from syncline.control.manager import LiveManager, Port
from syncline.control.vitals import Health
from syncline.kube.objects import ObjectRef
from syncline.telemetry.metrics import GitOpsMetrics, Labels, exposition, gauges
from syncline.telemetry.otlp import exporting
from syncline.telemetry.tracing import Tracer

METRICS_TYPE = "text/plain"
Address = tuple[str, int]


@contextlib.asynccontextmanager
async def gitops_endpoints(
    settings: GitOpsSettings,
    made: GitOps,
    loop: ControlLoop,
    port: Port,
    reader: GitSourceReader,
    mine: Callable[[ObjectRef], bool] = lambda _ref: True,
    *,
    work: Callable[[], Mapping[str, Mapping[str, int]]] = dict,
    health: Callable[[], Health] = Health,
) -> AsyncIterator[dict[Address, int]]:
    """Listen until the context ends; yields the port of each requested address (port 0 takes a free one). Each also
    serves probes. Raises ListenError."""
    serves = partial(made.works_on, loop.cache)

    def ours(ref: ObjectRef) -> bool:
        return mine(ref) and serves(ref)

    touched = Touched(reader, made.applications.last_read, loop.now) if settings.webhook_listen is not None else None
    webhooks = Webhooks(loop.cache, port, settings.application.control_namespace, serves, touched, made.answers.known)
    metrics: GitOpsMetrics | None = None
    endpoints: dict[Address, dict[tuple[str, str], Endpoint]] = {}
    if settings.metrics_listen is not None:
        metrics = GitOpsMetrics(
            loop.cache,
            ours,
            labels=settings.metrics_labels,
            set_labels=settings.metrics_set_labels,
            git_requests=reader.requests,
        )
        loop.observers.append(metrics)
        endpoints.setdefault(settings.metrics_listen, {}).update(_metrics_endpoints(loop, metrics, webhooks, work))
    if settings.webhook_listen is not None:
        endpoints.setdefault(settings.webhook_listen, {})["POST", PATH] = webhooks.handle
    for served in endpoints.values():
        served.update(_probes(health))
    async with contextlib.AsyncExitStack() as stack:
        if settings.traces is not None:
            resource = {"service.name": settings.traces.service}
            exporter = await stack.enter_async_context(exporting(settings.traces, resource))
            loop.observers.append(Tracer(exporter.offer, loop.now, ours))
            if metrics is not None:
                metrics.spans = lambda: (exporter.exported, exporter.dropped)
        ports: dict[Address, int] = {}
        for address, served in sorted(endpoints.items()):
            ports[address] = await stack.enter_async_context(listening(*address, served, settings.allowed_hosts))
        working = asyncio.create_task(webhooks.work(), name="gitops webhooks")
        try:
            yield ports
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


@contextlib.asynccontextmanager
async def role_endpoints(
    settings: GitOpsSettings, manager: LiveManager, health: Callable[[], Health]
) -> AsyncIterator[dict[Address, int]]:
    """As :func:`gitops_endpoints`, with probes and metrics only, for roles without the GitOps controllers."""

    async def tell(_headers: Mapping[str, str], _body: bytes) -> Answer:
        loop = manager.loop
        text = _work_gauge(manager.pools.counts()) + machine_config_gauges(loop.cache, loop.now())
        return Answer(200, text, METRICS_TYPE)

    address = settings.metrics_listen
    if address is None:
        yield {}
        return
    served = {("GET", "/metrics"): tell, **_probes(health)}
    async with listening(*address, served, settings.allowed_hosts) as port:
        yield {address: port}


def _metrics_endpoints(
    loop: ControlLoop,
    metrics: GitOpsMetrics,
    webhooks: Webhooks,
    work: Callable[[], Mapping[str, Mapping[str, int]]],
) -> dict[tuple[str, str], Endpoint]:
    async def tell(_headers: Mapping[str, str], _body: bytes) -> Answer:
        more = {"syncline_webhooks_received": ("Webhooks that were genuine.", float(webhooks.received))}
        text = exposition(metrics, loop.cache, len(loop.queue), more)
        return Answer(200, text + _work_gauge(work()) + machine_config_gauges(loop.cache, loop.now()), METRICS_TYPE)

    return {("GET", "/metrics"): tell}


def _probes(health: Callable[[], Health]) -> dict[tuple[str, str], Endpoint]:
    """Return the probes: ``/livez`` and ``/healthz`` fail if a restart may help, ``/readyz`` also if it would not."""

    def probe(*, ready: bool) -> Endpoint:
        async def tell(_headers: Mapping[str, str], _body: bytes) -> Answer:
            return Answer(*health().answer(ready=ready))

        return tell

    return {("GET", path): probe(ready=path == "/readyz") for path in ("/livez", "/healthz", "/readyz")}


def _work_gauge(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a gauge of work that runs in threads or waits for one."""
    message = "Work by purpose: that works, that is slow (a host does not answer), that waits for a place."
    values: list[tuple[Labels, float]] = [
        ((("purpose", purpose), ("state", state)), float(count))
        for purpose, states in sorted(counts.items())
        for state, count in sorted(states.items())
    ]
    return gauges([("syncline_work", message, values)])
