"""What a hub knows of the manifests of a work, and what helps where one was refused on the cluster; pure.

All of it is in the status that the agent writes; a status of an earlier generation says nothing about this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from syncline.base.clock import time_or_none
from syncline.fleet.spoke.work.executor import RETRY_S, ExecutorError, executor_name
from syncline.fleet.spoke.work.ownership import owned_by_work
from syncline.fleet.spoke.work.status import SHARED
from syncline.kube.objects import Obj, dig, generation, gvk_of, name_of, namespace_of
from syncline.kube.rights import missing_right

APPLIED, AVAILABLE, FEEDBACK = "Applied", "Available", "StatusFeedbackSynced"
AGGREGATE: Final = "open-cluster-management.io/aggregate-to-work"
"""The label of ClusterRoles whose rights the work agent gets."""
NAMESPACE: Final = "open-cluster-management-agent"
_REFUSED: Final = re.compile(
    r"not allowed to apply the resource (?P<group>\S*) (?P<resource>[^\s,]+), (?P<namespace>\S*) (?P<name>\S+?),"
    r"(?P<escalates> error: permission escalation,)? will try again"
)


@dataclass(frozen=True, slots=True)
class ManifestState:
    """One manifest of a work. ``conditions``: those of this generation by type; ``resource``: plural name, if the agent
    has said it; ``said``: whether the agent has said anything about it."""

    ordinal: int
    group: str
    kind: str
    namespace: str
    name: str
    resource: str = ""
    conditions: Mapping[str, Obj] = field(default_factory=dict)
    feedback: tuple[tuple[str, str], ...] = ()
    said: bool = False

    def status(self, kind: str) -> str:
        return str((self.conditions.get(kind) or {}).get("status") or "-")

    @property
    def failed(self) -> Obj | None:
        """The condition that says what is wrong, the most important first."""
        for kind in (APPLIED, AVAILABLE, FEEDBACK):
            if self.status(kind) == "False":
                return self.conditions[kind]
        for kind in ("Degraded", SHARED):
            if self.status(kind) == "True":
                return self.conditions[kind]
        return None

    @property
    def title(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


def manifest_states(work: Obj) -> list[ManifestState]:
    """Return the state of each manifest in the order of the spec."""
    listed: Sequence[Obj] = dig(work, "spec", "workload", "manifests") or ()
    entries: Sequence[Obj] = dig(work, "status", "resourceStatus", "manifests") or ()
    known = {dig(one, "resourceMeta", "ordinal"): one for one in entries}
    return [_state(ordinal, one, known.get(ordinal), generation(work)) for ordinal, one in enumerate(listed)]


def _state(ordinal: int, manifest: Obj, entry: Obj | None, number: int) -> ManifestState:
    gvk, meta = gvk_of(manifest), (entry or {}).get("resourceMeta") or {}
    same = (meta.get("kind") or gvk.kind, meta.get("name") or name_of(manifest)) == (gvk.kind, name_of(manifest))
    if entry is None or not same:
        return ManifestState(ordinal, gvk.group, gvk.kind, namespace_of(manifest), name_of(manifest))
    conditions = {
        str(one.get("type")): one
        for one in entry.get("conditions") or ()
        if one.get("observedGeneration") in (None, number)
    }
    values = tuple(
        (str(one.get("name")), _value(one.get("fieldValue") or {}))
        for one in dig(entry, "statusFeedback", "values") or ()
    )
    place = namespace_of(manifest) or str(meta.get("namespace") or "")
    resource = str(meta.get("resource") or "")
    return ManifestState(ordinal, gvk.group, gvk.kind, place, name_of(manifest), resource, conditions, values, True)


def _value(field_value: Mapping[str, Any]) -> str:
    for key in ("string", "integer", "boolean", "jsonRaw"):
        if field_value.get(key) is not None:
            value = field_value[key]
            return value if isinstance(value, str) else json.dumps(value)
    return ""


# -- what helps ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a failed manifest. ``text``: one line; ``objects``: to create on the cluster, as manifests;
    ``until``: when the agent tries again."""

    text: str = ""
    objects: tuple[Obj, ...] = ()
    until: datetime | None = None


