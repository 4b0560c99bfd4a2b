"""What is asked of an Application: the decisions that the server and the commands share."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.argo.requests.operations import (
    asked_revisions,
    check_idle,
    check_local,
    check_revisions,
    check_running,
    others,
    sync_operation,
)
from syncline.argo.requests.refused import Refused
from syncline.argo.requests.writing import cascading, check_names, created, is_same, updated
from syncline.kube.objects import Obj

FINALIZER = "resources-finalizer.argocd.argoproj.io"
ONE: Obj = {"repoURL": "https://git.example/a", "path": "p", "targetRevision": "v1"}
TWO: Obj = {"repoURL": "https://git.example/b", "path": "q", "name": "two"}


def app_of(*sources: Obj, metadata: Obj | None = None, **spec: Any) -> Obj:
    several = {"sources": list(sources)} if len(sources) > 1 else {"source": sources[0]}
    return {"metadata": {"name": "shop", "namespace": "argocd", **(metadata or {})}, "spec": several | spec}


AUTOMATED: Obj = {"automated": {}}


def test_revisions_go_to_the_sources_at_their_positions() -> None:
    app = app_of(ONE, TWO)
    assert asked_revisions(app, {"sourcePositions": [2], "revisions": ["v9"]}) == ("", "v9")
    assert asked_revisions(app_of(ONE), {"revision": "v2"}) == ("v2",)
    for asked in ({"sourcePositions": [3], "revisions": ["x"]}, {"sourcePositions": [0], "revisions": ["x"]}):
        with pytest.raises(Refused, match="source position is out of range"):
            asked_revisions(app, asked)
    with pytest.raises(Refused, match="source position is out of range"):
        asked_revisions(app, {"sourcePositions": [1, 2], "revisions": ["x"]})


def test_a_revision_other_than_that_of_the_spec_is_refused_under_automation() -> None:
    assert others(app_of(ONE), ("v1",)) == []
    assert others(app_of(TWO), ("HEAD",)) == []
    check_revisions(app_of(ONE), ("v2",))
    check_revisions(app_of(ONE, syncPolicy={"automated": {"enabled": False}}), ("v2",))
    with pytest.raises(Refused, match="Cannot sync to v2: auto-sync currently set to v1"):
        check_revisions(app_of(ONE, syncPolicy=AUTOMATED), ("v2",))
    with pytest.raises(Refused, match=r"Cannot sync source https://git\.example/b to v2: auto-sync currently set to "):
        check_revisions(app_of(ONE, TWO, syncPolicy=AUTOMATED), ("", "v2"))


def test_manifests_of_the_caller_are_refused_under_automation_unless_for_a_dry_run() -> None:
    app = app_of(ONE, syncPolicy=AUTOMATED)
    check_local(app, {"manifests": ["{}"], "dryRun": True})
    with pytest.raises(Refused, match="cannot use local sync when Automatic Sync Policy is enabled"):
        check_local(app, {"manifests": ["{}"]})


def test_an_operation_keeps_what_was_asked_and_takes_the_rest_from_the_spec() -> None:
    app = app_of(ONE, syncPolicy={"syncOptions": ["A=1"], "retry": {"limit": 3}})
    found = sync_operation(
        app, {"prune": True, "dryRun": False, "infos": [{"name": "a", "value": "b"}]}, ("abc",), "eve"
    )
    sync = {"prune": True, "syncOptions": ["A=1"], "source": ONE, "revision": "abc"}
    info = [{"name": "a", "value": "b"}]
    assert found == {"initiatedBy": {"username": "eve"}, "sync": sync, "info": info, "retry": {"limit": 3}}
    found = sync_operation(app, {"syncOptions": {}, "retryStrategy": {"limit": 1}}, (), "eve")
    assert found["retry"] == {"limit": 1} and "syncOptions" not in found["sync"]
    assert sync_operation(app_of(ONE, TWO), {}, ("a", "b"), "")["sync"]["revisions"] == ["a", "b"]


def test_an_operation_begins_where_none_is_and_ends_where_one_is() -> None:
    idle = app_of(ONE)
    busy = idle | {"operation": {"sync": {}}, "status": {"operationState": {"phase": "Running"}}}
    check_idle(idle)
    check_running(busy)
    with pytest.raises(Refused, match="another operation is already in progress"):
        check_idle(busy)
    with pytest.raises(Refused, match=r"Unable to terminate operation\. No operation is in progress"):
        check_running(idle)


def test_what_is_created_has_no_operation_and_keeps_unknown_fields() -> None:
    asked = app_of(ONE | {"helm": {}, "newer": {"field": False}}, syncPolicy={}, unheard=True)
    made = created(asked | {"operation": {"sync": {"manifests": ["{}"]}}})
    assert "operation" not in made
    assert made["spec"] == {"source": ONE | {"newer": {"field": False}}, "project": "default", "unheard": True}
    assert is_same(made, asked)
    assert not is_same(made, app_of(ONE, destination={"namespace": "other"}))
    assert not is_same(made, app_of(ONE, metadata={"labels": {"a": "b"}}))


def test_an_update_decides_labels_annotations_and_finalizers() -> None:
    known = app_of(ONE, metadata={"labels": {"a": "1"}, "finalizers": [FINALIZER], "uid": "u"})
    asked = app_of(TWO, metadata={"labels": {"b": "2"}, "uid": "forged"})
    found = updated(known, asked)
    assert found["metadata"] == {"name": "shop", "namespace": "argocd", "uid": "u", "labels": {"b": "2"}}
    assert updated(known, asked, merge=True)["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert found["spec"]["source"] == TWO


def test_two_sources_must_not_have_one_name() -> None:
    with pytest.raises(Refused, match="application shop has duplicate source name: two"):
        check_names(app_of(TWO, TWO))
    with pytest.raises(Refused, match="resource name may not be empty"):
        check_names({"metadata": {}, "spec": {}})


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [
        ([], {"cascade": True}, [FINALIZER]),
        ([], {"cascade": True, "policy": "Foreground"}, [f"{FINALIZER}/foreground"]),
        (["x/y", FINALIZER], {"cascade": True, "policy": "background"}, ["x/y", f"{FINALIZER}/background"]),
        ([FINALIZER], {"cascade": True}, None),
        (["x/y", f"{FINALIZER}/background"], {"cascade": False}, ["x/y"]),
        (["x/y"], {"cascade": False}, None),
    ],
)
def test_a_deletion_needs_the_finalizer_of_its_policy(before: list[str], asked: Any, after: list[str] | None) -> None:
    assert cascading(app_of(ONE, metadata={"finalizers": before}), **asked) == after


def test_a_policy_that_is_unknown_or_of_no_use_is_refused() -> None:
    with pytest.raises(Refused, match="invalid propagation policy: orphan"):
        cascading(app_of(ONE), cascade=True, policy="orphan")
    with pytest.raises(Refused, match="cannot set propagation policy when cascading is disabled"):
        cascading(app_of(ONE), cascade=False, policy="foreground")
    assert cascading(app_of(ONE, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), cascade=True) is None
