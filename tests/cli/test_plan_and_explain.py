"""What ``plan`` and ``explain`` print, and with which codes they end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from syncline.apply.outcome import WaitKind
from syncline.assembly.inspection.preview import PlannedChange, PlannedGroup, PlannedSync, Verb, Verdict
from syncline.base.cause import Cause
from syncline.base.clock import EPOCH
from syncline.cli.explain import meant
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.plan import application_ref, exit_code
from syncline.cli.views.cause import MAX_LINES, describe_cause
from syncline.cli.views.plan import describe_plan
from syncline.explain.graph import cause_to_obj
from syncline.gitops.sync.gates import PlannedWait
from syncline.kube.mapper import Mapper
from syncline.kube.objects import ObjectRef, ResourceInfo

APP = ObjectRef("argoproj.io", "Application", "argocd", "shop")
WEB = ObjectRef("apps", "Deployment", "shop", "web")
KINDS = Mapper(
    [
        ResourceInfo("", "v1", "Pod", "pods", namespaced=True, short_names=("po",)),
        ResourceInfo("", "v1", "Node", "nodes", namespaced=False),
        ResourceInfo("batch", "v1", "Job", "jobs", namespaced=True),
        ResourceInfo("argoproj.io", "v1alpha1", "Application", "applications", namespaced=True),
    ]
)


def group(*changes: PlannedChange, phase: str = "Sync", warnings: tuple[str, ...] = ()) -> PlannedGroup:
    waits = (PlannedWait(WaitKind.HEALTH, tuple(change.ref for change in changes)),) if changes else ()
    return PlannedGroup(phase, 0, changes, waits, warnings)


def test_a_plan_shows_waves_gates_warnings_and_what_it_amounts_to() -> None:
    many = tuple(ObjectRef("", "ConfigMap", "shop", name) for name in "abcde")
    planned = PlannedSync(
        APP,
        revisions=("0123456789abcdef0123456789abcdef01234567",),
        sync="OutOfSync",
        health="Healthy",
        by="automated sync",
        groups=(
            group(
                PlannedChange(Verb.CONFIGURE, WEB, "differs from the source in spec.replicas"),
                *(PlannedChange(Verb.UNCHANGED, ref, "as in the source") for ref in many),
                warnings=("/ConfigMap/shop/old: ignored (requires pruning)",),
            ),
            PlannedGroup("SyncFail", 0, (PlannedChange(Verb.RUN_HOOK, many[0], "hook of SyncFail"),)),
        ),
        warnings=("RepeatedResourceWarning: twice",),
    )
    assert describe_plan(planned) == (
        "Application argocd/shop at 0123456: OutOfSync, Healthy\n"
        "next sync by: automated sync\n"
        "\n"
        "Sync, wave 0\n"
        "  ~ configure  Deployment shop/web  differs from the source in spec.replicas\n"
        "    5 unchanged\n"
        "  then waits for healthy state of Deployment shop/web, ConfigMap shop/a, ConfigMap shop/b and 3 more\n"
        "  ! /ConfigMap/shop/old: ignored (requires pruning)\n"
        "\n"
        "SyncFail, wave 0  (only if the sync fails)\n"
        "  ▸ run hook  ConfigMap shop/a  hook of SyncFail\n"
        "\n"
        "warning: RepeatedResourceWarning: twice\n"
        "\n"
        "Plan: 1 to configure; 1 to run hook; 5 unchanged"
    )


@pytest.mark.parametrize(
    ("planned", "verdict", "code"),
    [
        (PlannedSync(APP, sync="Synced"), Verdict.NOTHING, 0),
        (
            PlannedSync(APP, sync="Synced", groups=(group(PlannedChange(Verb.RUN_HOOK, WEB, "")),)),
            Verdict.NOTHING,
            0,
        ),
        (PlannedSync(APP, sync="OutOfSync"), Verdict.CHANGES, 2),
        (PlannedSync(APP, groups=(group(PlannedChange(Verb.CREATE, WEB, "")),)), Verdict.CHANGES, 2),
        (PlannedSync(APP, problems=("no repository",)), Verdict.BLOCKED, 3),
        (PlannedSync(APP, problems=("no repository",), unsafe=("all of it",)), Verdict.UNSAFE, 4),
    ],
)
def test_the_exit_code_is_the_worst_of_a_plan(planned: PlannedSync, verdict: Verdict, code: int) -> None:
    assert planned.verdict is verdict
    assert exit_code(planned.verdict) == code


@pytest.mark.parametrize("text", ["shop", "argocd/shop", "app/shop", "Application/shop", "applications/argocd/shop"])
def test_an_application_may_be_written_with_or_without_kind_and_namespace(text: str) -> None:
    assert application_ref(text, "argocd") == APP


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop", APP),
        ("app/shop", APP),
        ("Application/other/shop", ObjectRef("argoproj.io", "Application", "other", "shop")),
        ("po/x", ObjectRef("", "Pod", "default", "x")),
        ("job/ns/x", ObjectRef("batch", "Job", "ns", "x")),
        ("node/n", ObjectRef("", "Node", "", "n")),
    ],
)
def test_a_target_of_explain_is_kind_namespace_and_name(text: str, expected: ObjectRef) -> None:
    assert meant(KINDS, text, ("default", "argocd")) == expected


@pytest.mark.parametrize("text", ["foo/x", "job/", "a/b/c/d"])
def test_a_target_that_cannot_be_meant_is_a_usage_error(text: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        meant(KINDS, text, ("default", "argocd"))
    assert refused.value.code == 2 and repr(text) in str(refused.value)


def test_kinds_of_machine_configuration_say_how_to_get_them() -> None:
    for text in ("pool/worker", "mc/99-x"):
        with pytest.raises(CommandFailed, match="`syncline up --machine-config` serves it"):
            meant(KINDS, text, ("default", "argocd"))


def chain(length: int) -> Cause:
    cause = Cause("/Pod/shop/web-1", "Pending", "no room", EPOCH, next_action="add a node")
    for number in range(length - 1):
        cause = Cause(f"apps/Deployment/shop/d{number}", "Progressing", "", EPOCH, because=(cause,))
    return cause


def test_a_chain_is_indented_and_ends_with_the_next_step() -> None:
    assert describe_cause(chain(2), EPOCH + timedelta(minutes=5)) == (
        "Deployment shop/d0 Progressing for 5m\n  Pod shop/web-1 Pending for 5m: no room\nnext: add a node"
    )


def test_a_report_of_several_lines_keeps_the_shape_of_the_chain() -> None:
    deep = Cause("rendering", "Degraded", "config is not valid\nReport: error: path not absolute\n")
    text = describe_cause(Cause("pool", "Degraded", "", because=(deep,), next_action="mend it"), EPOCH)
    assert text.splitlines() == [
        "pool Degraded",
        "  rendering Degraded: config is not valid; Report: error: path not absolute",
        "next: mend it",
    ]


def test_an_explanation_has_ten_lines_at_most_and_says_what_it_leaves_out() -> None:
    siblings = tuple(Cause(f"/Pod/shop/p{number}", "Pending", "no room") for number in range(20))
    lines = describe_cause(Cause("app", "Running", "", because=siblings, next_action="wait"), EPOCH).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[-2].strip() == "… and 13 more causes (-o json shows all)"
    assert lines[-1] == "next: wait"


def test_a_gate_past_its_deadline_says_so() -> None:
    late = Cause("/Pod/shop/p", "Pending", "no room", EPOCH, until=EPOCH + timedelta(minutes=15))
    assert "(overdue)" not in describe_cause(late, EPOCH)
    assert "(overdue)" in describe_cause(late, EPOCH + timedelta(minutes=15))


def test_the_whole_tree_is_in_the_json_form() -> None:
    tree = cause_to_obj(chain(3))
    assert tree["because"][0]["because"][0] == {
        "subject": "/Pod/shop/web-1",
        "state": "Pending",
        "message": "no room",
        "since": "2026-01-01T00:00:00+00:00",
        "nextAction": "add a node",
    }
