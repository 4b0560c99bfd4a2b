"""A live sync is recorded without secrets; its replay goes the same way, or says where another one begins."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from tests.live import START_S, Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.ports import HttpPort
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock
from syncline.cli.main import main
from syncline.cli.rehearse.drift import hold_pools
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig
from syncline.rehearsal.answer.answer import Bar, Doing
from syncline.rehearsal.reality.drifting import Drift, Line, Verdict
from syncline.rehearsal.reality.files import read_recording, writing
from syncline.rehearsal.reality.outside import Commit, Write, acts_of
from syncline.rehearsal.reality.recording import Recording, Tape, recording_of
from syncline.rehearsal.reality.redacting import Redaction
from syncline.rehearsal.reality.replaying import replayed
from syncline.rehearsal.reality.watching import DONE, recorded
from syncline.rehearsal.repository import IDENTITY
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.stage import APPLICATIONS

CANARY = "c4n4ry-password"
PLACE = APPLICATIONS.path("argocd", "shop")
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {generateName: migrate-, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "web:1"}]}}}
"""
SECRET = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{password: {CANARY}}}\n"


def commit(folder: Path, replicas: int) -> str:
    (folder / "web.yaml").write_text(WEB % replicas)
    git = ["git", "-C", str(folder), *IDENTITY]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", str(replicas)], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def shop(folder: Path) -> Obj:
    source = {"repoURL": str(folder), "path": ".", "targetRevision": "main"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "default"}
    spec = {"project": "default", "source": source, "destination": destination}
    metadata = {"name": "shop", "namespace": "argocd"}
    policy = {"syncPolicy": {"automated": {"prune": True, "selfHeal": True}}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec | policy}


def synced(link: BlockingClient, sha: str) -> None:
    for _ in link.watch(Request("GET", APPLICATIONS.path("argocd"), {"watch": "1", "timeoutSeconds": str(START_S)})):
        status = link.send(Request("GET", PLACE)).or_raise().get("status", {})
        calm = status.get("health", {}).get("status") == "Healthy" and status.get("sync", {}).get("status") == "Synced"
        if calm and status["sync"]["revision"] == sha:
            return
    raise AssertionError(f"shop did not get to {sha}")


def record_of_a_commit(folder: Path, served: Served, repository: Path) -> tuple[Path, str]:
    """Record a commit of two replicas, and how a person labels a namespace in the middle of it."""
    link, file, began = (
        BlockingClient(load_kubeconfig(str(served.kubeconfig))),
        folder / "record.jsonl",
        threading.Event(),
    )
    link.send(client.create(APPLICATIONS, shop(repository))).or_raise()
    synced(link, commit(repository, 1))
    with writing(file) as write:

        def noticed(line: str) -> None:
            write(line)
            if '"began"' in line:
                began.set()

        tape = Tape(noticed, Redaction(b"salt"))

        async def run() -> str:
            port = HttpPort(load_kubeconfig(str(served.kubeconfig)))
            tape.head(served.url)
            try:
                why = await recorded(
                    port, SystemClock(), tape, asyncio.Event(), until="shop", journal=served.cluster.journal
                )
                tape.end(SystemClock().now(), why)
                return why
            finally:
                await port.close()

        done: Future[str] = asyncio.run_coroutine_threadsafe(run(), served.loop)
        assert began.wait(START_S)
        label: Obj = {"metadata": {"labels": {"team": "shop"}}}
        merge = client.PatchType.MERGE
        spaces = Request("PATCH", "/api/v1/namespaces/default", {"fieldManager": "kubectl-label"}, {}, label)
        link.send(replace(spaces, headers={"content-type": merge})).or_raise()
        commit(repository, 2)
        note: Obj = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
        link.send(client.patch(APPLICATIONS, "argocd", "shop", merge, note)).or_raise()
        return file, done.result(START_S)


def held_by_drift(served: Served) -> None:
    """``syncline drift --hold`` makes one Hold of all pools of the operation, and extends it the next time."""
    bar = Bar("pool/worker", Doing.POOL, 0.0, None)
    line = Line(bar.row, bar.doing, 0.0, None, bar, Verdict.LATE, "pool/worker pool lasts already 2h")
    for _ in range(2):
        hold_pools(Drift((line,), {}), str(served.kubeconfig), None)
    link = BlockingClient(load_kubeconfig(str(served.kubeconfig)))
    (hold,) = link.send(Request("GET", "/apis/syncline.dev/v1alpha1/holds")).or_raise()["items"]
    assert (hold["spec"]["pools"], hold["spec"]["reason"]) == (["worker"], line.said)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reality")
    repository = folder / "shop"
    repository.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    (repository / "job.yaml").write_text(JOB)
    (repository / "secret.yaml").write_text(SECRET)
    with served_cluster(
        folder,
        ClusterSettings(nodes=1, simulated_storage=True),
        GitOpsSettings(folder / "cache", allow_local_repos=True),
    ) as served:
        _, why = record_of_a_commit(folder, served, repository)
        held_by_drift(served)
    assert why == DONE
    return folder


