"""Annotations mean what Argo CD's own functions say (``conformance/gitops/annotations.jsonl``)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases

from syncline.apply import annotations as a


def _record(obj: dict[str, Any], app_options: list[str]) -> dict[str, Any]:
    types = [str(t) for t in a.hook_types(obj)]
    pre, post = a.is_delete_hook(obj, "PreDelete"), a.is_delete_hook(obj, "PostDelete")
    return {
        "wave": a.wave(obj),
        "hookTypes": types,
        "isHook": a.is_hook(obj),
        "controllerIsHook": a.is_hook(obj) or pre or post,
        "isHelmHook": a.is_helm_hook(obj),
        "skip": a.is_skipped(obj),
        "hasSyncPhaseHook": bool(set(types) - {"Skip"}),
        "preDelete": pre,
        "postDelete": post,
        "ignored": a.is_ignored(obj),
        "deletePolicies": [str(p) for p in a.delete_policies(obj)],
        "hasHookFinalizer": a.has_hook_finalizer(obj),
        "syncOptions": a.sync_options(obj) or None,
        "pruneValue": a.option_value(obj, "Prune"),
        "deleteValue": a.option_value(obj, "Delete"),
        "pruneLast": a.has_option(obj, "PruneLast=true"),
        "replace": a.has_option(obj, "Replace=true"),
        "force": a.has_option(obj, "Force=true"),
        "validateOff": a.has_option(obj, "Validate=false"),
        "serverSideApply": a.has_option(obj, "ServerSideApply=true"),
        "serverSideApplyOff": a.has_option(obj, "ServerSideApply=false"),
        "skipDryRunOnMissing": a.has_option(obj, "SkipDryRunOnMissingResource=true"),
        "ignoreExtraneous": a.has_option(obj, "IgnoreExtraneous", a.COMPARE_OPTIONS),
        "needsDeletionApproval": a.needs_deletion_approval(obj, app_options),
    }


@pytest.mark.parametrize("case", cases("annotations"), ids=lambda c: c["id"])
def test_annotations_are_read_as_upstream_reads_them(case: dict[str, Any]) -> None:
    given = case["input"]
    assert _record(given["object"], given.get("appSyncOptions") or []) == case["expect"]
