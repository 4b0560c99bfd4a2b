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
from syncline.rehearsal.races.holding import held
from syncline.rehearsal.races.orders import Course, course, drawn, explored, seed_for
from syncline.rehearsal.races.proposing import orderings

EXAMPLES = ROOT / "examples" / "operators"
CATALOGUE = f"redhat-operators={EXAMPLES / 'redhat-operators'}"
SHARED: Obj = {"global": {"pattern": "shop", "singleArgoCD": True, "secretStore": {"backend": "none"}}}
BEST = "ocs-storagecluster-ceph-rbd-virtualization"
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
    assert {cure: (one.schedules, one.states, one.bad(BEST), one.stuck) for cure, one in found.items()} == {
        "none": (3300, 71, 2100, 0),
        "jobs": (10, 18, 0, 0),
        "wait": (10, 18, 0, 0),
        "gate": (10, 18, 0, 0),
    }


@needs_scene
def test_a_wave_alone_is_not_enough_for_what_an_operator_makes_later() -> None:
    values = _scene("none")
    race, _, objects = _course(values)
    tried = orderings(race, values, objects)
    left = {one.name: explored(_course(layered([values, one.layer]))[1]).bad(BEST) for one in tried}
    assert [(one.name, len(one.edits)) for one in tried] == [("wave", 1), ("gate", 2), ("jobs", 2), ("wait", 3)]
    assert left == {"wave": 180, "gate": 0, "jobs": 0, "wait": 0}


@needs_scene
def test_a_gate_in_the_wave_of_what_it_waits_for_never_opens() -> None:
    gate = f"{{gate: storageclass-present, name: {BEST}}}"
    own: Obj = {"subscriptions": {"openshift-virtualization": {"annotations": {"syncline.dev/wait-for": gate}}}}
    found = explored(_course(layered([_scene("none"), {"clusterGroup": own}]))[1])
    assert found.taken == {} and found.stuck == found.schedules > 0
    assert "Subscription odf-operator is applied" in found.stuck_at


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
        seed = seed_for(found, best=best)
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
    assert (one["seed"], one["explored"]["bad"], one["cure"]) == (1, 2100, "gate")
    assert [play["taken"] for play in one["rehearsed"]] == ["standard", BEST]
    gate = next(each for each in one["orderings"] if each["name"] == "gate")
    assert [play["taken"] for play in gate["rehearsed"]] == [BEST, BEST]
    first, second = gate["rehearsed"]
    assert first["order"] == list(reversed(second["order"])), "both orders were forced"
