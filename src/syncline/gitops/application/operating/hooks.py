"""``syncline.dev/run-hook: on-change``: a hook that runs only when its inputs changed; pure.

Its inputs are its own manifest and those that ``syncline.dev/hook-inputs`` lists as ``KIND/NAME``, separated by commas.
A successful operation notes them on the Application; after a failure the hook runs again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

import msgspec

from syncline.apply.annotations import OPERATION
from syncline.gitops.sync.model import Pair
from syncline.kube.objects import Obj, annotations_of, gvk_of, meta, name_of, ref_of
from syncline.kube.schema.extensions import json_note

RUN = "syncline.dev/run-hook"
"""Annotation of a hook: ``on-change``; otherwise it runs in every sync, as upstream."""
INPUTS = "syncline.dev/hook-inputs"
NOTED = "syncline.dev/hooks-run"
"""Annotation of an Application: JSON object of hook to the hash of the inputs of its last run."""
LENGTH = 16
MAX_NOTED = 150
"""Limit of noted hooks, which bounds the annotation; further ones run in every sync."""


def _key(hook: Obj) -> str:
    return f"{gvk_of(hook).kind}/{name_of(hook) or meta(hook).get('generateName') or ''}"


def _digest(hook: Obj, pairs: Iterable[Pair]) -> str:
    wanted = {part.strip() for part in annotations_of(hook).get(INPUTS, "").split(",") if part.strip()}
    inputs = [_bare(hook)]
    for pair in pairs:
        if pair.target is not None and f"{ref_of(pair.target).kind}/{name_of(pair.target)}" in wanted:
            inputs.append(_bare(pair.target))
    return hashlib.sha256(msgspec.json.encode(inputs, order="deterministic")).hexdigest()[:LENGTH]


def _bare(obj: Obj) -> Obj:
    """Return the object without fields that differ between operations."""
    annotations = {key: value for key, value in annotations_of(obj).items() if key != OPERATION}
    return obj | {"metadata": {**meta(obj), "annotations": annotations}}


def _noted(app: Obj) -> dict[str, str]:
    found = json_note(app, NOTED)
    return found if isinstance(found, dict) else {}


def hooks_to_run(app: Obj, hooks: Sequence[Obj], pairs: Sequence[Pair]) -> tuple[Obj, ...]:
    """Return ``hooks`` without on-change hooks whose inputs are unchanged."""
    noted = _noted(app)
    return tuple(
        hook
        for hook in hooks
        if annotations_of(hook).get(RUN) != "on-change" or noted.get(_key(hook)) != _digest(hook, pairs)
    )


def noted_hooks(hooks: Sequence[Obj], pairs: Sequence[Pair]) -> dict[str, str | None]:
    """Return the annotation to write when an operation succeeds; empty if no hook runs on change."""
    asking = [hook for hook in hooks if annotations_of(hook).get(RUN) == "on-change"]
    found = {_key(hook): _digest(hook, pairs) for hook in asking[:MAX_NOTED]}
    return {NOTED: json.dumps(found, sort_keys=True, separators=(",", ":"))} if found else {}
