"""Compile webhook configurations: one :class:`Hook` per webhook, in call order."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from syncline.cluster.admission.dynamic.conditions import Conditions, conditions_of
from syncline.cluster.admission.dynamic.matching import Scope, parse_rules, parse_selector
from syncline.cluster.validation.policy.admissionrules import Expressions
from syncline.kube.objects import Obj, name_of

DEFAULT_TIMEOUT_S = 10
KNOWN_VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class Hook:
    """``uid`` identifies the webhook: configuration, name, and number among equal names. ``version`` is that of the
    AdmissionReview, empty if none is supported. Either ``service``, the reference of the client configuration, or
    ``url`` is set."""

    uid: str
    name: str
    configuration: str
    mutating: bool
    scope: Scope
    conditions: Conditions
    version: str
    url: str
    service: Obj | None
    ca_pem: str
    ignores: bool
    reinvoked: bool
    side_effects: str
    timeout_s: int


def hooks_of(configuration: Obj, *, mutating: bool) -> tuple[Hook, ...]:
    seen: dict[str, int] = {}
    made = []
    for hook in configuration.get("webhooks") or ():
        name = str(hook.get("name") or "")
        seen[name] = seen.get(name, -1) + 1
        made.append(_hook(configuration, hook, f"{name_of(configuration)}/{name}/{seen[name]}", mutating))
    return tuple(made)


def _hook(configuration: Obj, hook: Obj, uid: str, mutating: bool) -> Hook:
    client: Obj = hook.get("clientConfig") or {}
    versions = hook.get("admissionReviewVersions") or ()
    return Hook(
        uid=uid,
        name=str(hook.get("name") or ""),
        configuration=name_of(configuration),
        mutating=mutating,
        scope=Scope(
            parse_rules(hook.get("rules")),
            exact=hook.get("matchPolicy") == "Exact",
            namespaces=parse_selector(hook.get("namespaceSelector")),
            objects=parse_selector(hook.get("objectSelector")),
        ),
        conditions=conditions_of(hook, Expressions()),
        version=next((version for version in versions if version in KNOWN_VERSIONS), ""),
        url=str(client.get("url") or ""),
        service=client.get("service"),
        ca_pem=authority_pem(client.get("caBundle")),
        ignores=hook.get("failurePolicy") == "Ignore",
        reinvoked=hook.get("reinvocationPolicy") == "IfNeeded",
        side_effects=str(hook.get("sideEffects") or ""),
        timeout_s=int(hook.get("timeoutSeconds") or DEFAULT_TIMEOUT_S),
    )


def authority_pem(bundle: Any) -> str:
    """Return a ``caBundle`` as PEM; invalid base64 trusts no CA, and the call reports it."""
    if not bundle:
        return ""
    try:
        return base64.b64decode(str(bundle), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return "unreadable"
