"""From the missing pod in a cluster to the sentence on its hub: what agents find, how it travels, what bounds it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet.test_pull_controllers import APPS, REPORTS, SETS, application
from tests.fleet.test_pull_whole import fleet_of, pulled_set
from tests.fleet.world import Fleet, managed_cluster
from tests.gitops.behaviours.sim import Source

from syncline.apply.causes.pods import explain_pod
from syncline.apply.causes.view import View
from syncline.assembly.inspection.pulled import pulled
from syncline.base.cause import Cause
from syncline.base.clock import EPOCH
from syncline.cli.views.cause import describe_cause
from syncline.control.cache import Cache
from syncline.explain.fleet.carried import explain_carried
from syncline.explain.fleet.setreport import application_report
from syncline.explain.view import View as WholeView
from syncline.fleet.pull import names
from syncline.fleet.pull.reporting.causes import MAX_DEPTH, MAX_TEXT, causes_from, rows_of
from syncline.fleet.spoke.applications.looking import (
    LONG_S,
    LOOK_S,
    MAX_TARGETS,
    MOST_S,
    LookedInto,
    is_due,
    targets_of,
)
from syncline.fleet.spoke.applications.report import reports_of
from syncline.kube.kinds.manifestworks import WORK_FINALIZER
from syncline.kube.kinds.syncline import MAX_CAUSES
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, ref_of

QUOTA = "/api/v1/namespaces/default/resourcequotas"
DETAILS = "/apis/syncline.dev/v1alpha1/namespaces/c1/applicationreports"
DEPLOYMENT: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        },
    },
}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """A cluster whose quota has no room for a pod."""
    made = fleet_of({"c1": Source(DEPLOYMENT)})
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    made.members["c1"].send("POST", QUOTA, quota)
    made.time.advance(5)
    made.hub.send("POST", SETS, pulled_set("c1"))
    made.time.advance(120)
    return made


def test_the_quota_that_refuses_a_pod_is_in_the_sentence_on_the_hub(fleet: Fleet) -> None:
    app = fleet.hub.get(f"{APPS.format('argocd')}/web-c1")
    assert app["status"]["health"]["status"] == "Progressing", "its deadline has not passed"
    found = explain_carried(WholeView(pulled(fleet.hub.admin, {}), fleet.clock.now()), app)
    text = describe_cause(found.cause, fleet.clock.now())
    assert found.blocked
    assert "exceeded quota: none" in text
    assert "next: raise ResourceQuota none, or ask for less" in text
    assert [line.split()[0] for line in text.splitlines()] == [
        "Application",
        "ManifestWork",
        "Deployment",
        "ReplicaSet",
        "next:",
    ]


def test_the_cause_is_in_the_report_of_the_set(fleet: Fleet) -> None:
    (entry,) = fleet.hub.get(f"{REPORTS}/set")["statuses"]["clusterConditions"]
    (said,) = [one["message"] for one in entry["conditions"] if one["type"] == "ResourceError"]
    assert said.startswith("Deployment default/web: ") and "exceeded quota" in said


def test_a_report_is_not_written_again_while_nothing_new_is_found(fleet: Fleet) -> None:
    version = fleet.hub.get(DETAILS)["items"][0]["metadata"]["resourceVersion"]
    fleet.time.advance(4 * LOOK_S)
    assert fleet.hub.get(DETAILS)["items"][0]["metadata"]["resourceVersion"] == version


def test_causes_go_when_all_is_well(fleet: Fleet) -> None:
    member = fleet.members["c1"]
    member.send("DELETE", f"{QUOTA}/none")
    fleet.time.advance(2 * MOST_S)
    (report,) = fleet.hub.get(DETAILS)["items"]
    texts = json.dumps(report["report"].get("failed") or [])
    assert "exceeded quota" not in texts


# -- when the agent looks ----------------------------------------------------------------------------------------------


def app_with(health: str, count: int = 1, since: str = "2026-01-01T00:00:00Z") -> Obj:
    rows = [
        {"group": "apps", "kind": "Deployment", "namespace": "a", "name": f"w{n}", "health": {"status": health}}
        for n in range(count)
    ]
    return {"status": {"health": {"status": health, "lastTransitionTime": since}, "resources": rows}}


def test_what_has_just_begun_is_not_looked_at_before_it_takes_long() -> None:
    assert targets_of(app_with("Progressing"), EPOCH) == ((), LONG_S)
    assert targets_of(app_with("Healthy"), EPOCH) == ((), 0.0)
    found, left = targets_of(app_with("Progressing"), EPOCH + timedelta(seconds=LONG_S))
    assert (found, left) == ((ObjectRef("apps", "Deployment", "a", "w0"),), 0.0)


def test_looks_are_bounded_in_number_and_in_time() -> None:
    found, _ = targets_of(app_with("Degraded", 100), EPOCH)
    assert len(found) == MAX_TARGETS
    looked = LookedInto(EPOCH, found)
    assert is_due(None, found, EPOCH)
    assert not is_due(looked, found, EPOCH + timedelta(seconds=LOOK_S - 1))
    assert is_due(looked, found, EPOCH + timedelta(seconds=LOOK_S))
    assert is_due(looked, found[:1], EPOCH)
    again = LookedInto(EPOCH, found).after(looked)
    assert again.again_s == 2 * LOOK_S, "nothing else was found: the next look has time"
    for _ in range(9):
        again = LookedInto(EPOCH, found).after(again)
    assert again.again_s == MOST_S
    assert LookedInto(EPOCH, found[:1]).after(again).again_s == LOOK_S
    assert not is_due(looked, (), EPOCH + timedelta(days=1))


# -- what an Application waits for -------------------------------------------------------------------------------------


def test_what_a_cluster_waits_for_is_in_the_sentence_on_the_hub() -> None:
    pool = {"group": "machineconfiguration.openshift.io", "kind": "MachineConfigPool", "name": "worker"}
    said = "1 of 3 nodes are updated: node worker-3 reboots"
    status = {
        "health": {"status": "Progressing"},
        "sync": {"status": "Synced"},
        "operationState": {"phase": "Running", "message": "waiting for completion of hook batch/Job/migrate"},
        "resources": [{**pool, "health": {"status": "Progressing", "message": said}}],
    }
    app = application("web", metadata={"name": "web", "namespace": "argocd", "uid": "12345678"})
    app["metadata"] |= {"labels": {names.PULL: "true"}, "annotations": {names.CLUSTER: "c1"}}
    metadata = {"name": "web-12345", "namespace": "c1", "uid": "w", "finalizers": [WORK_FINALIZER]}
    work = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": metadata}
    work["status"] = {"conditions": [{"type": "Applied", "status": "True"}]}
    kinds = ("HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable")
    cluster = managed_cluster("c1") | {"status": {"conditions": [{"type": one, "status": "True"} for one in kinds]}}
    cache = Cache(Mapper())
    for one in (cluster, work, *reports_of({"metadata": app["metadata"], "status": status}, work)):
        cache.put(ref_of(one).group_kind, one)
    found = explain_carried(WholeView(cache, EPOCH), app)
    text = describe_cause(found.cause, EPOCH)
    assert not found.blocked
    assert "waiting for completion of hook batch/Job/migrate" in text
    assert f"MachineConfigPool worker Progressing: {said}" in text
    (row,) = application_report(WholeView(cache, EPOCH), app, "argocd").rows
    assert "node worker-3 reboots" in row.waits[0].line


# -- nothing that a program wrote --------------------------------------------------------------------------------------

SECRET = "hunter2-is-the-password"


def pod(**state: Any) -> Obj:
    status = {"name": "web", "image": "web:1", "restartCount": 3, **state}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u"},
        "spec": {"nodeName": "n", "restartPolicy": "Always"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [status],
        },
    }


@pytest.mark.parametrize(
    "one",
    [
        pod(state={"terminated": {"exitCode": 1, "reason": "Error", "message": SECRET}}),
        pod(
            state={"waiting": {"reason": "CrashLoopBackOff"}},
            lastState={"terminated": {"exitCode": 1, "reason": "Error", "message": SECRET}},
        ),
        pod(state={"waiting": {"reason": "PostStartHookError", "message": f"exec failed: {SECRET}"}}),
    ],
)
def test_what_a_container_wrote_stays_in_its_cluster(one: Obj) -> None:
    def logs(*_: str) -> tuple[str, ...]:
        raise AssertionError("no log is read")

    quoting = explain_pod(View(Cache(Mapper()), EPOCH), one)
    assert SECRET in str(quoting), "the case has such a text"
    found = explain_pod(View(Cache(Mapper()), EPOCH, quotes=False), one)
    assert found.blocked and SECRET not in str(found)


def test_the_output_of_a_probe_stays_in_its_cluster() -> None:
    cache, one = Cache(Mapper()), pod(state={"running": {}})
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "type": "Warning",
        "reason": "Unhealthy",
        "message": f"Readiness probe failed: {SECRET}",
        "involvedObject": {"kind": "Pod", "name": "web-1", "uid": "u"},
    }
    cache.put(ObjectRef("", "Event", "", "").group_kind, event)
    found = explain_pod(View(cache, EPOCH, quotes=False), one)
    assert found.cause.message == "Readiness probe failed"


# -- causes as rows ----------------------------------------------------------------------------------------------------


def causes(depth: int) -> st.SearchStrategy[Cause]:
    below = st.just(()) if not depth else st.lists(causes(depth - 1), max_size=2).map(tuple)
    text = st.text(max_size=20)
    return st.builds(Cause, text, text, text, next_action=text, because=below)


@settings(max_examples=60, deadline=None)
@given(st.lists(causes(3), max_size=2))
def test_causes_that_fit_come_back_as_they_were(some: list[Cause]) -> None:
    rows = rows_of(some)
    assert len(rows) <= MAX_CAUSES
    again = causes_from(json.loads(json.dumps(rows)))
    assert rows_of(again) == rows
    if len(rows) < MAX_CAUSES and not any("//" in str(one) for one in some):
        assert again == tuple(some)


def test_causes_are_bounded_and_without_credentials() -> None:
    deep = Cause("s", "t", "https://me:secret@git.test/a " + "x" * 5000)
    for _ in range(30):
        deep = Cause("s", "t", "m", because=(deep, deep))
    rows = rows_of((deep,) * 30)
    assert len(rows) == MAX_CAUSES and max(one["depth"] for one in rows) < MAX_DEPTH
    (row,) = rows_of((Cause("s", "t", "https://me:secret@git.test/a " + "x" * 5000),))
    assert len(row["message"]) == MAX_TEXT and "secret" not in row["message"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=5),
            st.dictionaries(
                st.sampled_from(("depth", "subject", "state", "message", "since", "nextAction")),
                st.one_of(st.integers(), st.text(max_size=8), st.none(), st.lists(st.integers(), max_size=2)),
            ),
        ),
        max_size=40,
    )
)
def test_any_rows_of_a_cluster_are_read_within_the_bounds(rows: list[Any]) -> None:
    def size(some: tuple[Cause, ...], depth: int = 0) -> int:
        assert depth <= MAX_CAUSES
        return sum(1 + size(one.because, depth + 1) for one in some)

    assert size(causes_from(rows)) <= MAX_CAUSES
    assert causes_from({"a": 1}) == () == causes_from(None)
