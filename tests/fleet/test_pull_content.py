"""Rendered content for a cluster that reaches no repository: from a commit on the hub to what runs there."""

from __future__ import annotations

import base64
import json
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.fleet.contents import (
    APP,
    CHUNKS,
    CONTENTS,
    KEY,
    MAPS,
    OURS,
    PASSWORD,
    PROJECTS,
    SECRETS,
    Dying,
    Scene,
    secret,
)
from tests.fleet.queries import question, rows
from tests.fleet.test_pull_controllers import APPS, WORKS, application
from tests.fleet.world import config_map
from tests.gitops.behaviours.sim import Source

from syncline.argo.content.chunks import unpacked
from syncline.argo.content.entries import chunk_names
from syncline.assembly.inspection.differences import application_differences
from syncline.assembly.inspection.pulled import pulled
from syncline.assembly.inspection.snapshot import application_indices
from syncline.assembly.sources.reading import GitSourceReader
from syncline.fleet.pull.content.plan import GRACE_S
from syncline.fleet.pull.queries.model import Ask
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.kinds.content import AGENT_NAMESPACE
from syncline.kube.objects import name_of


def _synced() -> Scene:
    made = Scene(config_map("a", text="1"), secret(), config_map("b", text="2"))
    made.send()
    return made


@pytest.fixture
def scene() -> Scene:
    return _synced()


@pytest.fixture(scope="module")
def shared() -> Scene:
    """For tests that change nothing."""
    return _synced()


def test_a_cluster_without_a_repository_syncs_what_the_hub_rendered_and_reports_its_commit(shared: Scene) -> None:
    assert shared.maps() == ["a", "b"]
    found = shared.spoke(f"{SECRETS}/db")["data"]["password"]
    assert base64.b64decode(found).decode() == PASSWORD
    here = shared.here()
    assert (here["status"]["sync"]["status"], here["status"]["sync"]["revision"]) == ("Synced", shared.source.head)
    assert here["spec"]["source"]["repoURL"] == "https://git.test/a"
    status = shared.fleet.hub.get(APP)["status"]
    assert (status["sync"]["status"], status["sync"]["revision"]) == ("Synced", shared.source.head)
    assert status["health"]["status"] == "Healthy"


def test_no_byte_of_a_secret_is_in_any_object_of_the_hub(shared: Scene) -> None:
    store = shared.fleet.hub.core.store
    texts = [json.dumps(one.obj) for resource in store.resources() for one in store.list(resource)]
    wanted = {PASSWORD, base64.b64encode(PASSWORD.encode()).decode()}
    assert len(texts) > 20
    assert not [text[:200] for text in texts if any(one in text for one in wanted)]
    data = [base64.b64decode(one["data"]) for one in shared.listed(CHUNKS)]
    opened = [unpacked(one) for one in data if one[:1] == b"\x78"]
    assert len(data) == 2 and len(opened) == 1
    assert PASSWORD.encode() not in opened[0] and b'"a"' in opened[0]
    member = shared.fleet.members["c1"].core.store
    others = [
        one.obj
        for resource in member.resources()
        for one in member.list(resource)
        if one.obj["kind"] in ("ContentChunk", "ApplicationContent", "Application")
    ]
    assert len(others) >= 4 and not any(each in json.dumps(one) for one in others for each in wanted)


@pytest.mark.parametrize("ask", [Ask.RESOURCES, Ask.MANIFESTS, Ask.DIFF])
def test_a_question_about_such_an_application_is_answered_without_a_repository(shared: Scene, ask: Ask) -> None:
    found = rows(shared.fleet, question(ask, "web"))
    if ask is Ask.DIFF:
        assert found == []
        return
    assert {"ConfigMap", "Secret"} == {one["kind"] for one in found}
    assert PASSWORD not in json.dumps(found)
    assert base64.b64encode(PASSWORD.encode()).decode() not in json.dumps(found)


def test_commands_on_the_cluster_read_content_in_place_of_the_repository(shared: Scene) -> None:
    cache = pulled(shared.fleet.members["c1"].admin, application_indices(AppSettings()))
    away = Source()
    away.fails = "no route to the repository"
    found = application_differences(cache, shared.here(), away, AppSettings(), shared.fleet.clock.now())
    assert (found.problems, found.modified) == ((), ())
    assert sorted(name_of(one) for one in found.manifests) == ["a", "b", "db"]


