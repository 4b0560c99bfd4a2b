"""Who may hydrate where, what collides, and when a group is hydrated: the planner's rules, each as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from syncline.argo.application import AppView
from syncline.argo.hydrator import branch_problem, clean_folder, folder_problem, group_key, hydrator_problems
from syncline.argo.spec import validate_spec
from syncline.base.clock import format_time
from syncline.control.plan import Patch, Requeue
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.hydration.plan import Group, Member, collisions, plan_hydration
from syncline.gitops.hydration.work import Forget, Hydrate, Hydrated, Resolution, ResolveDry, Run
from syncline.kube.objects import Obj, ObjectRef
from syncline.sources.rendering.environment import NO_CONTEXT

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REPO = "https://git.example.com/team/web"
OPEN: Obj = {"metadata": {"name": "default"}, "spec": {"sourceRepos": ["*"]}}
OLD, NEW = "a" * 40, "b" * 40


def hydrator(folder: str = "web", branch: str = "env/test", **dry: Any) -> Obj:
    source = {"repoURL": REPO, "path": "dry", "targetRevision": "main", **dry}
    return {"drySource": source, "syncSource": {"targetBranch": branch, "path": folder}}


def app(name: str = "web", spec: Obj | None = None, status: Obj | None = None, **annotations: str) -> Obj:
    named = {f"argocd.argoproj.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": "7", "annotations": named},
        "spec": {"project": "default", "sourceHydrator": spec or hydrator()},
        "status": {"sourceHydrator": status} if status else {},
    }


def member(obj: Obj, project: Obj | None = OPEN) -> Member:
    return Member(AppView(obj), project, NO_CONTEXT)


def group(*members: Member, sha: str = NEW, **given: Any) -> Group:
    resolution = given.pop("resolution", Resolution(NOW, sha))
    return Group(group_key(members[0].hydrator), members, AppSettings(), resolution=resolution, **given)


def failure(observed: Group) -> str:
    """The message that the plan writes for the first member; empty if it writes none."""
    for action in plan_hydration(observed, NOW).actions:
        if isinstance(action, Patch) and action.name == observed.members[0].view.name:
            return str(
                action.body.get("status", {}).get("sourceHydrator", {}).get("currentOperation", {}).get("message")
            )
    return ""


# -- what is permitted ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("repos", "permitted"),
    [
        (["*"], True),
        ([REPO], True),
        ([f"{REPO}.git"], True),
        (["https://git.example.com/team/*"], True),
        ([], False),
        (["https://git.example.com/other/*"], False),
        (["*", f"!{REPO}"], False),
    ],
)
def test_a_project_has_to_list_the_dry_repository(repos: list[str], permitted: bool) -> None:
    project = {"metadata": {"name": "team"}, "spec": {"sourceRepos": repos}}
    told = f"Failed to hydrate: application repo {REPO} is not permitted in project 'team'"
    assert failure(group(member(app(), project))) == ("" if permitted else told)


def test_a_project_has_to_list_the_repository_that_is_written_too() -> None:
    elsewhere = hydrator() | {"syncSource": {"targetBranch": "b", "path": "web", "repoURL": "https://h/deploy"}}
    project = {"metadata": {"name": "team"}, "spec": {"sourceRepos": [REPO]}}
    told = "destination repo https://h/deploy is not permitted in project 'team'"
    assert failure(group(member(app(spec=elsewhere), project))) == f"Failed to hydrate: {told}"
    shown = validate_spec(app(spec=elsewhere), project, control_namespace="argocd")
    assert "sync source repo https://h/deploy is not permitted in project 'team'" in [one.message for one in shown]


def test_without_its_project_and_outside_of_its_namespaces_nothing_is_hydrated() -> None:
    assert "it does not exist" in failure(group(member(app(), None)))
    elsewhere = app() | {"metadata": {**app()["metadata"], "namespace": "team"}}
    assert "is not permitted to use project 'default'" in failure(group(member(elsewhere)))


@pytest.mark.parametrize("path", ["", ".", "/", "./", "//", "a/..", "./."])
def test_the_root_of_a_repository_is_never_written(path: str) -> None:
    assert "which is not allowed" in folder_problem(hydrator(path))


@pytest.mark.parametrize(
    "path", ["..", "../x", "a/../../b", ".github/workflows", "a/.git", ".gitattributes", "a/.hidden/b", "a\nb", "a\\b"]
)
def test_folders_outside_hidden_or_unreadable_are_never_written(path: str) -> None:
    assert folder_problem(hydrator(path)).startswith("spec.sourceHydrator.syncSource.path: found ")


@pytest.mark.parametrize("path", ["web", "a/b", "/web", "web/", "a//b", "a.b/c-d_e", "a b"])
def test_other_folders_are_written(path: str) -> None:
    assert folder_problem(hydrator(path)) == ""
    assert not clean_folder(path).startswith("/") and "//" not in clean_folder(path)


BAD_BRANCHES = ["--force", "-x", "a..b", "a:b", "+a", "a b", "a~1", "a^", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b"]
BAD_BRANCHES += ["a.lock", "a.lock/b", ".a", "a/.b", "a@{1}", "@", "a.", "HEAD", "refs/heads/x", "a\nb", "x" * 300]


@pytest.mark.parametrize("branch", BAD_BRANCHES)
def test_what_is_no_name_of_a_branch_is_never_pushed_to(branch: str) -> None:
    if branch == "+a":
        assert branch_problem(branch, "f") == "", "a plus is a letter of a name; refspecs here begin with a commit"
        return
    assert branch_problem(branch, "spec.x").startswith("spec.x: found ")
    assert "spec.sourceHydrator.syncSource.targetBranch: found" in failure(
        group(member(app(spec=hydrator(branch=branch))))
    )
    staged = hydrator() | {"hydrateTo": {"targetBranch": branch}}
    assert "spec.sourceHydrator.hydrateTo.targetBranch: found" in failure(group(member(app(spec=staged))))


@pytest.mark.parametrize(
    ("dry", "written", "refused"),
    [
        ("dry", "dry", True),
        ("dry", "dry/out", True),
        (".", "out", True),
        ("dry", "dry-out", False),
        ("dry", "out", False),
    ],
)
def test_hydrated_manifests_are_not_written_where_they_would_be_read(dry: str, written: str, refused: bool) -> None:
    same = hydrator(written, "main", path=dry)
    assert ("would be read as dry ones" in failure(group(member(app(spec=same))))) is refused
    assert failure(group(member(app(spec=hydrator(written, "other", path=dry))))) == ""


@pytest.mark.parametrize(
    ("first", "second", "collide"),
    [
        ("a", "a", True),
        ("a", "./a/", True),
        ("a/b", "a//b", True),
        ("a", "x/../a", True),
        ("a", "b", False),
        ("a", "a/b", False),
        ("a", "a/manifest.yaml", True),
        ("a", "a/README.md/b", True),
        ("a", "A", False),
    ],
)
def test_two_applications_never_write_one_folder(first: str, second: str, collide: bool) -> None:
    found = collisions([app("one", hydrator(first)), app("two", hydrator(second))])
    assert bool(found) is collide
    if collide:
        assert {ref.name for ref in found} == {"one", "two"}
        assert found[ObjectRef("argoproj.io", "Application", "argocd", "one")].startswith(
            f"app argocd/two hydrator uses the same destination: repo={REPO}, path="
        )


def test_applications_of_other_dry_sources_collide_too() -> None:
    other = app("other", hydrator(targetRevision="develop"))
    assert "uses the same destination" in failure(group(member(app()), others=(other,)))


def test_who_was_hydrated_into_a_folder_before_keeps_it() -> None:
    status = {"lastSuccessfulOperation": {"sourceHydrator": hydrator()}}
    assert {ref.name for ref in collisions([app("old", status=status), app("new")])} == {"new"}
    moved = {"lastSuccessfulOperation": {"sourceHydrator": hydrator("elsewhere")}}
    assert {ref.name for ref in collisions([app("old", status=moved), app("new")])} == {"new", "old"}


@pytest.mark.parametrize(
    "joins",
    [
        member(app("refused"), {"metadata": {"name": "p"}, "spec": {"sourceRepos": []}}),
        member(app("refused"), None),
        member(app("refused", hydrator(".github"))),
    ],
)
def test_what_may_not_be_hydrated_is_left_out_and_stops_nobody(joins: Member) -> None:
    observed = group(member(app()), joins)
    (action,) = [one for one in plan_hydration(observed, NOW).actions if isinstance(one, Hydrate)]
    assert [job.app.name for job in action.jobs] == ["web"]
    assert failure(group(joins, member(app()))).startswith("Failed to hydrate: ")


def test_required_fields_are_named_in_upstreams_words() -> None:
    empty: Obj = {"drySource": {}, "syncSource": {"path": "p"}, "hydrateTo": {}}
    assert hydrator_problems(empty) == [
        "spec.sourceHydrator.drySource.repoURL is required",
        "spec.sourceHydrator.syncSource.targetBranch is required",
        "when spec.sourceHydrator.hydrateTo is set, spec.sourceHydrator.hydrateTo.targetBranch is required",
    ]


# -- when -------------------------------------------------------------------------------------------------------------


def done(
    phase: str = "Hydrated", *, sha: str = OLD, compared: str = OLD, ago_s: int = 10, spec: Obj | None = None
) -> Obj:
    ended = format_time(NOW - timedelta(seconds=ago_s))
    operation = {"phase": phase, "startedAt": ended, "drySHA": sha, "sourceHydrator": spec or hydrator(), "message": ""}
    operation |= {} if phase == "Hydrating" else {"finishedAt": ended}
    return {"currentOperation": operation} | ({"lastComparedDryRevision": compared} if compared else {})


@pytest.mark.parametrize(
    ("status", "sha", "hydrates"),
    [
        (None, NEW, "no previous hydrate operation"),
        (done(), OLD, ""),
        (done(), NEW, "new revision may have changes"),
        (done(compared=""), OLD, "new revision may have changes"),
        (done(spec=hydrator("before")), OLD, "spec.sourceHydrator differs"),
        (done("Hydrating"), OLD, "the hydrate operation was interrupted"),
        (done("Failed"), OLD, ""),
        (done("Failed"), NEW, "new revision may have changes"),
        (done("Failed", compared=""), NEW, ""),
        (done("Failed", ago_s=121), OLD, "previous hydrate operation failed more than 2 minutes ago"),
        (done("Failed", compared="", ago_s=121), OLD, "previous hydrate operation failed more than 2 minutes ago"),
    ],
)
def test_a_group_is_hydrated_for_a_reason(status: Obj | None, sha: str, hydrates: str) -> None:
    plan = plan_hydration(group(member(app(status=status)), sha=sha), NOW)
    assert ([one.reason for one in plan.actions if isinstance(one, Hydrate)] or [""])[0] == hydrates


@pytest.mark.parametrize(
    ("kind", "status", "hydrates"),
    [
        ("normal", done(), False),
        ("hard", done(), True),
        ("anything", done(), False),
        ("normal", done("Failed"), True),
    ],
)
def test_a_request_is_answered_by_a_look_that_began_for_it(kind: str, status: Obj, hydrates: bool) -> None:
    asking = member(app(status=status, hydrate=kind, hydrate_timestamp="t1"))
    first = plan_hydration(group(asking, sha=OLD), NOW)
    assert [type(one) for one in first.actions] == [ResolveDry], "an older look does not answer"
    answered = plan_hydration(group(asking, resolution=Resolution(NOW, OLD, answers=(asking.asked,))), NOW)
    assert any(isinstance(one, Hydrate) for one in answered.actions) is hydrates
    taken = [one for one in answered.actions if isinstance(one, Patch) and one.body["metadata"].get("annotations")]
    assert bool(taken) is not hydrates, "one that is hydrated keeps its request until the end"


def test_a_request_that_came_while_git_worked_stays() -> None:
    before, after = (app(status=done("Hydrating"), hydrate="normal", hydrate_timestamp=t) for t in ("t1", "t2"))
    begun = plan_hydration(group(member(before), resolution=Resolution(NOW, NEW, answers=(member(before).asked,))), NOW)
    (action,) = [one for one in begun.actions if isinstance(one, Hydrate)]
    for obj, stays in ((before, False), (after, True)):
        run = Run(action, NOW, Hydrated(NOW, OLD))
        (patch, forget) = plan_hydration(group(member(obj), run=run), NOW).actions
        assert isinstance(patch, Patch) and isinstance(forget, Forget)
        assert ("argocd.argoproj.io/hydrate" not in patch.body["metadata"]["annotations"]) is stays
        assert patch.body["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == "normal"


def test_while_git_works_the_group_waits_and_a_run_is_concluded_once() -> None:
    (action,) = [one for one in plan_hydration(group(member(app())), NOW).actions if isinstance(one, Hydrate)]
    waiting = plan_hydration(group(member(app()), run=Run(action, NOW)), NOW)
    assert waiting.empty and isinstance(waiting.outcome, Requeue) and waiting.outcome.background
    written = done(sha=NEW, compared=NEW, ago_s=0)
    written["currentOperation"]["hydratedSHA"] = OLD
    written["lastSuccessfulOperation"] = {"drySHA": NEW, "hydratedSHA": OLD, "sourceHydrator": hydrator()}
    again = plan_hydration(group(member(app(status=written)), run=Run(action, NOW, Hydrated(NOW, OLD))), NOW)
    assert [type(one) for one in again.actions] == [Forget], "what stands in the status is not written again"
