"""PackageManifests: what a catalogue offers, as objects that ``kubectl get packagemanifests`` lists.

Fields as upstream's package server makes them. They are objects of a definition here, in the namespace of their
catalogue; upstream's extension API server shows those of the global namespace in every namespace.
"""

from __future__ import annotations

from syncline.kube.kinds.operatorlifecycle import PACKAGE_MANIFEST
from syncline.kube.kinds.structure import AGE, ANY, STR, column, definition, items, kind_schema, obj
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.patterns.operators.catalogs.model import Bundle, Channel, Package
from syncline.patterns.operators.catalogs.reading import csv_of

MANIFESTS = PACKAGE_MANIFEST.group_kind
_SHOWN = (
    *("displayName", "icon", "version", "provider", "keywords", "links", "maintainers", "maturity", "description"),
    *("installModes", "customresourcedefinitions", "apiservicedefinitions", "minKubeVersion"),
)


def catalog_labels(name: str, namespace: str) -> dict[str, str]:
    return {"catalog": name, "catalog-namespace": namespace}


def package_manifest_crd() -> Obj:
    """``packagemanifests``."""
    texts = ("catalogSource", "catalogSourceDisplayName", "catalogSourceNamespace", "catalogSourcePublisher")
    link = obj({"name": STR, "url": STR})
    channel = obj({"currentCSV": STR, "currentCSVDesc": ANY, "deprecation": ANY, "entries": items(ANY), "name": STR})
    status = obj(
        {
            **dict.fromkeys((*texts, "defaultChannel", "packageName"), STR),
            "channels": items(channel),
            "deprecation": obj({"message": STR}),
            "provider": link,
        }
    )
    about = "A PackageManifest is a package of a catalogue: its channels and their newest versions."
    schema = kind_schema({"type": "object"}, status, about=about)
    columns = (column("Catalog", ".status.catalogSourceDisplayName"), AGE)
    return definition(PACKAGE_MANIFEST, "packagemanifests", schema, columns=columns, status=False, namespaced=True)


def package_manifest(package: Package, source: Obj, digest: str) -> Obj:
    """Return the object for a package of a CatalogSource."""
    spec = source.get("spec") or {}
    default = package.channels[package.default_channel]
    head = next(one.bundle for one in default.entries if one.name == default.head)
    provider = dig(csv_of(head) or {}, "spec", "provider", default=None) or {}
    labels = {**catalog_labels(name_of(source), namespace_of(source)), "syncline.dev/catalog-digest": digest}
    if provider.get("name"):
        labels["provider"] = "".join(char if char.isalnum() else "-" for char in str(provider["name"]))[:63].strip("-")
    status: Obj = {
        "catalogSource": name_of(source),
        "catalogSourceDisplayName": str(spec.get("displayName") or name_of(source)),
        "catalogSourceNamespace": namespace_of(source),
        "catalogSourcePublisher": str(spec.get("publisher") or ""),
        "packageName": package.name,
        "defaultChannel": package.default_channel,
        "channels": [_channel(one) for one in package.channels.values()],
        "provider": dict(provider),
    }
    if package.deprecated:
        status["deprecation"] = {"message": package.deprecated}
    return {
        "apiVersion": f"{PACKAGE_MANIFEST.group}/{PACKAGE_MANIFEST.version}",
        "kind": PACKAGE_MANIFEST.kind,
        "metadata": {"name": package.name, "namespace": namespace_of(source), "labels": labels},
        "status": status,
    }


def _channel(channel: Channel) -> Obj:
    head = next(one.bundle for one in channel.entries if one.name == channel.head)
    entries = [{"name": one.name, "version": str(one.bundle.version or "")} for one in channel.entries]
    made: Obj = {
        "name": channel.name,
        "currentCSV": channel.head,
        "currentCSVDesc": _description(head),
        "entries": entries,
    }
    return made | ({"deprecation": {"message": channel.deprecated}} if channel.deprecated else {})


def _description(bundle: Bundle) -> Obj:
    csv = csv_of(bundle) or {}
    spec = csv.get("spec") or {}
    shown = {key: spec[key] for key in _SHOWN if spec.get(key)}
    annotations = dig(csv, "metadata", "annotations", default=None) or {}
    return shown | ({"annotations": annotations} if annotations else {})
