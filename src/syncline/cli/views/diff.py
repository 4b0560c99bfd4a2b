"""Formats differences: a header per object and a unified diff. Masked objects in, text out."""

from __future__ import annotations

import difflib

from syncline.assembly.inspection.differences import ObjectDifference
from syncline.kube.objects import Obj, ObjectRef
from syncline.kube.yaml.loading import dump


def header(ref: ObjectRef) -> str:
    """Return ``===== group/Kind namespace/name ======``, as argocd prints it."""
    return f"===== {ref.group}/{ref.kind} {ref.namespace}/{ref.name} ======"


def object_text(obj: Obj | None) -> str:
    """Return YAML without managedFields; empty for a missing object."""
    if obj is None:
        return ""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return dump(obj | {"metadata": metadata})


def describe_difference(one: ObjectDifference) -> str:
    """Return the header and the changes of a sync: live lines with ``-``, wanted lines with ``+``."""
    lines = difflib.unified_diff(
        object_text(one.live).splitlines(), object_text(one.wanted).splitlines(), "live", "wanted", lineterm=""
    )
    return "\n".join([header(one.ref), *lines])
