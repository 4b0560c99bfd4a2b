"""One cluster that joins under a second name, or a second hub, with the same Application: who has it, keeps it."""

from __future__ import annotations

import pytest
from tests.fleet.rollingout import APPS as APPLICATIONS
from tests.fleet.rollingout import INVENTORY, RollOut
from tests.fleet.test_pull_controllers import APPS, application
from tests.fleet.test_pull_whole import Rows
from tests.fleet.world import CLUSTERS, Fleet, Member, config_map
from tests.gitops.behaviours.sim import Source, sha

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.conditions import find_condition
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.kube.objects import Obj, name_of

MAP = "/api/v1/namespaces/default/configmaps/{}"
ARGO = APPS.format("argocd")
WORKS = "/apis/work.open-cluster-management.io/v1/manifestworks"


class _Repository(Source):
    """Two commits."""

    def __init__(self) -> None:
        super().__init__(config_map("web", v="1"))
        self.commit(config_map("web", v="2"))


def _hub(beside: Fleet | None = None) -> Fleet:
    made, settings = Fleet(beside=beside), PullSettings()
    made.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    made.start_gitops(made.hub, Rows())
    return made


def _pulled(name: str, cluster: str, commit: int) -> Obj:
    made = application(name, cluster)
    source = {**made["spec"]["source"], "targetRevision": sha(commit)}
    target = {"server": "https://kubernetes.default.svc", "namespace": "default"}
    made["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    made["spec"] |= {"source": source, "destination": target, "syncPolicy": {"automated": {}}}
    return made


def _state(site: Member) -> list[tuple[str, str]]:
    """What changes when anything does: uids and versions of the Applications, and of what they deploy."""
    found = [*site.get(ARGO)["items"], site.get(MAP.format("web"))]
    return [(one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for one in found]


@pytest.fixture
def first() -> Fleet:
    made = _hub()
    made.start_gitops(made.add("c1"), _Repository())
    made.time.advance(30)
    made.hub.send("POST", ARGO, _pulled("web", "c1", 0))
    made.time.advance(60)
    assert made.members["c1"].get(MAP.format("web"))["data"] == {"v": "1"}
    return made


def test_of_two_hubs_the_first_keeps_an_application_and_the_other_is_told_so(first: Fleet) -> None:
    site, other = first.members["c1"], _hub(first)
    other.adopt("edge", site, agent="agent2")
    first.time.advance(30)
    other.hub.send("POST", ARGO, _pulled("web", "edge", 1))
    first.time.advance(120)
    (condition,) = other.hub.get(f"{ARGO}/web")["status"]["conditions"]
    assert condition["type"] == "OwnedByAnotherWorkError"
    assert "is that of work web-" in condition["message"]
    assert "of another hub, which brought it first" in condition["message"]
    assert other.hub.get(f"{ARGO}/web")["status"].keys() == {"conditions"}, "the state of another's is not reported"
    (work,) = other.hub.get(WORKS)["items"]
    applied = find_condition(work["status"]["conditions"], "Applied") or {}
    assert applied["status"] == "False"
    before = _state(site)
    first.time.advance(1800)
    assert _state(site) == before, "nothing goes to and fro"
    assert first.hub.get(f"{ARGO}/web")["status"]["sync"] == {"status": "Synced", "revision": sha(0)}
    first.hub.send("DELETE", f"{ARGO}/web")
    first.time.advance(600)
    after = _state(site)
    assert [uid for uid, _ in after] == [uid for uid, _ in before], "the next owner has it without a deletion"
    assert site.get(MAP.format("web"))["data"] == {"v": "2"}
    status = other.hub.get(f"{ARGO}/web")["status"]
    assert (status["health"]["status"], status["sync"]["revision"]) == ("Healthy", sha(1))
    assert not status.get("conditions")


def test_a_hub_at_another_address_is_the_same_owner(first: Fleet) -> None:
    site = first.members["c1"]
    before = _state(site)
    first.url = "https://moved.test:6443"
    first.start_agent("c1")
    first.hub.send("PATCH", f"{ARGO}/web", {"spec": {"source": {"targetRevision": sha(1)}}})
    first.time.advance(120)
    assert site.get(MAP.format("web"))["data"] == {"v": "2"}
    first.time.advance(4000)
    assert [uid for uid, _ in _state(site)] == [uid for uid, _ in before]
    assert len(site.get(INVENTORY)["items"]) == 1, "that of the address of before is gone"


def test_a_cluster_that_joins_under_another_name_keeps_what_the_old_one_brought(first: Fleet) -> None:
    site = first.members["c1"]
    first.stop_agent("c1")
    first.adopt("c9", site, agent="agent2")
    first.time.advance(30)
    first.hub.send("POST", ARGO, _pulled("web-c9", "c9", 1))
    first.time.advance(60)
    assert site.get(MAP.format("web"))["data"] == {"v": "2"}
    before = _state(site)
    first.time.advance(1800)
    assert _state(site) == before, "nothing goes to and fro"
    first.hub.send("DELETE", f"{CLUSTERS}/c1")
    first.time.advance(4000)
    assert _state(site) == before
    assert first.cluster("c1")["metadata"]["deletionTimestamp"], "it waits for the agent, which has to let go"
    first.start_agent("c1")
    first.time.advance(600)
    assert first.hub.absent(f"{CLUSTERS}/c1")
    assert [name_of(one) for one in site.get(ARGO)["items"]] == ["web-c9"]
    assert site.get(MAP.format("web"))["data"] == {"v": "2"}


def test_what_a_restored_hub_does_not_know_stays_and_is_named_until_it_knows_it_again() -> None:
    run = RollOut("c1")
    run.go(60)
    backup = run.fleet.backup_hub()
    run.do("POST", APPLICATIONS, _pulled("late", "c1", 0))
    run.go(60)
    site = run.fleet.members["c1"]
    late = site.get(f"{APPLICATIONS}/late")["metadata"]["uid"]
    run.restore(backup)
    run.go(2400)
    condition = find_condition(run.fleet.cluster("c1")["status"]["conditions"], "SynclineWorksMissing") or {}
    assert (condition["status"], condition["reason"]) == ("True", "NotOnHub")
    assert "this cluster has objects of 1 works that are not on the hub: late-" in condition["message"]
    assert "they are removed from 2026-01-01T01:" in condition["message"]
    run.do("POST", APPLICATIONS, _pulled("late", "c1", 0))
    run.go(120)
    assert run.fleet.hub.get(f"{APPLICATIONS}/late")["status"]["sync"]["status"] == "Synced"
    run.go(1800)
    assert site.get(f"{APPLICATIONS}/late")["metadata"]["uid"] == late, "it was never away"
    condition = find_condition(run.fleet.cluster("c1")["status"]["conditions"], "SynclineWorksMissing") or {}
    assert condition["status"] == "False"
