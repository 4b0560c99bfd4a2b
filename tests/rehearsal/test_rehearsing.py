"""A repository and a world of a few lines are rehearsed: verdict, range, and what people write wrongly."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from syncline.cli.main import main
from syncline.cli.views.rehearsal.text import describe_answer
from syncline.rehearsal.answer.answer import Answer, Doing, Outcome
from syncline.rehearsal.given.applications import applications_of
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import default_world, parse_world
from syncline.rehearsal.playing import Asked, Play, Then, Turn
from syncline.rehearsal.rehearsing import Settings, rehearse
from syncline.rehearsal.repository import IDENTITY, commit_files
from syncline.rehearsal.scenario import ScenarioError

SITE = b"- hosts: all\n  tasks:\n    - {name: the message, copy: {content: hello, dest: /etc/motd}}\n"
ANSIBLE = b"""\
apiVersion: syncline.dev/v1alpha1
kind: AnsibleConfig
metadata: {name: motd%s}
spec:
  repository: {repoURL: "https://git.example.com/machines.git"}
  path: playbooks
  playbook: site.yml
  pool: worker
  disruption: Drain
"""
POOLS = "machineConfig: true\nnodes: [{name: m, roles: [master]}, {name: w, count: 2, roles: [worker]}]\n"
CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: blue}\n"
ONE_NODE = "nodes: [{name: node}]\n"


def answered(folder: Path, files: dict[str, bytes], world: str = ONE_NODE, **settings: bool) -> Answer:
    asked = Asked("repository", Files(files), parse_world(world, Path("world.yaml"), Files({})))
    return rehearse(asked, folder, Settings(**settings))  # type: ignore[arg-type]


def test_a_repository_that_deploys_is_safe_and_its_text_begins_with_that(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"map.yaml": CONFIG})
    assert (answer.outcome, answer.breaches, answer.cures) == (Outcome.SAFE, (), ())
    assert answer.quickest_s is not None and answer.slowest_s is not None and answer.done_s is not None
    assert answer.quickest_s <= answer.done_s <= answer.slowest_s
    assert describe_answer(answer).startswith("SAFE     repository: done after")


def test_equal_rehearsals_are_equal_bytes(tmp_path: Path) -> None:
    twice = [answered(tmp_path / name, {"map.yaml": CONFIG}, ranged=False) for name in "ab"]
    first, second = (json.dumps(answer.to_obj()) for answer in twice)
    assert first == second


def test_the_playbook_of_an_ansible_config_comes_from_the_rehearsed_repository(tmp_path: Path) -> None:
    files = {"manifests/motd.yaml": ANSIBLE % b"", "playbooks/site.yml": SITE}
    asked = Asked("machines", Files(files), parse_world(POOLS, Path("world.yaml"), Files({})), path="manifests")
    play = Play(asked, tmp_path)
    play.prepare()
    play.commit(asked.files)
    play.world.driver.until(lambda: _applied(play) == 2, limit_s=3600)
    assert "AnsibleConfigs that name https://git.example.com/machines.git get this repository" in play.notes[0]
    drained = [one for one in play.world.send("GET", "/api/v1/events")["items"] if one["reason"] == "Drain"]
    assert sorted(one["involvedObject"]["name"] for one in drained) == ["w-1", "w-2"]


def test_a_simulated_outcome_that_fails_blocks_the_rehearsal_and_names_its_message(tmp_path: Path) -> None:
    fate = (
        b", annotations: {syncline.dev/simulated-outcome: '%s'}"
        % json.dumps({"fails": [{"task": "the message", "message": "disk full"}]}).encode()
    )
    files = {"manifests/motd.yaml": ANSIBLE % fate, "playbooks/site.yml": SITE}
    asked = Asked("machines", Files(files), parse_world(POOLS, Path("world.yaml"), Files({})), path="manifests")
    answer = rehearse(asked, tmp_path, Settings(ranged=False, cures=False))
    assert answer.outcome is Outcome.BLOCKED
    assert "disk full" in describe_answer(answer), describe_answer(answer)


def _applied(play: Play) -> object:
    items = play.world.send("GET", "/apis/syncline.dev/v1alpha1/ansibleconfigs")["items"]
    return items[0].get("status", {}).get("applied") if items else None


def test_a_manifest_that_is_refused_makes_it_fail(tmp_path: Path) -> None:
    bad = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n"
    answer = answered(tmp_path, {"map.yaml": bad}, cures=False)
    assert answer.outcome is Outcome.FAILED
    assert "Not_A_Name" in answer.headline or "one or more" in answer.headline


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nodez: []\n", "found the key 'nodez'; allowed: machineConfig, nodes, objects, durations, loadBalancers"),
        ("nodes: []\n", "nodes: found 0 nodes; allowed: 1 to 2000 nodes"),
        ("nodes: [{name: A}]\n", "nodes[0].name: found 'A'; allowed: lower case letters"),
        ("nodes: [{name: a, count: 0}]\n", "nodes[0].count: found 0; allowed: a number from 1 to 1000"),
        ("nodes: [{name: a}, {name: a}]\n", "found the node a twice; allowed: each name once"),
        ("nodes: [{name: a, taints: [x]}]\n", "found 'x'; allowed: KEY[=VALUE]:EFFECT"),
        ("nodes: [{name: a}]\ndurations: {boot: soon}\n", "durations.boot: found 'soon'; allowed: a duration such as"),
        ("nodes: [{name: a}]\ndurations: {boot: {from: 3m, to: 1m}}\n", "the shorter one first"),
        ("nodes: [{name: a}]\nobjects: [../secret.yaml]\n", "beside the world's file or below"),
        ("machineConfig: true\nnodes: [{name: a}]\n", "roles: [worker] on the nodes"),
    ],
)
def test_a_world_that_is_wrong_names_key_value_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_world(text, Path("world.yaml"))
    assert said in str(error.value)


def test_without_a_world_the_answer_says_which_one_is_assumed() -> None:
    plain = default_world(Files({"map.yaml": CONFIG}))
    pools = default_world(Files({"a.yaml": b"apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n"}))
    assert (plain.machine_config, len(plain.nodes())) == (False, 3)
    assert (pools.machine_config, len(pools.nodes())) == (True, 6)
    assert plain.assumed[0].startswith("no --world is given: a new cluster with 3 nodes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give PATH, or --demo"),
        (["missing"], "there is no such file or folder"),
        ([".", "--until", "soon"], "--until 'soon': allowed: a duration"),
        ([".", "--without-law", "gravity"], "there is no such law; allowed: nothing-stays-paused"),
        ([".", "--world", "missing.yaml"], "--world takes a YAML file"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.yaml").write_bytes(CONFIG)
    assert main(["rehearse", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_of_a_repository_is_deployed_by_its_path_and_others_are_named() -> None:
    kustomization = {"a/kustomization.yaml": b"resources: [map.yaml]\n", "a/map.yaml": CONFIG, "b/map.yaml": CONFIG}
    with pytest.raises(ScenarioError, match=r"name a folder to deploy by --path: a$"):
        applications_of(Files(kustomization), "all")
    (app,) = applications_of(Files(kustomization), "a", path="./a/").objects
    assert app["spec"]["source"]["path"] == "a" and "directory" not in app["spec"]["source"]


def test_an_application_that_another_deploys_is_left_to_it() -> None:
    texts = {
        "root.yaml": application("root", "apps"),
        "apps/web.yaml": application("web", "web"),
        "web/map.yaml": CONFIG.decode(),
        "other.yaml": application("other", "charts/elsewhere"),
    }
    found = applications_of(Files({path: text.encode() for path, text in texts.items()}), "all")
    assert [app["metadata"]["name"] for app in found.objects] == ["other", "root"]
    assert found.urls == ("https://git.example.org/apps",)


def application(name: str, path: str) -> str:
    url = "https://git.example.org/" + ("elsewhere" if name == "other" else "apps")
    spec = f"{{source: {{repoURL: '{url}', path: {path}}}, destination: {{namespace: a}}}}"
    return f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def test_a_source_that_cannot_be_rendered_fails_it(tmp_path: Path) -> None:
    answer = answered(tmp_path, {"map.yaml": b"{{ broken }}: [\n"}, cures=False)
    assert answer.outcome is Outcome.FAILED and "cannot be synced" in answer.headline


def test_a_revision_of_a_repository_is_rehearsed_and_two_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop"
    first = commit_files(Files({"map.yaml": CONFIG}), folder)
    (folder / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n")
    for command in (["add", "-A"], ["commit", "-qm", "wrong"]):
        subprocess.run(["git", "-C", str(folder), *IDENTITY, *command], check=True, timeout=60)
    (tmp_path / "world.yaml").write_text(ONE_NODE)
    options = ["--world", str(tmp_path / "world.yaml"), "--no-range", "--no-cures"]
    assert main(["rehearse", str(folder), "--revision", first, "--revision", "main", "--after", first, *options]) == 1
    head, verdict = capsys.readouterr().out.splitlines()[:2]
    assert head.split() == [first, "main"] and verdict.split() == ["verdict", "safe", "failed"]
    assert main(["rehearse", str(folder), "--revision", "--output=x", *options]) == 2
    assert "found an option" in capsys.readouterr().err
    assert main(["rehearse", str(folder), "--revision", "none", *options]) == 2
    assert "revision none cannot be read" in capsys.readouterr().err


SLOW = b"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {argocd.argoproj.io/hook: PreSync}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: b, command: [sleep, "600"]}]
"""


