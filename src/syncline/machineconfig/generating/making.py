"""Builds and writes the MachineConfigs that controllers generate. Entry points: :func:`made_config`, :func:`writes`."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence

from syncline.control.plan import Create, Replace
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG
from syncline.kube.objects import Obj, annotations_of, labels_of, meta, name_of
from syncline.machineconfig.configs.parsing import NEWEST_VERSION
from syncline.machineconfig.names import GENERATED_BY, ROLE
from syncline.machineconfig.render.rendering import Release


def file_of(path: str, text: str, mode: int = 0o644) -> Obj:
    """Return an Ignition file with overwrite; its empty compression marks it as uncompressed in later merges."""
    encoded = base64.b64encode(text.encode()).decode()
    contents = {"compression": "", "source": f"data:text/plain;charset=utf-8;base64,{encoded}"}
    return {"overwrite": True, "path": path, "contents": contents, "mode": mode}


def data_file(path: str, content: bytes, mode: int = 0o644) -> Obj:
    """Return an Ignition file of bytes that are no text."""
    source = f"data:;base64,{base64.b64encode(content).decode()}"
    return {"overwrite": True, "path": path, "contents": {"compression": "", "source": source}, "mode": mode}


def made_config(
    name: str,
    role: str,
    release: Release,
    *,
    files: Sequence[Obj] = (),
    units: Sequence[Obj] = (),
    owner: Obj | None = None,
    spec: Obj | None = None,
) -> Obj:
    """Return a MachineConfig of ``role`` with files and units; ``spec``: further fields."""
    config: Obj = {"ignition": {"version": NEWEST_VERSION}}
    if files:
        config["storage"] = {"files": list(files)}
    if units:
        config["systemd"] = {"units": list(units)}
    metadata: Obj = {"name": name, "labels": {ROLE: role}, "annotations": {GENERATED_BY: release.hash}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": MACHINE_CONFIG.api_version,
        "kind": MACHINE_CONFIG.kind,
        "metadata": metadata,
        "spec": {"config": config} | (spec or {}),
    }


def controller_reference(obj: Obj) -> Obj:
    """Return the owner reference of objects generated from ``obj``."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": name_of(obj),
        "uid": str(meta(obj).get("uid") or ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def writes(wanted: Iterable[Obj], existing: Mapping[str, Obj], why: str) -> tuple[Create | Replace, ...]:
    """Return the writes that make the MachineConfigs equal ``wanted``; they revert users' edits but keep labels and
    annotations."""
    found: list[Create | Replace] = []
    for config in wanted:
        old = existing.get(name_of(config))
        if old is None:
            found.append(Create(config, why))
            continue
        owners = meta(config).get("ownerReferences") or meta(old).get("ownerReferences") or []
        metadata = {
            **meta(old),
            "labels": labels_of(old) | labels_of(config),
            "annotations": annotations_of(old) | annotations_of(config),
            "ownerReferences": owners,
        }
        if not owners:
            metadata.pop("ownerReferences")
        new = {**old, "metadata": metadata, "spec": config["spec"]}
        if new != old:
            found.append(Replace(new, why))
    return tuple(found)
