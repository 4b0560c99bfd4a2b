"""Enforce the Pod Security level in a namespace's labels (plug-in PodSecurity).

The chain calls it for pods, kinds with a pod template, and namespaces. ``enforce`` refuses pods; ``warn`` and ``audit``
report pods and templates; a stricter namespace label warns about existing pods. Without labels everything is allowed.
Source: ``k8s.io/pod-security-admission`` ``admission`` and ``api``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.admission.podsecurity import (
    BASELINE,
    LATEST,
    PRIVILEGED,
    RESTRICTED,
    Forbidden,
    evaluate,
    message,
    short_message,
)
from syncline.cluster.storage.store import Key, Store
from syncline.kube.errors import FieldCause, invalid
from syncline.kube.objects import Obj, labels_of, name_of

PREFIX = "pod-security.kubernetes.io/"
MODES = ("enforce", "audit", "warn")
LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)
MOST_PODS = 3000
"""Pods checked when a namespace becomes stricter (``namespaceMaxPodsToCheck``)."""

_TEMPLATES: dict[str, tuple[str, ...]] = {
    "/podtemplates": ("template",),
    "/replicationcontrollers": ("spec", "template"),
    "apps/daemonsets": ("spec", "template"),
    "apps/deployments": ("spec", "template"),
    "apps/replicasets": ("spec", "template"),
    "apps/statefulsets": ("spec", "template"),
    "batch/jobs": ("spec", "template"),
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
}
_IGNORED = frozenset(("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"))
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class _Level:
    name: str = PRIVILEGED
    version: int = LATEST

    def __str__(self) -> str:
        return f"{self.name}:{'latest' if self.version == LATEST else f'v1.{self.version}'}"

    def forbids(self, metadata: Obj, spec: Obj) -> list[Forbidden]:
        return evaluate(self.name, self.version, metadata, spec)


@dataclass(frozen=True, slots=True)
class _Levels:
    """``problems``: malformed labels; their level falls back to the strictest or to the laxest."""

    enforce: _Level
    audit: _Level
    warn: _Level
    problems: tuple[FieldCause, ...] = ()


_FREE = _Levels(_Level(), _Level(), _Level())


def _levels(labels: Obj) -> _Levels:
    if not any(key.startswith(PREFIX) for key in labels):
        return _FREE
    problems: list[FieldCause] = []
    found: dict[str, _Level] = {}
    for mode in MODES:
        name, version = PRIVILEGED, LATEST
        given = labels.get(f"{PREFIX}{mode}")
        if given is not None:
            name = given if given in LEVELS else (RESTRICTED if mode == "enforce" else PRIVILEGED)
            if given not in LEVELS:
                problems.append(_problem(mode, given, f"must be one of {', '.join(LEVELS)}"))
        text = labels.get(f"{PREFIX}{mode}-version")
        if text is not None and text != "latest":
            match = _VERSION.fullmatch(text)
            version = int(match.group(1)) if match else LATEST
            if match is None:
                problems.append(_problem(f"{mode}-version", text, 'must be "latest" or "v1.x"'))
        found[mode] = _Level(name, version)
    enforce, warn = found["enforce"], found["warn"]
    if f"{PREFIX}warn" not in labels and labels.get(f"{PREFIX}enforce") in LEVELS and enforce.name != PRIVILEGED:
        # A level that refuses pods only warns about templates.
        warn = _Level(enforce.name, warn.version if f"{PREFIX}warn-version" in labels else enforce.version)
    return _Levels(enforce, found["audit"], warn, tuple(problems))


def _problem(label: str, value: str, why: str) -> FieldCause:
    return FieldCause("FieldValueInvalid", f'Invalid value: "{value}": {why}', f"metadata.labels[{PREFIX}{label}]")


# --- the chain's questions -----------------------------------------------------------------------------------------


def check_create(store: Store, attempt: Attempt, obj: Obj) -> None:
    """Raise Forbidden, or Invalid for malformed labels of a namespace."""
    storage = attempt.resource.storage
    if storage == "/pods":
        _judge(store, attempt, obj, enforced=True)
    elif storage in _TEMPLATES:
        _judge_template(store, attempt, obj)
    elif storage == "/namespaces":
        _refuse_labels(obj, _levels(labels_of(obj)))


def check_update(store: Store, attempt: Attempt, new: Obj, old: Obj) -> None:
    storage = attempt.resource.storage
    if storage == "/pods":
        if attempt.subresource not in _IGNORED and _matters(new, old):
            _judge(store, attempt, new, enforced=True)
    elif attempt.subresource:
        return
    elif storage in _TEMPLATES:
        _judge_template(store, attempt, new)
    elif storage == "/namespaces" and labels_of(new) != labels_of(old):
        _check_namespace(store, attempt, new, old)


def _judge_template(store: Store, attempt: Attempt, obj: Obj) -> None:
    template: Obj = obj
    for part in _TEMPLATES[attempt.resource.storage]:
        template = template.get(part) or {}
    if template.get("spec"):
        _judge(store, attempt, template, enforced=False)


def _judge(store: Store, attempt: Attempt, pod: Obj, *, enforced: bool) -> None:
    stored = store.get(Key("/namespaces", "", attempt.namespace))
    levels = _levels(labels_of(stored.obj)) if stored is not None else _FREE
    if levels is _FREE:
        return
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if levels.problems:
        listed = [f"{cause.field}: {cause.message}" for cause in levels.problems]
        text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
        attempt.annotate(f"{PREFIX}error", f"Failed to parse policy: {text}")
    refused: list[Forbidden] = []
    if enforced:
        attempt.annotate(f"{PREFIX}enforce-policy", str(levels.enforce))
        refused = levels.enforce.forbids(metadata, spec)
    noted = levels.audit.forbids(metadata, spec)
    if noted:
        attempt.annotate(f"{PREFIX}audit-violations", f'would violate PodSecurity "{levels.audit}": {message(noted)}')
    if refused:
        raise forbid(attempt, f'violates PodSecurity "{levels.enforce}": {message(refused)}')
    warned = levels.warn.forbids(metadata, spec)
    if warned:
        attempt.warn(f'would violate PodSecurity "{levels.warn}": {message(warned)}')


def _matters(new: Obj, old: Obj) -> bool:
    """Return whether an update changed a field that levels read."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for field in ("containers", "initContainers"):
        now, then = spec.get(field) or (), before.get(field) or ()
        if len(now) != len(then) or any(_differs(one, other, new, old) for one, other in zip(now, then, strict=True)):
            return True
    known = {one.get("name"): one for one in before.get("ephemeralContainers") or ()}
    return any(
        one.get("name") not in known or _differs(one, known[one.get("name")], new, old)
        for one in spec.get("ephemeralContainers") or ()
    )


