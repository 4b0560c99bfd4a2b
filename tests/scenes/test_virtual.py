"""Repositories that people have, unchanged, in virtual time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.scenes.scenes import Repo, Stage, application, rows, scene

from syncline.base.clock import parse_time
from syncline.kube.objects import dig, labels_of, name_of, uid_of
from syncline.rehearsal.seams import CrashingTransport, Killed

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def test_guestbook_is_synced_and_healthy(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps/guestbook")), ".", automated=True))
    stage.healthy()
    app = stage.app()
    assert dig(app, "status", "operationState", "message") == "successfully synced (all tasks run)"
    assert dig(app, "status", "history", 0, "id") == 0
    (deployment,) = stage.items("/apis/apps/v1/namespaces/default/deployments")
    assert dig(deployment, "status", "availableReplicas") == 1


def test_self_heal_undoes_what_is_changed_in_the_cluster_s078(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps/guestbook")), ".", automated=True))
    stage.healthy()
    path = "/apis/apps/v1/namespaces/default/deployments/guestbook-ui"
    stage.world.send("PATCH", path, {"spec": {"replicas": 5}}, "application/merge-patch+json")
    stage.world.driver.settle()
    stage.healthy()
    assert stage.world.send("GET", path)["spec"]["replicas"] == 1
    operation = dig(stage.app(), "status", "operationState", "operation")
    assert [r["name"] for r in operation["sync"]["resources"]] == ["guestbook-ui"]
    assert len(stage.app()["status"]["history"]) == 1, "a partial sync makes no history"


def test_what_leaves_the_repository_is_pruned(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps/guestbook"))
    stage.create(application(repo, ".", automated=True))
    stage.healthy()
    (repo.path / "guestbook-ui-svc.yaml").unlink()
    repo.commit("no service")
    stage.world.driver.advance(200)
    assert [name_of(s) for s in stage.items("/api/v1/namespaces/default/services")] == ["kubernetes"]
    assert rows(stage.app()["status"]["operationState"])["Service/guestbook-ui"]["status"] == "Pruned"


def test_without_prune_an_extra_resource_stays_and_is_named_s056(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps/guestbook"))
    stage.create(application(repo, "."))
    stage.sync()
    stage.finish()
    (repo.path / "guestbook-ui-svc.yaml").unlink()
    repo.commit("no service")
    stage.sync()
    state = stage.finish()
    row = rows(state)["Service/guestbook-ui"]
    assert (state["phase"], row["status"], row["message"]) == (
        "Succeeded",
        "PruneSkipped",
        "ignored (requires pruning)",
    )


def test_sync_waves_run_in_order_and_each_waits_for_the_one_before_s045(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps/sync-waves")), "."))
    stage.sync()
    state = stage.finish()
    assert state["phase"] == "Succeeded", state["message"]
    applied = [subject.split("/")[-1] for subject in stage.done("apply")]
    generated = next(name for name in applied if name.startswith("upgrade-sql-schema"))
    assert [a for a in applied if a != generated] == [
        "backend",
        "backend",
        "maint-page-up",
        "frontend",
        "frontend",
        "maint-page-down",
    ]
    assert applied[0] == generated, "the PreSync hook comes first"
    took = parse_time(state["finishedAt"]) - parse_time(state["startedAt"])
    assert 9 <= took.total_seconds() <= 40, "5 s and twice 2 s of hooks, plus pods that start"


def test_an_unnamed_hook_is_named_after_revision_phase_and_start_s028(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps/sync-waves"))
    sha = repo.git("rev-parse", "HEAD")
    stage.create(application(repo, "."))
    stage.sync()
    state = stage.finish()
    started = int(parse_time(state["startedAt"]).timestamp())
    wanted = f"upgrade-sql-schema{sha[:7]}-presync-{started}"
    assert wanted in [name_of(job) for job in stage.items(JOBS)]


def test_helm_hooks_as_plain_manifests_run_in_their_phases_s043(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.create(application(Repo(tmp_path / "repo", scene("argocd-example-apps/helm-hooks")), "."))
    stage.sync()
    state = stage.finish()
    assert state["phase"] == "Succeeded", state["message"]
    found = rows(state)
    assert found["Job/maint-page-up"]["hookType"] == "PreSync"
    assert found["Job/maint-page-down"]["hookType"] == "PostSync"
    order = [subject.split("/")[-1] for subject in stage.done("apply")]
    assert order.index("maint-page-up") < order.index("frontend") < order.index("maint-page-down")


def test_three_syncs_of_a_standalone_job_start_three_jobs_and_leave_the_old_ones_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", scene("jobs/standalone-job"))
    stage.create(application(repo, ".", syncOptions=["Replace=true"]))
    for count in (1, 2, 3):
        stage.sync()
        state = stage.finish()
        assert state["phase"] == "Succeeded", state["message"]
        assert len(stage.items(JOBS)) == count
        stage.world.driver.advance(1)
    uids = {uid_of(job) for job in stage.items(JOBS)}
    assert len(uids) == 3


def test_a_changed_image_reaches_the_pod_and_the_hook_job_is_made_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", scene("jobs/job-with-pod"))
    stage.create(application(repo, ".", automated=True))
    stage.healthy()
    (before,) = stage.items(JOBS)
    repo.change("pod.yaml", "image: tomcat", "image: tomcat:10")
    stage.world.driver.advance(200)
    stage.healthy()
    (after,) = stage.items(JOBS)
    pod = next(p for p in stage.items(PODS) if name_of(p) == "test-container")
    assert pod["spec"]["containers"][0]["image"] == "tomcat:10"
    assert uid_of(before) != uid_of(after), "BeforeHookCreation deletes it first"
    for _ in range(3):
        stage.sync()
        assert stage.finish()["phase"] == "Succeeded"


JOB = """
apiVersion: batch/v1
kind: Job
metadata:
  name: once
  annotations: {ANNOTATIONS}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "busybox:1", command: ["sleep", "1"]}]
