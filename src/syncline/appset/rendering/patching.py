"""Applies a rendered ``templatePatch`` to an Application: :func:`patched`.

Source of the rules: Argo CD ``applyTemplatePatch``: a strategic merge patch in which only finalizers are a list with a
strategy; the result is what Argo CD's types keep of it, with the project of before.
"""

from __future__ import annotations

import json
from typing import Any

from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.goforms import GO_SPACE, GoError, from_yaml, json_text
from syncline.argo.gotypes import APPLICATION, OMITTED, UnfitError, conform
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj
from syncline.kube.patching.strategic import strategic_merge_patch
from syncline.kube.schema.fieldcauses import quoted
from syncline.kube.schema.model import Schema

_SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {
                    "finalizers": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-patch-strategy": "merge",
                    },
                    "ownerReferences": {
                        "type": "array",
                        "items": {"type": "object"},
                        "x-kubernetes-patch-strategy": "merge",
                        "x-kubernetes-patch-merge-key": "uid",
                    },
                },
            }
        },
    }
)


def patched(app: Obj, text: str) -> Obj:
    """Return ``app`` (as Argo CD's types write it) with the patch; raises :class:`RenderError`."""
    patch, as_json = _read(text)
    try:
        conform(patch, APPLICATION)
    except UnfitError as error:
        raise RenderError(f"invalid templatePatch {quoted(as_json)}: {error}") from None
    try:
        merged = strategic_merge_patch(app, patch or {}, _SCHEMA)
    except ApiError as error:
        raise RenderError(f"error while applying templatePatch template to json {quoted(as_json)}: {error}") from None
    try:
        made: Any = conform(merged, APPLICATION)
    except UnfitError as error:
        raise RenderError(f"error while unmarhsalling patched application: {error}") from None
    if made is OMITTED:
        return app
    project = app["spec"]["project"]
    return {**made, "spec": {**made["spec"], "project": project}}


def _read(text: str) -> tuple[Any, str]:
    """Return a patch and its JSON text. What begins with a brace is JSON, anything else YAML."""
    if text.strip(GO_SPACE).startswith("{"):
        try:
            return json.loads(text), text
        except (ValueError, RecursionError) as error:
            at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip())
            why = "unexpected end of JSON input" if at_end else f"invalid JSON: {error}"
            raise RenderError(f"invalid templatePatch {quoted(text)}: {why}") from None
    try:
        patch = from_yaml(text)
    except GoError as error:
        raise RenderError(f"error while converting template to json {quoted(text)}: {error}") from None
    return patch, json_text(patch)