def advice_for(work: Obj, state: ManifestState, now: datetime) -> Advice:
    """Return what helps a manifest whose condition Applied is False: which right is missing, and the objects that grant
    it."""
    condition = state.conditions.get(APPLIED) or {}
    message = str(condition.get("message") or "")
    refused = _REFUSED.search(message)
    if refused is not None:
        return _for_executor(work, state, refused, _next_try(condition, now))
    if missing_right(message) is not None:
        return _for_agent(message, state)
    for pattern, text in _KNOWN:
        if re.search(pattern, message, re.IGNORECASE):
            return Advice(text)
    return Advice()


_KNOWN: Final = (
    (r"conflict with", "let the other manager give the field up, or set serverSideApply.force in manifestConfigs"),
    (r"namespaces? \"?([^\" ]+)\"? not found", "put the Namespace into the work, before what lives in it"),
    (r"no matches for kind|could not find the requested", "install the definition of the kind on the cluster first"),
    (r"denied the request|ValidatingAdmissionPolicy", "the admission of the cluster refuses it: change the manifest"),
    (r"field is immutable", "delete the object on the cluster, or give it a new name"),
    (r"exceeded quota", "raise the quota on the cluster, or ask for less"),
    (r"is invalid", "correct the manifest in the work"),
)


def _next_try(condition: Obj, now: datetime) -> datetime | None:
    """Return when the agent tries a refused manifest again: every minute since it was refused."""
    since = time_or_none(condition.get("lastTransitionTime"))
    if since is None or now < since:
        return None
    rounds = int((now - since).total_seconds()) // RETRY_S + 1
    return since + timedelta(seconds=rounds * RETRY_S)


def _for_executor(work: Obj, state: ManifestState, refused: re.Match[str], until: datetime | None) -> Advice:
    try:
        namespace, account = executor_name(dig(work, "spec", "executor") or {})
    except ExecutorError:
        return Advice()
    resource = {key: refused[key] or "" for key in ("group", "resource", "namespace", "name")}
    verbs = ["create", "update", "patch", "get"]
    verbs += ["delete"] if owned_by_work(resource, dig(work, "spec", "deleteOption")) else []
    verbs += ["escalate", "bind"] if refused["escalates"] else []
    rule = {"apiGroups": [refused["group"]], "resources": [refused["resource"]], "verbs": verbs}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    where = f"in namespace {refused['namespace']}" if refused["namespace"] else "at the cluster scope"
    what = f"{refused['resource']}.{refused['group']}" if refused["group"] else refused["resource"]
    text = (
        f"on the cluster, give service account {namespace}/{account} the right to {', '.join(verbs)} {what} {where} "
        "(syncline work explain prints the objects)"
    )
    return Advice(text, _granting(f"work-{account}-{refused['resource']}", refused["namespace"], rule, subject), until)


def _granting(name: str, namespace: str, rule: Obj, subject: Obj) -> tuple[Obj, ...]:
    """Return the Role and RoleBinding that grant a rule, or those of the whole cluster."""
    rbac, scope = "rbac.authorization.k8s.io", "" if namespace else "Cluster"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"apiGroup": rbac, "kind": f"{scope}Role", "name": name}
    role = {"apiVersion": f"{rbac}/v1", "kind": f"{scope}Role", "metadata": metadata, "rules": [rule]}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": metadata,
        "roleRef": reference,
        "subjects": [subject],
    }
    return role, binding


def _for_agent(message: str, state: ManifestState) -> Advice:
    right = missing_right(message)
    assert right is not None, "the caller has looked"
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": verbs}
    name = f"work-agent-{right.resource}" + (f".{right.group}" if right.group else "")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": {AGGREGATE: "true"}},
        "rules": [rule],
    }
    what = f"{right.resource}.{right.group}" if right.group else right.resource
    text = (
        f'on the cluster, the agent may not {right.verb} {what}: a ClusterRole with the label {AGGREGATE}: "true" '
        f"gives it the right for {state.kind} (syncline work explain prints it)"
    )
    return Advice(text, (role,))