def test_a_commit_is_noticed_by_poll_and_by_refresh_and_only_what_changed_is_written(scene: Scene) -> None:
    before = {name_of(one): one["metadata"]["resourceVersion"] for one in scene.listed(CHUNKS)}
    scene.source.commit(config_map("a", text="1"), secret(), config_map("c", text="3"))
    scene.refresh()
    assert scene.maps() == ["a", "c"]
    assert "argocd.argoproj.io/refresh" not in scene.fleet.hub.get(APP)["metadata"]["annotations"]
    after = {name_of(one): one["metadata"]["resourceVersion"] for one in scene.listed(CHUNKS)}
    assert before.items() <= after.items(), "the sealed chunk is the same, the old open one has its grace"
    assert len(after) == 3
    scene.source.commit(config_map("a", text="9"), secret(), config_map("c", text="3"))
    scene.fleet.time.advance(300)
    assert scene.spoke(f"{MAPS}/a")["data"] == {"text": "9"}
    scene.fleet.time.advance(GRACE_S + 1500)
    kept = {name_of(one) for one in scene.listed(CHUNKS)}
    assert len(kept) == 2
    assert set(scene.there(CHUNKS)) == kept
    assert len(scene.listed(CONTENTS)[0]["content"]["entries"]) == 1


def test_a_steady_application_costs_the_hub_no_write(shared: Scene) -> None:
    paths = (CHUNKS, CONTENTS, WORKS)
    shared.fleet.time.advance(60)
    before = [one["metadata"]["resourceVersion"] for path in paths for one in shared.listed(path)]
    app = shared.fleet.hub.get(APP)["metadata"]["resourceVersion"]
    shared.fleet.time.advance(1800)
    assert [one["metadata"]["resourceVersion"] for path in paths for one in shared.listed(path)] == before
    assert shared.fleet.hub.get(APP)["metadata"]["resourceVersion"] == app


def test_what_the_hub_cannot_render_is_said_there_and_its_cluster_keeps_what_it_has(scene: Scene) -> None:
    scene.source.fails = "authentication required"
    scene.refresh()
    assert scene.conditions()["ContentError"] == "the hub cannot render it: authentication required"
    assert scene.maps() == ["a", "b"] and scene.here()["status"]["sync"]["status"] == "Synced"
    scene.source.fails = ""
    scene.source.commit()
    scene.refresh()
    assert "absence of all of them is never sent" in scene.conditions()["ContentError"]
    assert scene.maps() == ["a", "b"]
    scene.source.commit(config_map("a", text="5"))
    scene.refresh()
    assert "ContentError" not in scene.conditions()
    assert scene.maps() == ["a"]


@pytest.mark.parametrize("kind", ["chunk", "content", "key"])
def test_what_is_lost_on_the_cluster_prunes_nothing_and_comes_back(kind: str, scene: Scene) -> None:
    scene.fleet.stop_agent("c1")
    member = scene.fleet.members["c1"]
    if kind == "key":
        member.send("DELETE", KEY)
    for path in {"chunk": (CHUNKS,), "content": (CONTENTS, CHUNKS), "key": ()}[kind]:
        for name in scene.there(path):
            member.send("DELETE", f"{path.format(AGENT_NAMESPACE)}/{name}")
    member.send("PATCH", APP, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "hard"}}})
    scene.fleet.time.advance(600)
    assert scene.maps() == ["a", "b"]
    if kind != "key":
        found = {one["type"]: one["message"] for one in scene.here()["status"]["conditions"]}
        assert "the cluster's agent brings it from the hub" in found["ComparisonError"]
    scene.fleet.start_agent("c1")
    scene.fleet.time.advance(300)
    scene.source.commit(config_map("a", text="7"), secret(password="another-horse"))
    scene.refresh()
    assert scene.maps() == ["a"] and scene.here()["status"]["sync"]["status"] == "Synced"
    assert base64.b64decode(scene.spoke(f"{SECRETS}/db")["data"]["password"]) == b"another-horse"


def test_a_chunk_that_was_changed_on_the_way_is_not_applied() -> None:
    scene = Scene(config_map("a", text="1"))
    scene.fleet.stop_agent("c1")
    scene.send()
    (chunk,) = scene.listed(CHUNKS)
    forged = base64.b64encode(b"nonsense").decode()
    scene.fleet.hub.send("PATCH", f"{CHUNKS.format('c1')}/{name_of(chunk)}", {"data": forged})
    scene.fleet.start_agent("c1")
    scene.fleet.time.advance(400)
    assert scene.there(CHUNKS) == [] and scene.maps() == []
    scene.fleet.hub.send("PATCH", f"{CHUNKS.format('c1')}/{name_of(chunk)}", {"data": chunk["data"]})
    scene.fleet.time.advance(1200)
    assert scene.maps() == ["a"]


