"""Commits rehearsed on fleets: which clusters are equal, who holds whom, and which edit cures it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenes.scenes import scene

from syncline.cli.views.rehearsal.fleet import describe_fleet
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.fleet.answer import FleetAnswer
from syncline.rehearsal.fleet.classes import Mentions, Pulled, classes_of
from syncline.rehearsal.fleet.given import FleetWorld, parse_fleet
from syncline.rehearsal.fleet.rehearsing import FleetAsked, rehearse_fleet
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.rehearsing import Settings
from syncline.rehearsal.scenario import ScenarioError

URL = "https://github.com/argoproj/argocd-example-apps.git"
SET = "guestbook-allclusters-app-set"
SCENE = """\
clusters:
- name: aws
  count: 3
  labels: {syncline.dev/cluster-wave: "1"}
- name: gcp-1
  rights: managed-by
"""


def fleet(text: str) -> FleetWorld:
    return parse_fleet(text, Path("fleet.yaml"), Files({}))


# -- the scene ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> FleetAnswer:
    copies = {URL: read_files(scene("argocd-example-apps"))}
    asked = FleetAsked("pull-model", read_files(scene("pull-model")), fleet(SCENE), repositories=copies)
    return rehearse_fleet(asked, tmp_path_factory.mktemp("fleet"), Settings(), processes=1)


def test_pull_model_fails_where_a_namespace_is_not_managed_and_holds_the_wave_behind_it(found: FleetAnswer) -> None:
    assert found.outcome is Outcome.FAILED
    assert found.headline.startswith("cluster gcp-1 of 4: the sync of gcp-1-guestbook-app fails")
    assert "no label argocd.argoproj.io/managed-by" in found.headline
    first, second = found.waves
    assert (first.wave, first.clusters, first.proved, first.begins_s) == (0, 1, 0, 0.0)
    assert (second.wave, second.clusters, second.held, second.begins_s) == (1, 3, 3, None)
    (held,) = found.held
    assert held.by == ("gcp-1",) and len(held.clusters) == 3 and "gcp-1" in held.why


def test_a_namespace_with_the_label_cures_it_and_all_waves_are_done(found: FleetAnswer) -> None:
    (cure,) = (cure for cure in found.cures if cure.proved)
    assert "make namespace guestbook with the label argocd.argoproj.io/managed-by" in cure.text
    assert cure.diff.count("+      argocd.argoproj.io/managed-by: openshift-gitops") == 1
    assert cure.headline.startswith("4 clusters in 2 classes done after")
    rejected = next(cure for cure in found.cures if not cure.proved)
    assert "managedNamespaceMetadata" in rejected.diff, "the account may create namespaces, and not patch them"


def test_equal_clusters_are_played_once_and_others_of_them_are_compared(found: FleetAnswer) -> None:
    assert [(one.clusters, one.played, one.reached) for one in found.classes] == [
        (("aws-1", "aws-2", "aws-3"), "aws-1", 0),
        (("gcp-1",), "gcp-1", 1),
    ]
    assert found.sample == ("aws-2", "aws-3")
    text = describe_fleet(found)
    assert "clusters that were played: aws-1, gcp-1; the others are equal" in text
    assert f"HELD  3 clusters (aws-1, aws-2, aws-3) never get {SET}, held by cluster gcp-1" in text


# -- equality ----------------------------------------------------------------------------------------------------------


def cluster(name: str, value: str = "x", text: str = "nodes: [{name: node}]") -> Pulled:
    world = fleet(f"clusters: [{{name: {name}, {text}}}]").groups[0].world
    manifest = {"kind": "Application", "metadata": {"name": f"{name}-web"}, "spec": {"path": f"at/{name}", "v": value}}
    return Pulled(name, world, (manifest,))


def names_of(files: Files, clusters: list[Pulled]) -> list[tuple[str, ...]]:
    said = Mentions(files, [one.name for one in clusters])
    return [each.names for each in classes_of([(one, (one.name,)) for one in clusters], [said])]


@pytest.mark.parametrize(
    ("clusters", "files", "classes"),
    [
        pytest.param([cluster("a-1"), cluster("a-2")], {}, 1, id="names differ"),
        pytest.param([cluster("a-1"), cluster("a-2", "y")], {}, 2, id="values differ"),
        pytest.param([cluster("a-1", "a-1"), cluster("a-2", "a-2")], {}, 1, id="a value is the name"),
        pytest.param([cluster("a-1", "1"), cluster("a-2", "2")], {}, 2, id="a value is a part of the name"),
        pytest.param([cluster("a-1", "a-1"), cluster("a-12", "a-12")], {}, 1, id="one name begins another"),
        pytest.param(
            [cluster("a-1"), cluster("a-2", text="nodes: [{name: node, count: 2}]")], {}, 2, id="node counts differ"
        ),
        pytest.param([cluster("a-1"), cluster("a-2", text="rights: managed-by")], {}, 2, id="rights differ"),
        pytest.param(
            [cluster("a-1"), cluster("a-2")], {"at/a-1/v": "size: 1", "at/a-2/v": "size: 1"}, 1, id="equal folders"
        ),
        pytest.param(
            [cluster("a-1"), cluster("a-2")], {"at/a-1/v": "size: 1", "at/a-2/v": "size: 2"}, 2, id="folders differ"
        ),
        pytest.param([cluster("a-1"), cluster("a-2")], {"t": "{{ if eq .name `a-1` }}"}, 2, id="a file names one"),
    ],
)
def test_clusters_are_equal_if_all_that_is_said_of_them_is_the_same_without_their_names(
    clusters: list[Pulled], files: dict[str, str], classes: int
) -> None:
    given = Files({path: text.encode() for path, text in files.items()})
    assert len(names_of(given, clusters)) == classes


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_count_makes_many_clusters_with_a_number_in_their_names() -> None:
    world = fleet("clusters: [{name: edge, count: 2}, {name: 'site-*-b', count: 2}, {name: hq}]")
    assert list(world.clusters()) == ["edge-1", "edge-2", "site-1-b", "site-2-b", "hq"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters: []", "found 0 clusters; allowed: 1 to 2000"),
        ("clusters: [{name: A}]", "clusters[0].name: found 'A'; allowed: lower case letters"),
        ("clusters: [{name: a, count: 0}]", "clusters[0].count: found 0; allowed: a number from 1"),
        ("clusters: [{name: a-1}, {name: a, count: 1}]", "found the cluster a-1 twice; allowed: each name once"),
        ("clusters: [{name: 'a-*'}]", "allowed: * only beside a count"),
        ("clusters: [{name: a, rights: all}]", "clusters[0].rights: found 'all'; allowed: cluster, managed-by"),
        ("clusters: [{name: a, wave: 1}]", "clusters[0]: found the key 'wave'; allowed: name, count, labels"),
    ],
)
def test_what_is_wrong_with_a_fleet_names_file_key_value_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        fleet(text)
    assert str(error.value).startswith("fleet.yaml: ") and said in str(error.value)


def test_a_repository_without_anything_for_a_hub_says_so(tmp_path: Path) -> None:
    asked = FleetAsked("web", Files({"a.yaml": b"kind: ConfigMap"}), fleet("clusters: [{name: a}]"))
    with pytest.raises(ScenarioError, match="web: holds no ApplicationSet and no Application"):
        rehearse_fleet(asked, tmp_path, Settings())
