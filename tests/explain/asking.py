"""Asks a virtual world as the commands ask a served one: one look, then the explanation or the plan."""

from __future__ import annotations

from pathlib import Path

from tests.scenes.scenes import Repo, Stage

from syncline.assembly.inspection.preview import PlannedSync, SyncRequest, observed_application, planned_sync
from syncline.assembly.inspection.refusals import Questions
from syncline.assembly.inspection.snapshot import ClusterSnapshot, application_indices, snapshot_of_cluster
from syncline.assembly.sources.reading import GitSourceReader
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.plan import describe_plan
from syncline.control.executor import run_in_place
from syncline.explain.application import explain_application
from syncline.explain.graph import explain_object
from syncline.explain.view import Found, LogTail, View, no_logs
from syncline.kube.client import Transport
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.rehearsal.simulation import Simulation

APPLICATION = ObjectRef("argoproj.io", "Application", "argocd", "app")


def look(stage: Stage | Simulation) -> ClusterSnapshot:
    return run_in_place(snapshot_of_cluster(application_indices(stage.world.settings)), stage.world.admin)


def reader(tmp_path: Path) -> GitSourceReader:
    return GitSourceReader(tmp_path / "asked", allow_local=True)


def ask(stage: Stage, tmp_path: Path, ref: ObjectRef = APPLICATION, logs: LogTail = no_logs) -> Found:
    """What ``syncline explain`` would find."""
    cache, now = look(stage).cache, stage.world.clock.now()
    view = View(cache, now, logs)
    if ref.kind != "Application":
        obj = cache.get(ref)
        assert obj is not None, f"{ref} is not in the cluster"
        return explain_object(view, obj)
    observed = observed_application(cache, ref, reader(tmp_path), stage.world.settings, now)
    assert observed is not None, f"{ref} is not in the cluster"
    return explain_application(view, observed)


def told(stage: Stage, found: Found) -> str:
    """The text that a person reads."""
    return describe_cause(found.cause, stage.world.clock.now())


def plan(
    stage: Stage,
    tmp_path: Path,
    app: Obj | None = None,
    request: SyncRequest | None = None,
    transport: Transport | None = None,
) -> PlannedSync:
    """What ``syncline plan`` would find; ``app`` as from a file. ``transport``: of the dry runs."""
    cache = look(stage).cache
    wanted = app or cache.get(APPLICATION)
    assert wanted is not None, "there is an Application to plan for"
    asked = request or SyncRequest()
    now, settings, questions = stage.world.clock.now(), stage.world.settings, Questions(transport or stage.world.admin)
    return planned_sync(cache, wanted, reader(tmp_path), settings, now, asked, ask=lambda _server: questions)


def printed(planned: PlannedSync, *, everything: bool = False) -> str:
    """The text of a plan, with commits as a placeholder."""
    text = describe_plan(planned, everything=everything)
    for revision in planned.revisions:
        text = text.replace(revision[:7], "<commit>")
    return text


def folder(tmp_path: Path, **files: str) -> Repo:
    """A repository with manifests below ``app/``; keyword ``a`` becomes ``app/a.yaml``."""
    source = tmp_path / "source"
    (source / "app").mkdir(parents=True)
    for name, text in files.items():
        (source / "app" / f"{name}.yaml").write_text(text)
    return Repo(tmp_path / "repo", source)


def pods_of(stage: Stage, job: str, namespace: str = "default") -> list[str]:
    pods = stage.items(f"/api/v1/namespaces/{namespace}/pods")
    return [name_of(pod) for pod in pods if name_of(pod).startswith(job)]
