"""Reads a ``values-secret`` file on this machine: versions 2.0 and 1.0 of the Validated Patterns' secrets loader.

Only a person's command reads it, never a controller and never from a repository: it names files of this machine. Its
backend ``kubernetes`` gives Secrets; ``vault`` is not served. Facts: validatedpatterns/rhvp.cluster_utils.
"""

from __future__ import annotations

import base64
import configparser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from syncline.base.secret import Secret
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import YamlError, load

MAX_BYTES: Final = 1024 * 1024
"""Size limit of the file, and of each file that it names."""
MAX_SECRETS: Final = 200
NAMESPACE: Final = "validated-patterns-secrets"
"""Where Secrets without a namespace go, as upstream's."""
KINDS: Final = ("value", "path", "ini_file")
FILES: Final = ("values-secret-{name}.yaml", "values-secret.yaml")
"""In the home folder, the first that exists."""


def secrets_of(path: Path) -> list[Obj]:
    """Return the Secrets that a file asks for. Raises CommandFailed; no text has a value."""
    try:
        loaded = load(_bytes(path), file=str(path))
    except YamlError as error:
        raise CommandFailed(f"{path}: not readable YAML, at {error.position}", USAGE) from None
    if not isinstance(loaded, Mapping):
        raise CommandFailed(f"{path}: found {type(loaded).__name__}, must be a mapping with secrets", USAGE)
    version = str(loaded.get("version") or "1.0")
    listed = loaded.get("secrets") or []
    if len(listed) > MAX_SECRETS:
        raise CommandFailed(f"{path}: found {len(listed)} secrets; at most {MAX_SECRETS}", USAGE)
    if version.startswith("2"):
        if (backend := str(loaded.get("backingStore") or "vault")) != "kubernetes":
            raise CommandFailed(f"{path}: backingStore: {backend} is not served; allowed is kubernetes", USAGE)
        return [one for entry in _entries(listed, path) for one in _of_entry(entry, path)]
    if not version.startswith("1"):
        raise CommandFailed(f"{path}: version: found {version!r}; allowed are 1.0 and 2.0", USAGE)
    return _of_first(loaded, path)


def _of_entry(entry: Mapping[str, Any], path: Path) -> list[Obj]:
    name = str(entry.get("name") or "")
    if not name:
        raise CommandFailed(f"{path}: a secret has no name", USAGE)
    fields: dict[str, Secret] = {}
    for field in _entries(entry.get("fields") or [], path):
        key = str(field.get("name") or "")
        if field.get("onMissingValue") == "generate":
            raise CommandFailed(f"{path}: {name}.{key}: values are generated in vault alone; give a value", USAGE)
        fields[key] = _value(field, f"{name}.{key}", path)
    spaces = entry.get("targetNamespaces") or [NAMESPACE]
    labels = {str(key): str(value) for key, value in (entry.get("labels") or {}).items()}
    annotations = {str(key): str(value) for key, value in (entry.get("annotations") or {}).items()}
    return [
        _secret(name, str(space), fields, labels, annotations, str(entry.get("type") or "Opaque")) for space in spaces
    ]


def _of_first(loaded: Mapping[str, Any], path: Path) -> list[Obj]:
    """Version 1.0: ``secrets`` has values by name and key, ``files`` paths."""
    made: dict[str, dict[str, Secret]] = {}
    for part, what in (("secrets", "value"), ("files", "path")):
        for name, fields in (loaded.get(part) or {}).items():
            if not isinstance(fields, Mapping):
                fields = {"content": fields}
            for key, value in fields.items():
                made.setdefault(str(name), {})[str(key)] = _value({what: value}, f"{name}.{key}", path)
    return [_secret(name, NAMESPACE, fields, {}, {}, "Opaque") for name, fields in made.items()]


def _value(field: Mapping[str, Any], what: str, path: Path) -> Secret:
    given = [kind for kind in KINDS if field.get(kind) is not None]
    if len(given) != 1:
        raise CommandFailed(f"{path}: {what}: give one of {', '.join(KINDS)}", USAGE)
    if given == ["value"]:
        content = str(field["value"]).encode()
    elif given == ["path"]:
        content = _bytes(_place(str(field["path"]), path))
    else:
        content = _of_ini(field, what, path).encode()
    if field.get("base64"):
        content = base64.b64encode(content)
    return Secret(content.decode("latin-1"))


def _of_ini(field: Mapping[str, Any], what: str, path: Path) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    place = _place(str(field["ini_file"]), path)
    try:
        parser.read_string(_bytes(place).decode())
        return parser.get(str(field.get("ini_section") or "default"), str(field.get("ini_key") or ""))
    except (configparser.Error, UnicodeDecodeError):
        raise CommandFailed(f"{path}: {what}: {place} has no such section or key", USAGE) from None


def _place(text: str, path: Path) -> Path:
    place = Path(text).expanduser()
    return place if place.is_absolute() else path.parent / place


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CommandFailed(f"{path} is larger than {MAX_BYTES} bytes", USAGE)
        return path.read_bytes()
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}", USAGE) from None


def _secret(
    name: str,
    namespace: str,
    fields: Mapping[str, Secret],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    kind: str,
) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace, "labels": dict(labels), "annotations": dict(annotations)}
    data = {key: base64.b64encode(value.reveal().encode("latin-1")).decode() for key, value in fields.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {key: value for key, value in metadata.items() if value},
        "type": kind,
        "data": data,
    }


def _entries(value: Any, path: Path) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise CommandFailed(f"{path}: secrets and fields are lists of mappings", USAGE)
    return value
