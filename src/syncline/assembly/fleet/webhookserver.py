"""The webhooks of a hub over HTTPS, for API servers other than the embedded one.

Their authority is a Secret that all replicas share; each replica signs a certificate of its own with it. What the API
server has to know (address and authority) is written by the role's controllers (``fleet/hub/keeping.py``).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from syncline.assembly.endpoints.listening import Answer, Endpoint, listening
from syncline.assembly.fleet.hub import HUB_NAMESPACE, HubSettings, guards
from syncline.assembly.roles import Wake
from syncline.assembly.settings import HUB_WEBHOOK_SERVICE, HubWebhookSettings
from syncline.base.clock import Clock
from syncline.base.scratch import named_in_memory
from syncline.base.secret import Secret
from syncline.cluster.access.pki import CertificateAuthority, KeyPair, new_authority
from syncline.cluster.serving.serve import tls_context
from syncline.control.loop import ControlLoop
from syncline.control.manager import Port, drive
from syncline.fleet.hub.admitting import PATHS, answered
from syncline.fleet.hub.confinement import KEPT_KINDS, Reach
from syncline.fleet.hub.converting import CONVERT, CRD, NAMES, converted
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, Conflict, NotFound
from syncline.kube.objects import Obj, ObjectRef, ref_of

log = logging.getLogger("syncline.assembly")

SECRET: Final = "syncline-hub-webhook-authority"
SECRETS: Final = f"/api/v1/namespaces/{HUB_NAMESPACE}/secrets"
RENEW_AUTHORITY: Final = timedelta(days=365)
"""An authority with less than this left is replaced; the former one is trusted until the next replacement."""
RENEW_LEAF: Final = timedelta(days=180)
LOOK_S: Final = 60.0
"""Seconds between looks at the Secret and at what the API server has of it."""
RETRY_S: Final = 2.0
AT_ONCE: Final = 64
MAX_REVIEW_BYTES: Final = 8 * 1024 * 1024
"""Size limit of a review: an object of the size limit of an API server, before and after."""
WITHOUT_WEBHOOKS: Final = (
    "the role hub has no webhooks: sizes of works, who accepts clusters, moves them between sets and executes as whom "
    "are not checked, and taints get no times; --hub-webhook-listen opens them"
)


def authority_of(secret: Obj, now: datetime) -> KeyPair | None:
    """Return the authority in the Secret; None if it cannot be used, or not for long enough."""
    try:
        data = {key: base64.b64decode(value).decode() for key, value in (secret.get("data") or {}).items()}
        pair = KeyPair(data["tls.crt"], Secret(data["tls.key"]))
        certificate = x509.load_pem_x509_certificate(pair.certificate_pem.encode())
        probe = CertificateAuthority(pair).issue("probe", now=now, server_names=("probe",))
        x509.load_pem_x509_certificate(probe.certificate_pem.encode()).verify_directly_issued_by(certificate)
    except (KeyError, ValueError, TypeError, InvalidSignature):
        return None
    return pair if now + RENEW_AUTHORITY < certificate.not_valid_after_utc else None


def shared_authority(now: datetime) -> Generator[Request, Response, tuple[KeyPair, str]]:
    """Return the authority of all replicas, and the PEM of what to trust; make it if it is missing or ends soon. Raises
    ApiError, Conflict if another replica was faster."""
    answer = yield Request("GET", f"{SECRETS}/{SECRET}")
    live: Obj | None = None
    with contextlib.suppress(NotFound):
        live = answer.or_raise()
    if live is not None and (pair := authority_of(live, now)) is not None:
        return pair, _trusted(live, pair)
    pair = new_authority(now)
    former = str(((live or {}).get("data") or {}).get("tls.crt") or "")
    data = {"tls.crt": _encoded(pair.certificate_pem), "tls.key": _encoded(pair.key_pem.reveal()), "former.crt": former}
    metadata: Obj = {"name": SECRET, "namespace": HUB_NAMESPACE}
    if live is not None:
        metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}
    if live is None:
        answer = yield Request("POST", SECRETS, body=made)
    else:
        answer = yield Request("PUT", f"{SECRETS}/{SECRET}", body=made)
    answer.or_raise()
    return pair, _trusted(made, pair)


def _trusted(secret: Obj, pair: KeyPair) -> str:
    try:
        former = base64.b64decode(str((secret.get("data") or {}).get("former.crt") or "")).decode()
    except ValueError:
        former = ""
    return pair.certificate_pem + former


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@dataclass(slots=True)
class WebhookServer:
    """The webhooks of one process. ``reach``: how the API server gets to them, None until they can answer."""

    settings: HubSettings
    reach: Reach | None = None
    _wake: Wake = field(default=lambda _name, _ref: None)
    _leaf_until: datetime | None = None
    _signed_by: str = ""

    def follow(self, _loop: ControlLoop, wake: Wake) -> Callable[[], None]:
        """Connect to the loop whose controllers write the configurations."""
        self._wake = wake
        self._rouse()
        return lambda: None

    def _rouse(self) -> None:
        """Let the controllers look at the configurations, also at those that do not exist."""
        for one in guards(self.reach):
            ref = ref_of(one)
            if ref.group_kind in KEPT_KINDS:
                self._wake(f"kept-{ref.kind.lower()}", ref)
        for name in NAMES:
            self._wake("addon-conversion", ObjectRef(*CRD.group_kind, "", name))

    @contextlib.asynccontextmanager
    async def serving(
        self, hooks: HubWebhookSettings, port: Port, clock: Clock
    ) -> AsyncIterator[dict[tuple[str, int], int]]:
        """Serve until the context ends; yields the port. Raises ListenError."""
        names = names_of(hooks)
        # No client trusts this certificate: the address can be listened on before the authority is known.
        first = CertificateAuthority(new_authority(clock.now())).issue(names[0], now=clock.now(), server_names=names)
        tls = tls_context(first, "")
        served: dict[tuple[str, str], Endpoint] = {
            ("POST", path): partial(self._answer, path, port, clock) for path in PATHS
        } | {("POST", CONVERT): _convert}
        async with listening(
            hooks.host, hooks.port, served, names, tls=tls, at_once=AT_ONCE, max_body=MAX_REVIEW_BYTES
        ) as taken:
            keeping = asyncio.create_task(self._keep(hooks, taken, tls, port, clock), name="hub webhooks")
            try:
                yield {(hooks.host, hooks.port): taken}
            finally:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
                self.reach = None

    async def _keep(self, hooks: HubWebhookSettings, taken: int, tls: ssl.SSLContext, port: Port, clock: Clock) -> None:
        complained = ""
        while True:
            try:
                pair, trusted = await drive(shared_authority(clock.now()), port)
                self._certify(pair, names_of(hooks), tls, clock.now())
            except Exception as error:  # refused, or a Secret with content that is no key pair: it may be repaired
                if not isinstance(error, Conflict) and str(error) != complained:
                    complained = str(error)
                    log.warning("the authority of the webhooks is not known: %s; trying again", error or type(error))
                await asyncio.sleep(RETRY_S)
                continue
            url = hooks.url.replace(":0", f":{taken}") if hooks.url.endswith(":0") else hooks.url
            self.reach = Reach(url, None if url else HUB_WEBHOOK_SERVICE, trusted)
            self._rouse()
            await asyncio.sleep(LOOK_S)

    def _certify(self, pair: KeyPair, names: tuple[str, ...], tls: ssl.SSLContext, now: datetime) -> None:
        """Show a certificate of this authority from now on, a new one when the last is old."""
        if self._leaf_until is not None and now < self._leaf_until and self._signed_by == pair.certificate_pem:
            return
        leaf = CertificateAuthority(pair).issue(names[0], now=now, server_names=names)
        with named_in_memory(leaf.certificate_pem + leaf.key_pem.reveal()) as name:
            tls.load_cert_chain(name)
        self._leaf_until, self._signed_by = now + RENEW_LEAF, pair.certificate_pem

    async def _answer(self, path: str, port: Port, clock: Clock, _headers: Mapping[str, str], body: bytes) -> Answer:
        steps: Generator[Request, Response, Any] = answered(path, body, clock.now(), self.settings.manifest_limit)
        try:
            made = await drive(steps, port)
        except (ValueError, msgspec.DecodeError) as error:
            return Answer(400, f"{error}\n")
        except ApiError as error:
            return Answer(503, f"{error}\n")
        return Answer(200, msgspec.json.encode(made).decode(), "application/json")


async def _convert(_headers: Mapping[str, str], body: bytes) -> Answer:
    try:
        made = converted(body)
    except (ValueError, msgspec.DecodeError) as error:
        return Answer(400, f"{error}\n")
    return Answer(200, msgspec.json.encode(made).decode(), "application/json")


def names_of(hooks: HubWebhookSettings) -> tuple[str, ...]:
    """Return the host names that API servers use for the webhooks."""
    if hooks.url:
        return (urlsplit(hooks.url).hostname or "",)
    name, namespace, _ = HUB_WEBHOOK_SERVICE
    return (f"{name}.{namespace}.svc",)