def test_in_the_middle_it_may_be_aborted_or_rolled_back(tmp_path: Path) -> None:
    asked = Asked(
        "repository",
        Files({"map.yaml": CONFIG.replace(b"blue", b"red"), "job.yaml": SLOW}),
        parse_world(ONE_NODE, Path("w"), Files({})),
    )
    asked = replace(asked, before=Files({"map.yaml": CONFIG}))
    quick = Settings(ranged=False, cures=False)

    def answer(way: Then) -> Answer:
        turn = Turn(timedelta(minutes=2), way)
        return rehearse(replace(asked, turn=turn), tmp_path / way.replace(" ", "-"), quick)

    on, aborted, back = answer(Then.NOTHING), answer(Then.ABORT), answer(Then.ROLL_BACK)
    assert on.outcome is Outcome.SAFE and on.done_s is not None and on.done_s > 600
    assert aborted.outcome is Outcome.FAILED and "terminated" in aborted.headline
    assert next(bar.ends_s for bar in aborted.bars if bar.doing is Doing.SYNC) in (120.0, 121.0)
    assert back.outcome is Outcome.SAFE
    with pytest.raises(ScenarioError, match="say what was deployed before"):
        rehearse(replace(asked, before=None, turn=Turn(timedelta(minutes=2), Then.ROLL_BACK)), tmp_path / "none", quick)


