"""Judges the collections of a playbook: each is pinned, there, and of the version that was named; pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from syncline.kube.yaml import loading as yaml
from syncline.kube.yaml.nodes import YamlError
from syncline.machineconfig.ansible.content import Files
from syncline.machineconfig.ansible.examining import COLLECTIONS


def collection_refusals(
    pinned: Sequence[Mapping[str, Any]], files: Files, used: Iterable[tuple[str, str]]
) -> list[str]:
    """Return why the collections of ``spec.collections`` do not do. ``used``: modules and roles with their places."""
    versions = {str(one.get("name")): str(one.get("version")) for one in pinned}
    found: list[str] = []
    for name, version in sorted(versions.items()):
        there = version_in(files, name)
        folder = f"{COLLECTIONS}/{name.replace('.', '/')}"
        if there is None:
            found.append(f"spec.collections: {name} is not in {folder} of the repository; commit it there")
        elif there != version:
            found.append(f"spec.collections: {name} is pinned to {version}, and {folder} holds {there or 'no version'}")
    for module, place in used:
        name = ".".join(module.split(".")[:2])
        if name not in versions:
            found.append(f"{place}: {module} needs collection {name}; name it with its version in spec.collections")
    return found


def version_in(files: Files, name: str) -> str | None:
    """Return the version of a collection in the repository; empty: it names none; None: it is not there."""
    folder = f"{COLLECTIONS}/{name.replace('.', '/')}/"
    if not any(path.startswith(folder) for path in files):
        return None
    manifest, galaxy = (files.get(folder + each) for each in ("MANIFEST.json", "galaxy.yml"))
    try:
        found: Any = None
        if manifest is not None:
            found = json.loads(manifest.content).get("collection_info")
        elif galaxy is not None:
            found = yaml.load(galaxy.content)
        return str(found.get("version") or "") if isinstance(found, dict) else ""
    except (ValueError, YamlError, AttributeError, RecursionError):
        return ""
