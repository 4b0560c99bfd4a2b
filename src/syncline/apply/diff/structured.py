"""Predicts the result of a server-side apply from the live object's managed fields.

Called by the diff for server-side apply. Fields that only we set and the manifest no longer has are removed, all others
stay. Pure. Rules: gitops-engine ``pkg/diff`` ``StructuredMergeDiff``.
"""

from __future__ import annotations

from datetime import UTC, datetime

from syncline.apply.diff.model import MANAGER, DiffError, DiffSettings
from syncline.apply.diff.typed import with_defaults
from syncline.apply.last_applied import LAST_APPLIED
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, gvk_of, meta
from syncline.kube.patching.managedfields import apply, with_managed_fields
from syncline.kube.patching.typedvalues import same_json, type_errors
from syncline.kube.schema.model import Schema

NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""A fixed time, as times of managed fields are not part of the prediction."""


def predict_apply(target: Obj, live: Obj, settings: DiffSettings) -> tuple[Obj, Obj]:
    """Return live and predicted object. Raises DiffError for a field that the schema does not know.

    If they differ, both get defaults: in lists without keys the manifest's items replace the live ones, in which the
    server has set defaults (upstream lacks this, so such an object is never in sync).
    """
    schema = resolved_schema(target, settings)
    _check(live, schema, "live")
    _check(target, schema, "config")
    try:
        applied = apply(
            live,
            with_managed_fields(target, None),
            MANAGER,
            schema=schema,
            api_version=gvk_of(target).api_version,
            now=NO_TIME,
            force=True,
        )
    except ApiError as error:
        raise DiffError(f"error calculating diff: {error}") from error
    predicted = with_managed_fields(applied.obj, meta(live).get("managedFields"))
    if same_json(live, predicted):
        return live, predicted
    return without_last_applied(with_defaults(live)), without_last_applied(with_defaults(predicted))


def without_last_applied(obj: Obj) -> Obj:
    """Return ``obj`` without the last-applied annotation, which does not matter for server-side apply."""
    annotations = meta(obj).get("annotations")
    if not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return obj
    left = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return obj | {"metadata": obj["metadata"] | {"annotations": left}}


def resolved_schema(obj: Obj, settings: DiffSettings) -> Schema:
    """Return the schema of a kind; raises DiffError if there is none."""
    gvk = gvk_of(obj)
    schema = settings.schema_of(gvk)
    if schema is None:
        kind = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
        raise DiffError(f"unable to resolve parseableType for GroupVersionKind: {kind}")
    return schema


def _check(obj: Obj, schema: Schema, which: str) -> None:
    errors = type_errors(obj, schema)
    if errors:
        raise DiffError(f"error building typed value from {which} resource: {'; '.join(errors)}")
