"""What one reconcile of a Pattern looks at: frozen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from syncline.control.cache import Snapshot
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.operatorlifecycle import OPERATOR_GROUP, SUBSCRIPTION
from syncline.kube.kinds.validatedpatterns import (
    ARGO_CD,
    CLUSTER_INGRESS,
    CLUSTER_VERSION,
    CONSOLE_LINK,
    INFRASTRUCTURE,
    PATTERN,
)
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, labels_of, meta, name_of, ref_of
from syncline.patterns.installing import origin
from syncline.patterns.installing.application import value_files
from syncline.patterns.installing.checkout import Checkout
from syncline.patterns.installing.config import ARGO, CONFIG_MAP, GITOPS_PACKAGE, LEGACY_ARGO, OperatorConfig, Places
from syncline.patterns.installing.pattern import LABEL, ClusterFacts, Pattern, with_defaults
from syncline.patterns.installing.reading import CheckoutStore, Found, Wanted

PATTERNS: Final = PATTERN.group_kind
NAMESPACES, CONFIG_MAPS, SECRETS = GroupKind("", "Namespace"), GroupKind("", "ConfigMap"), GroupKind("", "Secret")
BUNDLE: Final = "trusted-ca-bundle"
HUBS: Final = GroupKind("operator.open-cluster-management.io", "MultiClusterHub")
MANAGED: Final = "patterns.gitops.validatedpatterns.io/managed"
"""Annotation of a MultiClusterHub that the pattern is in charge of."""
LOCAL_CLUSTER: Final = "local-cluster"
TRACKING: Final = "argocd.argoproj.io/tracking-id"
COPY: Final = "vp-private-repo-credentials"


@dataclass(frozen=True)
class PatternObserved:
    """A Pattern with its defaults, and what is there of what it needs. ``None``: not there."""

    read: Obj = field(repr=False)
    """The Pattern as it is in the cluster."""
    pattern: Pattern
    places: Places
    config: OperatorConfig
    there: Mapping[str, Obj] = field(repr=False)
    """By :data:`PARTS`; ``subscription group`` is any OperatorGroup of the Subscription's namespace."""
    served: frozenset[GroupKind] = frozenset()
    unread: str = ""
    duplicate_of: str = ""
    """An older Pattern; only one is allowed."""
    elsewhere: str = ""
    """Why a Pattern of this namespace is not acted on."""
    openshift: bool = False
    wanted: Wanted = field(default_factory=lambda: Wanted("", ""))
    found: Found | None = None
    reading: bool = False
    origin: Found | None = None
    origin_reading: bool = False
    applications: tuple[Obj, ...] = field(default=(), repr=False)
    """Those with the pattern's label, and those that the parent made."""
    drawn: str = field(default="", repr=False)
    """A password that nothing has yet."""
    clusters: tuple[str, ...] = ()
    """Managed clusters but for the hub itself."""

    def get(self, part: str) -> Obj | None:
        return self.there.get(part)

    @property
    def pattern_ref(self) -> ObjectRef:
        return ref_of(self.read)

    @property
    def checkout(self) -> Checkout:
        return self.found.checkout if self.found is not None else Checkout()

    @property
    def children(self) -> list[Obj]:
        """Applications that the parent Application made."""
        prefix = f"{self.pattern.application_name}:argoproj.io/Application:"
        return [one for one in self.applications if annotations_of(one).get(TRACKING, "").startswith(prefix)]

    @property
    def is_hub(self) -> bool:
        """The pattern is in charge of a hub."""
        hub = self.get("hub")
        return hub is not None and annotations_of(hub).get(MANAGED, "").lower() == "true"

    @property
    def origin_wanted(self) -> Wanted | None:
        first, target = self.pattern.git("originRepo"), self.pattern.git("targetRepo")
        same = first == target and self.pattern.git("originRevision") == self.pattern.git("targetRevision")
        return Wanted(first, self.pattern.git("originRevision")) if first and target and not same else None


