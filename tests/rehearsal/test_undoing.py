"""In the middle of a roll-out: abort, roll back, roll back in order, or go on, rehearsed from where it is now."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from tests.rehearsal.taping import Taping

from syncline.cli.main import main
from syncline.kube.objects import Obj
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import parse_world
from syncline.rehearsal.playing import Asked, Play, Then, Turn, play
from syncline.rehearsal.reality.course import course_of
from syncline.rehearsal.undoing import undo_plan

ONE_NODE = parse_world("nodes: [{name: node}]\n", Path("world.yaml"), Files({}))
MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: shop, annotations: {argocd.argoproj.io/sync-wave: "%d"}}
data: {version: "%d"}
"""
SLOW = """\
apiVersion: v1
kind: Pod
metadata:
  name: migrate
  namespace: shop
  annotations: {argocd.argoproj.io/hook: Sync, argocd.argoproj.io/sync-wave: "1"}
spec: {restartPolicy: Never, containers: [{name: c, image: "x:1", command: [sleep, "3600"]}]}
"""


def files(version: int, waves: int = 3) -> Files:
    return Files({f"{wave}.yaml": (MAP % (f"map-{wave}", wave, version)).encode() for wave in range(waves)})


def is_leaving(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def test_a_roll_back_in_order_undoes_the_last_wave_first_and_says_what_to_type(tmp_path: Path) -> None:
    """The roll-out brings new versions of two objects, and one object more."""
    asked = Asked("shop", files(2), ONE_NODE, files(1, 2), turn=Turn(timedelta(minutes=5), Then.IN_ORDER))
    record = play(asked, tmp_path / "play")
    after = record.began + timedelta(minutes=5)
    order = [
        (version.ref.name, version.gone or version.obj["data"]["version"])
        for version in record.versions
        if version.ref.name.startswith("map-") and version.at > after and (version.gone or not is_leaving(version.obj))
    ]
    assert order == [("map-2", True), ("map-1", "1"), ("map-0", "1")]
    typed = [note.removeprefix("to roll back in order: ") for note in record.notes if "in order: " in note]
    assert typed[0] == "syncline app set shop --sync-policy none"
    assert typed[1] == "wave 2: syncline app sync shop --prune --resource :ConfigMap:shop/map-2"
    assert [text.split(":")[0] for text in typed[1:]] == ["wave 2", "wave 1", "wave 0"]


def test_the_steps_of_a_roll_back_are_waves_of_applications_backwards() -> None:
    def app(name: str, wave: int, *resources: tuple[str, int]) -> Obj:
        rows = [
            {"kind": "ConfigMap", "name": each, "status": "OutOfSync", "syncWave": number} for each, number in resources
        ]
        notes = {"argocd.argoproj.io/sync-wave": str(wave)}
        return {
            "metadata": {"name": name, "namespace": "argocd", "annotations": notes},
            "status": {"resources": [*rows, {"kind": "ConfigMap", "name": "same", "status": "Synced"}]},
        }

    steps = undo_plan([app("first", 0, ("a", 1), ("b", 2), ("c", 1)), app("second", 1, ("d", 0))])
    assert [(step.app, step.wave, [one["name"] for one in step.resources]) for step in steps] == [
        ("second", 0, ["d"]),
        ("first", 2, ["b"]),
        ("first", 1, ["a", "c"]),
    ]


@pytest.fixture(scope="module")
def middle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that ends while the sync of the second commit waits for a hook that takes an hour."""
    folder = tmp_path_factory.mktemp("middle")
    (folder / "play").mkdir()
    before, after = files(1), files(2).changed({"slow.yaml": SLOW})
    running = Play(Asked("shop", before, ONE_NODE), folder / "play")
    running.prepare()
    running.commit(before)
    running.run(timedelta(hours=1))
    tape = Taping(running)
    running.commit(after)
    running.world.driver.advance(120)
    tape.recording()
    (folder / "record.jsonl").write_text("".join(tape.lines))
    commits = sorted((folder / "play").glob("repository-*"))
    clone = folder / "shop"
    subprocess.run(["git", "clone", "-q", str(commits[1]), str(clone)], check=True)
    fetch = ["fetch", "-q", str(commits[0]), "+main:refs/heads/before"]
    subprocess.run(["git", "-C", str(clone), *fetch], check=True)
    return folder


def test_what_can_be_done_now_is_compared_from_the_middle_of_a_sync(
    middle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, clone = str(middle / "record.jsonl"), str(middle / "shop")
    main(
        [
            "rehearse",
            clone,
            "--from",
            record,
            "--after",
            "before",
            "--at",
            "1s",
            "--no-range",
            "--no-cures",
            "-o",
            "json",
        ]
    )
    abort, back, in_order, nothing = json.loads(capsys.readouterr().out)
    assert [each["outcome"] for each in (back, in_order, nothing)] == ["safe", "safe", "safe"]
    assert abort["outcome"] == "failed"
    assert nothing["done_s"] > 3000, "the hook goes on from where it was, it does not begin again"
    assert nothing["done_s"] < 3600
    assert in_order["done_s"] < 600


def test_a_course_from_the_middle_has_the_sync_that_ran(middle: Path) -> None:
    from syncline.rehearsal.reality.files import read_recording

    course = course_of(read_recording(middle / "record.jsonl").record())["app/shop"]
    assert [step.what for step in course if step.what.startswith("a sync")]