def test_an_application_of_a_tenant_cannot_use_the_content_of_another_one(shared: Scene) -> None:
    digest = shared.here()["metadata"]["annotations"]["syncline.dev/rendered"]
    member = shared.fleet.members["c1"]
    thief = application("thief")
    thief["metadata"] |= {"labels": {}, "annotations": {"syncline.dev/rendered": digest}}
    thief["spec"]["destination"] = {"server": "https://kubernetes.default.svc", "namespace": "default"}
    thief["spec"]["source"]["targetRevision"] = "main"
    member.send("POST", APPS.format("argocd"), thief)
    shared.fleet.time.advance(300)
    status = member.get(f"{APPS.format('argocd')}/thief")["status"]
    assert status["sync"]["status"] == "Unknown" and not status.get("resources")
    assert "is not on this cluster" in status["conditions"][0]["message"]


@pytest.mark.parametrize(
    ("repos", "said"),
    [(["https://git.test/other"], "sourceRepos does not permit https://git.test/a"), (None, "does not exist")],
    ids=["refused", "no project"],
)
def test_the_hub_renders_only_what_its_own_project_permits(repos: list[str] | None, said: str) -> None:
    scene = Scene(config_map("a"))
    project = "default"
    if repos is not None:
        scene.fleet.hub.send("PATCH", f"{PROJECTS}/default", {"spec": {"sourceRepos": repos}})
    else:
        project = "absent"
    scene.send(project=project)
    assert said in scene.conditions()["ContentError"]
    assert scene.source.asked == [] and scene.listed(WORKS) == []


def test_an_application_whose_cluster_says_no_key_waits_and_says_for_whom() -> None:
    scene = Scene(config_map("a"))
    scene.fleet.stop_agent("c1")
    scene.fleet.hub.send("DELETE", OURS.format("c1") + "/contenttargets/content")
    scene.send()
    assert "that is for an agent of Syncline to say" in scene.conditions()["ContentWaiting"]
    assert scene.listed(WORKS) == []
    scene.fleet.start_agent("c1")
    scene.fleet.time.advance(60)
    assert scene.maps() == ["a"] and "ContentWaiting" not in scene.conditions()


def test_two_applications_of_a_cluster_share_chunks_and_the_last_one_takes_them_along() -> None:
    scene = Scene(config_map("a", text="1"), config_map("b", text="2"))
    scene.send()
    scene.send("shop")
    assert len(scene.listed(CHUNKS)) == 1 and len(scene.listed(CONTENTS)) == 2
    for name, left in (("shop", 1), ("web", 0)):
        scene.fleet.hub.send("DELETE", f"{APPS.format('argocd')}/{name}")
        scene.fleet.time.advance(1500)
        assert (len(scene.listed(CHUNKS)), len(scene.there(CHUNKS))) == (left, left), name
        assert len(scene.there(CONTENTS)) == left


def test_a_new_key_seals_everything_again_and_syncs_nothing(scene: Scene) -> None:
    before = scene.listed(CONTENTS)[0]["content"]["entries"][0]
    synced = scene.here()["status"]["operationState"]["finishedAt"]
    old = {"metadata": {"annotations": {"syncline.dev/rotated-at": "2020-01-01T00:00:00Z"}}}
    scene.fleet.members["c1"].send("PATCH", KEY, old)
    scene.fleet.time.advance(4200)
    after = scene.listed(CONTENTS)[0]["content"]["entries"][0]
    assert before["sealed"][0]["key"] != after["sealed"][0]["key"]
    assert before["chunks"] == after["chunks"]
    here = scene.here()
    assert here["status"]["sync"]["status"] == "Synced"
    assert here["status"]["operationState"]["finishedAt"] == synced, "the manifests are the same"


def test_an_agent_reads_content_of_its_own_cluster_and_writes_none() -> None:
    scene = Scene(config_map("a", text="1"), clusters=("c1", "c2"))
    scene.send()
    agent = scene.fleet.members["c1"].hub_cable
    other = scene.fleet.members["c2"].hub_cable
    (chunk,) = scene.listed(CHUNKS)
    path = f"{CHUNKS.format('c1')}/{name_of(chunk)}"
    assert agent.send(Request("GET", path)).ok
    assert other.send(Request("GET", path)).status == 403
    for verb, where in (("DELETE", path), ("POST", CHUNKS.format("c1")), ("POST", CONTENTS.format("c1"))):
        assert agent.send(Request(verb, where, body=chunk)).status == 403
    target = OURS.format("c1") + "/contenttargets/content"
    assert other.send(Request("DELETE", target)).status == 403


