"""ConfigMap and Secret generators: literals, files and environment files become data.

Called by ``plugins`` with the settings of one entry. Files come from the kustomization's folder. Values never appear
in errors. Source and texts: kustomize ``api/internal/generators`` and ``api/kv``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.resources.datamap import fill_data, fill_secret
from syncline.sources.kustomize.resources.resource import Behavior, Resource
from syncline.sources.kustomize.yaml.node import BOOL, STR, Kind, Node, Style, lookup_create, put, scalar, text


def merged_options(local: dict[str, Any] | None, common: dict[str, Any] | None) -> dict[str, Any]:
    """The options of one entry with those of ``generatorOptions``; the entry's own labels and annotations win."""
    own, shared = local or {}, common or {}
    made: dict[str, Any] = {
        name: {**(shared.get(name) or {}), **(own.get(name) or {})} for name in ("labels", "annotations")
    }
    for name in ("disableNameSuffixHash", "immutable"):
        made[name] = bool(own.get(name)) or bool(shared.get(name))
    return made


def generate_config_map(settings: dict[str, Any], folder: Folder) -> Resource:
    node = _base("ConfigMap", settings)
    fill_data(node, _values(settings, folder))
    return _finished(node, settings)


def generate_secret(settings: dict[str, Any], folder: Folder) -> Resource:
    node = _base("Secret", settings)
    put(node, "type", text(settings.get("type") or "Opaque"))
    fill_secret(node, _values(settings, folder))
    return _finished(node, settings)


def _base(kind: str, settings: dict[str, Any]) -> Node:
    if not settings.get("name"):
        raise BuildError("a configmap must have a name")
    node = Node(Kind.MAP)
    put(node, "apiVersion", scalar("v1", STR))
    put(node, "kind", scalar(kind, STR))
    metadata = lookup_create(node, ["metadata"], Kind.MAP)
    put(metadata, "name", text(settings["name"]))
    if settings.get("namespace"):
        put(metadata, "namespace", text(settings["namespace"]))
    return node


def _finished(node: Node, settings: dict[str, Any]) -> Resource:
    options = settings.get("options") or {}
    for name in ("labels", "annotations"):
        values = options.get(name) or {}
        for key in sorted(values):
            entry = Node(Kind.SCALAR, STR, values[key], Style.SINGLE)
            put(lookup_create(node, ["metadata", name], Kind.MAP), key, entry)
    if options.get("immutable"):
        put(node, "immutable", scalar("true", BOOL))
    made = Resource(node)
    made.notes.needs_hash = not options.get("disableNameSuffixHash")
    behavior = settings.get("behavior") or ""
    made.notes.behavior = Behavior(behavior) if behavior in tuple(Behavior) else Behavior.UNSPECIFIED
    return made


def _values(settings: dict[str, Any], folder: Folder) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    with about("loading KV pairs"):
        pairs = list(_pairs(settings, folder))
    for key, value in pairs:
        if key in made:
            raise BuildError(f"configmap {settings['name']} illegally repeats the key `{key}`")
        made[key] = value
    return made


def _pairs(settings: dict[str, Any], folder: Folder) -> Iterator[tuple[str, bytes]]:
    envs, literals, files = (settings.get(name) or [] for name in ("envs", "literals", "files"))
    with about(f"env source files: [{' '.join(envs)}]"):
        for name in envs:
            yield from env_pairs(folder.load(name))
    for literal in literals:
        key, separator, value = literal.partition("=")
        if not separator or not key:
            # The text may be a password that lacks its key, so it is not shown.
            raise BuildError("literal sources: invalid literal source, expected key=value")
        yield key, _unquoted(value).encode()
    with about(f"file sources: [{' '.join(files)}]"):
        for name in files:
            key, path = file_source(name)
            yield key, folder.load(path)


def env_pairs(content: bytes) -> Iterator[tuple[str, bytes]]:
    """``KEY=value`` lines; what follows the first ``=`` is taken as it is, comments and blank lines are skipped."""
    for number, raw in enumerate(_lines(content)):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise BuildError(f"line {number + 1} has invalid utf8 bytes") from None
        if number == 0:
            line = line.removeprefix("\ufeff")
        line = line.lstrip()
        if not line or line.startswith("#"):
            continue
        key, _, value = line.partition("=")
        if key:
            yield key, value.encode()


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def file_source(source: str) -> tuple[str, str]:
    """Key and path of an entry of ``files``: ``path`` or ``key=path``."""
    separators = source.count("=")
    if separators == 0:
        return posixpath.basename(source), source
    if separators > 1:
        raise BuildError(f"source \"{source}\" key name or file path contains '='")
    key, _, path = source.partition("=")
    if not key:
        raise BuildError(f'missing key name for file path "{path}" in source "{source}"')
    if not path:
        raise BuildError(f'missing file path for key name "{key}" in source "{source}"')
    return key, path


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def service_account_for_gke(settings: dict[str, Any]) -> Resource:
    """``IAMPolicyGenerator`` for GKE: a service account with the annotation that binds it."""
    if settings.get("cloud") != "gke":
        raise BuildError(f"cloud provider {settings.get('cloud') or ''} not supported yet")
    account, service = settings.get("serviceAccount") or {}, settings.get("kubernetesService") or {}
    node = Node(Kind.MAP)
    put(node, "apiVersion", scalar("v1", STR))
    put(node, "kind", scalar("ServiceAccount", STR))
    metadata = lookup_create(node, ["metadata"], Kind.MAP)
    address = f"{account.get('name', '')}@{account.get('projectId', '')}.iam.gserviceaccount.com"
    put(lookup_create(metadata, ["annotations"], Kind.MAP), "iam.gke.io/gcp-service-account", text(address))
    put(metadata, "name", text(service.get("name") or ""))
    if service.get("namespace"):
        put(metadata, "namespace", text(service["namespace"]))
    return Resource(node)
