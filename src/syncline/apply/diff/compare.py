"""Compares a manifest with its live object and predicts the result of a sync.

Called by the comparison of an application for each pair, and by commands that show a difference. Pure. The strategy is
chosen like upstream's (reference argocd-app §3.3): dry run by the API server, structured merge by managed fields,
three-way by the last-applied annotation, else target against live.
"""

from __future__ import annotations

from functools import partial

from syncline.apply.annotations import has_option
from syncline.apply.diff.client_side import predict
from syncline.apply.diff.jq import gathered
from syncline.apply.diff.managers import without_trusted_changes
from syncline.apply.diff.model import DiffError, DiffMode, DiffResult, DiffSettings
from syncline.apply.diff.normalize import check_rules, normalize, tidied
from syncline.apply.diff.server_side import predict_dry_run
from syncline.apply.diff.structured import predict_apply
from syncline.apply.diff.typed import remarshal
from syncline.apply.last_applied import LAST_APPLIED
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, gvk_of
from syncline.kube.patching.typedvalues import same_json
from syncline.kube.schema.extensions import MAX_ANNOTATIONS, json_note
from syncline.kube.schema.model import schema_for

DEFAULTS = DiffSettings()


def compare_objects(target: Obj | None, live: Obj | None, settings: DiffSettings = DEFAULTS) -> DiffResult:
    """Compare one pair; one side may be missing. Raises DiffError in upstream's words, and Unknown with all questions
    of the comparison."""
    if target is not None and live is not None:
        live = _at_version_of(target, live)
        if settings.tracking is not None:
            live = settings.tracking.normalized(target, live)
        target, live = without_trusted_changes(target, live, settings)
    _, target, live = gathered(
        partial(check_rules, settings), partial(_normal, target, settings), partial(_normal, live, settings)
    )
    if target is None or live is None:
        return _one_sided(target, live)
    try:
        return _compared(target, live, settings)
    except DiffError as error:
        raise DiffError(f"failed to calculate diff: {error}") from error


def _at_version_of(target: Obj, live: Obj) -> Obj:
    """Return a live custom resource at the version of its manifest, as the server shows it there: without a webhook
    that converts, versions differ in nothing else. Upstream reads it again at that version."""
    asked, seen = gvk_of(target), gvk_of(live)
    custom = schema_for(asked) is None and schema_for(seen) is None
    if asked == seen or asked.group_kind != seen.group_kind or not custom:
        return live
    return {**live, "apiVersion": target["apiVersion"]}


def _normal(obj: Obj | None, settings: DiffSettings) -> Obj | None:
    if obj is None:
        return None
    spell = tidied if settings.mode is DiffMode.SERVER_SIDE else normalize
    return spell(remarshal(obj), settings)


def _compared(target: Obj, live: Obj, settings: DiffSettings) -> DiffResult:
    if settings.mode is DiffMode.SERVER_SIDE:
        try:
            return _result(*predict_dry_run(target, live, settings))
        except DiffError as error:
            raise DiffError(f"error calculating server side diff: {error}") from error
    if settings.mode is DiffMode.STRUCTURED_MERGE or has_option(target, "ServerSideApply=true"):
        try:
            return _result(*predict_apply(target, live, settings))
        except DiffError as error:
            raise DiffError(f"error calculating structured merge diff: {error}") from error
    return _client_side(target, live, settings)


def _one_sided(target: Obj | None, live: Obj | None) -> DiffResult:
    if target is None and live is None:
        raise DiffError("both live and config are null objects")
    return DiffResult(target is not None, live, target)


def _client_side(target: Obj, live: Obj, settings: DiffSettings) -> DiffResult:
    original = _last_applied(live)
    if original is not None:
        try:
            return _result(*predict(normalize(original, settings), target, live))
        except (ValueError, ApiError):  # the last-applied manifest is unusable: compare target and live alone
            pass
    try:
        return _result(*predict(target, target, live))
    except (ValueError, ApiError) as error:
        raise DiffError(f"failed to construct thre way merge patch: {error}") from error


def _last_applied(live: Obj) -> Obj | None:
    found = json_note(live, LAST_APPLIED, MAX_ANNOTATIONS)
    return found if isinstance(found, dict) and found.get("kind") else None


def _result(live: Obj, predicted: Obj) -> DiffResult:
    return DiffResult(not same_json(live, predicted), live, predicted)
