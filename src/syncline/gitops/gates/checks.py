"""What each gate looks at: operators, definitions, webhooks, storage classes; pure.

A gate begins with objects that a manifest names, which the project has to permit (:func:`named`). What follows from
these (the definitions and webhooks of an operator) was written by the cluster's operator manager, not by a repository,
and only one of a few fixed sentences is said of it. Every object is found by its name, so nothing is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from syncline.base.clock import format_time, time_or_none
from syncline.kube.objects import Obj, ObjectRef, dig

OLM: Final = "operators.coreos.com"
ADMISSION: Final = "admissionregistration.k8s.io"
CSV_SUCCEEDED, CRD_ESTABLISHED = "csv-succeeded", "crd-established"
WEBHOOK_SERVING, STORAGE_CLASS = "webhook-serving", "storageclass-present"
MAX_OWNED: Final = 200
"""Limit of definitions and webhooks of one operator that are looked at."""
MAX_TEXT: Final = 120
"""Limit of characters of one name or reason in a message."""

REACTION: Final = timedelta(seconds=30)
"""How long a changed Subscription counts as unanswered: its manager says nothing if the change leads nowhere."""
_ASKS: Final = frozenset(f"f:{name}" for name in ("channel", "name", "source", "sourceNamespace", "startingCSV"))
"""Fields of a Subscription that decide which version is wanted, as managedFields name them."""

Known = Callable[[ObjectRef], Obj | None]


class Hidden(Exception):
    """An object may not be read, so nothing is known of it; the text says why."""


class Problem(Protocol):
    """Why a gate is closed, empty if it is open. ``now`` None: what depends on time does not count."""

    def __call__(self, ref: ObjectRef, known: Known, now: datetime | None = None, /) -> str: ...


@dataclass(frozen=True, slots=True)
class Gate:
    """``namespaced``: whether its objects are. ``named``: the objects that the project has to permit, the first is the
    gate's subject. ``problem`` may raise :class:`Hidden`."""

    named: Callable[[str, str], tuple[ObjectRef, ...]]
    problem: Problem
    namespaced: bool = False


def subscription_ref(namespace: str, name: str) -> ObjectRef:
    return ObjectRef(OLM, "Subscription", namespace, name)


def csv_ref(namespace: str, name: str) -> ObjectRef:
    return ObjectRef(OLM, "ClusterServiceVersion", namespace, name)


def crd_ref(name: str) -> ObjectRef:
    return ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", name)


def _csv_succeeded(ref: ObjectRef, known: Known, now: datetime | None = None) -> str:
    subscription = known(ref)
    if subscription is None:
        return f"{_shown(ref)} is not there"
    status, spec = subscription.get("status") or {}, subscription.get("spec") or {}
    installed, current = _text(status.get("installedCSV")), _text(status.get("currentCSV"))
    if not installed:
        return f"{_shown(ref)} has no installed version yet{_why_not_installed(status)}"
    manual = spec.get("installPlanApproval") == "Manual"
    if current and current != installed and not manual:
        return f"{_shown(ref)}: {current} is to replace {installed}"
    if not manual and now is not None and (until := _unanswered(subscription, now)):
        return f"{_shown(ref)} was changed, and is not answered yet; without an answer {installed} counts at {until}"
    return _csv_problem(csv_ref(ref.namespace, installed), known)


def _unanswered(subscription: Obj, now: datetime) -> str:
    """Return until when a change of what a Subscription asks for may still be answered; "" if it is, or is too old.

    Its manager has no observedGeneration: an upgrade follows a new channel after seconds, and nothing does if the
    channel has none.
    """
    changed = None
    for entry in _entries(dig(subscription, "metadata", "managedFields")):
        fields = dig(entry, "fieldsV1", "f:spec", default=None)
        at = time_or_none(entry.get("time"))
        if isinstance(fields, Mapping) and not entry.get("subresource") and at and _ASKS & fields.keys():
            changed = max(changed or at, at)
    answered = time_or_none(dig(subscription, "status", "lastUpdated", default=None))
    if changed is None or (answered is not None and answered > changed) or now >= changed + REACTION:
        return ""
    return format_time(changed + REACTION)


