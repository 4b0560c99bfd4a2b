"""A cluster becomes a file without the values of Secrets, and a rehearsal of that file ends as one of the cluster."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.cli.main import main
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.given.demonstration import CHRONY, WEB, WORLD, demonstration
from syncline.rehearsal.given.durations import Origin
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.renaming import renamed
from syncline.rehearsal.given.snapshot import snapshot_of, world_of
from syncline.rehearsal.given.target import asked_of
from syncline.rehearsal.given.world import GivenWorld, parse_world
from syncline.rehearsal.playing import Asked, Play
from syncline.rehearsal.rehearsing import Settings, rehearse
from syncline.rehearsal.repository import commit_files
from syncline.rehearsal.scenario import ScenarioError

CANARY = "c4n4ry"
SECRET = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: shop}}\nstringData: {{password: {CANARY}}}\n"
SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"


def objects_of(folder: Path) -> list[Obj]:
    """Every object of a running shop, as ``syncline snapshot`` lists them."""
    before = Files({"1.yaml": SPACE.encode(), "2.yaml": SECRET.encode(), "3.yaml": WEB.encode()})
    world = parse_world(WORLD, Path("world.yaml"), before)
    folder.mkdir(exist_ok=True)
    play = Play(replace(demonstration(), world=world, before=None), folder)
    play.prepare()
    found = run_in_place(snapshot_of_cluster({}), play.world.admin).cache
    return [
        {"apiVersion": info.api_version, "kind": info.kind, **obj}
        for info in found.mapper.all()
        for obj in found.objects(info.group_kind)
    ]


def test_a_snapshot_is_rehearsed_as_its_cluster_would_be(tmp_path: Path) -> None:
    taken = json.loads(json.dumps(snapshot_of(objects_of(tmp_path / "a"), b"salt")))
    assert CANARY not in json.dumps(taken)
    kinds = {obj["kind"] for obj in taken["objects"]}
    assert {"Node", "Deployment", "Service", "PodDisruptionBudget", "Secret", "MachineConfigPool"} <= kinds
    assert not {"Pod", "ReplicaSet", "Event", "EndpointSlice", "Lease"} & kinds
    asked = Asked("change", Files({"chrony.yaml": CHRONY.encode()}), world_of(taken, "world.json.xz"))
    answer = rehearse(asked, tmp_path / "b", Settings(ranged=False, cures=False))
    assert answer.outcome is Outcome.BLOCKED and "budget web" in answer.headline
    assert [text for text in answer.assumed if "left out" in text] == []


def test_a_renamed_snapshot_behaves_as_its_cluster_and_says_no_name(tmp_path: Path) -> None:
    taken = renamed(json.loads(json.dumps(snapshot_of(objects_of(tmp_path / "a"), b"salt"))))
    text = json.dumps(taken)
    assert [name for name in ('"shop"', '"web"', "worker-1", "master-2") if name in text] == []
    budget = next(obj for obj in taken["objects"] if obj["kind"] == "PodDisruptionBudget")
    deployment = next(obj for obj in taken["objects"] if obj["kind"] == "Deployment")
    assert budget["metadata"]["namespace"] == deployment["metadata"]["namespace"] == "namespace-1"
    asked = Asked("change", Files({"chrony.yaml": CHRONY.encode()}), world_of(taken, "world.json.xz"))
    answer = rehearse(asked, tmp_path / "b", Settings(ranged=False, cures=False))
    assert answer.outcome is Outcome.BLOCKED and f"budget {budget['metadata']['name']}" in answer.headline


def test_durations_are_measured_from_events() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    pulls = [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "message": f'Successfully pulled image "a" in {seconds} (1s including waiting)',
        }
        for seconds in ("800ms", "2s", "4.5s")
    ]
    world = world_of(snapshot_of([node, *pulls], b""), "w")
    assert (world.durations["pull"].usual_s, world.durations["pull"].origin) == (2.0, Origin.MEASURED)
    assert world.durations["boot"].origin is Origin.GUESSED


@pytest.mark.parametrize("document", [[], {"kind": "List"}, {"kind": "RehearsalSnapshot", "apiVersion": "v1"}])
def test_another_file_is_refused(document: object) -> None:
    with pytest.raises(ScenarioError, match="is no snapshot"):
        world_of(document, "w")


def test_a_packed_file_is_read_and_a_broken_one_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    packed = lzma.compress(json.dumps(snapshot_of([node], b"")).encode())
    (tmp_path / "w.xz").write_bytes(packed)
    (tmp_path / "broken.xz").write_bytes(packed[:-20])
    place = str(tmp_path / "map.yaml")
    assert main(["rehearse", place, "--from", str(tmp_path / "w.xz"), "--no-range"]) == 0
    assert "the cluster is as in w.xz: 1 nodes" in capsys.readouterr().out
    assert main(["rehearse", place, "--from", str(tmp_path / "broken.xz")]) == 2
    assert "is cut off" in capsys.readouterr().err


# -- an Application of a cluster ---------------------------------------------------------------------------------------


def shop(place: str) -> GivenWorld:
    """A cluster with one Application, whose repository is at a place."""
    source = {"repoURL": place, "path": ".", "targetRevision": "main"}
    target = {"server": "https://kubernetes.default.svc", "namespace": "shop"}
    spec = {"project": "default", "source": source, "destination": target}
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": spec}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    objects = [node, app | {"metadata": {"name": "shop", "namespace": "argocd"}}]
    return world_of(snapshot_of(objects, b"salt"), "world.json.xz")


def test_an_application_of_a_cluster_is_rehearsed_at_another_revision_of_its_own_repository(tmp_path: Path) -> None:
    commit_files(Files({"web.yaml": WEB.encode()}), tmp_path / "repository")
    asked = asked_of(Path("app/shop"), shop(str(tmp_path / "repository")))
    found = rehearse(asked, tmp_path / "a", Settings(ranged=False, cures=False))
    assert (found.outcome, [bar.row for bar in found.bars][:1]) == (Outcome.SAFE, ["app/shop"])
    missing = asked_of(Path("app/shop"), asked.world, revision="gone")
    assert rehearse(missing, tmp_path / "b", Settings(ranged=False, cures=False)).outcome is Outcome.FAILED


def test_an_application_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(ScenarioError, match=r"app/web: found none of this name; allowed: app/shop"):
        asked_of(Path("app/web"), shop("x"))


def job_of_a_cluster() -> Obj:
    """A Job as the API keeps it."""
    mine = {"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "job-name": "seed"}
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "seed:1"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "seed", "namespace": "shop", "uid": "u", "labels": mine},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "template": {"metadata": {"labels": {"app": "seed"} | mine}, "spec": spec},
        },
        "status": {"succeeded": 1},
    }


def test_jobs_of_a_cluster_are_there_and_where_nothing_differs_nothing_is_waited_for(tmp_path: Path) -> None:
    """An Application whose sync came before the snapshot has no operation in it."""
    config: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {}}
    synced = {"argocd.argoproj.io/tracking-id": "same:/ConfigMap:shop/c"}
    there = config | {"metadata": config["metadata"] | {"annotations": synced}}
    taken = snapshot_of([*objects_of(tmp_path / "a"), job_of_a_cluster(), there], b"salt")
    found = next(obj for obj in taken["objects"] if obj["kind"] == "Job")
    assert "selector" not in found["spec"]
    assert found["spec"]["template"]["metadata"]["labels"] == {"app": "seed"}
    asked = Asked(
        "same", Files({"c.json": json.dumps(config).encode()}), world_of(taken, "world.json.xz"), namespace="shop"
    )
    answer = rehearse(asked, tmp_path / "b", Settings(ranged=False, cures=False))
    assert [text for text in answer.assumed if "left out" in text] == []
    assert answer.outcome is Outcome.SAFE, answer.headline
