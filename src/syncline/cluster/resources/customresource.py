"""Custom resources: one served version of a CustomResourceDefinition, and the strategy of its objects.

The registry creates these from a stored definition; the verbs use them like a built-in kind's schema and strategy.
``kube/schema/custom/structural.py`` evaluates schemas; this module never reads or writes the store.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from syncline.cluster.resources.versions import version_order
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine.base import Context
from syncline.cluster.validation.engine.metadata import common_update_causes, finalizer_warnings, metadata_causes
from syncline.kube.errors import FieldCause, InternalError
from syncline.kube.kinds.addonversions import CONVERSIONS
from syncline.kube.objects import Obj, ResourceInfo, annotations_of, dig
from syncline.kube.schema.custom import structural
from syncline.kube.schema.custom.embedded import coerce_embedded, coerce_root, embedded_objects, object_places
from syncline.kube.schema.custom.rules import check_rules
from syncline.kube.schema.extensions import SIMULATED_SERVER
from syncline.kube.schema.model import Schema

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""Verbs in Kubernetes' order for custom resources."""


class CustomVersion:
    """One served version: ``spec.versions[]`` of a definition, and values derived from it."""

    def __init__(self, crd: Obj, version: Obj) -> None:
        spec, names = crd["spec"], dig(crd, "status", "acceptedNames", default={})
        self.definition: str = crd["metadata"]["name"]
        self.raw = version
        self.root: Obj = dig(version, "schema", "openAPIV3Schema", default={})
        self.has_status = dig(version, "subresources", "status") is not None
        self.scale: Obj | None = dig(version, "subresources", "scale")
        self.columns: list[Obj] = version.get("additionalPrinterColumns") or []
        self.selectable_fields = tuple(f["jsonPath"] for f in version.get("selectableFields") or ())
        self.list_kind: str = names.get("listKind") or f"{names['kind']}List"
        self.storage_version = next(v["name"] for v in spec["versions"] if v.get("storage"))
        self.preserve = bool(spec.get("preserveUnknownFields"))
        self.roots: dict[str, Obj] = {
            v["name"]: dig(v, "schema", "openAPIV3Schema", default={}) for v in spec["versions"]
        }
        simulated = SIMULATED_SERVER in annotations_of(crd)
        self.called = dig(spec, "conversion", "strategy") == "Webhook" and not simulated
        """The definition has a conversion webhook, so versions differ in more than ``apiVersion``. None is called:
        kinds of :data:`CONVERSIONS` are converted here, others are refused."""
        self.since: float = 0
        """Objects written from this revision on were pruned and defaulted by these schemas."""
        self.info = _info(spec, names, version, self)
        self.deprecation = _deprecation(crd, version)
        self.terminating = bool(dig(crd, "metadata", "deletionTimestamp"))
        self.strategy = CustomStrategy(self)

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_openapi(self.root, resource=True)

    @cached_property
    def places(self) -> Obj:
        """Return the part of the schema that leads to embedded objects; empty: it allows none."""
        # The root is an object itself, but not an embedded one.
        return object_places({**self.root, "x-kubernetes-embedded-resource": False}) or {}

    def pruned(self, obj: Obj, known: Obj | None = None) -> tuple[Obj, list[str]]:
        """Return the object without unknown fields, and those fields (``unknown field "spec.x"``). ``known``: the
        stored object; what is the same Python object in it is not looked at.

        Raises :class:`MetadataError` if the metadata of the object or of an embedded one is malformed.
        """
        obj, unknown = coerce_root(obj)
        if not self.preserve:
            kept = structural.prune(obj, self.schema, known)
            unknown += [] if kept is obj else structural.unknown_fields(obj, self.schema)
            obj = kept
        if self.places:
            before = known or {}
            fresh = {name: part for name, part in obj.items() if name not in before or part is not before[name]}
            if embedded_objects(fresh, self.places):
                fresh = msgspec.json.decode(msgspec.json.encode(fresh))
                unknown += coerce_embedded(fresh, self.places)
                obj = {**obj, **fresh}
        return obj, unknown

    @cached_property
    def _schemas(self) -> dict[str, Schema]:
        return {name: Schema.from_openapi(root, resource=True) for name, root in self.roots.items()}

    def reread(self, stored: Obj) -> Obj:
        """Return a stored object pruned and defaulted by its version's current schema (apiextensions
        ``schemaCoercingDecoder`` and ``unstructuredDefaulter``); the same object if nothing changes."""
        revision = (stored.get("metadata") or {}).get("resourceVersion")
        schema = self._schemas.get(str(stored.get("apiVersion")).rpartition("/")[2])
        if not revision or int(revision) >= self.since or schema is None:
            return stored
        return structural.fill_defaults(stored if self.preserve else structural.prune(stored, schema), schema)

    def converted(self, obj: Obj) -> Obj:
        """Return the object in this version. Raises InternalError if that needs a conversion webhook."""
        changed = self._changed(obj, self.info.api_version)
        return changed if changed is obj or self.preserve else structural.prune(changed, self.schema)

    def in_storage(self, obj: Obj) -> Obj:
        """Return an object of this version in the stored one, with its defaults. Raises as :meth:`converted`."""
        changed = self._changed(obj, f"{self.info.group}/{self.storage_version}")
        return changed if changed is obj else structural.fill_defaults(changed, self._schemas[self.storage_version])

    def _changed(self, obj: Obj, version: str) -> Obj:
        given = str(obj.get("apiVersion"))
        if given == version:
            return obj
        if not self.called:
            return {**obj, "apiVersion": version}
        change = CONVERSIONS.get((given, version, self.info.kind))
        if change is None:
            other = version if given == self.info.api_version else given
            why = f"{self.definition} converts by a webhook, which is not called here; use {other}"
            raise InternalError(f"conversion webhook for {given}, Kind={self.info.kind} failed: {why}")
        return change(obj)

    def fill_defaults(self, obj: Obj, known: Obj | None = None) -> None:
        """Fill in defaults in place; the request owns the object. ``known``: the stored object, as above."""
        filled = structural.fill_defaults(obj, self.schema, known)
        if filled is not obj:
            kept = msgspec.json.decode(msgspec.json.encode(filled))
            obj.clear()
            obj.update(kept)


