"""PackageManifests: what catalogues offer, as objects that ``kubectl get packagemanifests`` lists in every namespace.

They are computed on request and never stored. Source: upstream's package server (``package-server/provider``): what a
global catalogue offers is visible everywhere, what another one offers in its own namespace alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from syncline.kube.kinds.operatorlifecycle import PACKAGE_MANIFEST
from syncline.kube.kinds.structure import AGE, ANY, STR, column, definition, items, kind_schema, obj
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.patterns.operators.catalogs.model import Bundle, Catalog, Channel, Entry, Package
from syncline.patterns.operators.catalogs.reading import csv_of

_COPIED: Final = ("keywords", "links", "maintainers", "maturity", "description", "installModes", "minKubeVersion")
_CONTAINERS: Final = ("initContainers", "containers")


def package_manifest_crd() -> Obj:
    """The kind as a definition, for discovery, columns and ``kubectl explain``; it is never stored."""
    texts = ("catalogSource", "catalogSourceDisplayName", "catalogSourceNamespace", "catalogSourcePublisher")
    deprecation = obj({"message": STR})
    entry = obj({"deprecation": deprecation, "name": STR, "version": STR})
    channel = obj(
        {
            "currentCSV": STR,
            "currentCSVDesc": ANY,
            "deprecation": deprecation,
            "entries": items(entry),
            "name": STR,
        }
    )
    status = obj(
        {
            **dict.fromkeys((*texts, "defaultChannel", "packageName"), STR),
            "channels": items(channel),
            "deprecation": deprecation,
            "provider": obj({"name": STR, "url": STR}),
        }
    )
    about = "A PackageManifest is a package of a catalogue: its channels and their newest versions."
    schema = kind_schema({"type": "object"}, status, about=about)
    columns = (column("Catalog", ".status.catalogSourceDisplayName"), AGE)
    return definition(PACKAGE_MANIFEST, "packagemanifests", schema, columns=columns, status=False, namespaced=True)


def visible(
    sources: Sequence[Obj], namespace: str, everywhere: str, offered: Callable[[Obj], Catalog | None]
) -> list[Obj]:
    """Return the PackageManifests of a namespace ("": all, each where its catalogue is), its own first.

    ``everywhere``: the namespace of global catalogues; ``offered``: the catalogue of a healthy CatalogSource.
    """
    places = dict.fromkeys((namespace, everywhere)) if namespace else sorted({namespace_of(one) for one in sources})
    made: list[Obj] = []
    for place in places:
        for source in sorted((one for one in sources if namespace_of(one) == place), key=name_of):
            catalog = offered(source)
            made += (_manifests(source, catalog, namespace or place)) if catalog is not None else ()
    return made


def _manifests(source: Obj, catalog: Catalog, namespace: str) -> Iterator[Obj]:
    for _, package in sorted(catalog.packages.items()):
        made = package_manifest(package, source, namespace)
        if made is not None:
            yield made


def package_manifest(package: Package, source: Obj, namespace: str) -> Obj | None:
    """Return the object for a package of a CatalogSource; None if the catalogue has no ClusterServiceVersion of it."""
    spec = source.get("spec") or {}
    heads = {name: _head(channel) for name, channel in sorted(package.channels.items())}
    shown = {name: csv for name, head in heads.items() if (csv := csv_of(head.bundle)) is not None}
    if not shown:
        return None
    default = package.default_channel if package.default_channel in shown else next(iter(shown))
    provider = dig(shown[default], "spec", "provider", default=None) or {}
    link = {key: str(provider[key]) for key in ("name", "url") if provider.get(key)}
    status: Obj = {
        "catalogSource": name_of(source),
        "catalogSourceDisplayName": str(spec.get("displayName") or ""),
        "catalogSourceNamespace": namespace_of(source),
        "catalogSourcePublisher": str(spec.get("publisher") or ""),
        "packageName": package.name,
        "defaultChannel": default,
        "channels": [_channel(package.channels[name], heads[name], csv) for name, csv in shown.items()],
        "provider": link,
    }
    if package.deprecated:
        status["deprecation"] = {"message": package.deprecated}
    metadata: Obj = {"name": package.name, "namespace": namespace, "labels": _labels(source, shown[default], link)}
    if created := dig(source, "metadata", "creationTimestamp", default=None):
        metadata["creationTimestamp"] = created
    version = f"{PACKAGE_MANIFEST.group}/{PACKAGE_MANIFEST.version}"
    return {
        "apiVersion": version,
        "kind": PACKAGE_MANIFEST.kind,
        "metadata": metadata,
        "spec": {},
        "status": status,
    }


def _labels(source: Obj, csv: Obj, provider: Obj) -> dict[str, str]:
    """Return labels of the CatalogSource, of the catalogue, and of the default version, which says where it runs."""
    made = {**labels_of(source), "catalog": name_of(source), "catalog-namespace": namespace_of(source)}
    made |= {"provider": provider.get("name", ""), "provider-url": provider.get("url", "")}
    made |= labels_of(csv)
    for part, usual in (("os", "linux"), ("arch", "amd64")):
        if not any(label.startswith(f"operatorframework.io/{part}") for label in made):
            made[f"operatorframework.io/{part}.{usual}"] = "supported"
    return made


def _head(channel: Channel) -> Entry:
    return next(one for one in channel.entries if one.name == channel.head)


def _channel(channel: Channel, head: Entry, csv: Obj) -> Obj:
    made: Obj = {
        "name": channel.name,
        "currentCSV": name_of(csv),
        "currentCSVDesc": _description(csv),
        "entries": [_entry(one.bundle) for one in _newest_first(channel.entries)],
    }
    return made | ({"deprecation": {"message": channel.deprecated}} if channel.deprecated else {})


def _newest_first(entries: Sequence[Entry]) -> list[Entry]:
    kept = [one for one in entries if not any(each.kind == "olm.deprecated" for each in one.bundle.properties)]
    versioned = [(one.bundle.version, one) for one in kept if one.bundle.version is not None]
    ordered = [one for _, one in sorted(versioned, key=lambda pair: pair[0], reverse=True)]
    return [*ordered, *(one for one in kept if one.bundle.version is None)]


def _entry(bundle: Bundle) -> Obj:
    made: Obj = {"name": bundle.name}
    made |= {"version": str(bundle.version)} if bundle.version is not None else {}
    return made | ({"deprecation": {"message": bundle.deprecated}} if bundle.deprecated else {})


def _description(csv: Obj) -> Obj:
    """Return what a channel says of its newest version (``CreateCSVDescription``), without the icon, as upstream."""
    spec: Obj = csv.get("spec") or {}
    shown: Obj = {key: spec[key] for key in _COPIED if spec.get(key)}
    if spec.get("displayName"):
        shown["displayName"] = spec["displayName"]
    annotations = dig(csv, "metadata", "annotations", default=None)
    shown |= {"annotations": dict(annotations)} if annotations else {}
    shown |= {"version": str(spec.get("version") or "0.0.0"), "provider": dict(spec.get("provider") or {})}
    shown["customresourcedefinitions"] = _described(spec, "customresourcedefinitions", "name", "version", "kind")
    shown["apiservicedefinitions"] = _described(spec, "apiservicedefinitions", "name", "group", "version", "kind")
    if spec.get("nativeAPIs"):
        shown["nativeApis"] = spec["nativeAPIs"]
    images = sorted({*_images(spec)})
    return shown | ({"relatedImages": images} if images else {})


def _described(spec: Obj, part: str, *fields: str) -> Obj:
    wanted = (*fields, "displayName", "description")
    made: Obj = {}
    for which in ("owned", "required"):
        given = dig(spec, part, which, default=None) or ()
        if given:
            made[which] = [{key: one[key] for key in wanted if key in one} for one in given]
    return made


def _images(spec: Obj) -> Iterator[str]:
    for deployment in dig(spec, "install", "spec", "deployments", default=None) or ():
        pod = dig(deployment, "spec", "template", "spec", default=None) or {}
        for one in (each for kind in _CONTAINERS for each in pod.get(kind) or ()):
            if isinstance(one, dict) and one.get("image"):
                yield str(one["image"])
    for one in spec.get("relatedImages") or ():
        if isinstance(one, dict) and one.get("image"):
            yield str(one["image"])
