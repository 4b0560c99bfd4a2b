"""The same repositories over real HTTP, on the wall clock, with the commands of Jobs as sandboxed local processes.

All scenes run side by side on one served cluster, so that the slowest decides how long it takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.live import Served, served_cluster
from tests.scenes.pools import NAMESPACE, POOL, Timeline, prerequisites
from tests.scenes.scenes import Repo, application, rows, scene

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig, name_of, uid_of
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PATIENCE_S = 300
"""For all scenes together on a busy machine; an idle one needs about twenty seconds."""


@dataclass
class Live:
    """A served cluster with shorthands: requests as an administrator, and the command line as people use it."""

    served: Served
    client: BlockingClient
    folder: Path

    def send(self, method: str, path: str, body: Any = None, content: str = "") -> Any:
        headers = {"content-type": content} if content else {}
        return self.client.send(Request(method, path, {}, headers, body)).or_raise()

    def syncline(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())"]
        environment = dict(os.environ, KUBECONFIG=str(self.served.kubeconfig))
        done = subprocess.run(
            [*command, *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE_S + 30
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def app(self, name: str) -> Obj:
        found: Obj = self.send("GET", f"{APPS}/{name}")
        return found

    def jobs(self, namespace: str) -> list[Obj]:
        found: list[Obj] = self.send("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs")["items"]
        return found

    def finished(self, name: str) -> Obj:
        """Wait, as people do, until the operation is over; its state."""
        self.syncline("app", "wait", name, "--operation", "--timeout", str(PATIENCE_S))
        state: Obj = self.app(name)["status"]["operationState"]
        return state


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    problem = sandbox_problem()
    if problem:
        pytest.skip(f"commands cannot be sandboxed here: {problem}")
    folder = tmp_path_factory.mktemp("live")
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.SANDBOXED)
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with served_cluster(folder, settings, gitops) as served:
        yield Live(served, BlockingClient(load_kubeconfig(str(served.kubeconfig), None)), folder)


class Scenes:
    """Every scene's repository and Application; all syncs are asked for at once."""

    def __init__(self, live: Live) -> None:
        self.repos: dict[str, Repo] = {}
        self._live = live
        pool = scene("pool-pause")
        for path, obj in prerequisites(pool):
            self._made(path, obj)
        self.timeline = Timeline(live.served.cluster.core.store)
        self._app("guestbook", "argocd-example-apps/guestbook")
        self._app("waves", "argocd-example-apps/sync-waves")
        self._app("hooks", "argocd-example-apps/helm-hooks")
        self._app("standalone", "jobs/standalone-job", syncOptions=["CreateNamespace=true", "Replace=true"])
        self._app("withpod", "jobs/job-with-pod")
        self._app("pools", "pool-pause", namespace=NAMESPACE)
        for name in self.repos:
            live.syncline("app", "sync", name, "--async")

    def _made(self, path: str, obj: Obj) -> None:
        """Create; a definition is served a moment after it is stored."""
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self._live.client.send(Request("POST", path, {}, {}, obj))
            if answer.status != 404 or time.monotonic() > until:
                break
        answer.or_raise()

    def _app(self, name: str, source: str, *, namespace: str = "", **policy: Any) -> None:
        self.repos[name] = Repo(self._live.folder / name, scene(source))
        policy.setdefault("syncOptions", ["CreateNamespace=true"])
        app = application(self.repos[name], ".", name=name, namespace=namespace or name, **policy)
        self._live.send("POST", APPS, app)


@pytest.fixture(scope="module")
def scenes(live: Live) -> Scenes:
    return Scenes(live)


def test_guestbook_gets_healthy(live: Live, scenes: Scenes) -> None:
    live.syncline("app", "wait", "guestbook", "--timeout", str(PATIENCE_S))
    listed = live.syncline("app", "list").stdout
    assert "argocd/guestbook" in listed
    described = live.syncline("app", "get", "guestbook").stdout
    assert "Synced to main" in described


def test_waves_and_hooks_run_to_their_end_and_their_commands_for_real(live: Live, scenes: Scenes) -> None:
    for name in ("waves", "hooks"):
        state = live.finished(name)
        assert state["phase"] == "Succeeded", state["message"]
        assert {row["hookPhase"] for row in rows(state).values() if row.get("hookType")} == {"Succeeded"}


def test_a_standalone_job_starts_anew_with_each_sync_and_the_old_ones_stay(live: Live, scenes: Scenes) -> None:
    for count in (1, 2, 3):
        assert live.finished("standalone")["phase"] == "Succeeded"
        assert len(live.jobs("standalone")) == count
        if count < 3:
            live.syncline("app", "sync", "standalone")
    for job in live.jobs("standalone"):
        live.send("DELETE", f"/apis/batch/v1/namespaces/standalone/jobs/{name_of(job)}")


def test_a_changed_image_reaches_the_pod_and_the_hook_job_is_made_again(live: Live, scenes: Scenes) -> None:
    assert live.finished("withpod")["phase"] == "Succeeded"
    (before,) = live.jobs("withpod")
    log = live.client.send(Request("GET", f"/api/v1/namespaces/withpod/pods/{job_pod(live, 'withpod')}/log"))
    assert log.raw == b"job-test\n", "the echo of the Job's command"
    scenes.repos["withpod"].change("pod.yaml", "image: tomcat", "image: tomcat:10")
    shown = live.syncline("app", "sync", "withpod").stdout
    assert "pod/test-container configured" in shown
    (after,) = live.jobs("withpod")
    pod = live.send("GET", "/api/v1/namespaces/withpod/pods/test-container")
    assert pod["spec"]["containers"][0]["image"] == "tomcat:10"
    assert uid_of(before) != uid_of(after)


def job_pod(live: Live, namespace: str) -> str:
    pods = live.send("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return next(name_of(p) for p in pods if "batch.kubernetes.io/job-name" in (p["metadata"].get("labels") or {}))


def test_the_pool_is_paused_by_oc_in_the_hook_and_resumed_after_the_last_resource(live: Live, scenes: Scenes) -> None:
    state = live.finished("pools")
    assert state["phase"] == "Succeeded", json.dumps(state, indent=1)
    lines = scenes.timeline.lines
    paused, resumed = lines.index("pool paused: True"), lines.index("pool paused: False")
    brought = [lines.index("added machineconfigs 99-worker-motd"), lines.index("added deployments kam-blog")]
    assert paused < min(brought)
    assert max(brought) < resumed, "\n".join(lines)
    assert dig(live.send("GET", POOL), "spec", "paused") is False
