"""Scenarios beside manifests: what happens in them, what they expect, and what is written wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncline.cli.main import main
from syncline.rehearsal.fields import Field
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.snapshot import snapshot_of
from syncline.rehearsal.record import Record
from syncline.rehearsal.repository import commit_files
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.case import Case, Commit
from syncline.rehearsal.testing.expectations import expectation
from syncline.rehearsal.testing.happening import played
from syncline.rehearsal.testing.judging import failures
from syncline.rehearsal.testing.reading import read_cases
from syncline.rehearsal.testing.running import Result, result_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HEAD = "# +argocd:skip-file-rendering\n"
SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example.org/web:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: colours}
data: {sky: blue}
"""
DAY = """\
scenarios:
- name: a-day
  application: shop
  world: {nodes: [{name: node, count: 2}]}
  when:
  - {at: 30m, nodeOff: node-1}
  - {at: 2m, commit: {set: [{file: shop.yaml, object: Deployment/web, fields: {spec.replicas: 3}}]}}
  - {at: 10m, delete: Pod/web-*}
  - {at: 90m, nodeOn: node-1}
  - {at: 4h, rollback: true}
  - {at: 5h, commit: {files: {shop.yaml: "apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: other}\\n"}}}
  expect: []
"""


def written(folder: Path, text: str, shop: str = SHOP) -> Path:
    (folder / ".git").mkdir()  # the folder is the repository: nothing around it is read
    (folder / "shop.yaml").write_text(shop)
    file = folder / "shop.rehearsal.yaml"
    file.write_text(HEAD + text)
    return file


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Result, Record]:
    """A day of a shop: more replicas, a pod deleted, a node off for an hour, rolled back, all but a map taken away."""
    (case,) = read_cases(written(tmp_path_factory.mktemp("shop"), DAY))
    record = played(case.asked, case.happenings, tmp_path_factory.mktemp("record"))
    return case, result_of(case, 1, record), record


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"verdict": ["safe", "unsafe"]}, ""),
        ({"verdict": "blocked"}, "safe: done after"),
        ({"done": {"within": "6h"}}, ""),
        ({"done": {"within": "1h"}}, "done after 5h"),
        ({"laws": {"held": ["hook-once"]}}, ""),
        ({"laws": {"broken": ["hook-once"]}}, "law hook-once holds"),
        ({"object": "deployment/web", "is": {"spec.replicas": 3}, "at": "3h"}, ""),
        ({"object": "Deployment/shop/web", "is": {"spec.replicas": 3}, "at": "1m"}, "spec.replicas is 2, not 3"),
        ({"object": "Deployment/web", "is": {"status.readyReplicas": 3}, "within": "5m"}, ""),
        ({"object": "Deployment/web", "is": {"status.readyReplicas": 3}, "within": "1m"}, "not 3"),
        ({"object": "Deployment/web", "absent": True}, ""),
        ({"object": "Deployment/web", "absent": True, "at": "1h"}, "Deployment/shop/web is there"),
        ({"object": "Deployment/web"}, "there is no Deployment/web; there were: Deployment/shop/web"),
        ({"object": "ConfigMap/other", "must": "object.metadata.name == 'other'"}, ""),
        ({"object": "ConfigMap/other", "must": "object.data.sky == 'red'"}, "cannot be judged: no such key: data"),
        ({"object": "Pod/shop/web-*", "count": 3, "at": "1h", "is": {"spec.nodeName": "node-2"}}, ""),
        ({"object": "Pod/shop/web-*", "count": 1, "at": "29m", "is": {"spec.nodeName": "none"}}, "0 are so, not 1"),
        ({"object": "Node/node-2", "is": {"status.conditions[Ready].status": "True"}, "always": True}, ""),
        ({"object": "Node/node-1", "is": {"status.conditions[Ready].status": "True"}, "always": True}, "at +30m"),
        ({"order": ["app/shop sync begins", "app/shop sync ends"]}, "app/shop sync begins at +5h"),
        ({"order": ["app/shop sync begins", "node/* reboots begins"]}, "nothing in the timeline is 'node/* reboots'"),
        ({"waits": "Application", "never": True}, "it waits: Application"),
        ({"waits": "MachineConfigPool worker"}, "it does not wait; what waits: "),
        ({"waits": "Application", "for": "Pod"}, ""),
        ({"must": "objects.exists(o, o.metadata.name == 'other')"}, ""),
        ({"must": "journal.size() == 0"}, "it is false"),
    ],
)
def test_what_is_expected_is_judged_by_the_record(
    expected: dict[str, object], found: str, day: tuple[Case, Result, Record]
) -> None:
    _, result, record = day
    assert result.answer is not None
    one = expectation(Field(Path("a.rehearsal.yaml"), "scenarios[0].expect[0]", expected))
    said = [each.found for each in failures([one], record, result.answer)]
    assert (not said) if not found else (said and found in said[0]), said


