"""The registry of served resources: built-in ones, and custom ones as their definitions change.

``assembly`` builds it once over a store. It follows the store's events, so a CustomResourceDefinition is served from
the write that makes it Established until its deletion. ``api`` reads it for every request, ``discovery`` and
controllers over all kinds do too. It never writes; ``definitions.py`` maintains a definition's status.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from syncline.cluster.resources.conversion import convert, hub_of
from syncline.cluster.resources.customresource import CustomVersion, custom_versions
from syncline.cluster.resources.definitionkind import DefinitionKind
from syncline.cluster.resources.fieldlabels import FieldLabels, field_labels_for
from syncline.cluster.resources.hosted import VERBS, Computed, Hosted
from syncline.cluster.resources.versions import version_order
from syncline.cluster.storage.store import Event, EventType, Store, Stored
from syncline.cluster.validation.engine.base import Strategy
from syncline.cluster.validation.strategy import strategy_for
from syncline.kube.objects import GVK, Obj, ResourceInfo
from syncline.kube.patching.fieldset import FieldSet
from syncline.kube.patching.managedfields import reset_fields
from syncline.kube.schema.model import Schema, schema_for
from syncline.kube.schema.resources import builtin_resources

CRDS = "apiextensions.k8s.io/customresourcedefinitions"
"""The storage resource of CustomResourceDefinitions."""

_SHARED_STORAGE = {("events.k8s.io", "events"): "/events"}
"""Resources that share the stored objects of another."""


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
"""Storage whose updates require a resourceVersion."""


_PACKAGES = {"": "core", "events.k8s.io": "core", "rbac.authorization.k8s.io": "rbac"}
"""Groups whose Go package differs from the group's first word."""


def package_of(group: str) -> str:
    """Return the Go package of a built-in group's types, which conversion errors name."""
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
"""Storage whose strategies reset fields other than ``spec`` (``GetResetFields``)."""


@dataclass(frozen=True, eq=False)
class Resource:
    """One served resource in one version, with what the verbs need."""

    info: ResourceInfo
    storage: str
    hub: GVK
    """The version in which objects are stored."""
    strategy: Strategy
    fields: FieldLabels
    custom: CustomVersion | None = None
    list_kind: str = ""
    head: bytes = field(default=b"", repr=False)
    """First bytes of an encoded stored object, which lists cut off to omit apiVersion and kind."""
    computed: Callable[[str], list[Stored]] | None = field(default=None, repr=False)
    """Returns the objects of a kind that is not stored, as they are visible in a namespace."""

    @cached_property
    def schema(self) -> Schema | None:
        return self.custom.schema if self.custom else schema_for(self.info.gvk)

    @cached_property
    def gvk(self) -> GVK:
        return self.info.gvk

    def shown(self, obj: Obj) -> Obj:
        """Return a stored object in this resource's version; raise InternalError if it cannot be converted."""
        if self.custom is not None:
            return self.custom.converted(self.custom.reread(obj))
        return convert(obj, self.gvk)

    def shown_of(self, stored: Stored) -> Obj:
        """As :meth:`shown`, decoding the stored object first if needed."""
        return self.shown(stored.obj)

    def shown_as_stored(self, stored: Stored) -> bool:
        """Return True if the stored bytes are the served bytes."""
        since = self.custom.since if self.custom is not None else 0
        return stored.revision >= since and stored.raw.startswith(self.head)

    def to_stored(self, obj: Obj) -> Obj:
        """Return an object of this version in its stored version; apiVersion and kind come first in its encoding."""
        hub = self.custom.in_storage(obj) if self.custom is not None else convert(obj, self.hub)
        if [*islice(hub, 2)] == ["apiVersion", "kind"]:
            return hub
        ordered: Obj = {"apiVersion": self.hub.api_version, "kind": self.hub.kind}
        ordered.update((key, value) for key, value in hub.items() if key not in ordered)
        return ordered

    def supports(self, verb: str) -> bool:
        return verb in self.info.verbs

    @property
    def unconditional_update(self) -> bool:
        """Return whether a PUT may omit resourceVersion (strategy ``AllowUnconditionalUpdate``)."""
        return self.custom is None and self.storage not in _CONDITIONAL

    def reset_fields(self, subresource: str) -> FieldSet | None:
        """Return the fields that an endpoint ignores in a client's object."""
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
    """Return the revision from which on objects conform to their schema: infinity if versions differ in schema, since
    an object may be written in one version and stored in another."""
    if any(root != version.root for root in version.roots.values()):
        return math.inf
    same = (each.since for each in before if each.roots == version.roots and each.preserve == version.preserve)
    return next(same, revision)


class Registry:
    """All served resources. Lookups are dictionary accesses; ``generation`` changes with the set of resources."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self._builtin_groups: set[str] = set()
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self._hosted: set[str] = set()
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
        """Return whether errors for unknown versions and resources of the group follow Kubernetes' own groups."""
        return group in self._builtin_groups

    def equivalents(self, resource: Resource) -> tuple[Resource, ...]:
        """Return the other versions and groups that serve the same objects."""
        if self._shared is None or self._shared[0] != self.generation:
            found: dict[str, list[Resource]] = {}
            for one in self.resources():
                found.setdefault(one.storage, []).append(one)
            self._shared = (self.generation, {key: tuple(some) for key, some in found.items() if len(some) > 1})
        return tuple(one for one in self._shared[1].get(resource.storage, ()) if one is not resource)

    def resources(self) -> Iterator[Resource]:
        """Yield built-in resources in discovery order, then custom ones by group, version and plural."""
        yield from (resource for resource in self._resources.values() if resource.custom is None)
        custom = [resource for resource in self._resources.values() if resource.custom is not None]
        yield from sorted(custom, key=lambda r: (r.info.group, version_order(r.info.version), r.info.plural))

    def versions_of(self, definition: str) -> tuple[Resource, ...]:
        """Return the served resources of a CustomResourceDefinition, by its name."""
        return self._custom.get(definition, ())

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change of the served resources."""
        self._listeners.append(listener)

    def host(self, hosted: Hosted) -> None:
        """Serve a kind whose objects are computed; a stored definition of its name does not count any more."""
        definition = hosted.established
        name = definition["metadata"]["name"]
        self._forget(name)
        for version in custom_versions(definition):
            resource = _custom(version)
            computed = Computed(self._store, hosted, resource.storage)
            self._add(replace(resource, info=replace(resource.info, verbs=VERBS), computed=computed))
        self._hosted.add(name)
        self._changed()

    # -- following the store --------------------------------------------------------------------------------------

    def _on_event(self, event: Event) -> None:
        if event.stored.key.resource != CRDS or event.stored.key.name in self._hosted:
            return
        if event.type is EventType.DELETED:
            self._forget(event.stored.key.name)
        else:
            self._learn(event.stored)
        self._changed()

    def _changed(self) -> None:
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
