"""Rotation of an agent's certificate while it runs: decided here, carried out by :class:`Rotating`.

Rules: ``pkg/registration/register/csr`` of upstream (reference ocm-pull-model §1.4). The request is read every
:data:`POLL_S` seconds instead of watched: an agent would have to watch those of all clusters.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from syncline.base.action import Action
from syncline.base.secret import Secret
from syncline.control.plan import Plan, Requeue, Result, set_status
from syncline.fleet.conditions import find_condition, is_true, with_condition
from syncline.fleet.hub.registration.leases import ACCEPTED, CLUSTER_NAME
from syncline.fleet.spoke.registration.certificates import (
    MAX_REQUESTS,
    TOO_MANY,
    due_at,
    is_ours,
    not_rotated,
    request,
    rotated,
)
from syncline.fleet.spoke.registration.status import clock_differs
from syncline.kube import client
from syncline.kube.certificates import (
    CertificateError,
    Validity,
    client_key,
    is_of_key,
    issued_certificate,
    validity_of,
)
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj, ResourceInfo, dig, name_of

POLL_S: Final = 5.0
LOOK_S: Final = 3600.0
"""At least this often the end of the certificate is compared with the time, which may be set."""
HALTED_S: Final = 300.0
REQUESTS: Final = ResourceInfo(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)


class Credentials(Protocol):
    """The certificate that an agent uses on its hub."""

    def certificate(self) -> str:
        """Return it as PEM."""
        ...

    def store(self, certificate: str, key: Secret) -> None:
        """Keep a new one durably, and use it from the next request on. Raises OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request under way on the hub."""

    name: str
    key: Secret


@dataclass(frozen=True, slots=True)
class Rotate(Action):
    """Take one step towards a new certificate: ask for it, or look whether it was issued; the result is a
    :class:`Progress`."""

    reason: str

    def describe(self) -> str:
        return "rotate the agent's certificate"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rotation is. ``condition`` None: nothing to report."""

    why: str
    condition: Obj | None = None
    again_s: float = POLL_S


@dataclass(frozen=True, slots=True)
class Observed:
    """The cluster on the hub, the validity of the certificate in use, and the draw that spreads agents. ``asked``: a
    request is under way; ``condition``: what the hub should show of the last rotation by this process."""

    cluster: Obj
    validity: Validity
    draw: float
    asked: bool = False
    condition: Obj | None = None


def plan_rotation(observed: Observed, now: datetime) -> Plan:
    """Ask for a certificate when it is due, and go on until there is one."""
    if not is_true(dig(observed.cluster, "status", "conditions") or (), ACCEPTED):
        return Plan(why="the cluster is not accepted by the hub")
    due = due_at(observed.validity, observed.draw)
    if not observed.asked and now < due:
        why = f"the certificate is valid until {observed.validity.ends:%Y-%m-%d %H:%M} UTC"
        again = Requeue(min((due - now).total_seconds(), LOOK_S), why, background=True)
        return Plan((), again, why, _report(observed.cluster, observed.condition, now))
    why = f"the certificate ends at {observed.validity.ends:%Y-%m-%d %H:%M} UTC"
    return Plan(((Rotate(why),),), Requeue(POLL_S, why, background=True), why)


def settle_rotation(
    observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[Observed, Plan] | None:
    """Report the progress on the hub."""
    if not results or not isinstance(results[-1].action, Rotate):
        return None
    found = results[-1]
    progress = found.value if isinstance(found.value, Progress) else None
    if progress is None:
        progress = Progress(str(found.error), not_rotated(f"Failed to create CSR {found.error}"))
    again = Requeue(progress.again_s, progress.why, background=True)
    return observed, Plan((), again, progress.why, _report(observed.cluster, progress.condition, now))


def _report(cluster: Obj, condition: Obj | None, now: datetime) -> tuple[Action, ...]:
    """Return what shows a condition on the hub; nothing if it is there already."""
    live: Obj = cluster.get("status") or {}
    conditions = live.get("conditions") or ()
    if condition is None or clock_differs(cluster):
        return ()
    before = find_condition(conditions, str(condition["type"]))
    if before is not None and before.items() >= condition.items():
        return ()
    return set_status(cluster, {**live, "conditions": with_condition(conditions, condition, now)}, "the last rotation")


class Rotating:
    """Handler of :class:`Rotate`; :attr:`asked` is the request under way, :attr:`condition` what the hub is to show of
    the last one. A restart forgets both, and asks again."""

    def __init__(self, cluster: str, agent: str, credentials: Credentials, expiration_s: int = 0) -> None:
        self._cluster, self._agent = cluster, agent
        self._credentials = credentials
        self._expiration_s = expiration_s
        self.asked: Asked | None = None
        self.condition: Obj | None = None

    def handle(self, _action: Rotate) -> Generator[Request, Response, Progress]:
        progress = yield from self._ask() if self.asked is None else self._collect(self.asked)
        self.condition = progress.condition or self.condition
        return progress

    def _ask(self) -> Generator[Request, Response, Progress]:
        found = yield client.list_(REQUESTS, label_selector=f"{CLUSTER_NAME}={self._cluster}")
        if sum(is_ours(one, self._cluster) for one in found.or_raise().get("items") or ()) >= MAX_REQUESTS:
            return Progress(TOO_MANY, not_rotated(TOO_MANY), HALTED_S)
        key = client_key()
        made = yield client.create(REQUESTS, request(self._cluster, self._agent, key, self._expiration_s))
        self.asked = Asked(name_of(made.or_raise()), key)
        return Progress(f"request {self.asked.name} is made", again_s=1.0)

    def _collect(self, asked: Asked) -> Generator[Request, Response, Progress]:
        found = yield client.get(REQUESTS, "", asked.name)
        if found.status == 404:
            return self._failed(f'unable to get csr "{asked.name}". It might have already been deleted')
        pem, refusal = issued_certificate(found.or_raise())
        if refusal:
            return self._failed(f"{asked.name}: {refusal}")
        if not pem:
            return Progress(f"request {asked.name} waits for its approval")
        try:
            if not is_of_key(pem, asked.key):
                return self._failed(f"private key does not match with the certificate in csr: {asked.name}")
            validity = validity_of(pem)
        except CertificateError as error:
            return self._failed(str(error))
        self._credentials.store(pem, asked.key)
        self.asked = None
        return Progress("the certificate is new", rotated(validity), 0.0)

    def _failed(self, why: str) -> Progress:
        self.asked = None
        return Progress(why, not_rotated(f"Failed to rotated client certificate {why}"), HALTED_S)