def _why_not_installed(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if isinstance(condition, Mapping) and condition.get("status") == "True":
            reason = _text(condition.get("reason"))
            plan = _text(dig(status, "installPlanRef", "name"))
            if reason == "RequiresApproval":
                return f": InstallPlan {plan or 'of it'} waits for approval"
            return f": {_text(condition.get('type'))}{f' ({reason})' if reason else ''}"
    current = _text(status.get("currentCSV"))
    return f": {current} is being installed" if current else ""


def _csv_problem(ref: ObjectRef, known: Known) -> str:
    csv = known(ref)
    if csv is None:
        return f"{_shown(ref)} is not there"
    phase, reason = _text(dig(csv, "status", "phase")), _text(dig(csv, "status", "reason"))
    if phase != "Succeeded":
        return f"{_shown(ref)} is {phase or 'not looked at yet'}{f' ({reason})' if reason else ''}"
    definitions = _entries(dig(csv, "spec", "customresourcedefinitions", "owned"))
    webhooks = _entries(dig(csv, "spec", "webhookdefinitions"))
    if len(definitions) + len(webhooks) > MAX_OWNED:
        return f"{_shown(ref)} owns more than {MAX_OWNED} definitions and webhooks"
    for one in definitions:
        if problem := _crd_established(crd_ref(_text(one.get("name"))), known):
            return problem
    for one in webhooks:
        # OLM names the Service of a webhook after its Deployment
        service = f"{_text(one.get('deploymentName')).replace('.', '-')}-service"
        if problem := _service_problem(ref.namespace, service, known):
            return problem
    return ""


def _crd_established(ref: ObjectRef, known: Known, now: datetime | None = None) -> str:
    definition = known(ref)
    if definition is None:
        return f"{_shown(ref)} is not there"
    held = {one.get("type"): one.get("status") for one in _entries(dig(definition, "status", "conditions"))}
    return "" if held.get("Established") == "True" else f"{_shown(ref)} is not established"


def _webhook_serving(ref: ObjectRef, known: Known, now: datetime | None = None) -> str:
    found = [one for one in (known(place) for place in _webhook_refs(ref.name, "")) if one is not None]
    if not found:
        return f"no webhook configuration is named {ref.name}"
    clients = [dig(one, "clientConfig") or {} for each in found for one in _entries(each.get("webhooks"))]
    if len(clients) > MAX_OWNED:
        return f"{ref.name} has more than {MAX_OWNED} webhooks"
    for client in clients:
        service = client.get("service")
        if not isinstance(service, Mapping):
            continue  # it is outside the cluster, which nothing here can look at
        if not client.get("caBundle"):
            return f"webhook configuration {ref.name} has no CA bundle yet"
        if problem := _service_problem(_text(service.get("namespace")), _text(service.get("name")), known):
            return problem
    return ""


def _service_problem(namespace: str, name: str, known: Known) -> str:
    """Return why no pod answers for a Service."""
    service = ObjectRef("", "Service", namespace, name)
    if known(service) is None:
        return f"{_shown(service)} of a webhook is not there"
    endpoints = known(ObjectRef("", "Endpoints", namespace, name)) or {}
    ready = any(one.get("addresses") for one in _entries(endpoints.get("subsets")))
    return "" if ready else f"{_shown(service)} of a webhook has no ready pod"


def _storage_class(ref: ObjectRef, known: Known, now: datetime | None = None) -> str:
    return "" if known(ref) is not None else f"{_shown(ref)} is not there"


def _webhook_refs(name: str, _namespace: str) -> tuple[ObjectRef, ...]:
    kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    return tuple(ObjectRef(ADMISSION, kind, "", name) for kind in kinds)


GATES: Final[Mapping[str, Gate]] = {
    CSV_SUCCEEDED: Gate(
        lambda name, namespace: (subscription_ref(namespace, name), csv_ref(namespace, name)),
        _csv_succeeded,
        namespaced=True,
    ),
    CRD_ESTABLISHED: Gate(lambda name, _: (crd_ref(name),), _crd_established),
    WEBHOOK_SERVING: Gate(_webhook_refs, _webhook_serving),
    STORAGE_CLASS: Gate(
        lambda name, _: (ObjectRef("storage.k8s.io", "StorageClass", "", name),),
        _storage_class,
    ),
}
"""The gates by name, as ``syncline.dev/wait-for`` gives it."""


def _entries(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a name or a word of a status, bounded and on one line."""
    return " ".join(value.split())[:MAX_TEXT] if isinstance(value, str) else ""


def _shown(ref: ObjectRef) -> str:
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"
