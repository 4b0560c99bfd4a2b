"""Races between operators: all orders are explored, a bad one is rehearsed, and what rules it out is proved."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest
from bench.groupscene import CURES
from tests.cli.commanding import Shell
from tests.patterns.scene import SCENE
from tests.recorded import ROOT, absent

from syncline.assembly.operators.folders import FolderCatalogs, read_behaviours
from syncline.clustergroup.defaults import layered
from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import dump, load
from syncline.patterns.operators.racing.foreseen import foreseen
from syncline.patterns.operators.racing.pairs import Race, races
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.races.examining import Answer, Examined
from syncline.rehearsal.races.holding import held
from syncline.rehearsal.races.orders import Course, course, drawn, explored, seed_for
from syncline.rehearsal.races.proposing import orderings

EXAMPLES = ROOT / "examples" / "operators"
CATALOGUE = f"redhat-operators={EXAMPLES / 'redhat-operators'}"
SHARED: Obj = {"global": {"pattern": "shop", "singleArgoCD": True, "secretStore": {"backend": "none"}}}
CLASS = "ocs-storagecluster-ceph-rbd"
GOOD = {CLASS, f"{CLASS}-virtualization"}
needs_scene = pytest.mark.skipif(not SCENE.exists(), reason=absent(SCENE))


def _scene(cure: str) -> Obj:
    text = (SCENE / "values-hub.yaml").read_text()
    return layered([SHARED, load(text, file="values-hub.yaml"), {"clusterGroup": CURES[cure]}])


def _group(*packages: str) -> Obj:
    given = [{"name": one, "namespace": one} for one in packages]
    return layered([SHARED, {"clusterGroup": {"name": "hub", "namespaces": list(packages), "subscriptions": given}}])


@lru_cache(maxsize=1)
def _catalogs() -> FolderCatalogs:
    return FolderCatalogs.read({"redhat-operators": EXAMPLES / "redhat-operators"})


def _course(values: Obj) -> tuple[Race, Course, list[Obj]]:
    objects = render(values_of([values]))
    does = read_behaviours(EXAMPLES / "behaviours")
    operators = foreseen(objects, _catalogs().catalogs, does)
    (race,) = races(operators).races
    return race, course(race, operators, held(objects)), objects


@needs_scene
def test_each_of_the_three_cures_of_the_scene_rules_out_every_bad_order() -> None:
    found = {cure: explored(_course(_scene(cure))[1]) for cure in CURES}
    assert {cure: (one.schedules, one.states, one.bad(GOOD), one.stuck) for cure, one in found.items()} == {
        "none": (32580, 107, 20580, 0),
        "jobs": (30, 23, 0, 0),
        "wait": (30, 23, 0, 0),
        "gate": (30, 23, 0, 0),
    }


@needs_scene
def test_a_class_that_waits_for_the_kinds_of_its_reader_is_no_target_of_an_order() -> None:
    race, found, _ = _course(_scene("gate"))
    assert race.circle == "virtualmachines.kubevirt.io" and race.best.name == f"{CLASS}-virtualization"
    assert race.target.name == CLASS and race.good == GOOD
    assert set(explored(found).taken) == GOOD, "which of them, no order of the two decides"


@needs_scene
def test_a_wave_alone_is_not_enough_for_what_an_operator_makes_later() -> None:
    values = _scene("none")
    race, _, objects = _course(values)
    tried = orderings(race, values, objects)
    left = {one.name: explored(_course(layered([values, one.layer]))[1]).bad(GOOD) for one in tried}
    assert [(one.name, len(one.edits)) for one in tried] == [("wave", 1), ("gate", 2), ("jobs", 2), ("wait", 3)]
    assert left == {"wave": 1260, "gate": 0, "jobs": 0, "wait": 0}


@needs_scene
def test_a_gate_in_the_wave_of_what_it_waits_for_never_opens() -> None:
    gate = f"{{gate: storageclass-present, name: {CLASS}}}"
    own: Obj = {"subscriptions": {"openshift-virtualization": {"annotations": {"syncline.dev/wait-for": gate}}}}
    found = explored(_course(layered([_scene("none"), {"clusterGroup": own}]))[1])
    assert found.taken == {} and found.stuck == found.schedules > 0
    assert "Subscription odf-operator is applied" in found.stuck_at


@needs_scene
def test_a_gate_on_a_class_that_waits_for_the_second_operator_never_opens_in_any_wave() -> None:
    gate = f"{{gate: storageclass-present, name: {CLASS}-virtualization}}"
    own: Obj = {"subscriptions": {"openshift-virtualization": {"annotations": {"syncline.dev/wait-for": gate}}}}
    found = explored(_course(layered([_scene("gate"), {"clusterGroup": own}]))[1])
    assert found.taken == {} and "ocs-operator: make the storage class for virtualization" in found.stuck_at


def test_a_wave_is_enough_for_definitions_that_come_with_an_operator() -> None:
    values = _group("openshift-cert-manager-operator", "opentelemetry-product")
    race, before, objects = _course(values)
    first, *_ = orderings(race, values, objects)
    after = explored(_course(layered([values, first.layer]))[1])
    assert (first.name, [str(one) for one in first.edits]) == (
        "wave",
        ["clusterGroup.subscriptions.1.annotations.argocd.argoproj.io/sync-wave: 5"],
    )
    assert explored(before).taken == {"certificates.cert-manager.io": 10, "nothing": 5}
    assert after.taken == {"certificates.cert-manager.io": after.schedules}


def test_a_seed_gives_one_order_and_both_outcomes_have_a_seed() -> None:
    _, found, _ = _course(_group("openshift-cert-manager-operator", "opentelemetry-product"))
    for best, taken in ((True, "certificates.cert-manager.io"), (False, "nothing")):
        seed = seed_for(found, {"certificates.cert-manager.io"}, ends_well=best)
        assert seed is not None
        order, took = drawn(found, seed)
        assert took == taken and (order, took) == drawn(found, seed)
        assert sorted(order) == sorted(one.name for one in found.events)


@needs_scene
def test_the_race_of_the_scene_is_rehearsed_and_its_smallest_ordering_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "values-global.yaml").write_text(dump(SHARED))
    (tmp_path / "values-hub.yaml").write_text(dump({"clusterGroup": _scene("none")["clusterGroup"]}))
    values = ("-f", str(tmp_path / "values-global.yaml"), "-f", str(tmp_path / "values-hub.yaml"))
    does = ("--catalog", CATALOGUE, "--operator-behaviours", str(EXAMPLES / "behaviours"))
    said = Shell(capsys, [])("pattern", "races", *values, *does, "-o", "json", code=4)
    (one,) = json.loads(said)["races"]
    assert (one["seed"], one["explored"]["bad"], one["cure"]) == (1, 20580, "gate")
    bad, well = one["rehearsed"]
    assert bad["taken"] == "standard" and well["taken"] in GOOD
    gate = next(each for each in one["orderings"] if each["name"] == "gate")
    assert {play["taken"] for play in gate["rehearsed"]} <= GOOD
    assert [play["order"] for play in gate["rehearsed"]] == [bad["order"], well["order"]], "both orders were forced"


def test_rehearse_looks_for_races_of_the_pattern_in_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Shell(capsys, [])
    assert "allowed: the folder of a pattern" in said("rehearse", str(tmp_path), "--races", code=2)
    (tmp_path / "values-global.yaml").write_text(dump(SHARED | {"main": {"clusterGroupName": "hub"}}))
    (tmp_path / "values-hub.yaml").write_text(dump(_group("openshift-cert-manager-operator")))
    found = said("rehearse", str(tmp_path), "--races", "--catalog", CATALOGUE)
    assert found.startswith("safe: pairs whose outcome depends on their order: 0, of 1 operators")


def test_an_exploration_of_too_many_states_says_so_and_rules_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    race, found, _ = _course(_group("openshift-cert-manager-operator", "opentelemetry-product"))
    monkeypatch.setattr("syncline.rehearsal.races.orders.MOST_STATES", 10)
    cut = explored(found)
    assert not cut.whole and not Examined(race, found, cut).ruled_out
    assert Answer(races([race.reader, race.maker]), (Examined(race, found, cut),)).outcome is Outcome.UNSAFE
