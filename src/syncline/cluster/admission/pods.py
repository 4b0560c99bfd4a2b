"""Add defaults to every Pod (plug-ins Priority, ServiceAccount, DefaultTolerationSeconds, TaintNodes).

The chain calls it with a Pod or Node that the request owns; changed in place.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.admission import runtimeclasses
from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.storage.store import Key, Store
from syncline.kube.objects import Obj, dig

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_LIFETIME_S = 3607
"""One hour and seven seconds: Kubernetes' mark for tokens of clients that may not reload them."""

TOLERATION_S = 300
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
MIRROR = "kubernetes.io/config.mirror"

_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def admit(store: Store, attempt: Attempt, pod: Obj) -> None:
    spec: Obj = pod.setdefault("spec", {})
    if MIRROR not in (dig(pod, "metadata", "annotations") or {}):
        _give_account(store, attempt, spec)
    tolerate_short_failures(spec)
    _prioritise(store, attempt, spec)
    runtimeclasses.admit(store, attempt, spec)


# --- service account -----------------------------------------------------------------------------------------------


def _give_account(store: Store, attempt: Attempt, spec: Obj) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    stored = store.get(Key("/serviceaccounts", attempt.namespace, name))
    if stored is None:
        where = f"{attempt.namespace}/{name}"
        raise forbid(attempt, f'error looking up service account {where}: serviceaccount "{name}" not found')
    account = stored.obj
    if _automounts(account, spec):
        _mount_token(attempt, spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]


def _automounts(account: Obj, spec: Obj) -> bool:
    """Return whether to mount the token: the Pod decides, then the account; the default is True."""
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount_token(attempt: Attempt, spec: Obj) -> None:
    containers = [*_list(spec, "initContainers"), *_list(spec, "containers")]
    needy = [container for container in containers if not _has_token_mount(container)]
    if not needy:
        return
    volumes: list[Obj] = spec.get("volumes") or []
    name = _token_volume_name(volumes) or f"kube-api-access-{attempt.entropy.suffix()}"
    if not any(volume.get("name") == name for volume in volumes):
        spec["volumes"] = [*volumes, _token_volume(name)]
    for container in needy:
        mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def _list(spec: Obj, field: str) -> list[Obj]:
    value: Any = spec.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _has_token_mount(container: Obj) -> bool:
    return any(mount.get("mountPath") == TOKEN_PATH for mount in _list(container, "volumeMounts"))


def _token_volume_name(volumes: list[Obj]) -> str:
    """Return the token volume that an earlier admission of the same template added."""
    return next((str(v["name"]) for v in volumes if str(v.get("name", "")).startswith("kube-api-access-")), "")


def _token_volume(name: str) -> Obj:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources: list[Obj] = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_LIFETIME_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}


# --- tolerations and priority --------------------------------------------------------------------------------------


def tolerate_short_failures(spec: Obj) -> None:
    """Tolerate unreachable nodes for five minutes; an update that omits the tolerations gets them again."""
    tolerations = _list(spec, "tolerations")
    missing = [key for key in (NOT_READY, UNREACHABLE) if not any(_tolerates(t, key) for t in tolerations)]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_S} for key in missing
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _tolerates(toleration: Obj, key: str) -> bool:
    same_key = toleration.get("key", "") in (key, "")
    return same_key and toleration.get("effect", "") in ("NoExecute", "")


def _prioritise(store: Store, attempt: Attempt, spec: Obj) -> None:
    name = spec.get("priorityClassName")
    policy, value = "PreemptLowerPriority", 0
    if name in _SYSTEM_PRIORITIES:
        value = _SYSTEM_PRIORITIES[name]
    elif name:
        stored = store.get(Key("scheduling.k8s.io/priorityclasses", "", name))
        if stored is None:
            raise forbid(attempt, f"no PriorityClass with name {name} was found")
        value, policy = stored.obj.get("value", 0), stored.obj.get("preemptionPolicy", policy)
    else:
        default = _default_class(store)
        if default is not None:
            spec["priorityClassName"] = default["metadata"]["name"]
            value, policy = default.get("value", 0), default.get("preemptionPolicy", policy)
    if spec.get("priority") not in (None, value):
        raise forbid(
            attempt,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
            "admission controller computed 0 from the given PriorityClass name"
            if not name
            else f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name",
        )
    spec["priority"] = value
    if spec.get("preemptionPolicy") not in (None, policy):
        raise forbid(
            attempt,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def _default_class(store: Store) -> Obj | None:
    """Return the global default class with the highest value, or None."""
    classes = [s.obj for s in store.list("scheduling.k8s.io/priorityclasses") if s.obj.get("globalDefault")]
    return max(classes, key=lambda c: (c.get("value", 0), c["metadata"]["name"]), default=None)


def taint_new_node(node: Obj) -> None:
    """Taint a new node until its condition is Ready (plug-in TaintNodesByCondition)."""
    spec: Obj = node.setdefault("spec", {})
    taints = _list(spec, "taints")
    if not any(t.get("key") == NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
