"""Pod annotations that Kubernetes reads: mirrors, deletion cost, old security profiles.

The validators of pods and templates call it. Source: Kubernetes ``ValidatePodSpecificAnnotations``.
"""

from __future__ import annotations

import re
from typing import Any

from syncline.cluster.validation.engine.causes import forbidden, invalid
from syncline.cluster.validation.engine.paths import descending_path_causes
from syncline.cluster.validation.pods.security import visit
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

MIRROR = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP_POD, SECCOMP_CONTAINER = (
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/",
)
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def pod_annotation_causes(annotations: Any, spec: Obj, path: str) -> list[FieldCause]:
    found: Obj = annotations if isinstance(annotations, dict) else {}
    causes: list[FieldCause] = []
    if MIRROR in found and not spec.get("nodeName"):
        why = "must set spec.nodeName if mirror pod annotation is set"
        causes.append(invalid(f"{path}[{MIRROR}]", found[MIRROR], why))
    cost = found.get(DELETION_COST)
    if cost is not None and not (re.fullmatch("0|-?[1-9][0-9]*", cost) and -(2**31) <= int(cost) < 2**31):
        causes.append(invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer"))
    known = {container.get("name") for _, container in visit(spec, "")}
    for key, value in sorted(found.items()):
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            causes += _seccomp_causes(str(value), f"{path}.{key}")
        if key.startswith(APPARMOR):
            name = key.removeprefix(APPARMOR)
            if name not in known:
                causes.append(invalid(f"{path}[{key}]", name, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                causes.append(invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"'))
    return causes


def _seccomp_causes(value: str, path: str) -> list[FieldCause]:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return []
    if value.startswith("localhost/"):
        return descending_path_causes(value.removeprefix("localhost/"), path)
    return [invalid(path, value, "must be a valid seccomp profile")]


def pod_annotation_update_causes(new: Obj, old: Obj, path: str) -> list[FieldCause]:
    """Refuse changes of security profiles and the mirror annotation after creation."""
    fresh = (new.get("metadata") or {}).get("annotations") or {}
    before = (old.get("metadata") or {}).get("annotations") or {}
    causes: list[FieldCause] = []
    for key in sorted({*fresh, *before}):
        if fresh.get(key) == before.get(key) or not (key == MIRROR or key.startswith(APPARMOR)):
            continue
        what = "mirror pod annotation" if key == MIRROR else "AppArmor annotations"
        verb = "remove or update" if key in before else "add"
        causes.append(forbidden(f"{path}[{key}]", f"may not {verb} {what}"))
    return causes


def apparmor_field(value: str) -> Obj | None:
    """Return the field for an old annotation; None if it has no meaning."""
    match value:
        case "runtime/default":
            return {"type": "RuntimeDefault"}
        case "unconfined":
            return {"type": "Unconfined"}
        case _ if value.startswith("localhost/") and value.removeprefix("localhost/").strip():
            return {"type": "Localhost", "localhostProfile": value.removeprefix("localhost/")}
        case _:
            return None
