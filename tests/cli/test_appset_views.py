"""What ``plan appset/NAME`` prints, and how values of rows and changed fields are named."""

from __future__ import annotations

import pytest

from syncline.assembly.inspection.preview import Verdict
from syncline.assembly.inspection.setplan import (
    FieldChange,
    Origin,
    PlannedApplication,
    PlannedFailure,
    PlannedInStep,
    PlannedSet,
    PlannedStep,
    SetVerb,
    field_changes,
    values_of,
)
from syncline.cli.views.application import describe_app
from syncline.cli.views.setplan import describe_set_plan
from syncline.kube.objects import ObjectRef

FLEET = ObjectRef("argoproj.io", "ApplicationSet", "argocd", "fleet")


def app(name: str, verb: SetVerb, row: int = 0, why: str = "", *fields: FieldChange) -> PlannedApplication:
    origin = Origin("spec.generators[0].list", row, {"team": name}) if row else None
    return PlannedApplication(verb, ObjectRef("argoproj.io", "Application", "argocd", name), why, origin, fields)


def test_a_plan_of_a_set_names_row_values_fields_and_steps() -> None:
    planned = PlannedSet(
        FLEET,
        rows=3,
        applications=(
            app("red", SetVerb.CREATE, 1),
            app("blue", SetVerb.CHANGE, 2, "", FieldChange("spec.source.targetRevision", "v1", "v2")),
            app("green", SetVerb.UNCHANGED, 3),
            app("old", SetVerb.DELETE, 0, "no row makes it any more"),
        ),
        steps=(
            PlannedStep(1, "env In [dev]", "", (PlannedInStep("red", "Healthy"),)),
            PlannedStep(
                2,
                "env In [prod]",
                "25%",
                (PlannedInStep("blue", "Waiting", "steps before 2 are not complete"),),
                "step 1",
            ),
        ),
        warnings=("spec.generators[1] has no generator",),
    )
    assert describe_set_plan(planned) == (
        "ApplicationSet argocd/fleet: 3 rows, 3 Applications\n"
        "\n"
        "  + create  red   spec.generators[0].list row 1 (team=red)\n"
        "  ~ change  blue  spec.generators[0].list row 2 (team=blue)\n"
        "      spec.source.targetRevision: v1 → v2\n"
        "  - delete  old   no row makes it any more\n"
        "    1 unchanged\n"
        "\n"
        "step 1: env In [dev]\n"
        "    red  Healthy\n"
        "\n"
        "step 2: env In [prod], at most 25% at once\n"
        "  first waits for step 1\n"
        "    blue  Waiting  steps before 2 are not complete\n"
        "\n"
        "warning: spec.generators[1] has no generator\n"
        "\n"
        "Plan: 1 to create; 1 to change; 1 to delete; 1 unchanged"
    )
    assert planned.verdict is Verdict.CHANGES
    assert planned.to_obj()["applications"][1]["fields"] == [
        {"field": "spec.source.targetRevision", "before": "v1", "after": "v2"}
    ]


@pytest.mark.parametrize(
    ("planned", "verdict", "said"),
    [
        (PlannedSet(FLEET), Verdict.NOTHING, "Plan: nothing to do (no Applications)"),
        (PlannedSet(FLEET, applications=(app("a", SetVerb.KEEP),)), Verdict.NOTHING, "nothing to do (1 to keep)"),
        (PlannedSet(FLEET, applications=(app("a", SetVerb.REFUSE),)), Verdict.BLOCKED, "Plan: blocked in part"),
        (PlannedSet(FLEET, failures=(PlannedFailure("x", "y"),)), Verdict.BLOCKED, "nothing would be created"),
        (PlannedSet(FLEET, unsafe=("4 of 4",)), Verdict.UNSAFE, "Plan: unsafe as it stands"),
    ],
)
def test_the_verdict_is_the_worst_of_a_plan(planned: PlannedSet, verdict: Verdict, said: str) -> None:
    assert planned.verdict is verdict and said in describe_set_plan(planned)


def test_a_failure_names_its_row() -> None:
    origin = Origin("spec.generators[0].git", 7, {"path.basename": "web", "path.path": "apps/web"})
    failure = PlannedFailure("RenderTemplateParamsError", "template: :1:3: boom", "spec.generators[0].git", origin)
    said = describe_set_plan(PlannedSet(FLEET, failures=(failure,)))
    assert "blocked: spec.generators[0].git row 7 (path.basename=web, path.path=apps/web): template: :1:3: boom" in said


def test_many_values_and_fields_are_counted_and_all_shown_where_asked() -> None:
    fields = tuple(FieldChange(f"spec.f{number}", "", "x") for number in range(8))
    origin = Origin("spec.generators[0].list", 1, {f"k{number}": "v" * 50 for number in range(6)})
    one = PlannedApplication(SetVerb.CHANGE, ObjectRef("argoproj.io", "Application", "argocd", "a"), "", origin, fields)
    said = describe_set_plan(PlannedSet(FLEET, rows=1, applications=(one,)))
    assert "… 2 more)" in said and "… and 3 more fields (--all shows them)" in said and "v" * 41 not in said
    assert "spec.f7: x (new)" in describe_set_plan(PlannedSet(FLEET, rows=1, applications=(one,)), everything=True)


def test_changed_fields_are_named_by_their_paths() -> None:
    before = {"metadata": {"labels": {"a/b": "1"}}, "spec": {"sources": [{"path": "x"}], "gone": 1, "same": [1]}}
    after = {
        "metadata": {"labels": {"a/b": "2"}},
        "spec": {"sources": [{"path": "y"}], "new": {"k": True}, "same": [1]},
    }
    assert [(one.path, one.before, one.after) for one in field_changes(before, after)] == [
        ("metadata.labels[a/b]", "1", "2"),
        ("spec.sources[0].path", "x", "y"),
        ("spec.new.k", "", "true"),
        ("spec.gone", "1", ""),
    ]


def test_values_of_a_row_have_dotted_names_and_one_line_each() -> None:
    found = values_of({"path": {"basename": "web", "segments": ["apps", "web"]}, "count": 3.0, "none": None})
    assert found == {"path.basename": "web", "path.segments": "[apps, web]", "count": "3", "none": "null"}
    assert len(values_of({"long": "x" * 1000})["long"]) == 120


def test_an_application_says_which_set_makes_it() -> None:
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "fleet", "controller": True}
    made = {"metadata": {"name": "a", "namespace": "argocd", "ownerReferences": [owner]}, "spec": {}}
    assert "ApplicationSet:     argocd/fleet\n" in describe_app(made)
    assert "ApplicationSet" not in describe_app({"metadata": {"name": "a"}, "spec": {}})
