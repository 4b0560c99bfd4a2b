"""What is away is not gone: clusters that are lost, denied, dropped or deleted, and hubs that are restored, during a
roll-out of the pull model."""

from __future__ import annotations

import pytest
from tests.fleet.rollingout import APPS, MAP, PULL, REPORTS, SET_REPORTS, SETS, WORKS, RollOut, cluster_path
from tests.fleet.test_pull_controllers import application

from syncline.fleet.pull import names
from syncline.kube.objects import name_of, namespace_of

NAMES = ("c1", "c2")
BOTH = dict.fromkeys(NAMES, "2")


@pytest.fixture
def run() -> RollOut:
    made = RollOut(*NAMES)
    made.go(60)
    assert made.versions() == dict.fromkeys(NAMES, "1")
    return made


def _places(run: RollOut, path: str) -> list[str]:
    """Return the clusters in whose namespace on the hub objects are."""
    return sorted(namespace_of(one) for one in run.items(path))


def test_a_cluster_that_is_lost_or_denied_keeps_what_it_has_and_follows_later(run: RollOut) -> None:
    member = run.fleet.members["c2"]
    member.hub_cable.cut()
    run.roll_out("2")
    run.go(900)
    assert run.versions() == {"c1": "2", "c2": "1"}
    conditions = {one["type"]: one["status"] for one in run.fleet.cluster("c2")["status"]["conditions"]}
    assert conditions["ManagedClusterConditionAvailable"] == "Unknown"
    member.hub_cable.mend()
    run.go(600)
    assert run.versions() == BOTH
    member.own_cable.cut()
    run.roll_out("3")
    run.go(600)
    member.own_cable.mend()
    run.go(600)
    assert run.versions() == dict.fromkeys(NAMES, "3")
    run.do("PATCH", cluster_path("c2"), {"spec": {"hubAcceptsClient": False}})
    run.roll_out("4")
    run.go(300)
    assert run.versions()["c1"] == "4"  # a denied cluster has its rights until its works are gone, as upstream
    run.do("PATCH", cluster_path("c2"), {"spec": {"hubAcceptsClient": True}})
    run.go(600)
    assert run.versions() == dict.fromkeys(NAMES, "4")


def test_a_cluster_that_its_placement_takes_back_or_that_joins_again_runs_again(run: RollOut) -> None:
    run.keeps = False
    run.do("PATCH", cluster_path("c2"), {"metadata": {"labels": {"left-out": "1"}}})
    run.go(2)
    run.do("PATCH", cluster_path("c2"), {"metadata": {"labels": {"left-out": None}}})
    run.roll_out("2")
    run.go(300)
    assert run.versions() == BOTH
    assert _places(run, WORKS) == list(NAMES), "one work for each Application"
    run.do("DELETE", cluster_path("c2"))
    run.go(300)
    assert _places(run, WORKS) == _places(run, REPORTS) == ["c1"]
    assert run.versions() == {"c1": "2", "c2": ""}
    run.rejoin("c2")
    run.roll_out("3")
    run.go(300)
    assert run.versions() == dict.fromkeys(NAMES, "3")
    assert _places(run, WORKS) == _places(run, REPORTS) == list(NAMES)
    assert [name_of(one) for one in run.items(APPS)] == ["web-c1", "web-c2"]


def test_b87_with_its_applicationset_all_goes_also_from_a_cluster_that_was_away(run: RollOut) -> None:
    """The work of a cluster that is away stays until it is back; meanwhile the hub writes nothing again and again."""
    run.keeps = False
    cable, log = run.fleet.members["c2"].hub_cable, run.processes[PULL].log
    cable.cut()
    before = len(log)
    run.do("DELETE", f"{SETS}/set")
    run.go(900)
    assert len(log) - before <= 12, log[before:]
    assert (run.versions(), _places(run, WORKS)) == ({"c1": "", "c2": "1"}, ["c2"])
    assert run.items(SET_REPORTS) == run.items(APPS) == []
    cable.mend()
    run.go(300)
    assert run.versions() == dict.fromkeys(NAMES, "")
    assert run.items(WORKS) == run.items(REPORTS) == run.items(SET_REPORTS) == []
    # an Application that names another cluster leaves its old work until it goes
    one = application("one")
    one["spec"] |= {"syncPolicy": {"automated": {}}, "destination": {"namespace": "default"}}
    one["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    run.do("POST", APPS, one)
    run.go(60)
    assert (_places(run, WORKS), run.versions()) == (["c1"], {"c1": "1", "c2": ""})
    run.do("PATCH", f"{APPS}/one", {"metadata": {"annotations": {names.CLUSTER: "c2"}}})
    run.go(60)
    assert (_places(run, WORKS), run.versions()) == (["c1", "c2"], {"c1": "1", "c2": "1"})
    run.do("DELETE", f"{APPS}/one")
    run.go(120)
    assert (_places(run, WORKS), run.versions()) == ([], {"c1": "", "c2": ""})


def test_a_hub_restored_from_an_older_backup_is_followed_and_deletes_nothing(run: RollOut) -> None:
    backup = run.fleet.backup_hub()
    run.roll_out("2")
    run.go(600)
    assert run.versions() == BOTH
    run.restore(backup)
    run.go(600)
    assert run.versions() == dict.fromkeys(NAMES, "1"), "what the hub says now counts"
    run.roll_out("3")
    run.go(600)
    assert run.versions() == dict.fromkeys(NAMES, "3")
    assert run.fleet.members["c1"].get(MAP)["data"]["cluster"] == "c1"