def observe_pattern(
    cache: Snapshot, ref: ObjectRef, store: CheckoutStore, namespaces: frozenset[str], draw: Callable[[], str]
) -> PatternObserved | None:
    """Return what a reconcile needs; None: the Pattern is gone. ``namespaces``: where Patterns are acted on; ``draw``
    returns a new password."""
    obj = cache.get(ref)
    if obj is None:
        return None
    legacy = cache.get(ObjectRef(*ARGO_CD.group_kind, LEGACY_ARGO, LEGACY_ARGO)) is not None
    argo = LEGACY_ARGO if legacy else ARGO
    places = Places(ref.namespace, argo, argo)
    facts, openshift = _facts(cache)
    pattern = with_defaults(obj, facts)
    refs = _refs(pattern, places)
    named = {part: one for part, place in refs.items() if (one := cache.get(place)) is not None}
    for one in cache.objects(OPERATOR_GROUP.group_kind, places.subscription_namespace)[:1]:
        named["subscription group"] = one
    unread = next((why for place in refs.values() if (why := cache.unread(place))), "")
    wanted = _wanted(pattern)
    found = store.get(wanted)
    apps = cache.objects(APPLICATION.group_kind)
    observed = PatternObserved(
        obj,
        pattern,
        places,
        OperatorConfig((named.get("config") or {}).get("data") or {}),
        named,
        served=frozenset(info.group_kind for info in cache.mapper.all()),
        unread=unread,
        duplicate_of=_older(cache, obj),
        elsewhere=_elsewhere(ref.namespace, namespaces),
        openshift=openshift,
        wanted=wanted,
        found=found,
        reading=store.is_reading(wanted),
        drawn=draw() if origin.wants_git_server(pattern) else "",
        applications=tuple(one for one in apps if _is_ours(one, pattern)),
        clusters=tuple(
            name_of(one) for one in cache.objects(MANAGED_CLUSTER.group_kind) if name_of(one) != LOCAL_CLUSTER
        ),
    )
    source = observed.origin_wanted
    if source is None:
        return observed
    return replace(observed, origin=store.get(source), origin_reading=store.is_reading(source))


def _refs(pattern: Pattern, places: Places) -> dict[str, ObjectRef]:
    argo = places.argo_namespace
    found = {
        "config": ObjectRef(*CONFIG_MAPS, places.operator_namespace, CONFIG_MAP),
        "subscription namespace": ObjectRef(*NAMESPACES, "", places.subscription_namespace),
        "subscription": ObjectRef(*SUBSCRIPTION.group_kind, places.subscription_namespace, GITOPS_PACKAGE),
        "argo namespace": ObjectRef(*NAMESPACES, "", argo),
        "bundle": ObjectRef(*CONFIG_MAPS, argo, BUNDLE),
        "argocd": ObjectRef(*ARGO_CD.group_kind, argo, places.argo_name),
        "link": ObjectRef(*CONSOLE_LINK.group_kind, "", f"{places.argo_name}-gitops-link"),
        "application": ObjectRef(*APPLICATION.group_kind, argo, pattern.application_name),
        "group namespace": ObjectRef(*NAMESPACES, "", pattern.application_name),
        "hub": ObjectRef(*HUBS, "open-cluster-management", "multiclusterhub"),
    }
    if token := pattern.git("tokenSecret"):
        found["token"] = ObjectRef(*SECRETS, pattern.git("tokenSecretNamespace"), token)
        found["token copy"] = ObjectRef(*SECRETS, argo, COPY)
        found["token copy of the group"] = ObjectRef(*SECRETS, pattern.application_name, COPY)
    if origin.wants_git_server(pattern):
        found["git namespace"] = ObjectRef(*NAMESPACES, "", origin.NAMESPACE)
        found["git secret"] = ObjectRef(*SECRETS, origin.NAMESPACE, origin.SECRET)
        found["git application"] = ObjectRef(*APPLICATION.group_kind, argo, origin.APPLICATION)
    return found


def _wanted(pattern: Pattern) -> Wanted:
    names = {*value_files(pattern, Checkout(), ""), *value_files(pattern, Checkout.of({"variants/x": b""}), "")}
    return Wanted(pattern.git("targetRepo"), pattern.git("targetRevision"), tuple(sorted(names)))


def _facts(cache: Snapshot) -> tuple[ClusterFacts, bool]:
    version = cache.get(ObjectRef(*CLUSTER_VERSION.group_kind, "", "version"))
    infrastructure = cache.get(ObjectRef(*INFRASTRUCTURE.group_kind, "", "cluster"))
    ingress = cache.get(ObjectRef(*CLUSTER_INGRESS.group_kind, "", "cluster"))
    history = dig(version, "status", "history") or ()
    done = next((one.get("version") for one in history if one.get("state") == "Completed"), None)
    number = str(done or dig(version, "status", "desired", "version") or "")
    return (
        ClusterFacts(
            cluster_id=str(dig(version, "spec", "clusterID") or ""),
            platform=str(dig(infrastructure, "spec", "platformSpec", "type") or ""),
            version=".".join(number.split(".")[:2]),
            domain=str(dig(ingress, "spec", "domain") or ""),
        ),
        version is not None,
    )


def _older(cache: Snapshot, obj: Obj) -> str:
    mine = (str(meta(obj).get("creationTimestamp") or ""), ref_of(obj))
    for one in cache.objects(PATTERNS):
        if (str(meta(one).get("creationTimestamp") or ""), ref_of(one)) < mine:
            return f"{ref_of(one).namespace}/{name_of(one)}"
    return ""


def _elsewhere(namespace: str, namespaces: Iterable[str]) -> str:
    allowed = sorted(namespaces)
    return "" if namespace in allowed else f"Patterns are acted on in {', '.join(allowed)}; this one is in {namespace}"


def _is_ours(app: Obj, pattern: Pattern) -> bool:
    tracked = annotations_of(app).get(TRACKING, "")
    return labels_of(app).get(LABEL) == pattern.name or tracked.startswith(f"{pattern.application_name}:")
