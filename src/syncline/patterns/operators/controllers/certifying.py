"""Serving certificates in Secrets: kept while they are fresh, replaced otherwise. Nothing else reads such a Secret."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.base.entropy import Entropy
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.errors import NotFound
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, resource_version
from syncline.patterns.operators.certificates import ends_of, new_serving
from syncline.patterns.operators.serving import CA_HASH, CA_KEY, pem_hash

SECRETS: Final = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)


@dataclass(frozen=True, slots=True)
class Certify(Action):
    """Ensure that a Secret has a certificate for these names; returns :class:`Certified`. ``metadata``: of the
    Secret."""

    metadata: Obj
    deployment: str
    hosts: tuple[str, ...]
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ObjectRef("", "Secret", str(self.metadata["namespace"]), str(self.metadata["name"]))

    def describe(self) -> str:
        return f"certify {self.target}"


@dataclass(frozen=True, slots=True)
class Certified:
    """``authority``: PEM; ``made``: whether the certificate is new."""

    authority: str
    ends: datetime
    made: bool


class CertifyHandler:
    def __init__(self, now: Callable[[], datetime], entropy: Entropy) -> None:
        self._now, self._entropy = now, entropy

    def handle(self, action: Certify) -> Generator[Request, Response, Any]:
        where, name = action.target.namespace, action.target.name
        answer = yield client.get(SECRETS, where, name)
        found: Obj | None = None if answer.status == NotFound.code else answer.or_raise()
        authority, certificate = (_text(found, key) for key in (CA_KEY, "tls.crt"))
        ends = ends_of(authority, certificate, action.hosts, self._now())
        if found is not None and ends is not None:
            body = {"metadata": {"ownerReferences": action.metadata["ownerReferences"]}}
            if dig(found, "metadata", "ownerReferences", default=None) != body["metadata"]["ownerReferences"]:
                (yield client.patch(SECRETS, where, name, PatchType.MERGE, body)).or_raise()
            return Certified(authority, ends, made=False)
        new = new_serving(action.hosts, self._now(), self._entropy)
        data = {CA_KEY: new.ca, "tls.crt": new.certificate, "tls.key": new.key.reveal()}
        wanted: Obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {**action.metadata, "annotations": {CA_HASH: pem_hash(new.ca)}},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
        }
        if found is None:
            (yield client.create(SECRETS, wanted, namespace=where)).or_raise()
        else:
            wanted["metadata"]["resourceVersion"] = resource_version(found)
            (yield client.patch(SECRETS, where, name, PatchType.MERGE, wanted)).or_raise()
        return Certified(new.ca, new.ends, made=True)


def _text(secret: Obj | None, key: str) -> str:
    try:
        return base64.b64decode(str(dig(secret or {}, "data", key, default="") or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