def test_new_sources_travel_together_with_their_content(scene: Scene) -> None:
    scene.source.fails = "no such folder"
    scene.fleet.hub.send("PATCH", APP, {"spec": {"source": {"path": "b"}}})
    scene.fleet.time.advance(60)
    assert scene.here()["spec"]["source"]["path"] == "a", "the old sources stay with the old content"
    assert scene.here()["status"]["sync"]["status"] == "Synced"
    scene.source.fails = ""
    scene.refresh()
    assert scene.here()["spec"]["source"]["path"] == "b"
    assert scene.here()["status"]["sync"]["status"] == "Synced"


def test_a_cut_connection_in_the_middle_of_a_transfer_is_made_up_for() -> None:
    scene = Scene(*(config_map(f"m{n}", text=str(n) * 30_000) for n in range(25)))
    member = scene.fleet.members["c1"]
    member.hub_cable.cut()
    scene.send()
    member.hub_cable.mend()
    for _ in range(40):
        scene.fleet.time.advance(1)
        if scene.there(CHUNKS):
            break
    member.hub_cable.cut()
    scene.fleet.time.advance(120)
    scene.source.commit(
        config_map("m0", text="other"), *(config_map(f"m{n}", text=str(n) * 30_000) for n in range(1, 22))
    )
    scene.fleet.time.advance(300)
    member.hub_cable.mend()
    scene.fleet.time.advance(900)
    assert scene.spoke(f"{MAPS}/m8")["data"]["text"] == "8" * 30_000
    assert scene.here()["status"]["sync"]["revision"] == scene.source.head
    assert "m20" in scene.maps() and "m22" not in scene.maps()


def test_an_agent_that_is_killed_after_each_write_of_a_transfer_goes_on(scene: Scene) -> None:
    fleet = scene.fleet
    for count in range(1, 5):
        left = [count]
        wrap = partial(Dying, left=left)
        fleet.start_agent("c1", wrap_hub=wrap, wrap_own=wrap)
        scene.source.commit(config_map("a", text=f"new {count}"), secret(password=f"password-{count}-xyz"))
        scene.refresh()
        fleet.start_agent("c1")
        fleet.time.advance(400)
        assert scene.spoke(f"{MAPS}/a")["data"] == {"text": f"new {count}"}
        assert scene.here()["status"]["sync"]["revision"] == scene.source.head
        named = scene.spoke(CONTENTS.format(AGENT_NAMESPACE))["items"][0]["content"]["entries"]
        assert set(scene.there(CHUNKS)) == {name for entry in named for name in chunk_names(entry)}


def test_the_hub_renders_a_real_repository_with_its_own_reader(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    (origin / "a").mkdir(parents=True)
    (origin / "a" / "kustomization.yaml").write_text("namePrefix: k-\nresources: [map.yaml]\n")
    (origin / "a" / "map.yaml").write_text(json.dumps(config_map("a", text="1")))
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "one"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", "-C", str(origin), *identity, *words], check=True, timeout=30)
    made = Scene(source=GitSourceReader(tmp_path / "mirrors", allow_local=True))
    made.fleet.hub.send("PATCH", f"{PROJECTS}/default", {"spec": {"sourceRepos": ["*"]}})
    made.send(source={"repoURL": str(origin), "path": "a", "targetRevision": "main"})
    made.fleet.time.advance(120)
    assert "ContentError" not in made.conditions()
    assert made.maps() == ["k-a"]


def test_a_hub_that_dies_between_writes_leaves_nothing_half_done() -> None:
    scene = Scene(config_map("a", text="1"), secret())
    for count in range(4):
        scene.fleet.time.actors.remove(scene.pull)
        scene.source.commit(config_map("a", text=str(count)), secret(password=f"password-{count}-xyz"))
        scene.pull = scene._pull()
        if not count:
            scene.send()
        scene.fleet.time.advance(count)
        scene.restart_pull()
        scene.fleet.time.advance(400)
        assert scene.spoke(f"{MAPS}/a")["data"] == {"text": str(count)}
        found = base64.b64decode(scene.spoke(f"{SECRETS}/db")["data"]["password"])
        assert found == f"password-{count}-xyz".encode()


def test_content_of_an_unknown_revision_is_refused_by_name(scene: Scene) -> None:
    member = scene.fleet.members["c1"]
    with pytest.raises(ApiError):
        member.get(f"{MAPS}/none")
    member.send("PATCH", APP, {"operation": {"sync": {"revision": "0" * 40}}})
    scene.fleet.time.advance(300)
    state = scene.here()["status"]["operationState"]
    assert state["phase"] in ("Error", "Failed") and "is not on this cluster" in state["message"]
    assert scene.maps() == ["a", "b"]
