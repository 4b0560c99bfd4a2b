"""Fill Secrets of type ``kubernetes.io/service-account-token``, and delete those without an account.

Like Kubernetes' tokens controller. The plan reads the Secret and its account; the handler creates the token, so no
token enters a plan or journal. The token is valid while its Secret and account exist.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.action import Action
from syncline.cluster.access.tokens import BoundObject, ServiceAccountTokens
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Delete, Plan
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    ResourceInfo,
    annotations_of,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    ref_of,
    resource_version,
    uid_of,
)

SECRET = GroupKind("", "Secret")
SERVICE_ACCOUNT = GroupKind("", "ServiceAccount")
TOKEN_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
LIFETIME_S = 1 << 31
"""Practically unlimited: deleting the Secret ends its token."""

_SECRETS = ResourceInfo("", "v1", SECRET.kind, "secrets", namespaced=True)


@dataclass(frozen=True, slots=True)
class FillTokenSecret(Action):
    """Write the missing parts of a Secret, unless it has changed."""

    target: ObjectRef
    uid: str
    resource_version: str
    account: str
    account_uid: str
    needs_token: bool
    data: tuple[tuple[str, str], ...]
    now: datetime
    reason: str

    def describe(self) -> str:
        return f"fill {self.target} for ServiceAccount {self.account}"


@dataclass(frozen=True, slots=True)
class Observed:
    """A token Secret and its account (None if deleted). ``root_ca`` is PEM."""

    secret: Obj
    account: Obj | None
    root_ca: str


def plan(observed: Observed, now: datetime) -> Plan:
    """Delete the Secret if it has no account; else fill in what is missing."""
    secret, account = observed.secret, observed.account
    wanted = annotations_of(secret).get(ACCOUNT_UID)
    if account is None or (wanted and wanted != uid_of(account)):
        delete = Delete.of(secret, "its service account is gone")
        return Plan(((delete,),), why="its service account is gone")
    right = {"namespace": namespace_of(secret)} | ({"ca.crt": observed.root_ca} if observed.root_ca else {})
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in right.items()}
    held: Obj = dig(secret, "data", default={}) or {}
    lacking = {key: value for key, value in encoded.items() if held.get(key) != value}
    if not lacking and held.get("token"):
        return Plan(why="the Secret is complete")
    fill = FillTokenSecret(
        ref_of(secret),
        uid_of(secret),
        resource_version(secret),
        name_of(account),
        uid_of(account),
        not held.get("token"),
        tuple(sorted(lacking.items())),
        now,
        "the Secret is incomplete",
    )
    return Plan(((fill,),), why="the Secret is incomplete")


class FillHandler:
    """Holds the keys that sign tokens."""

    def __init__(self, tokens: ServiceAccountTokens) -> None:
        self._tokens = tokens

    def handle(self, action: FillTokenSecret) -> Generator[Request, Response, Any]:
        data = dict(action.data)
        if action.needs_token:
            issued = self._tokens.issue(
                action.target.namespace,
                action.account,
                action.account_uid,
                now=action.now,
                lifetime_s=LIFETIME_S,
                bound=[BoundObject("Secret", action.target.name, action.uid)],
            )
            data["token"] = base64.b64encode(issued.token.reveal().encode()).decode()
        annotations = {ACCOUNT_NAME: action.account, ACCOUNT_UID: action.account_uid}
        condition = {"uid": action.uid, "resourceVersion": action.resource_version}
        body = {"metadata": {**condition, "annotations": annotations}, "data": data}
        answer = yield client.patch(
            _SECRETS,
            action.target.namespace,
            action.target.name,
            PatchType.MERGE,
            body,
            field_manager="kube-controller-manager",
        )
        return answer.or_raise()


def _of_account(account: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the token Secrets of an account that was created or deleted."""
    name, namespace = name_of(account), namespace_of(account)
    return (
        ref_of(secret)
        for secret in cache.objects(SECRET)
        if namespace_of(secret) == namespace and annotations_of(secret).get(ACCOUNT_NAME) == name
    )


def token_secret_controller(root_ca: str) -> Controller[Observed]:
    """Return the controller; its key is a Secret, and other types are ignored."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        secret = cache.get(ref)
        if secret is None or is_terminating(secret) or secret.get("type") != TOKEN_TYPE:
            return None
        account = annotations_of(secret).get(ACCOUNT_NAME)
        if not account or not cache.has_synced(SERVICE_ACCOUNT):
            return None
        found = cache.get(ObjectRef("", SERVICE_ACCOUNT.kind, ref.namespace, account))
        return Observed(secret, found, root_ca)

    return Controller(
        name="token-secrets",
        kind=SECRET,
        watches=(Watch(SERVICE_ACCOUNT, _of_account),),
        observe=observe,
        plan=plan,
    )