"""


def job_repo(tmp_path: Path, annotations: str = "{}") -> Repo:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "job.yaml").write_text(JOB.replace("{ANNOTATIONS}", annotations))
    return Repo(tmp_path / "repo", folder)


@pytest.mark.parametrize(
    ("annotations", "options"),
    [
        ('{argocd.argoproj.io/sync-options: "Replace=true"}', []),
        ("{}", ["Replace=true"]),
        ('{argocd.argoproj.io/sync-options: "Force=true"}', []),
    ],
)
def test_a_changed_job_is_recreated_where_its_options_ask_for_it(
    tmp_path: Path, annotations: str, options: list[str]
) -> None:
    stage = Stage(tmp_path)
    repo = job_repo(tmp_path, annotations)
    stage.create(application(repo, ".", automated=True, syncOptions=options))
    stage.healthy()
    (before,) = stage.items(JOBS)
    repo.change("job.yaml", "busybox:1", "busybox:2")
    stage.world.driver.advance(200)
    stage.healthy()
    (after,) = stage.items(JOBS)
    assert after["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox:2"
    assert uid_of(before) != uid_of(after)


def test_a_changed_job_is_refused_with_its_field_and_the_three_ways_out_s071(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = job_repo(tmp_path)
    stage.create(application(repo, "."))
    stage.sync()
    stage.finish()
    repo.change("job.yaml", "busybox:1", "busybox:2")
    stage.sync()
    state = stage.finish()
    message = rows(state)["Job/once"]["message"]
    assert state["phase"] == "Failed"
    for words in ("spec.template", "field is immutable", "Replace=true", "Force=true", "BeforeHookCreation"):
        assert words in message


def test_the_same_seed_gives_a_byte_equal_journal(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps/sync-waves"))

    def run() -> str:
        stage = Stage(tmp_path, seed=7)
        stage.create(application(repo, "."))
        stage.sync()
        stage.finish()
        return str(stage.world.journal.text())

    assert run() == run() != ""


def test_a_shuffled_order_ends_the_same(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps/sync-waves"))
    ends = []
    for seed in (1, 2, 3):
        stage = Stage(tmp_path, seed=seed, shuffle=True)
        stage.create(application(repo, "."))
        stage.sync()
        state = stage.finish()
        ends.append((state["phase"], state["message"], sorted(rows(state))))
    assert ends[0] == ends[1] == ends[2]


PHASES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {argocd.argoproj.io/sync-wave: "1"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: web}]}
"""
HOOK = """
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {NAME}
  annotations: {argocd.argoproj.io/hook: {PHASE}, argocd.argoproj.io/hook-delete-policy: {POLICY}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {syncline.dev/exit-code: "{CODE}"}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: job, command: ["sleep", "2"]}]
"""


