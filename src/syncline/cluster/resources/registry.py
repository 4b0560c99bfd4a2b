"""What this API serves: built-in resources, and custom ones as their definitions come and go.

Built once by ``assembly`` over a store; follows the store's events, so that a CustomResourceDefinition is served from
the write that makes it Established on and no longer after its deletion. Asked by ``api`` for every request, by
``discovery`` and by controllers that walk all kinds. Never writes; ``definitions.py`` keeps a definition's status.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from syncline.cluster.resources.conversion import convert, hub_of
from syncline.cluster.resources.customresource import CustomVersion, custom_versions
from syncline.cluster.resources.definitionkind import DefinitionKind
from syncline.cluster.resources.fieldlabels import FieldLabels, field_labels_for
from syncline.cluster.resources.versions import version_order
from syncline.cluster.storage.store import Event, EventType, Store, Stored
from syncline.cluster.validation.engine.base import Strategy
from syncline.cluster.validation.strategy import strategy_for
from syncline.kube.errors import InternalError
from syncline.kube.objects import GVK, Obj, ResourceInfo
from syncline.kube.patching.fieldset import FieldSet
from syncline.kube.patching.managedfields import reset_fields
from syncline.kube.schema.model import Schema, schema_for
from syncline.kube.schema.resources import builtin_resources

__all__ = ["CRDS", "Registry", "Resource", "package_of"]

CRDS = "apiextensions.k8s.io/customresourcedefinitions"
"""The storage resource of CustomResourceDefinitions."""

_SHARED_STORAGE = {("events.k8s.io", "events"): "/events"}
"""Resources that are another face of a stored one."""


_CONDITIONAL = frozenset(
    {
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingadmissionpolicies",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "apiextensions.k8s.io/customresourcedefinitions",
        "apiregistration.k8s.io/apiservices",
        "coordination.k8s.io/leases",
        "node.k8s.io/runtimeclasses",
        "policy/poddisruptionbudgets",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/csinodes",
        "storage.k8s.io/csistoragecapacities",
        "storage.k8s.io/volumeattachments",
    }
)
"""Storage whose updates must name the version they change."""


_PACKAGES = {"": "core", "events.k8s.io": "core", "rbac.authorization.k8s.io": "rbac"}
"""Groups whose Go package is not called like the first word of the group."""


def package_of(group: str) -> str:
    """The Go package of a built-in group's types; refusals of conversions name it."""
    return _PACKAGES.get(group) or group.partition(".")[0]


