"""The kinds of OLM's second generation, which are served here and have no controller: ``olm.operatorframework.io/v1``.

Fields, types, rules and columns as upstream's (operator-framework/operator-controller, standard channel); the
descriptions are ours.
"""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    AGE,
    CONDITION,
    INT32,
    SELECTOR,
    STR,
    TIME,
    Fields,
    column,
    condition_column,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    obj,
)
from syncline.kube.objects import GVK, Obj

GROUP = "olm.operatorframework.io"
CLUSTER_EXTENSION = GVK(GROUP, "v1", "ClusterExtension")
CLUSTER_CATALOG = GVK(GROUP, "v1", "ClusterCatalog")

_SUBDOMAIN = r'self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")'
_TELLS = (
    "must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods "
    "(.), start and end with an alphanumeric character, and be no longer than 253 characters"
)


def _rules(*pairs: tuple[str, str]) -> Obj:
    return {"x-kubernetes-validations": [{"message": message, "rule": rule} for message, rule in pairs]}


def _subdomain(field: str, immutable: str) -> Obj:
    return STR | {"maxLength": 253} | _rules((immutable, "self == oldSelf"), (f"{field} {_TELLS}", _SUBDOMAIN))


def _catalog() -> Obj:
    """Return the schema of ``spec.source.catalog``; a range of versions is not checked."""
    channel = STR | {"maxLength": 253} | _rules(("channels entries must be valid DNS1123 subdomains", _SUBDOMAIN))
    policy = enum("CatalogProvided", "SelfCertified") | {"default": "CatalogProvided"}
    fields: Fields = {
        "channels": items(channel) | {"maxItems": 256},
        "packageName": _subdomain("packageName", "packageName is immutable"),
        "selector": SELECTOR,
        "upgradeConstraintPolicy": policy,
        "version": STR | {"maxLength": 64},
    }
    return obj(fields, "packageName")


def cluster_extension_crd() -> Obj:
    """``clusterextensions``."""
    label = r'self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")'
    namespace = STR | {"maxLength": 63}
    namespace |= _rules(
        ("namespace is immutable", "self == oldSelf"), ("namespace must be a valid DNS1123 label", label)
    )
    account = _subdomain("name", "name is immutable once set but may be cleared") | {"minLength": 1}
    safety = obj({"enforcement": enum("None", "Strict")}, "enforcement")
    given = "at least one of [crdUpgradeSafety] are required when preflight is specified"
    preflight = obj({"crdUpgradeSafety": safety}, "crdUpgradeSafety") | _rules((given, "has(self.crdUpgradeSafety)"))
    given = "at least one of [preflight] are required when install is specified"
    install = obj({"preflight": preflight}) | _rules((given, "has(self.preflight)"))
    source = obj({"catalog": _catalog(), "sourceType": enum("Catalog")}, "sourceType") | _rules(
        (
            "catalog is required when sourceType is Catalog, and forbidden otherwise",
            "has(self.sourceType) && self.sourceType == 'Catalog' ? has(self.catalog) : !has(self.catalog)",
        )
    )
    spec: Fields = {
        "install": install,
        "namespace": namespace,
        "serviceAccount": obj({"name": account}) | {"minProperties": 1},
        "source": source,
    }
    bundle = obj({"name": STR, "version": STR}, "name", "version")
    status: Fields = {"conditions": keyed(CONDITION, "type"), "install": obj({"bundle": bundle}, "bundle")}
    about = "A ClusterExtension is an operator that OLM v1 installs; no controller of this kind is here."
    schema = kind_schema(obj(spec, "namespace", "source"), obj(status), about=about)
    columns = (
        column("Installed Bundle", ".status.install.bundle.name"),
        column("Version", ".status.install.bundle.version"),
        condition_column("Installed", "Installed"),
        condition_column("Progressing", "Progressing"),
        AGE,
    )
    return definition(CLUSTER_EXTENSION, "clusterextensions", schema, columns=columns)


def cluster_catalog_crd() -> Obj:
    """``clustercatalogs``."""
    reference = STR | {"maxLength": 1000}
    image = obj({"pollIntervalMinutes": {"type": "integer", "minimum": 1}, "ref": reference}, "ref") | _rules(
        (
            "cannot specify pollIntervalMinutes while using digest-based image",
            "self.ref.find('(@.*:)') != \"\" ? !has(self.pollIntervalMinutes) : true",
        )
    )
    given = (
        "image is required when source type is Image, and forbidden otherwise",
        "has(self.type) && self.type == 'Image' ? has(self.image) : !has(self.image)",
    )
    spec: Fields = {
        "availabilityMode": enum("Unavailable", "Available") | {"default": "Available"},
        "priority": INT32 | {"default": 0, "maximum": 2147483647, "minimum": -2147483648},
        "source": obj({"image": image, "type": enum("Image")}, "type") | _rules(given),
    }
    resolved = obj({"image": obj({"ref": reference}, "ref"), "type": enum("Image")}, "image", "type")
    status: Fields = {
        "conditions": keyed(CONDITION, "type"),
        "lastUnpacked": TIME,
        "resolvedSource": resolved | _rules(given),
        "urls": obj({"base": STR | {"maxLength": 525}}, "base"),
    }
    about = "A ClusterCatalog is a catalogue of OLM v1; no controller of this kind is here."
    schema = kind_schema(obj(spec, "source"), obj(status), "metadata", "spec", about=about)
    columns = (column("LastUnpacked", ".status.lastUnpacked", "date"), condition_column("Serving", "Serving"), AGE)
    return definition(CLUSTER_CATALOG, "clustercatalogs", schema, columns=columns)


def extension_crds() -> tuple[Obj, ...]:
    return cluster_extension_crd(), cluster_catalog_crd()
