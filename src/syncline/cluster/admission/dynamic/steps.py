"""Apply JSON patches step by step, with the errors of the library in Kubernetes (evanphx/json-patch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj
from syncline.kube.patching.patches import json_patch


class StepFailed(Exception):
    """``test``: a test operation failed."""

    def __init__(self, message: str, *, test: bool = False) -> None:
        super().__init__(message)
        self.test = test


def patched(value: Any, steps: Sequence[Obj]) -> Any:
    """Return ``value`` with all steps applied, without mutating it. Raises :class:`StepFailed`."""
    for step in steps:
        try:
            value = json_patch(value, [step])
        except ApiError:
            raise _failed(value, step) from None
    return value


def _failed(doc: Any, step: Obj) -> StepFailed:
    kind, path = str(step.get("op") or ""), str(step.get("path") or "")
    if kind == "test":
        return StepFailed(f"testing value {path} failed: test failed", test=True)
    if kind not in ("add", "remove", "replace", "move", "copy"):
        return StepFailed(f"Unexpected kind: {kind or 'unknown'}")
    found, key = _parent(doc, path)
    if kind == "remove" and isinstance(found, dict):
        return StepFailed(f"error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value")
    if kind == "replace" and isinstance(found, dict):
        return StepFailed(f"replace operation does not apply: doc is missing key: {path}: missing value")
    if isinstance(found, list) and kind in ("add", "remove", "replace"):
        return StepFailed(f"error in {kind} for path: '{path}': Unable to access invalid index: {key}: invalid index")
    if kind in ("move", "copy"):
        origin = step.get("from") or ""
        return StepFailed(f"{kind} operation does not apply: doc is missing from path: {origin}: missing value")
    return StepFailed(f'{kind} operation does not apply: doc is missing path: "{path}": missing value')


def _parent(doc: Any, path: str) -> tuple[Any, str]:
    """Return the container of a path's last part, or None, and that part."""
    *above, key = path.split("/")[1:] or [""]
    for part in above:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(doc, dict):
            doc = doc.get(part)
        elif isinstance(doc, list) and part.isdigit() and int(part) < len(doc):
            doc = doc[int(part)]
        else:
            return None, key
    return doc, key.replace("~1", "/").replace("~0", "~")