def _differs(one: Obj, other: Obj, new: Obj, old: Obj) -> bool:
    key = f"{_SECCOMP}{one.get('name')}"
    annotations = [((obj.get("metadata") or {}).get("annotations") or {}).get(key) for obj in (new, old)]
    return one.get("image") != other.get("image") or annotations[0] != annotations[1]


# --- namespaces ----------------------------------------------------------------------------------------------------


def _refuse_labels(namespace: Obj, levels: _Levels) -> None:
    if levels.problems:
        raise invalid("Namespace", name_of(namespace), list(levels.problems))


def _check_namespace(store: Store, attempt: Attempt, new: Obj, old: Obj) -> None:
    now, before = _levels(labels_of(new)), _levels(labels_of(old))
    if now.problems != before.problems:
        _refuse_labels(new, now)
    stricter = LEVELS.index(now.enforce.name) > LEVELS.index(before.enforce.name)
    if now.enforce == before.enforce or now.enforce.name == PRIVILEGED:
        return
    if now.enforce.version == before.enforce.version and not stricter:
        return
    for text in _pod_warnings(store, name_of(new), now.enforce):
        attempt.warn(text)


def _pod_warnings(store: Store, namespace: str, level: _Level) -> list[str]:
    """Return warnings about pods that would be refused, grouped by their reasons."""
    pods = store.list("/pods", namespace)
    violating: dict[str, list[str]] = {}
    for stored in pods[:MOST_PODS]:
        found = level.forbids(stored.obj.get("metadata") or {}, stored.obj.get("spec") or {})
        if found:
            violating.setdefault(short_message(found), []).append(stored.key.name)
    said = []
    if len(pods) > MOST_PODS:
        what = "new PodSecurity enforce level only checked against the first"
        said.append(f"{what} {MOST_PODS} of {len(pods)} existing pods")
    if violating:
        said.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{level}"')
    return said + sorted(f"{_named(names)}: {why}" for why, names in violating.items())


def _named(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other {'pod' if others == 1 else 'pods'})"