def test_kinds_that_nothing_defines_are_assumed_and_named(tmp_path: Path) -> None:
    monitor = b"apiVersion: monitoring.example.com/v1\nkind: ServiceMonitor\nmetadata: {name: web}\nspec: {a: 1}\n"
    answer = answered(tmp_path, {"monitor.yaml": monitor}, ranged=False)
    assert answer.outcome is Outcome.SAFE
    assert any("nothing acts on, are there: servicemonitors.monitoring.example.com" in text for text in answer.assumed)


def test_an_application_that_a_commit_does_not_move_is_named(tmp_path: Path) -> None:
    files = Files({"map.yaml": CONFIG})
    asked = Asked("repository", files, parse_world(ONE_NODE, Path("w"), Files({})), before=files)
    answer = rehearse(asked, tmp_path, Settings(ranged=False))
    assert "Application repository starts no sync: nothing of it differs, hooks aside" in answer.assumed


@pytest.mark.parametrize(("given", "outcome"), [("", Outcome.SAFE), ("loadBalancers: false\n", Outcome.BLOCKED)])
def test_load_balancers_get_an_address_unless_the_world_has_none(given: str, outcome: Outcome, tmp_path: Path) -> None:
    service = b"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n"
    answer = answered(tmp_path, {"service.yaml": service}, ONE_NODE + given, ranged=False, cures=False)
    assert answer.outcome is outcome
    assert any("LoadBalancer get an address" in text for text in answer.assumed) == (not given)


def test_a_repository_of_cluster_groups_is_a_pattern() -> None:
    hub = b"clusterGroup: {name: hub, isHubCluster: true}\n"
    found = applications_of(
        Files({"values-hub.yaml": hub, "values-edge.yaml": b"clusterGroup: {name: edge}\n"}), "shop"
    )
    (pattern,) = found.objects
    assert (pattern["kind"], pattern["spec"]["clusterGroupName"]) == ("Pattern", "hub")
    assert found.assumed[1] == "there is no values-global.yaml: one without a secret store is made"
    two = Files({"values-a.yaml": b"clusterGroup: {name: a}\n", "values-b.yaml": b"clusterGroup: {name: b}\n"})
    with pytest.raises(ScenarioError, match=r"main\.clusterGroupName"):
        applications_of(two, "shop")
    named = two.changed({"values-global.yaml": "main: {clusterGroupName: b}\n"})
    assert applications_of(named, "shop").objects[0]["spec"]["clusterGroupName"] == "b"
