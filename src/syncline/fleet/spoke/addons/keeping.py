"""Keeps the certificates of add-ons: :class:`Keeping` carries out one step at a time, between hub and cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.base.secret import Secret
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.spoke.addons.credentials import (
    HUB_LABEL,
    Access,
    Wanted,
    due_of,
    encoded,
    extra_data,
    held,
    hub_hash,
    request,
    secret_of,
)
from syncline.fleet.spoke.link import SPOKE
from syncline.fleet.spoke.registration.certificates import MAX_REQUESTS, TOO_MANY, not_rotated, rotated
from syncline.fleet.spoke.registration.rotation import HALTED_S, POLL_S, REQUESTS, Asked, Progress
from syncline.kube import client
from syncline.kube.certificates import CertificateError, client_key, is_of_key, issued_certificate, validity_of
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, ResourceInfo, name_of, namespace_of, resource_version, uid_of

SECRETS: Final = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)
LOOK_S: Final = 600.0
"""Seconds until a Secret is looked at again, which people may have changed."""
MOST: Final = 1000
"""Requests under way that are remembered; a cluster has fewer add-ons."""


@dataclass(frozen=True, slots=True)
class Keep(Action):
    """Take one step towards a valid certificate of an add-on; the result is a
    :class:`~syncline.fleet.spoke.registration.rotation.Progress`."""

    wanted: Wanted
    reason: str

    def describe(self) -> str:
        return f"keep the certificate of add-on {self.wanted.addon} in {self.wanted.namespace}/{self.wanted.secret}"


@dataclass(frozen=True, slots=True)
class Sweep(Action):
    """Delete the Secrets of this hub's add-ons that are not among these (namespace and name)."""

    kept: frozenset[tuple[str, str]]
    reason: str

    def describe(self) -> str:
        return f"delete Secrets of add-ons that are gone; {len(self.kept)} stay"


def at_spoke(wanted: Request) -> Request:
    return Request(wanted.method, wanted.path, wanted.query, wanted.headers, wanted.body, cluster=SPOKE)


@dataclass(frozen=True, slots=True)
class _Issued:
    """A certificate that is not stored yet, and its key."""

    certificate: str
    key: Secret


class Keeping:
    """Handler of :class:`Keep` and :class:`Sweep`. What it remembers, keys of requests under way, may be lost: it asks
    again."""

    def __init__(self, access: Access, now: Callable[[], datetime], draw: Callable[[], float]) -> None:
        self._access, self._now, self._draw = access, now, draw()
        self._asked: dict[Wanted, Asked] = {}
        self._issued: dict[Wanted, _Issued] = {}

    def keep(self, action: Keep) -> Generator[Request, Response, Progress]:
        wanted = action.wanted
        found = yield at_spoke(client.get(SECRETS, wanted.namespace, wanted.secret))
        secret: Obj | None = None if found.status == 404 else found.or_raise()
        if wanted in self._issued:
            return (yield from self._store(wanted, secret))
        if wanted in self._asked:
            return (yield from self._collect(wanted, secret, self._asked[wanted]))
        due = due_of(secret, wanted, self._draw, self._now())
        if secret is None or due is None or due <= self._now():
            return (yield from self._ask(wanted))
        extra = extra_data(wanted, self._access)
        if any(held(secret, key) != value for key, value in extra.items()):
            body = {"metadata": _guard(secret), "data": encoded(extra)}
            yield at_spoke(client.patch(SECRETS, wanted.namespace, wanted.secret, PatchType.MERGE, body))
        left = (due - self._now()).total_seconds()
        return Progress(f"the certificate is due {due:%Y-%m-%d %H:%M} UTC", again_s=min(left, LOOK_S))

    def _ask(self, wanted: Wanted) -> Generator[Request, Response, Progress]:
        labels = f"{CLUSTER_NAME}={wanted.cluster},{ADDON_NAME}={wanted.addon}"
        found = yield client.list_(REQUESTS, label_selector=labels)
        if len(found.or_raise().get("items") or ()) >= MAX_REQUESTS or len(self._asked) >= MOST:
            return Progress(TOO_MANY, not_rotated(TOO_MANY), HALTED_S)
        key = client_key()
        made = (yield client.create(REQUESTS, request(wanted, key))).or_raise()
        self._asked[wanted] = Asked(name_of(made), key)
        return Progress(f"request {name_of(made)} is made", again_s=1.0)

    def _collect(self, wanted: Wanted, secret: Obj | None, asked: Asked) -> Generator[Request, Response, Progress]:
        found = yield client.get(REQUESTS, "", asked.name)
        if found.status == 404:
            return self._failed(wanted, f'unable to get csr "{asked.name}". It might have already been deleted')
        pem, refusal = issued_certificate(found.or_raise())
        if refusal:
            return self._failed(wanted, f"{asked.name}: {refusal}")
        if not pem:
            return Progress(f"request {asked.name} waits for its approval and signature", again_s=POLL_S)
        try:
            if not is_of_key(pem, asked.key):
                why = f"private key does not match with the certificate in csr: {asked.name}"
                return self._failed(wanted, why)
        except CertificateError as error:
            return self._failed(wanted, str(error))
        del self._asked[wanted]
        self._issued[wanted] = _Issued(pem, asked.key)
        return (yield from self._store(wanted, secret))

    def _store(self, wanted: Wanted, secret: Obj | None) -> Generator[Request, Response, Progress]:
        issued = self._issued[wanted]
        made = secret_of(wanted, self._access, issued.certificate, issued.key)
        if secret is None:
            answer = yield at_spoke(client.create(SECRETS, made))
            if answer.status == 404:
                why = f"namespace {wanted.namespace} does not exist on the cluster"
                text = f"Failed to store the client certificate: {why}"
                return Progress(why, not_rotated(text), POLL_S)
        else:
            body = {"metadata": {**_guard(secret), "labels": made["metadata"]["labels"]}, "data": made["data"]}
            answer = yield at_spoke(client.patch(SECRETS, wanted.namespace, wanted.secret, PatchType.MERGE, body))
        answer.or_raise()
        del self._issued[wanted]
        return Progress("the certificate is new", rotated(validity_of(issued.certificate)), 1.0)

    def _failed(self, wanted: Wanted, why: str) -> Progress:
        self._asked.pop(wanted, None)
        return Progress(why, not_rotated(f"Failed to rotated client certificate {why}"), HALTED_S)

    def sweep(self, action: Sweep) -> Generator[Request, Response, Any]:
        selector = f"{HUB_LABEL}={hub_hash(self._access.url)}"
        found = yield at_spoke(client.list_(SECRETS, label_selector=selector))
        for one in found.or_raise().get("items") or ():
            if (namespace_of(one), name_of(one)) not in action.kept:
                gone = client.delete(SECRETS, namespace_of(one), name_of(one), uid=uid_of(one))
                answer = yield at_spoke(gone)
                if answer.status != 404:
                    answer.or_raise()
        left = [one for one in (*self._asked, *self._issued) if (one.namespace, one.secret) not in action.kept]
        for wanted in left:
            self._asked.pop(wanted, None)
            self._issued.pop(wanted, None)


def _guard(secret: Obj) -> Obj:
    return {"uid": uid_of(secret), "resourceVersion": resource_version(secret)}
