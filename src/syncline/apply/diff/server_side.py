"""Evaluates the API server's dry run of an apply.

Called by the diff in mode ``server-side``. Changes that admission webhooks made to fields of others are reverted,
unless the settings include them. Pure: the dry-run result is in the settings. Rules: gitops-engine ``pkg/diff``
``ServerSideDiff``.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from syncline.apply.diff.jq import gathered
from syncline.apply.diff.managers import owned_fields
from syncline.apply.diff.model import MANAGER, DiffError, DiffSettings
from syncline.apply.diff.normalize import normalize
from syncline.apply.diff.structured import resolved_schema, without_last_applied
from syncline.apply.diff.typed import remarshal
from syncline.kube.objects import Obj, gvk_of, meta, name_of
from syncline.kube.patching import fieldset
from syncline.kube.patching.fieldset import FieldSet
from syncline.kube.patching.typedvalues import compare, merge, remove_items, type_errors


def predict_dry_run(target: Obj, live: Obj, settings: DiffSettings) -> tuple[Obj, Obj]:
    """Return live and predicted object, without managed fields. Raises DiffError."""
    named = f"{gvk_of(target).kind}/{name_of(target)}"
    answer = settings.dry_run
    if answer is None:
        raise DiffError(
            f"serverSideDiff error: error running server side apply in dryrun mode for resource {named}: "
            f"{settings.dry_run_error or 'the API server gave no answer'}"
        )
    if not settings.include_mutation_webhook:
        try:
            answer = _without_mutations(answer, live, settings)
        except DiffError as error:
            text = f"error removing non config mutations for resource {named}: {error}"
            raise DiffError(f"serverSideDiff error: {text}") from error
    live, predicted = gathered(
        partial(normalize, live, settings), partial(normalize, remarshal(answer), settings)
    )  # ignored fields are removed only here: ownership needs the whole objects
    return _bare(live), _bare(predicted)


def _bare(obj: Obj) -> Obj:
    """Remove fields that every write changes, and the last-applied annotation."""
    metadata = {key: value for key, value in meta(obj).items() if key not in ("managedFields", "resourceVersion")}
    return without_last_applied(obj | {"metadata": metadata} if "metadata" in obj else obj)


def _without_mutations(answer: Obj, live: Obj, settings: DiffSettings) -> Obj:
    """Return the dry-run result with the live values of all fields that are not ours."""
    entries = meta(answer).get("managedFields")
    if not entries or not isinstance(entries, list):
        raise DiffError(
            f"predictedLive for resource {gvk_of(answer).kind}/{name_of(answer)} must have the managedFields"
        )
    schema = resolved_schema(answer, settings)
    for which, one in (("predicted live", answer), ("live", live)):
        errors = type_errors(one, schema)
        if errors:
            gvk = gvk_of(answer)
            kind = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
            raise DiffError(f"error converting {which} state from unstructured to {kind}: {'; '.join(errors)}")
    ours = _fields_of_manager(entries)
    if not ours:
        raise DiffError(f"no managed fields found for manager: {MANAGER}")
    changes = compare(live, answer, schema)
    foreign = fieldset.difference(fieldset.union(changes.added, changes.modified), ours)
    reduced = remove_items(answer, _removable(foreign, ours), schema, nulls=True)
    merged = merge(live, reduced, schema)
    return remove_items(merged, changes.removed, schema, nulls=True) if changes.removed else merged


def _fields_of_manager(entries: list[Any]) -> FieldSet:
    ours: FieldSet = {}
    for entry in entries:
        if isinstance(entry, dict) and entry.get("manager") == MANAGER:
            ours = fieldset.union(ours, owned_fields(entry))
    return ours


def _removable(fields: FieldSet, ours: FieldSet) -> FieldSet:
    """Return the removable fields: not a parent of a field of ours, and not the key field of a list item, as an item
    without its key fits no schema."""
    made: FieldSet = {}
    for path in fieldset.members(fields):
        holder = path[-2] if len(path) > 1 else ""
        is_key = holder.startswith("k:") and path[-1].removeprefix("f:") in json.loads(holder.removeprefix("k:"))
        if not is_key and not _holds_more(ours, path):
            fieldset.insert(made, list(path), {})
    return made


def _holds_more(fields: FieldSet, path: fieldset.Path) -> bool:
    node = fields
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return any(element != "." for element in node)