def _info(spec: Obj, names: Obj, version: Obj, custom: CustomVersion) -> ResourceInfo:
    subresources = (("status",) if custom.has_status else ()) + (("scale",) if custom.scale is not None else ())
    return ResourceInfo(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        spec["scope"] == "Namespaced",
        VERBS,
        subresources,
        names.get("singular", ""),
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
    )


def _deprecation(crd: Obj, version: Obj) -> str:
    """Return the warning for requests to a deprecated version; "" for other versions."""
    if not version.get("deprecated"):
        return ""
    given = version.get("deprecationWarning")
    if given:
        return str(given)
    spec = crd["spec"]
    kind, group = spec["names"]["kind"], spec["group"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    newer = [v["name"] for v in spec["versions"] if v.get("served") and not v.get("deprecated")]
    return f"{text}; use {group}/{min(newer, key=version_order)} {kind}" if newer else text


def custom_versions(crd: Obj) -> list[CustomVersion]:
    """Return the served versions of an established definition."""
    conditions = {c.get("type"): c.get("status") for c in dig(crd, "status", "conditions", default=[])}
    if conditions.get("Established") != "True" or not dig(crd, "status", "acceptedNames", "kind"):
        return []
    return [CustomVersion(crd, version) for version in crd["spec"]["versions"] if version.get("served")]


class CustomStrategy:
    """Prepares and validates custom resources for storage (apiextensions ``customResourceStrategy``)."""

    has_generation = True
    warns_of_status = False
    grace_s = 0

    def __init__(self, version: CustomVersion) -> None:
        self._version = version

    @property
    def has_status(self) -> bool:
        return self._version.has_status

    def convert(self, obj: Obj) -> None:
        """Do nothing: custom resources are stored as given."""

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        if self.has_status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        if subresource == "status":
            self._keep_all_but_status(new, old)
            return
        if self.has_status:
            _keep(new, old, "status")
        if _content(new, self.has_status) != _content(old, self.has_status):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def _keep_all_but_status(self, new: Obj, old: Obj) -> None:
        managed = new["metadata"].get("managedFields")
        status = new.get("status")
        for key in [key for key in new if key != "status"]:
            del new[key]
        new.update({key: value for key, value in old.items() if key != "status"})
        new["metadata"] = {**old["metadata"]}
        if managed is not None:
            new["metadata"]["managedFields"] = managed
        if status is None:
            new.pop("status", None)

    def validate_create(self, obj: Obj) -> list[FieldCause]:
        causes = metadata_causes(obj, names.dns_subdomain, namespaced=self._version.info.namespaced, custom=True)
        return causes + self._validate(obj, None)

    def validate_update(self, new: Obj, old: Obj, subresource: str) -> list[FieldCause]:
        causes = common_update_causes(new, old, namespaced=self._version.info.namespaced, custom=True)
        return causes + self._validate(new, old)

    def _validate(self, obj: Obj, old: Obj | None) -> list[FieldCause]:
        schema = self._version.schema
        found = structural.validate(obj, schema, old) + _scale_causes(obj, self._version.scale)
        if self._version.places:
            found += _embedded_metadata(obj, self._version.places)
        return found + check_rules(obj, old, schema, found)

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        return finalizer_warnings(new, old)


def _embedded_metadata(obj: Obj, raw: Obj) -> list[FieldCause]:
    """Validate the metadata of embedded objects; they may lack a name."""
    found: list[FieldCause] = []
    for inside, path in embedded_objects(obj, raw):
        metadata = inside.get("metadata")
        if isinstance(metadata, dict):
            named = {"metadata": {**metadata, "name": metadata.get("name") or "fakename"}}
            spaced = bool(metadata.get("namespace"))
            found += metadata_causes(named, names.path_segment, namespaced=spaced, path=f"{path}.metadata", custom=True)
    return found


def _keep(new: Obj, old: Obj, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def _content(obj: Obj, without_status: bool) -> Obj:
    """Return what counts for ``generation``: all but metadata, and but status if it is a subresource."""
    return {key: value for key, value in obj.items() if key != "metadata" and not (without_status and key == "status")}


def _scale_causes(obj: Obj, scale: Obj | None) -> list[FieldCause]:
    """Refuse negative replica counts of the scale subresource."""
    causes = []
    for path in (scale.get("specReplicasPath"), scale.get("statusReplicasPath")) if scale else ():
        value: Any = dig(obj, *str(path).strip(".").split("."))
        if isinstance(value, int) and value < 0:
            message = f"Invalid value: {value}: should be a non-negative integer"
            causes.append(FieldCause("FieldValueInvalid", message, str(path)))
    return causes
