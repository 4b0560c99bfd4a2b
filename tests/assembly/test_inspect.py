"""The plan says what the sync will do, and the sync does what the plan said."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.explain.asking import folder, plan, printed
from tests.scenes.scenes import Repo, Stage, application

from syncline.assembly.inspection.preview import PlannedSync, SyncRequest, Verb, Verdict
from syncline.base.clock import format_time
from syncline.kube.objects import Obj

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: %s}\n"
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {%s}}
spec:
  template:
    spec:
      %s
      containers: [{name: one, image: '%s', command: [echo]}]
      restartPolicy: Never
"""
HOOK = "argocd.argoproj.io/hook: PreSync"
WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1'}]}
"""
LAST = CONFIG.replace("metadata: {name: %s}", "metadata: {name: %s, annotations: {argocd.argoproj.io/sync-wave: '2'}}")


def applied(tmp_path: Path, **files: str) -> tuple[Stage, Repo]:
    """An Application that was synced once."""
    stage, repo = Stage(tmp_path), folder(tmp_path, **files)
    stage.create(application(repo, "app"))
    stage.world.driver.advance(5)
    stage.sync(prune=True)
    stage.finish()
    stage.world.driver.advance(30)
    return stage, repo


def changes(planned: PlannedSync) -> list[tuple[str, int, str, str]]:
    return [(g.phase, g.wave, str(c.verb), c.ref.name) for g in planned.groups for c in g.changes]


def test_a_first_sync_is_printed_wave_by_wave_with_its_gates(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = folder(tmp_path, a=CONFIG % ("c", "b"), b=JOB % ("migrate", HOOK, "", "i"), c=WEB, d=LAST % ("last", "x"))
    assert printed(plan(stage, tmp_path, application(repo, "app"))) == "\n".join(
        [
            "Application argocd/app at <commit>: OutOfSync, Missing",
            "next sync by: syncline app sync app (not automated)",
            "",
            "PreSync, wave 0",
            "  ▸ run hook  Job default/migrate  hook of PreSync",
            "  then waits for completion of Job default/migrate",
            "",
            "Sync, wave 0",
            "  + create  ConfigMap default/c     not in the cluster",
            "  + create  Deployment default/web  not in the cluster",
            "  then waits for healthy state of Deployment default/web",
            "",
            "Sync, wave 2",
            "  + create  ConfigMap default/last  not in the cluster",
            "",
            "Plan: 3 to create; 1 to run hook",
        ]
    )


def test_the_sync_does_what_its_plan_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = folder(tmp_path, a=CONFIG % ("c", "b"), b=JOB % ("migrate", HOOK, "", "i"), c=WEB, d=LAST % ("last", "x"))
    app = application(repo, "app")
    planned = changes(plan(stage, tmp_path, app))
    stage.create(app)
    stage.world.driver.advance(5)
    stage.sync()
    state = stage.finish()
    done = [(row["syncPhase"], row["name"]) for row in state["syncResult"]["resources"]]
    assert done == [(phase, name) for phase, _, _, name in planned]


def test_nothing_to_do_is_said_in_one_line_and_unchanged_objects_on_request(tmp_path: Path) -> None:
    stage, _ = applied(tmp_path, a=CONFIG % ("c", "b"))
    planned = plan(stage, tmp_path)
    assert planned.verdict is Verdict.NOTHING
    assert printed(planned).splitlines()[-1] == "Plan: nothing to do (1 unchanged)"
    assert "unchanged  ConfigMap default/c" not in printed(planned)
    assert "unchanged  ConfigMap default/c" in printed(planned, everything=True)


def test_a_plan_in_the_second_of_the_last_sync_does_not_take_its_namespace_for_its_own(tmp_path: Path) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, a=CONFIG % ("c", "b"))
    stage.create(application(repo, "app", namespace="shop", syncOptions=["CreateNamespace=true"]))
    stage.world.driver.advance(5)
    stage.sync()
    state = stage.finish()
    assert state["startedAt"] == format_time(stage.world.clock.now()), "in virtual time no sync takes a second"
    assert changes(plan(stage, tmp_path)) == [("Sync", 0, "unchanged", "c")]


def test_a_change_names_its_field_and_never_its_value(tmp_path: Path) -> None:
    stage, repo = applied(tmp_path, a=CONFIG % ("c", "old"), s=SECRET % "first-secret")
    repo.change("app/a.yaml", "old", "new")
    repo.change("app/s.yaml", "first-secret", "second-secret")
    planned = plan(stage, tmp_path)
    text = printed(planned) + repr(planned) + str(planned.to_obj())
    assert "~ configure  ConfigMap default/c  differs from the source in data.a" in text
    assert "~ configure  Secret default/s" in text
    for value in ("first-secret", "second-secret", "Zmlyc3Qtc2VjcmV0", "c2Vjb25kLXNlY3JldA=="):
        assert value not in text


def test_what_left_the_source_is_pruned_only_where_that_is_asked_for(tmp_path: Path) -> None:
    stage, repo = applied(tmp_path, a=CONFIG % ("c", "b"), b=CONFIG % ("d", "b"))
    (repo.path / "app" / "b.yaml").unlink()
    repo.commit("one less")
    kept = plan(stage, tmp_path)
    assert kept.verdict is Verdict.CHANGES and kept.count(Verb.PRUNE) == 0
    assert "! /ConfigMap/default/d: ignored (requires pruning)" in printed(kept)
    gone = plan(stage, tmp_path, request=SyncRequest(prune=True))
    assert ("Sync", 0, "prune", "d") in changes(gone)
    assert gone.groups[0].waits[0].refs[0].name == "d"


def test_deleting_everything_is_unsafe(tmp_path: Path) -> None:
    files = {name: CONFIG % (name, "b") for name in "cdef"}
    stage, repo = applied(tmp_path, **files)
    for name in files:
        (repo.path / "app" / f"{name}.yaml").unlink()
    (repo.path / "app" / "left.yaml").write_text(CONFIG % ("left", "b"))
    repo.commit("all gone")
    planned = plan(stage, tmp_path, request=SyncRequest(prune=True))
    assert planned.verdict is Verdict.UNSAFE
    assert "4 of 5 objects would be deleted" in planned.unsafe[0]


@pytest.mark.parametrize(
    ("annotation", "verb", "verdict"),
    [
        ("", "refuse", Verdict.UNSAFE),
        ("argocd.argoproj.io/sync-options: Replace=true", "recreate", Verdict.CHANGES),
        ("argocd.argoproj.io/sync-options: Force=true", "recreate", Verdict.CHANGES),
    ],
)
def test_an_immutable_field_is_refused_unless_somebody_allowed_to_make_the_object_anew(
    tmp_path: Path, annotation: str, verb: str, verdict: Verdict
) -> None:
    stage, repo = applied(tmp_path, j=JOB % ("j", annotation, "", "one:1"))
    repo.change("app/j.yaml", "one:1", "one:2")
    planned = plan(stage, tmp_path)
    assert changes(planned) == [("Sync", 0, verb, "j")]
    assert planned.verdict is verdict
    if verdict is Verdict.UNSAFE:
        for way_out in ("Replace=true", "Force=true", "BeforeHookCreation"):
            assert way_out in planned.groups[0].warnings[0]


def test_a_hook_whose_service_account_comes_later_is_warned_of(tmp_path: Path) -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: late}\n"
    repo = folder(tmp_path, a=account, j=JOB % ("j", HOOK, "serviceAccountName: late", "i"))
    planned = plan(Stage(tmp_path), tmp_path, application(repo, "app"))
    assert "the hook waits for it for ever" in planned.groups[0].warnings[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: [\n", "app/a.yaml:2:1"),
        ("apiVersion: foo.io/v1\nkind: Foo\nmetadata: {name: x}\n", "could not find the requested resource"),
    ],
)
def test_what_could_not_even_begin_is_blocked(tmp_path: Path, content: str, said: str) -> None:
    planned = plan(Stage(tmp_path), tmp_path, application(folder(tmp_path, a=content), "app"))
    assert planned.verdict is Verdict.BLOCKED
    assert any(said in problem for problem in planned.problems)


def test_an_unknown_revision_is_blocked(tmp_path: Path) -> None:
    stage, _ = applied(tmp_path, a=CONFIG % ("c", "b"))
    planned = plan(stage, tmp_path, request=SyncRequest(revision="nowhere"))
    assert planned.verdict is Verdict.BLOCKED and "nowhere" in planned.problems[0]


def test_another_revision_is_compared_instead_of_the_one_of_the_spec(tmp_path: Path) -> None:
    stage, repo = applied(tmp_path, a=CONFIG % ("c", "one"))
    first = repo.git("rev-parse", "HEAD")
    repo.change("app/a.yaml", "one", "two")
    assert plan(stage, tmp_path).verdict is Verdict.CHANGES
    back = plan(stage, tmp_path, request=SyncRequest(revision=first))
    assert back.revisions == (first,) and back.verdict is Verdict.NOTHING


def test_an_automated_application_shows_the_sync_that_would_start_by_itself(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    app: Obj = application(folder(tmp_path, a=CONFIG % ("c", "b")), "app", automated=True)
    assert plan(stage, tmp_path, app).by == "automated sync"


def test_a_name_that_is_generated_later_is_shown_as_its_prefix(tmp_path: Path) -> None:
    job = (JOB % ("x", "argocd.argoproj.io/sync-options: Replace=true", "", "i")).replace("name: x", "generateName: x-")
    planned = plan(Stage(tmp_path), tmp_path, application(folder(tmp_path, j=job), "app"))
    assert changes(planned) == [("Sync", 0, "create", "x-…")]


def test_planning_never_writes(tmp_path: Path) -> None:
    stage, repo = applied(tmp_path, a=CONFIG % ("c", "one"))
    repo.change("app/a.yaml", "one", "two")
    before = stage.world.core.store.revision
    plan(stage, tmp_path)
    assert stage.world.core.store.revision == before
