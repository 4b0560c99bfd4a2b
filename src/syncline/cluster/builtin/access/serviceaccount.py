"""Create the ServiceAccount ``default`` and the root certificate's ConfigMap in every namespace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Create, Plan, Replace
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating, name_of, namespace_of

NAMESPACE = GroupKind("", "Namespace")
SERVICE_ACCOUNT = GroupKind("", "ServiceAccount")
CONFIG_MAP = GroupKind("", "ConfigMap")
ROOT_CA = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)  # Kubernetes' text, shown in the ConfigMap


@dataclass(frozen=True, slots=True)
class Observed:
    """``root_ca`` is None if it is missing; ``bundle`` is its correct content (PEM)."""

    namespace: str
    has_account: bool
    root_ca: Obj | None
    bundle: str


def plan(observed: Observed, now: datetime) -> Plan:
    """Create missing objects, repair changed ones."""
    actions: list[Create | Replace] = []
    if not observed.has_account:
        metadata = {"name": "default", "namespace": observed.namespace}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        actions.append(Create(account, "every namespace has one"))
    data = {"ca.crt": observed.bundle}
    if observed.root_ca is None:
        actions.append(Create(_root_ca(observed.namespace, data), "pods verify the API server by it"))
    elif observed.root_ca.get("data") != data:
        repaired = {key: value for key, value in observed.root_ca.items() if key != "binaryData"} | {"data": data}
        actions.append(Replace(repaired, "it was changed"))
    return Plan((tuple(actions),) if actions else (), why=f"defaults of namespace {observed.namespace}")


def _root_ca(namespace: str, data: dict[str, str]) -> Obj:
    metadata = {
        "name": ROOT_CA,
        "namespace": namespace,
        "annotations": {"kubernetes.io/description": _DESCRIPTION},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _namespace_of(name: str) -> Watch:
    kind = CONFIG_MAP if name == ROOT_CA else SERVICE_ACCOUNT

    def keys(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (ObjectRef("", NAMESPACE.kind, "", namespace_of(obj)),) if name_of(obj) == name else ()

    return Watch(kind, keys)


def namespace_defaults_controller(bundle: str) -> Controller[Observed]:
    """Return the controller; its key is a namespace, and ``bundle`` is the root certificate in PEM."""

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        """Return None for a terminating namespace, and until both kinds are listed."""
        namespace = cache.get(ref)
        if namespace is None or is_terminating(namespace):
            return None
        if not (cache.has_synced(SERVICE_ACCOUNT) and cache.has_synced(CONFIG_MAP)):
            return None
        account = cache.get(ObjectRef("", SERVICE_ACCOUNT.kind, ref.name, "default"))
        root_ca = cache.get(ObjectRef("", CONFIG_MAP.kind, ref.name, ROOT_CA))
        return Observed(ref.name, account is not None, root_ca, bundle)

    return Controller(
        name="namespace-defaults",
        kind=NAMESPACE,
        watches=(_namespace_of("default"), _namespace_of(ROOT_CA)),
        observe=observe,
        plan=plan,
    )
