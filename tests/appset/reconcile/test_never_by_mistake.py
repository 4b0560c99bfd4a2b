"""Nothing is deleted by mistake: errors, missing answers, what cannot be read, and the guard on mass deletion."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.appset.rounds import NOW, Table
from tests.appset.sets import app, appset, condition, names, parameters, rows, table, writes

from syncline.appset.asking import Asking
from syncline.appset.generators.generate import generate
from syncline.appset.plan import Means, plan_set, settle_set
from syncline.control.plan import Delete, Requeue
from syncline.kube.objects import GroupKind, Obj, ObjectRef, uid_of

GIT: Obj = {"git": {"repoURL": "https://git.example/r.git", "revision": "HEAD", "directories": [{"path": "*"}]}}
BY_PATH: Obj = {"template": {"name": "{{path.basename}}"}}
ELSEWHERE: Obj = {"spec": {"source": {"path": "another"}}}
MANY = tuple(app(name) for name in "abcdefgh")


def confirm(one: Table, **annotations: str) -> None:
    found = one.of("ApplicationSet")[0]
    one.put({**found, "metadata": {**found["metadata"], "annotations": annotations}})


def digest(one: Table) -> str:
    return str(condition(one, "ErrorOccurred")["message"]).rpartition(": ")[2]


def test_a_mass_deletion_waits_for_a_confirmation_that_is_for_it_alone() -> None:
    one = table(appset(rows("a", "b"), {"list": {**rows("new")["list"], "template": ELSEWHERE}}), *MANY)
    assert writes(one) == ["create new"]
    message = condition(one, "ErrorOccurred")["message"]
    assert message.startswith("6 of 8 Applications would be deleted (c, d, e, ...)")
    assert (
        "before there were rows for 8, now spec.generators[0].list makes 2, spec.generators[1].list makes 1" in message
    )
    assert message.endswith(f"confirm it with the annotation syncline.dev/confirm-deletions: {digest(one)}")
    confirm(one, **{"syncline.dev/confirm-deletions": "0123456789ab"})
    assert writes(one) == []
    confirm(one, **{"syncline.dev/confirm-deletions": digest(one)})
    one.reconcile()
    assert condition(one, "ErrorOccurred")["status"] == "False"


def test_the_guard_says_it_once_as_an_event() -> None:
    one = table(appset(rows("a")), *MANY)
    assert len([text for text in one.reconcile().events if text.startswith("Warning DeletionHeld")]) == 1
    assert one.reconcile().events == []


def test_a_confirmed_deletion_goes_on_after_an_interruption() -> None:
    one = table(appset(rows("a")), *MANY, fail={"delete Application f": "boom", "delete Application g": "boom"})
    one.reconcile()
    confirm(one, **{"syncline.dev/confirm-deletions": digest(one)})
    one.reconcile()
    for left in one.of("Application"):  # what has no finalizers any more is gone
        if left["metadata"].get("deletionTimestamp"):
            one.put({**left, "metadata": {**left["metadata"], "finalizers": []}})
    assert names(one) == ["a", "f", "g"]
    one.fail = {}
    one.put(app("z1"))
    one.put(app("z2"))
    assert writes(one) == []  # two more go now, so that it is another mass deletion
    assert "4 of 5 Applications" in condition(one, "ErrorOccurred")["message"]


def test_what_is_left_of_a_confirmed_deletion_needs_no_other_confirmation() -> None:
    fail = {f"delete Application {name}": "boom" for name in "defgh"}
    one = table(appset(rows("a")), *(app(name, finalizers=[]) for name in "abcdefgh"), fail=fail)
    one.reconcile()
    confirm(one, **{"syncline.dev/confirm-deletions": digest(one)})
    one.reconcile()
    assert names(one) == ["a", "d", "e", "f", "g", "h"]
    one.fail = {}
    one.reconcile()
    assert names(one) == ["a"]


@pytest.mark.parametrize(
    ("annotation", "held"),
    [("", True), ("off", False), ("10 1%", False), ("1 10%", True), ("nonsense", True)],
)
def test_the_guard_is_on_and_an_annotation_of_the_set_adjusts_it(annotation: str, held: bool) -> None:
    marks = {"annotations": {"syncline.dev/deletion-guard": annotation}} if annotation else {}
    one = table(appset(rows("a", "b"), **marks), *MANY)
    assert ("delete c" not in writes(one)) is held


@pytest.mark.parametrize(("left", "held"), [("abcd", False), ("abc", True)])
def test_half_of_the_applications_may_go(left: str, held: bool) -> None:
    one = table(appset(rows(*left)), *MANY)
    assert (writes(one) == []) is held


def test_a_rename_is_recognized_and_creates_nothing_beside_the_old_applications() -> None:
    paths = {"app": {"source": {"repoURL": "r", "path": "{{n}}"}}}
    old = [app(name, spec={"source": {"repoURL": "r", "path": name}}) for name in "abcd"]
    one = table(appset(rows(*"abcd", "new"), template={"name": "{{n}}-v2"}, **paths), *old)
    assert writes(one) == ["create new-v2"]
    message = condition(one, "ErrorOccurred")["message"]
    assert "4 of them would be created again under other names (a as a-v2)" in message
    assert "because spec.template.metadata.name ({{n}}-v2) makes other names" in message
    confirm(one, **{"syncline.dev/confirm-deletions": digest(one)})
    made = [text for text in writes(one) if text.startswith("create")]
    assert made == [f"create {name}-v2" for name in "abcd"]


def test_rows_of_before_are_named_while_they_are_known() -> None:
    one = table(appset(GIT, **BY_PATH), tree={f"{name}/x": "" for name in "abcdefgh"})
    one.reconcile()
    one.now = NOW + timedelta(hours=1)
    one.world.given["tree"] = {"a/x": ""}
    assert writes(one) == []
    assert "now spec.generators[0].git makes 1 (before 8)" in condition(one, "ErrorOccurred")["message"]


@pytest.mark.parametrize("kind", ["Application", "AppProject", "Secret", "ConfigMap"])
def test_what_cannot_be_read_is_no_reason_to_delete_or_create(kind: str) -> None:
    one = table(appset(rows("new")), app("gone"))
    group = "argoproj.io" if kind in ("Application", "AppProject") else ""
    one.cache.mark_unread(GroupKind(group, kind), "forbidden")
    assert writes(one) == []
    assert condition(one, "ErrorOccurred")["message"] == f"cannot read {kind}s: forbidden"


def test_an_answer_that_is_awaited_is_shown_and_changes_nothing_else() -> None:
    one = table(appset(GIT, **BY_PATH), app("gone"), tree={"a/x": ""})
    observed = one.controller.observe(one.cache, ObjectRef("argoproj.io", "ApplicationSet", "argocd", "set"))
    assert observed is not None
    means = Means(generate)
    asked = plan_set(observed, NOW, means)
    (action,) = asked.actions
    late = [replace(result, value=Asking(action.question, NOW)) for result in one.results_of(asked)]
    settled = settle_set(observed, asked, tuple(late), NOW, means)
    assert settled is not None
    (report,) = settled[1].actions
    waits = [one for one in report.new["conditions"] if one["type"] == "SourceWaitWarning"]  # type: ignore[attr-defined]
    assert (
        "directories of https://git.example/r.git@HEAD" in waits[0]["message"] and "2026-06-01" in waits[0]["message"]
    )
    assert isinstance(settled[1].outcome, Requeue) and settled[1].outcome.background


def test_an_old_answer_is_used_while_a_new_one_is_awaited() -> None:
    one = table(appset(GIT, **BY_PATH), tree={"a/x": ""})
    one.reconcile()
    one.now = NOW + timedelta(hours=1)
    one.slow = True
    one.world.given["tree"] = {}
    assert writes(one) == [] and names(one) == ["a"]
    assert condition(one, "ResourcesUpToDate")["status"] == "True"


def test_a_refresh_waits_for_new_answers() -> None:
    one = table(appset(GIT, **BY_PATH), tree={"a/x": ""})
    one.reconcile()
    one.slow = True
    confirm(one, **{"argocd.argoproj.io/application-set-refresh": "true"})
    one.put(app("gone"))
    assert writes(one) == []
    assert condition(one, "SourceWaitWarning")["status"] == "True"
    one.slow = False
    assert writes(one) == ["delete gone"]
    assert condition(one, "SourceWaitWarning") == {}


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_with_a_failure_or_without_an_answer_writes_an_application(seed: int) -> None:
    drawn = random.Random(seed)
    given: dict[str, Any] = {"gitError": "no route"} if drawn.random() < 0.5 else {"tree": {"a/x": ""}}
    elements: list[Obj] = [rows(*drawn.sample("abcdef", drawn.randint(0, 4))) for _ in range(drawn.randint(0, 2))]
    broken = "gitError" in given or drawn.random() < 0.5
    elements.append(GIT if "gitError" in given else {"list": {"elements": [{"n": drawn.choice([1, None, []])}]}})
    drawn.shuffle(elements)
    one = table(
        appset(*elements, template={"name": "{{n}}"}, syncPolicy={"applicationsSync": "sync"}),
        *(app(name, spec={"project": drawn.choice(["default", "old"])}) for name in drawn.sample("abcdefgh", 4)),
        parameters(enable_progressive_syncs=drawn.choice(["true", "false"])),
        **given,
    )
    observed = one.controller.observe(one.cache, ObjectRef("argoproj.io", "ApplicationSet", "argocd", "set"))
    assert observed is not None and (broken or elements)
    plan = plan_set(observed, NOW, Means(generate))
    assert not any(isinstance(action, Delete) for action in plan.actions)
    before = {uid_of(found) for found in one.of("Application")}
    assert writes(one) == [] and {uid_of(found) for found in one.of("Application")} == before