def hook(name: str, phase: str, policy: str, code: int = 0) -> str:
    text = HOOK
    for key, value in (("NAME", name), ("PHASE", phase), ("POLICY", policy), ("CODE", str(code))):
        text = text.replace("{" + key + "}", value)
    return text


def phases_repo(tmp_path: Path, *, failing: bool) -> Repo:
    folder = tmp_path / "phases"
    folder.mkdir()
    text = PHASES + hook("pre", "PreSync", "BeforeHookCreation") + hook("during", "Sync", "HookSucceeded")
    text += hook("post", "PostSync", "BeforeHookCreation", 1 if failing else 0)
    (folder / "all.yaml").write_text(text + hook("rescue", "SyncFail", "BeforeHookCreation"))
    return Repo(tmp_path / "repo", folder)


def ending(stage: Stage) -> tuple[object, ...]:
    """What has to be equal however often the controller dies: the operation's end, its rows, and the Jobs' runs."""
    state = stage.finish()
    found = {key: (row.get("status"), row.get("hookPhase")) for key, row in rows(state).items()}
    made: dict[str, set[str]] = {}
    for event in stage.items("/api/v1/namespaces/default/events"):
        if event["reason"] == "SuccessfulCreate" and event["involvedObject"]["kind"] == "Job":
            made.setdefault(event["involvedObject"]["name"], set()).add(event["involvedObject"]["uid"])
    return state["phase"], state["message"], found, {name: len(uids) for name, uids in made.items()}


def crashed(tmp_path: Path, repo: Repo, after: int) -> tuple[Stage, bool]:
    """Sync with a controller that dies after its ``after``-th write, then goes on as a new process."""
    stage = Stage(tmp_path)
    stage.create(application(repo, "."))
    stage.world.driver.settle()
    seams: list[CrashingTransport] = []

    def wrap(inner: object) -> CrashingTransport:
        seams.append(CrashingTransport(inner, after))  # type: ignore[arg-type]
        return seams[-1]

    stage.world.start_gitops(wrap)
    stage.sync()
    try:
        stage.finish()
        return stage, False
    except Killed:
        stage.world.start_gitops()
        return stage, True


@pytest.mark.parametrize("failing", [False, True], ids=["all succeeds", "PostSync fails"])
def test_killed_after_each_request_it_always_ends_the_same_and_every_hook_runs_once(
    tmp_path: Path, failing: bool
) -> None:
    repo = phases_repo(tmp_path, failing=failing)
    whole = Stage(tmp_path)
    whole.create(application(repo, "."))
    whole.sync()
    wanted = ending(whole)
    runs = {"pre": 1, "during": 1, "post": 1} | ({"rescue": 1} if failing else {})
    assert wanted[3] == runs
    assert wanted[0] == ("Failed" if failing else "Succeeded")
    kills = 0
    every = 1 if os.environ.get("SYNCLINE_LONG_TESTS") else 2
    for after in range(1 + failing, 200, every):
        stage, killed = crashed(tmp_path, repo, after)
        assert ending(stage) == wanted, f"killed after write {after}"
        kills += killed
        if not killed:
            break
    assert kills * every > 15, "the operation has many writes, and each was survived"