@pytest.fixture(scope="module")
def recording(place: Path) -> Recording:
    return read_recording(place / "record.jsonl")


def test_a_record_has_no_secret_and_is_readable_for_its_owner_only(place: Path, recording: Recording) -> None:
    assert CANARY not in (place / "record.jsonl").read_text()
    assert (place / "record.jsonl").stat().st_mode & 0o777 == 0o600
    assert recording.journal and "Secret" in {obj["kind"] for obj in recording.first}


def test_what_came_from_outside_is_told_from_what_controllers_did(recording: Recording) -> None:
    found = acts_of(recording)
    assert [type(act) for act in found] == [Write, Commit], list(map(str, found))
    assert str(found[0]) == "kubectl-label changes /Namespace//default"


def test_a_replay_goes_as_the_live_sync_went(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["replay", str(place / "record.jsonl")])
    said = capsys.readouterr().out
    assert code == 0, said
    assert said.startswith("SAME     record.jsonl: all ")


def by_hand(obj: Obj) -> Obj:
    return {**obj, "spec": {**obj["spec"], "syncPolicy": {}}} if obj["kind"] == "Application" else obj


def test_a_replay_that_goes_another_way_names_the_first_difference_and_why(
    recording: Recording, tmp_path: Path
) -> None:
    """As if the code of today did not sync by itself."""
    seen = (replace(each, version=replace(each.version, obj=by_hand(each.version.obj))) for each in recording.seen)
    other = replace(recording, first=tuple(map(by_hand, recording.first)), seen=tuple(seen))
    found = replayed(other, {}, tmp_path / "replay").differences[0]
    assert (found.subject, found.second) == ("app/shop", "")
    assert found.first.startswith("a sync of ") and "OutOfSync" in found.why


def test_a_record_that_is_cut_off_counts_up_to_there(place: Path) -> None:
    whole = (place / "record.jsonl").read_bytes()
    cut = recording_of(whole[:-200].splitlines(), "r")
    assert cut.why == "its last line is cut off" and cut.seen


@pytest.mark.parametrize("text", [b"", b"{}\n", b'{"kind": "OperationRecord", "apiVersion": "v9"}\n'])
def test_another_file_is_refused(text: bytes) -> None:
    with pytest.raises(ScenarioError, match="is no record"):
        recording_of(text.splitlines(), "r")


def test_a_replay_without_a_clone_of_a_recorded_repository_asks_for_it(recording: Recording, tmp_path: Path) -> None:
    elsewhere = json.loads(json.dumps(list(recording.first)).replace(str(tmp_path.parent), "/nowhere"))
    apps = [obj for obj in elsewhere if obj["kind"] == "Application"]
    apps[0]["status"]["sync"]["comparedTo"]["source"]["repoURL"] = "https://git.example.com/shop.git"
    with pytest.raises(ScenarioError, match=r"--repository https://git\.example\.com/shop\.git=FOLDER"):
        replayed(replace(recording, first=tuple(elsewhere)), {}, tmp_path / "replay")


def test_credentials_are_masked_by_name_and_by_form_and_files_of_machines_too() -> None:
    redaction = Redaction(b"salt")
    container = {"env": [{"name": "DB_PASSWORD", "value": CANARY}], "args": [f"--token={CANARY}"]}
    pull = base64.b64encode(json.dumps({"auths": {"r": {"auth": CANARY}}}).encode()).decode()
    obj: Obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "m",
            "namespace": "a",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": (json.dumps({"spec": {"password": CANARY}}))
            },
        },
        "spec": {"containers": [container], "clientSecret": CANARY, "secretName": "kept"},
        "files": [{"contents": {"source": f"data:;base64,{pull}"}}, {"contents": {"source": "data:,kept"}}],
        "url": f"https://me:{CANARY}@git.example.com",
        "deep": reduce(lambda inner, _: {"in": inner}, range(150), {"password": CANARY}),
    }
    found = json.dumps(redaction.of(obj))
    assert CANARY not in found and pull not in found
    assert found.count("kept") == 2 and redaction.masked == {"/ConfigMap/a/m"}
