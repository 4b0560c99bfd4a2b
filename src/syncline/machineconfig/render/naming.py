"""Names a rendered MachineConfig: ``rendered-POOL-`` and a digest of its spec. Entry point: :func:`rendered_name`.

The same content has the same name, so a reverted change restores the old name and causes no reboot. The digest covers
the YAML that Go writes for the typed spec, byte for byte, without metadata. Source: reference machine-config 2.2,
``pkg/controller/render/hash.go``.
"""

from __future__ import annotations

import hashlib
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.yaml import loading as yaml

PREFIX = "rendered-"

_SALT = bytes.fromhex(
    "107ccee48b38afaf4fe586769d9ad36e195d2ffdac6a2507ae0da0b96e115734"
    "db830cceda8d7487bcb5c097e93e7ea54053b3770fa8d0c5926b3ae385bcee1a"
    "211aebca20ad1fea2990944f06ce1716"
)
"""Upstream's 80 bytes; without them all names would differ from those in a cluster."""

_ZERO: Obj = {
    "baseOSExtensionsContainerImage": "",
    "config": None,
    "extensions": None,
    "fips": False,
    "kernelArguments": None,
    "kernelType": "",
    "osImageURL": "",
}


def typed_spec(spec: Obj | None) -> Obj:
    """Return the spec with exactly upstream's seven fields; missing ones have Go's zero value."""
    given = spec or {}
    typed: dict[str, Any] = {}
    for key, zero in _ZERO.items():
        value = given.get(key)
        typed[key] = zero if value is None else value
    return typed


def spec_yaml(spec: Obj | None) -> str:
    """Return the text that the digest covers."""
    return yaml.dump_typed(typed_spec(spec))


def rendered_name(pool: str, spec: Obj | None) -> str:
    """Return the name: ``rendered-worker-0123…``."""
    digest = hashlib.md5(_SALT + spec_yaml(spec).encode(), usedforsecurity=False)
    return f"{PREFIX}{pool}-{digest.hexdigest()}"