def test_what_happens_is_ordered_by_time(
    day: tuple[Case, Result, Record],
) -> None:
    case, result, _ = day
    assert result.passed and result.answer is not None, result
    assert [each.at.total_seconds() for each in case.happenings] == [120, 600, 1800, 5400, 14400, 18000]


def test_the_examples_pass_and_one_that_expects_too_much_fails_with_all_that_is_needed_to_see_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [str(EXAMPLES / name) for name in ("pool-pause", "tested-shop")]
    names = [word for pattern in ("one-*", "a-[mnbl]*") for word in ("--filter", pattern)]
    assert main(["test", *examples, *names, "-j", "2"]) == 0
    assert "6 passed" in capsys.readouterr().out
    wrong = "scenarios: [{name: red, expect: [{object: ConfigMap/colours, is: {data.sky: red}}]}]\n"
    file = written(tmp_path, wrong, SHOP.partition("---\n")[2])
    assert main(["test", str(tmp_path), "--seeds", "2", "-o", "json"]) == 1
    results = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["seed"], each["passed"]) for each in results] == [("red", 1, False), ("red", 2, False)]
    assert main(["test", str(file), "--filter", "r*", "-o", "junit"]) == 1
    assert '<failure message="scenarios[0].expect[0]: ' in capsys.readouterr().out
    assert main(["test", str(file), "--timeout", "1ms", "-o", "markdown"]) == 1
    assert "it takes longer than 0.001 s (--timeout)" in capsys.readouterr().out
    assert main(["test", str(file)]) == 1
    text = capsys.readouterr().out
    assert "data.sky is 'blue', not 'red'" in text and "sync Succeeded" in text
    assert f"again: syncline test {file} --filter red --seed 1 --show" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scenarioz: []", "found the key 'scenarioz'; allowed: laws, scenarios"),
        ("scenarios: [{name: '../a'}]", "scenarios[0].name: found '../a'"),
        ("scenarios: [{name: a}, {name: a}]", "scenarios[1].name: found the name a twice"),
        ("scenarios: [{name: a, repository: ../..}]", "scenarios[0].repository: found '../..'; allowed: a place in"),
        ("scenarios: [{name: a, world: ../../w.yaml}]", "scenarios[0].world: found"),
        ("scenarios: [{name: a, world: {nodes: [{name: A}]}}]", "scenarios[0].world: nodes[0].name: found 'A'"),
        ("scenarios: [{name: a, world: {}, snapshot: b}]", "found world and snapshot; allowed: one of them"),
        ("scenarios: [{name: a, snapshot: shop.yaml}]", "is no snapshot"),
        ("scenarios: [{name: a, seeds: 0}]", "scenarios[0].seeds: found 0; allowed: a count from 1 to 100"),
        ("scenarios: [{name: a, seeds: 1000000000}]", "allowed: a count from 1 to 100"),
        ("scenarios: [{name: a, until: 9000h}]", "scenarios[0].until: found '9000h'; allowed: at most 168h"),
        ("scenarios: [{name: a, faults: 'boom@1'}]", "'boom@1' is no fault such as kill@12"),
        ("scenarios: [{name: a, without: [x]}]", "--without-law x: there is no such law"),
        ("scenarios: [{name: a, when: [{at: 1m}]}]", "scenarios[0].when[0]: found nothing that happens; allowed: one"),
        ("scenarios: [{name: a, when: [{at: 999h, sync: b}]}]", "when[0].at: found '999h'; allowed: at most 168h"),
        ("scenarios: [{name: a, when: [{rollback: true}]}]", "found a rollback of the first commit"),
        ("scenarios: [{name: a, when: [{commit: {folder: /etc}}]}]", "commit.folder: found '/etc'; allowed: a place"),
        ("scenarios: [{name: a, when: [{commit: {revision: -o}}]}]", "found an option; allowed: a branch"),
        ("scenarios: [{name: a, when: [{commit: {remove: [b]}}]}]", "remove[0]: found 'b'; allowed: a file or folder"),
        ("scenarios: [{name: a, when: [{commit: {files: {../b: c}}}]}]", "allowed: texts by paths in the repository"),
        ("scenarios: [{name: a, when: [{commit: {set: [{file: b}]}}]}]", "set[0].file: found 'b'; allowed: a file of"),
        ("scenarios: [{name: a, when: [{commit: {set: [{file: shop.yaml}]}}]}]", "found 2 documents in the file"),
        (
            f"scenarios: [{{name: a, when: [{{commit: {{set: [{{file: shop.yaml, object: ConfigMap/colours, fields: "
            f"{{{'a.' * 99}a: 1}}}}]}}}}]}}]",
            "set[0].fields: found a.a.a.",
        ),
        ("scenarios: [{name: a, expect: [{verdict: good}]}]", "expect[0].verdict: found 'good'; allowed: safe"),
        ("scenarios: [{name: a, expect: [{laws: {held: [x]}}]}]", "expect[0].laws: found 'x'; allowed: nothing-stays"),
        ("scenarios: [{name: a, expect: [{object: a/b, must: 'x.y'}]}]", "CEL with the variables object, before"),
        ("scenarios: [{name: a, expect: [{object: a/b, at: 1m, always: true}]}]", "found at and always; allowed: one"),
        ("scenarios: [{name: a, expect: [{order: [a, b]}]}]", "order[0]: found 'a'; allowed: WHAT begins"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_path_value_and_what_is_allowed(
    text: str, said: str, tmp_path: Path
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ScenarioError) as error:
        read_cases(file)
    assert said in str(error.value) and "shop" in str(error.value) and error.value.usage, str(error.value)


def test_a_world_may_be_a_snapshot_and_what_is_deployed_a_revision(tmp_path: Path) -> None:
    edit = "{file: shop.yaml, object: ConfigMap/colours, fields: {data: null}}"
    when = f"[{{at: 1m, commit: {{revision: main, set: [{edit}]}}}}]"
    text = f"scenarios: [{{name: a, snapshot: world.json, deployed: {{revision: main}}, when: {when}}}]\n"
    file = tmp_path / "shop" / "shop.rehearsal.yaml"
    commit_files(Files({"shop.yaml": SHOP.encode()}), file.parent)
    file.write_text(HEAD + text)
    (file.parent / "shop.yaml").write_text(SHOP.replace("blue", "red"))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a-node", "labels": {"disk": "ssd"}}}
    (file.parent / "world.json").write_text(json.dumps(snapshot_of([node], b"salt")))
    (case,) = read_cases(file)
    assert [(each.name, each.labels) for each in case.asked.world.nodes()] == [("a-node", (("disk", "ssd"),))]
    assert case.asked.before is not None and "blue" in case.asked.before.text("shop.yaml")
    assert "red" in case.asked.files.text("shop.yaml")
    (then,) = case.happenings
    assert isinstance(then.change, Commit) and "sky" not in then.change.files.text("shop.yaml")


def test_wrong_files_are_all_named_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "scenarios: 1")
    (tmp_path / "b.rehearsal.yaml").write_text("scenarios: []")
    assert main(["test", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert "shop.rehearsal.yaml: scenarios: found 1; allowed: a list" in text and "b.rehearsal.yaml: the first" in text
    (tmp_path / "b.rehearsal.yaml").unlink()
    written_again = tmp_path / "shop.rehearsal.yaml"
    written_again.write_text(HEAD)
    assert main(["test", str(tmp_path)]) == 2
    assert "found no scenario to play" in capsys.readouterr().err
