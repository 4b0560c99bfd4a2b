"""What ``explain appset/NAME`` says: the row, the template, the guard, the step and the Application that hold a set."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from syncline.assembly.inspection.setplan import (
    FieldChange,
    Origin,
    PlannedApplication,
    PlannedFailure,
    PlannedInStep,
    PlannedSet,
    PlannedStep,
    SetVerb,
)
from syncline.base.cause import Cause
from syncline.base.clock import EPOCH, format_time
from syncline.cli.views.cause import describe_cause
from syncline.control.cache import Cache
from syncline.explain.applicationset import Explained, explain_set, made_by
from syncline.explain.view import Found, View
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef

FLEET = ObjectRef("argoproj.io", "ApplicationSet", "argocd", "fleet")
NOW = EPOCH + timedelta(minutes=5)
ROW = Origin("spec.generators[0].git", 3, {"path.basename": "web"})


def app(name: str, verb: SetVerb = SetVerb.UNCHANGED, why: str = "", *fields: FieldChange) -> PlannedApplication:
    origin = None if verb in (SetVerb.DELETE, SetVerb.KEEP) else ROW
    return PlannedApplication(verb, ObjectRef("argoproj.io", "Application", "argocd", name), why, origin, fields)


def explained(plan: PlannedSet, application: Explained = lambda _name: None, **status: object) -> Found:
    found: Obj = {"kind": "ApplicationSet", "metadata": {"name": "fleet", "namespace": "argocd"}, "status": status}
    return explain_set(View(Cache(Mapper()), NOW), found, plan, application)


def said(found: Found) -> str:
    return describe_cause(found.cause, NOW)


def error(message: str, reason: str = "ApplicationGenerationFromParamsError") -> list[Obj]:
    common = {"lastTransitionTime": format_time(EPOCH), "reason": reason, "message": message}
    return [{"type": "ErrorOccurred", "status": "True", **common}]


def test_a_template_that_fails_is_named_with_its_row_line_and_character() -> None:
    failure = PlannedFailure(
        "RenderTemplateParamsError",
        'failed to execute go template {{ .x.y }}: template: :2:14: executing "" at <.x.y>: nil pointer',
        "spec.generators[0].git",
        ROW,
        "spec.template.spec.source.path",
    )
    other = replace(failure, origin=replace(ROW, number=4))
    found = explained(PlannedSet(FLEET, failures=(failure, other)), conditions=error("boom"))
    assert found.blocked and said(found) == (
        "ApplicationSet argocd/fleet RenderTemplateParamsError for 5m: its Applications cannot be known, so none is "
        "created, changed or deleted\n"
        "  spec.generators[0].git row 3 (path.basename=web) (and 1 more row) failed: line 2, character 14 of "
        "spec.template.spec.source.path: failed to "
        'execute go template {{ .x.y }}: template: :2:14: executing "" at <.x.y>: nil pointer\n'
        "next: correct it; try it with: syncline appset generate FILE, or: syncline plan appset/fleet"
    )


def test_a_guard_names_the_command_that_confirms_it() -> None:
    text = "4 of 5 Applications would be deleted; if that is meant, confirm it with the annotation x/confirm: abc123"
    found = explained(PlannedSet(FLEET, applications=(app("a", SetVerb.HOLD, "guarded"),), unsafe=(text,)))
    assert found.blocked and "argocd/fleet Guarded: 4 of 5 Applications would be deleted" in said(found)
    assert said(found).endswith(
        "next: correct the set\n  or: confirm: kubectl annotate appset fleet -n argocd x/confirm=abc123 --overwrite"
    )


def test_an_application_that_is_not_valid_is_named_with_its_row() -> None:
    wrong = app("a", SetVerb.REFUSE, "application references project p which does not exist")
    found = explained(PlannedSet(FLEET, applications=(wrong, app("b"))))
    assert found.blocked and "1 of 2 Applications are not written" in said(found)
    assert "references project p which does not exist (from spec.generators[0].git row 3" in said(found)


def test_a_rollout_is_held_by_a_step_and_by_what_blocks_its_application() -> None:
    steps = (
        PlannedStep(1, "env In [dev]", "", (PlannedInStep("a", "Healthy"), PlannedInStep("b", "Progressing"))),
        PlannedStep(2, "env In [prod]", "", (PlannedInStep("c", "Waiting", "step 1"),), "step 1"),
    )
    pod = Found(Cause("Application argocd/b", "Degraded", "its Deployment fails"), blocked=True)
    found = explained(
        PlannedSet(FLEET, applications=(app("a"), app("b"), app("c")), steps=steps),
        lambda name: pod if name == "b" else None,
        applicationStatus=[{"application": "b", "lastTransitionTime": format_time(EPOCH)}],
    )
    assert found.blocked and said(found) == (
        "ApplicationSet argocd/fleet Rolling: step 1 of 2: 1 of 2 are Healthy\n"
        "  Application argocd/b Progressing in step 1 for 5m: Degraded: its Deployment fails"
    )


def test_what_the_controller_reports_is_said_where_the_plan_finds_nothing_wrong() -> None:
    found = explained(PlannedSet(FLEET, applications=(app("a"),)), conditions=error("the host did not answer"))
    assert found.blocked and "for 5m: the host did not answer" in said(found)


def test_an_answer_that_is_awaited_is_named_with_its_times() -> None:
    text = "waiting for files of https://git.example/r@main since T0, at most until T1"
    waits = {"type": "SourceWaitWarning", "status": "True", "message": text, "lastTransitionTime": format_time(EPOCH)}
    found = explained(PlannedSet(FLEET, applications=(app("a", SetVerb.CREATE),)), conditions=[waits])
    assert not found.blocked and f"Waiting for 5m: {text}" in said(found)
    assert said(found).endswith("next: look whether its host answers; other sets do not wait for it")


def test_b50_applications_in_no_step_hold_nothing_and_are_named() -> None:
    steps = (PlannedStep(1, "env In [dev]", "", (PlannedInStep("a", "Healthy"),)),)
    outside = PlannedStep(0, "", "", (PlannedInStep("b", "Waiting", "it is in no step"),))
    found = explained(PlannedSet(FLEET, applications=(app("a"), app("b")), steps=(*steps, outside)))
    assert "2 Applications, all as they should be; in no step of the rollout, so it never syncs them: b" in said(found)


def test_applications_of_the_next_reconcile_and_of_a_policy_are_told_apart() -> None:
    change = app("a", SetVerb.CHANGE, "", FieldChange("spec.source.path", "x", "y"))
    found = explained(PlannedSet(FLEET, applications=(change, app("b"))))
    assert not found.blocked and "Pending: the next reconcile writes 1 of 2 Applications" in said(found)
    assert "to change: differs in spec.source.path; spec.generators[0].git row 3 (path.basename=web)" in said(found)
    assert "next: is the controller running? syncline up runs one" in said(found)
    kept = explained(PlannedSet(FLEET, "create-only", applications=(app("b", SetVerb.KEEP, "not updated"),)))
    assert not kept.blocked and "policy create-only keeps 1 of 1 Applications as they are" in said(kept)
    fine = explained(PlannedSet(FLEET, applications=(app("b"),)))
    assert not fine.blocked and "up to date: 1 Application, all as they should be" in said(fine)


def test_an_application_is_traced_to_its_row() -> None:
    steps = (PlannedStep(2, "env In [prod]", "", (PlannedInStep("a", "Waiting", "steps before 2 are not complete"),)),)
    plan = PlannedSet(FLEET, applications=(app("a"), app("old", SetVerb.DELETE, "no row makes it")), steps=steps)
    assert describe_cause(made_by(plan, "a"), NOW) == (
        "ApplicationSet argocd/fleet makes it: from spec.generators[0].git row 3 (path.basename=web); step 2 of its "
        "rollout: Waiting, steps before 2 are not complete\n"
        "next: syncline explain appset/fleet says what holds its rollout"
    )
    assert describe_cause(made_by(plan, "old"), NOW) == "ApplicationSet argocd/fleet controls it: no row makes it"
    unknown = PlannedSet(FLEET, failures=(PlannedFailure("x", "the host is away", "spec.generators[0].git"),))
    assert describe_cause(made_by(unknown, "a"), NOW) == (
        "ApplicationSet argocd/fleet controls it: its rows cannot be known: spec.generators[0].git: the host is away"
    )
