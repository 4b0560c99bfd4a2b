"""OperatorPolicies among faults: the agent is killed after its writes, writes are refused and answers are lost. The
operator is installed, moved to another channel and removed by controllers of operators that know nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.assembly.test_deploy import manifests
from tests.fleet.world import Fleet, Member, Wrap
from tests.patterns.operating import OLM, Flaky, bundle, channel, package
from tests.patterns.policies.test_operators import POLICIES, operator_policy, post
from tests.patterns.policies.world import namespace

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.operators.folders import FolderCatalogs
from syncline.assembly.operators.role import folder_role
from syncline.cluster.access.users import service_account_user
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj
from syncline.patterns.operators.behaving import Behaviours
from syncline.patterns.operators.catalogs.reading import read_catalog
from syncline.rehearsal.seams import CrashingTransport, Killed

SPARED = ("leases", "managedclusters", "events", "clusterclaims")
MOST_WRITES = 60
CATALOG = (
    package("widgets"),
    channel("widgets", "stable", "widgets.v1.0.0"),
    channel("widgets", "next", {"name": "widgets.v1.1.0", "replaces": "widgets.v1.0.0"}, "widgets.v1.0.0"),
    bundle("widgets", "1.0.0", "Widget.v1.example.com"),
    bundle("widgets", "1.1.0", "Widget.v1.example.com"),
)
EVERYTHING = {
    "operatorGroups": "DeleteIfUnused",
    "subscriptions": "Delete",
    "clusterServiceVersions": "Delete",
    "customResourceDefinitions": "Delete",
}


def spec(place: str, channel: str = "stable", kind: str = "musthave") -> Obj:
    wanted = {"name": "widgets", "namespace": place, "channel": channel}
    source = {"source": "cat", "sourceNamespace": "openshift-marketplace"}
    return {
        "remediationAction": "enforce",
        "complianceType": kind,
        "severity": "low",
        "subscription": {**wanted, **source},
        "operatorGroup": {"name": "group", "namespace": place, "targetNamespaces": [place]},
        "upgradeApproval": "Automatic",
        "versions": ["widgets.v1.0.0", "widgets.v1.1.0"],
        "removalBehavior": EVERYTHING,
    }


class Story:
    """One operator of one policy, in a namespace of its own."""

    def __init__(self, fleet: Fleet, place: str) -> None:
        self.fleet, self.place = fleet, place
        self.member: Member = fleet.members["c1"]
        self.path = f"{POLICIES.format('c1')}/{place}"

    def status(self) -> Obj:
        found: Obj = self.member.get(self.path).get("status") or {}
        return found

    def versions(self) -> list[tuple[str, str]]:
        listed = self.member.get(f"{OLM}/{self.place}/clusterserviceversions")["items"]
        return sorted((one["metadata"]["name"], one["status"]["phase"]) for one in listed)

    def come(self) -> None:
        post(self.member, operator_policy(self.place, spec(self.place), "c1"))

    def move(self) -> None:
        self.member.send("PATCH", self.path, {"spec": spec(self.place, "next")})

    def go(self) -> None:
        self.member.send("PATCH", self.path, {"spec": spec(self.place, "next", "mustnothave")})

    def came(self) -> None:
        assert (self.status()["compliant"], self.versions()) == ("Compliant", [("widgets.v1.0.0", "Succeeded")])

    def moved(self) -> None:
        assert (self.status()["compliant"], self.versions()) == ("Compliant", [("widgets.v1.1.0", "Succeeded")])
        plans = self.member.get(f"{OLM}/{self.place}/installplans")["items"]
        assert [one["spec"]["approved"] for one in plans] == [True, True], "each version was approved once"

    def went(self) -> None:
        assert self.status()["compliant"] == "Compliant"
        groups = self.member.get(f"/apis/operators.coreos.com/v1/namespaces/{self.place}/operatorgroups")["items"]
        subscriptions = self.member.get(f"{OLM}/{self.place}/subscriptions")["items"]
        assert (groups, subscriptions, self.versions()) == ([], [], [])
        assert self.member.absent("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")

    def run(self, again: Callable[[], None] = lambda: None) -> None:
        post(self.member, namespace(self.place))
        for step, done in ((self.come, self.came), (self.move, self.moved), (self.go, self.went)):
            self.step(step, again)
            done()
        self.member.send("DELETE", self.path)

    def step(self, step: Callable[[], Any], again: Callable[[], None]) -> None:
        for each in (step, lambda: None):
            try:
                each()
                self.fleet.time.advance(60)
            except Killed:
                again()


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    fleet = Fleet()
    member = fleet.add("c1", nodes=1)
    fleet.time.advance(5)
    fleet.start_role(folder_role(FolderCatalogs({"cat": read_catalog(list(CATALOG))}), Behaviours()), member)
    post(member, namespace("c1"))
    fleet.time.advance(5)
    yield fleet


def test_an_agent_killed_after_any_write_of_an_operator_policy_installs_and_removes_the_same(fleet: Fleet) -> None:
    number = 0
    for number in range(1, MOST_WRITES, 2):
        lives = iter((number, MOST_WRITES))
        started: list[CrashingTransport] = []

        def wrap(inner: Any, lives: Any = lives, started: Any = started) -> CrashingTransport:
            started.append(CrashingTransport(inner, lives, SPARED))
            return started[-1]

        def again(wrap: Wrap = wrap) -> None:
            fleet.start_agent("c1", wrap_own=wrap)

        again()
        Story(fleet, f"k{number}").run(again)
        if len(started) == 1:
            break
    assert 10 < number < MOST_WRITES - 1


@pytest.mark.parametrize("every", [2, 3])
def test_refused_writes_and_lost_answers_change_nothing_in_the_end(fleet: Fleet, every: int) -> None:
    fleet.start_agent("c1", wrap_own=lambda inner: Flaky(inner, every))
    Story(fleet, f"f{every}").run()
    fleet.start_agent("c1")


def test_the_rights_of_the_file_are_enough_for_operator_policies(fleet: Fleet) -> None:
    member = fleet.members["c1"]
    run_in_place(ensure_objects(manifests("agent.yaml")), member.admin)
    fleet.time.settle()
    account = member.core.transport(service_account_user("open-cluster-management-agent", "syncline-agent"))
    fleet.start_agent("c1", wrap_own=lambda _inner: account)
    Story(fleet, "rights").run()
    fleet.start_agent("c1")
