"""Puts the server together: :func:`serving` watches Kubernetes and answers argocd's API until its block ends.

The command line and ``syncline up`` call it with a port to Kubernetes' API, in process or over HTTPS.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from syncline.argo.access.initial import certificate_hosts
from syncline.argo.clusters import secret_text
from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.base.scratch import named_in_memory
from syncline.base.secret import Secret
from syncline.cluster.access.pki import CertificateAuthority, KeyPair, new_authority
from syncline.control.manager import LiveWatches
from syncline.control.manager import Port as Kubernetes
from syncline.kube.objects import dig
from syncline.web.access import Access, OpenAccess
from syncline.web.accounts import AccountAccess
from syncline.web.content import Content
from syncline.web.destinations import Destinations
from syncline.web.localaccounts import LocalAccounts
from syncline.web.parts import Parts
from syncline.web.refused import REFUSED
from syncline.web.services.account import AccountService
from syncline.web.services.application.checking import Checked
from syncline.web.services.application.finding import Finder
from syncline.web.services.application.objects import Objects
from syncline.web.services.application.operating import Operating
from syncline.web.services.application.reading import Reading
from syncline.web.services.application.revisions import Revisions
from syncline.web.services.application.writing import Writing
from syncline.web.services.cluster import Clusters
from syncline.web.services.project import Projects
from syncline.web.services.session import Sessions
from syncline.web.services.settings import Settings
from syncline.web.services.stores import handlers as stores
from syncline.web.services.version import handlers as version
from syncline.web.serving.bounds import Bounds
from syncline.web.serving.port import Port, allow_both
from syncline.web.state import CONTROL_NAMESPACE, State
from syncline.web.wire.calls import Calls, Handler
from syncline.web.wire.front import Front
from syncline.web.wire.http import Asked, Given

TLS_SECRETS = ("argocd-server-tls", "argocd-secret")
"""Where a certificate may stand, the first that has one counts (upstream's order)."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the server listens."""

    host: str = "127.0.0.1"
    port: int = 8080
    insecure: bool = False
    """Without TLS."""
    root: str = ""
    """A path before all others, as a proxy leaves it there."""
    namespace: str = CONTROL_NAMESPACE
    namespaces: tuple[str, ...] = ()
    """Patterns of further namespaces that may hold Applications."""
    disable_auth: bool = False
    """Every caller is the administrator."""
    bounds: Bounds = field(default_factory=Bounds)


def handlers_of(parts: Parts) -> Mapping[str, Handler]:
    """Return the handlers of all services."""
    state, access = parts.state, parts.access
    finder = Finder(state, access)
    checked = Checked(parts, finder)
    accounts = LocalAccounts(state)
    return {
        **version(),
        **Settings(state).handlers(),
        **Sessions(access).handlers(),
        **AccountService(parts, accounts).handlers(),
        **Reading(finder).handlers(),
        **Writing(checked).handlers(),
        **Operating(checked).handlers(),
        **Revisions(checked).handlers(),
        **Objects(checked).handlers(),
        **Clusters(parts).handlers(),
        **stores(parts),
        **Projects(parts, accounts).handlers(),
    }


@contextlib.asynccontextmanager
async def serving(
    kubernetes: Kubernetes, settings: ServerSettings, clock: Clock, reader: GitSourceReader
) -> AsyncIterator[Port]:
    """Serve until the block ends; yields the port once its caches are filled. ``reader``: of repositories, which other
    parts of this process may use too. Raises PortError and ApiError."""
    state = State(kubernetes, settings.namespace, settings.namespaces)
    watches = LiveWatches(state, kubernetes, clock, lambda: None, where="the server's cluster")
    watching = asyncio.create_task(_watch(watches), name="server watches")
    port: Port | None = None
    destinations = Destinations(state, clock)
    try:
        listed = asyncio.ensure_future(watches.listed.wait())
        await asyncio.wait({watching, listed}, return_when=asyncio.FIRST_COMPLETED)
        if not listed.done():
            await watching
        access: Access = OpenAccess()
        if not settings.disable_auth:
            access = accounts = AccountAccess(state, clock, Entropy())
            await accounts.initialize()
        parts = Parts(state, access, clock, Content(reader, state, clock), destinations)
        calls = Calls(handlers_of(parts), access, REFUSED)
        port = Port(calls, Front(calls, {"/healthz": _healthy}, settings.root).serve, settings.bounds)
        await port.start(
            settings.host, settings.port, None if settings.insecure else tls_of(state, clock, settings.host)
        )
        yield port
    finally:
        if port is not None:
            await port.stop()
        await destinations.close()
        watching.cancel()
        await asyncio.wait({watching})


async def _watch(watches: LiveWatches) -> None:
    async with asyncio.TaskGroup() as group:
        await watches.run(group)


async def _healthy(_: Asked) -> Given:
    return Given(200, "text/plain; charset=utf-8", b"ok")


def tls_of(state: State, clock: Clock, host: str) -> ssl.SSLContext:
    """Return the context of the certificate in a Secret, else of one that is made for this run."""
    pair = next((found for name in TLS_SECRETS if (found := _pair(state, name)) is not None), None)
    if pair is None:
        now = clock.now()
        names = dict.fromkeys((*certificate_hosts(state.namespace), "127.0.0.1", "::1", *([host] if host else ())))
        own = [name for name in names if name not in ("0.0.0.0", "::")]
        pair = CertificateAuthority(new_authority(now)).issue("argocd-server", now=now, server_names=own)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with named_in_memory(pair.certificate_pem + pair.key_pem.reveal()) as name:  # ssl reads keys from files only
        context.load_cert_chain(name)
    return allow_both(context)


def _pair(state: State, name: str) -> KeyPair | None:
    data = dig(state.secret(name) or {}, "data", default={}) or {}
    if not data.get("tls.crt") or not data.get("tls.key"):
        return None
    return KeyPair(secret_text(data["tls.crt"]) + "\n", Secret(secret_text(data["tls.key"])))