def test_one_broken_application_leaves_the_others_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", scene("argocd-example-apps/guestbook"))
    (repo.path / "broken").mkdir()
    (repo.path / "broken" / "a.yaml").write_text("kind: [unclosed\n")
    (repo.path / "unknown").mkdir()
    (repo.path / "unknown" / "a.yaml").write_text("apiVersion: nobody.example/v1\nkind: Ghost\nmetadata: {name: g}\n")
    repo.commit("trouble")
    nowhere = application(repo, ".", name="nowhere")
    nowhere["spec"]["destination"]["server"] = "https://elsewhere.example"
    missing = application(repo, ".", name="missing")
    missing["spec"]["source"]["repoURL"] = str(tmp_path / "no-such-repository")
    troubles = {
        "broken": (application(repo, "broken", name="broken"), "ComparisonError", "broken/a.yaml"),
        "outside": (application(repo, "../etc", name="outside"), "ComparisonError", "../etc"),
        "nowhere": (nowhere, "InvalidSpecError", "https://elsewhere.example"),
        "missing": (missing, "ComparisonError", "no-such-repository"),
    }
    for app, _, _ in troubles.values():
        stage.create(app)
    stage.create(application(repo, "unknown", name="unknown"))
    stage.create(application(repo, ".", automated=True))
    stage.healthy()
    stage.world.driver.settle()
    for name, (_, kind, words) in troubles.items():
        (condition,) = stage.app(name)["status"]["conditions"]
        assert condition["type"] == kind
        assert words in condition["message"]
        assert "\n" not in condition["message"]
    stage.sync("unknown")
    state = stage.finish("unknown")
    assert state["phase"] == "Failed"
    assert "Ghost" in state["message"] + rows(state)["Ghost/g"]["message"]
    assert labels_of(stage.app()) == {}


def test_deleting_with_the_cascade_finalizer_takes_its_resources_along(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    app = application(Repo(tmp_path / "repo", scene("argocd-example-apps/guestbook")), ".", automated=True)
    app["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    stage.create(app)
    stage.healthy()
    stage.world.send("DELETE", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/app")
    stage.world.driver.advance(120)
    assert stage.items("/apis/apps/v1/namespaces/default/deployments") == []
    assert stage.items("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications") == []
    assert stage.items(PODS) == []


WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {size: {type: integer, default: 1}, colour: {type: string}}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: w}
spec: {colour: red}
"""


@pytest.mark.parametrize("options", [[], ["ServerSideApply=true"]], ids=["client side", "server side"])
def test_a_definition_and_its_resource_come_in_one_sync_s051(tmp_path: Path, options: list[str]) -> None:
    folder = tmp_path / "widgets"
    folder.mkdir()
    (folder / "all.yaml").write_text(WIDGETS)
    stage = Stage(tmp_path)
    repo = Repo(tmp_path / "repo", folder)
    stage.create(application(repo, ".", automated=True, syncOptions=options))
    stage.healthy()
    path = "/apis/example.org/v1/namespaces/default/widgets/w"
    assert stage.world.send("GET", path)["spec"] == {"colour": "red", "size": 1}, "a default is no difference"
    repo.change("all.yaml", "colour: red", "colour: blue")
    stage.world.driver.advance(200)
    stage.healthy()
    assert stage.world.send("GET", path)["spec"]["colour"] == "blue"


def test_a_commit_that_touches_nothing_of_an_application_costs_it_no_write(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    folder = tmp_path / "two"
    for name in ("ours", "theirs"):
        (folder / name).mkdir(parents=True)
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{version: '1'}}\n"
        (folder / name / "config.yaml").write_text(text)
    repo = Repo(tmp_path / "repo", folder)
    for name in ("ours", "theirs"):
        stage.create(application(repo, name, name=name, automated=True))
        stage.healthy(name)
    before = stage.app("ours")
    theirs = repo.change("theirs/config.yaml", "'1'", "'2'")
    stage.world.driver.advance(200)
    assert stage.app("theirs")["status"]["sync"]["revision"] == theirs
    assert stage.app("ours")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    stage.refresh("ours")
    stage.world.driver.settle()
    assert stage.app("ours")["status"]["sync"]["revision"] == theirs, "who asks is told the commit that was looked at"
    ours = repo.change("ours/config.yaml", "'1'", "'3'")
    stage.world.driver.advance(200)
    assert stage.app("ours")["status"]["sync"]["revision"] == ours