_REQUESTS = "certificates.k8s.io/certificatesigningrequests"
_SPEC_AND_METADATA = ("spec", "metadata")
_RESET_BY_STATUS: dict[tuple[str, str], tuple[str, ...]] = {
    ("/pods", "status"): ("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
    ("apps/deployments", "status"): ("spec", "metadata.labels"),
    (_REQUESTS, "status"): ("spec", "status.conditions"),
    (_REQUESTS, "approval"): ("spec", "status.certificate"),
    (CRDS, "status"): _SPEC_AND_METADATA,
    ("admissionregistration.k8s.io/validatingadmissionpolicies", "status"): _SPEC_AND_METADATA,
    ("apiregistration.k8s.io/apiservices", "status"): _SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io/flowschemas", "status"): _SPEC_AND_METADATA,
    ("flowcontrol.apiserver.k8s.io/prioritylevelconfigurations", "status"): _SPEC_AND_METADATA,
    ("networking.k8s.io/servicecidrs", "status"): _SPEC_AND_METADATA,
    ("resource.k8s.io/resourceclaims", "status"): _SPEC_AND_METADATA,
    ("storage.k8s.io/volumeattachments", "status"): _SPEC_AND_METADATA,
}
"""Storage whose strategies reset more, or other fields, than ``spec`` (``GetResetFields``)."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served resource in one version, with all that the verbs need to know of it."""

    info: ResourceInfo
    storage: str
    hub: GVK
    """The version objects are stored in."""
    strategy: Strategy
    fields: FieldLabels
    custom: CustomVersion | None = None
    list_kind: str = ""
    head: bytes = field(default=b"", repr=False)
    """How the encoded form of a stored object begins, for lists that leave apiVersion and kind out of their items."""

    @property
    def schema(self) -> Schema | None:
        return self.custom.schema if self.custom else schema_for(self.info.gvk)

    @property
    def gvk(self) -> GVK:
        return self.info.gvk

    def shown(self, obj: Obj) -> Obj:
        """A stored object in this resource's version; raises InternalError where it cannot be converted."""
        if self.custom is not None:
            return self.custom.converted(self.custom.reread(obj))
        return convert(obj, self.info.gvk)

    def shown_of(self, stored: Stored) -> Obj:
        """As :meth:`shown`; what is stored is decoded first where it is not yet."""
        return self.shown(stored.obj)

    def shown_as_stored(self, stored: Stored) -> bool:
        """True when the stored bytes are the served bytes."""
        since = self.custom.since if self.custom is not None else 0
        return stored.revision >= since and stored.raw.startswith(self.head)

    def to_stored(self, obj: Obj) -> Obj:
        """An object of this version as it is kept; apiVersion and kind come first in its encoding."""
        custom = self.custom
        if custom is not None and custom.called and obj.get("apiVersion") != self.hub.api_version:
            why = f"{custom.definition} converts by a webhook, which is not called here; use {self.hub.api_version}"
            raise InternalError(f"conversion webhook for {obj.get('apiVersion')}, Kind={self.hub.kind} failed: {why}")
        hub = convert(obj, self.hub)
        ordered: Obj = {"apiVersion": self.hub.api_version, "kind": self.hub.kind}
        ordered.update((key, value) for key, value in hub.items() if key not in ordered)
        return ordered

    def supports(self, verb: str) -> bool:
        return verb in self.info.verbs

    @property
    def unconditional_update(self) -> bool:
        """Whether a PUT may leave out resourceVersion (strategy ``AllowUnconditionalUpdate``)."""
        return self.custom is None and self.storage not in _CONDITIONAL

    def reset_fields(self, subresource: str) -> FieldSet | None:
        """What an endpoint does not write, a client that sends it."""
        if subresource in ("status", "approval"):
            paths = _RESET_BY_STATUS.get((self.storage, subresource))
            return reset_fields(*(paths or (("spec", "metadata") if self.custom else ("spec",))))
        if "status" in self.info.subresources and not subresource:
            return reset_fields("spec", "status") if self.storage == _REQUESTS else reset_fields("status")
        return None


def _head(gvk: GVK) -> bytes:
    return f'{{"apiVersion":"{gvk.api_version}","kind":"{gvk.kind}",'.encode()


def _strategy(info: ResourceInfo) -> Strategy:
    if info.kind == "CustomResourceDefinition" and info.group == "apiextensions.k8s.io":
        return DefinitionKind()
    return strategy_for(info.group_kind)


def _builtin(info: ResourceInfo) -> Resource:
    storage = _SHARED_STORAGE.get((info.group, info.plural), f"{info.group}/{info.plural}")
    return Resource(
        info,
        storage,
        hub_of(info.gvk),
        _strategy(info),
        field_labels_for(info.gvk),
        None,
        f"{info.kind}List",
        _head(info.gvk),
    )


def _custom(version: CustomVersion) -> Resource:
    info = version.info
    return Resource(
        info,
        f"{info.group}/{info.plural}",
        GVK(info.group, version.storage_version, info.kind),
        version.strategy,
        field_labels_for(info.gvk, custom=True, selectable=version.selectable_fields),
        version,
        version.list_kind,
        _head(info.gvk),
    )


def _since(version: CustomVersion, before: list[CustomVersion], revision: int) -> float:
    """From which revision on objects are as their schema wants them: never, where versions have schemas of their own,
    since an object is written in one of them and stored in another."""
    if any(root != version.root for root in version.roots.values()):
        return math.inf
    same = (each.since for each in before if each.roots == version.roots and each.preserve == version.preserve)
    return next(same, revision)


class Registry:
    """See the module. Lookups are dictionary accesses; ``generation`` moves whenever the set of resources does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._builtin_groups: set[str] = set()
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self._by_kind: dict[GVK, Resource] = {}
        self._listeners: list[Callable[[], None]] = []
        self._shared: tuple[int, dict[str, tuple[Resource, ...]]] | None = None
        self.generation = 0
        for info in builtin_resources():
            self._add(_builtin(info))
            self._builtin_groups.add(info.group)
        for stored in store.list(CRDS):
            self._learn(stored)
        store.subscribe(self._on_event)

    # -- asking ---------------------------------------------------------------------------------------------------

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def of_kind(self, gvk: GVK) -> Resource | None:
        return self._by_kind.get(gvk)

    def is_builtin_group(self, group: str) -> bool:
        """Whether unknown versions and resources of this group are answered as Kubernetes' own groups answer."""
        return group in self._builtin_groups

    def equivalents(self, resource: Resource) -> tuple[Resource, ...]:
        """The other versions and groups in which the same objects are served."""
        if self._shared is None or self._shared[0] != self.generation:
            found: dict[str, list[Resource]] = {}
            for one in self.resources():
                found.setdefault(one.storage, []).append(one)
            self._shared = (self.generation, {key: tuple(some) for key, some in found.items() if len(some) > 1})
        return tuple(one for one in self._shared[1].get(resource.storage, ()) if one is not resource)

    def resources(self) -> Iterator[Resource]:
        """Built-in resources in discovery order, then custom ones by group, version and plural."""
        yield from (resource for resource in self._resources.values() if resource.custom is None)
        custom = [resource for resource in self._resources.values() if resource.custom is not None]
        yield from sorted(custom, key=lambda r: (r.info.group, version_order(r.info.version), r.info.plural))

    def versions_of(self, definition: str) -> tuple[Resource, ...]:
        """The served resources of one CustomResourceDefinition, by its name."""
        return self._custom.get(definition, ())

    def listen(self, listener: Callable[[], None]) -> None:
        """Call this after the set of served resources changed."""
        self._listeners.append(listener)

    # -- following the store --------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if event.stored.key.resource != CRDS:
            return
        if event.type is EventType.DELETED:
            self._forget(event.stored.key.name)
        else:
            self._learn(event.stored)
        self.generation += 1
        for listener in self._listeners:
            listener()

    def _learn(self, stored: Stored) -> None:
        before = [each.custom for each in self._custom.get(stored.key.name, ()) if each.custom is not None]
        self._forget(stored.key.name)
        versions = sorted(custom_versions(stored.obj), key=lambda v: version_order(v.info.version))
        for version in versions:
            version.since = _since(version, before, stored.revision)
        served = tuple(_custom(version) for version in versions)
        self._custom[stored.key.name] = served
        for resource in served:
            self._add(resource)

    def _forget(self, definition: str) -> None:
        for resource in self._custom.pop(definition, ()):
            self._resources.pop((resource.info.group, resource.info.version, resource.info.plural), None)
            self._by_kind.pop(resource.gvk, None)

    def _add(self, resource: Resource) -> None:
        info = resource.info
        self._resources[(info.group, info.version, info.plural)] = resource
        self._by_kind.setdefault(info.gvk, resource)
