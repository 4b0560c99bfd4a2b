"""An adversary who may write Application objects plants an operation, a state or notes: the project judges them as the
spec. What he may not read is not even rendered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, MAPS, Simulation, config, job
from tests.gitops.behaviours.test_extensions import annotate
from tests.gitops.borders.test_conditions import HERE, project

from syncline.argo.parameters import PARAMETERS_MAP
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj, annotations_of, dig, meta

OWN = {"repoURL": "https://example.com/r.git", "path": ".", "targetRevision": "main"}
THEIRS = {"repoURL": "https://example.com/theirs.git", "path": "."}
START = "2026-01-01T00:00:00Z"


class Recorded:
    """Passes reads on and keeps which repositories were asked for."""

    def __init__(self, sim: Simulation) -> None:
        self.asked: list[str] = []
        self._read = sim.source.read
        sim.source.read = self.read  # type: ignore[method-assign]

    def read(self, sources: tuple[Any, ...], *rest: Any, **more: Any) -> Manifests:
        self.asked += [str(source.get("repoURL")) for source in sources]
        return self._read(sources, *rest, **more)


def tenant(*objects: Obj, **spec: Any) -> tuple[Simulation, Recorded]:
    sim = Simulation()
    project(sim, sourceRepos=["https://example.com/r.git"], **spec)
    sim.patch(f"{APPS}/app", {"spec": {"project": "tenant"}})
    sim.source.commit(*objects)
    sim.refresh()
    return sim, Recorded(sim)


def running(**state: Any) -> Obj:
    return {"operation": {"sync": {}}, "phase": "Running", "startedAt": START} | state


RETRIED = {"retry": {"limit": 3, "refresh": True}, "sync": {"source": THEIRS}}
PLANTED: dict[str, Obj] = {
    "source": {"operation": {"sync": {"source": THEIRS}}},
    "sources": {"operation": {"sync": {"sources": [OWN, THEIRS]}}},
    "one of sources": {"operation": {"sync": {"sources": [THEIRS]}}},
    "automated": {"operation": {"initiatedBy": {"automated": True}, "sync": {"source": THEIRS}}},
    "rollback": {"operation": {"sync": {"revision": "a" * 40, "source": THEIRS}}},
    "result": {
        "operation": {"sync": {}},
        "status": {"operationState": running(syncResult={"revision": "a" * 40, "source": THEIRS})},
    },
    "results": {
        "operation": {"sync": {}},
        "status": {
            "operationState": running(syncResult={"revision": "", "revisions": ["a", "b"], "sources": [OWN, THEIRS]})
        },
    },
    "state of a retry": {
        "operation": {"retry": {"limit": 3, "refresh": True}, "sync": {"source": THEIRS}},
        "status": {
            "operationState": running(
                finishedAt=START,
                retryCount=1,
                operation={"retry": {"limit": 3, "refresh": True}, "sync": {"source": THEIRS}},
            )
        },
    },
    "local manifests beside it": {"operation": {"sync": {"source": THEIRS, "manifests": ["{}"]}}},
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_source_that_an_operation_names_is_judged_and_not_read(planted: Obj) -> None:
    sim, reads = tenant(config("a"))
    sim.patch(f"{APPS}/app", planted)
    state = sim.finish(limit_s=120)
    assert (state["phase"], sim.maps()) == ("Error", [])
    assert "application repo https://example.com/theirs.git is not permitted in project 'tenant'" in state["message"]
    assert THEIRS["repoURL"] not in reads.asked


def test_a_source_of_an_operation_that_is_permitted_is_synced() -> None:
    sim, _ = tenant(config("a"))
    assert sim.sync({"source": OWN | {"path": "other"}}, limit_s=60)["phase"] == "Succeeded"


def test_a_spec_that_is_not_permitted_is_not_read_for_an_operation() -> None:
    sim, reads = tenant(config("a"))
    sim.patch(f"{APPS}/app", {"spec": {"source": THEIRS}, "operation": {"sync": {}}})
    assert sim.finish(limit_s=60)["phase"] == "Error"
    assert THEIRS["repoURL"] not in reads.asked


def test_a_spec_that_is_not_permitted_is_not_read_for_hooks_of_a_deletion() -> None:
    sim, reads = tenant(job("bye", hook="PreDelete"), config("a"))
    finalizers = ["pre-delete-finalizer.argocd.argoproj.io", "resources-finalizer.argocd.argoproj.io"]
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": finalizers}, "spec": {"source": THEIRS}})
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(60)
    assert THEIRS["repoURL"] not in reads.asked
    assert "theirs.git is not permitted in project 'tenant'" in sim.conditions()["DeletionError"]


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        (config("a") | {"metadata": {"name": "a", "namespace": "payments"}}, "namespace payments is not permitted"),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, "resource :Namespace is not permitted"),
    ],
)
def test_manifests_that_come_with_an_operation_are_judged_as_those_of_the_repository(manifest: Obj, told: str) -> None:
    sim, _ = tenant(config("a"))
    state = sim.sync({"manifests": [json.dumps(manifest)]}, limit_s=60)
    assert state["phase"] == "Failed" and told in state["message"]


def test_an_operation_in_a_namespace_that_the_project_does_not_list_is_refused() -> None:
    sim, reads = tenant(config("a"))
    sim.world.send("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "payments"}})
    enabled = {
        "kind": "ConfigMap",
        "metadata": {"name": PARAMETERS_MAP},
        "data": {"application.namespaces": "payments"},
    }
    sim.world.send("POST", "/api/v1/namespaces/argocd/configmaps", enabled)
    spec = {"project": "tenant", "source": OWN, "destination": {"server": HERE, "namespace": "default"}}
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "x"}, "spec": spec}
    path = APPS.replace("argocd", "payments")
    sim.world.send("POST", path, body | {"operation": {"sync": {}}})
    reads.asked.clear()
    sim.driver.advance(30)
    state = dig(sim.world.send("GET", f"{path}/x"), "status", "operationState", default={})
    assert state["phase"] == "Error" and "is not permitted to use project 'tenant'" in state["message"]
    assert reads.asked == [] and sim.maps() == []


def test_an_operation_written_by_hand_is_bound_to_the_windows_of_requests() -> None:
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    sim, _ = tenant(config("a"), syncWindows=[window])
    for automated in (True, False):
        sim.begin(initiatedBy={"automated": automated})
        sim.driver.advance(60)
        assert sim.maps() == [] and "blocked by sync window" in sim.state()["message"]


# -- what we write on an Application and read again ------------------------------------------------------------------


@pytest.mark.parametrize("noted", ["x/../y", "9" * 5000, "{second}.evil/name", "{second}." + "9" * 5000, "{second}.٣"])
def test_a_start_that_somebody_planted_is_no_part_of_a_name(noted: str) -> None:
    sim, _ = tenant(job("pre", hook="PreSync"), config("a"))
    second = str(int(sim.world.clock.now().timestamp()))
    annotate(sim, operation_started=noted.replace("{second}", second))
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"
    assert len(annotations_of(sim.app())["syncline.dev/operation-started"]) < 25


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        ({"limit": -1, "backoff": {"duration": "1s", "factor": 2, "maxDuration": "1m"}}, 2**62),
        ({"limit": -1, "backoff": {"duration": "1s", "factor": 2**62, "maxDuration": "1m"}}, 2**40),
        ({"limit": -1, "backoff": {"duration": "1s", "factor": 2}}, -(2**62)),
    ],
)
def test_a_planted_count_of_attempts_costs_no_time(policy: Obj, count: int) -> None:
    sim, _ = tenant(job("pre", code=1, hook="PreSync"))
    operation = {"retry": policy, "sync": {}}
    state = running(operation=operation, finishedAt=START, retryCount=count, message="x")
    sim.patch(f"{APPS}/app", {"operation": operation, "status": {"operationState": state}})
    sim.driver.advance(5)
    assert sim.state()["phase"] in ("Running", "Error", "Failed")


@pytest.mark.parametrize("duration", ["1ns", "0s", "-5s"])
def test_attempts_without_end_leave_time_for_others(duration: str) -> None:
    sim, _ = tenant(config("a") | {"metadata": {"name": "a", "namespace": "payments"}})
    sim.begin(retry={"limit": -1, "backoff": {"duration": duration, "factor": 1}})
    sim.driver.advance(30)
    assert 10 <= sim.state()["retryCount"] <= 31


def left_behind(sim: Simulation) -> list[Obj]:
    events = sim.world.send("GET", "/api/v1/namespaces/argocd/events")["items"]
    return [one for one in events if one["reason"] == "ObjectsLeftBehind"]


def test_a_deletion_takes_only_what_the_project_permits() -> None:
    sim, _ = tenant(config("a"))
    sim.world.send("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "payments"}})
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"
    path = MAPS.replace("default", "payments")
    stolen = config("prices")
    stolen["metadata"] = meta(stolen) | {
        "annotations": {"argocd.argoproj.io/tracking-id": "app:/ConfigMap:payments/prices"}
    }
    sim.world.send("POST", path, stolen)
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(60)
    assert sim.get(f"{APPS}/app") is None and sim.maps() == []
    assert "prices" in sim.names(path)
    (left,) = left_behind(sim)
    assert "1 object is not deleted" in left["message"] and "project tenant" in left["message"]
    assert "ConfigMap payments/prices" in left["message"] and left["type"] == "Warning" and left["count"] == 1


def test_many_objects_that_a_deletion_may_not_take_are_one_event() -> None:
    sim, _ = tenant(config("a"))
    sim.world.send("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "payments"}})
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"
    path = MAPS.replace("default", "payments")
    for number in range(40):
        name = f"prices-{number:02}-{'x' * 200}"
        mark = {"argocd.argoproj.io/tracking-id": f"app:/ConfigMap:payments/{name}"}
        sim.world.send("POST", path, config(name) | {"metadata": {"name": name, "annotations": mark}})
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}})
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(60)
    assert len(sim.names(path)) >= 40
    (left,) = left_behind(sim)
    assert "40 objects are not deleted" in left["message"] and "the first 3" in left["message"]
    assert len(left["message"]) <= 1024


def test_a_deletion_without_its_destination_says_what_it_leaves() -> None:
    sim, _ = tenant(config("a"))
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"
    gone = {"server": None, "name": "gone", "namespace": "default"}
    finalizers = ["resources-finalizer.argocd.argoproj.io"]
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": finalizers}, "spec": {"destination": gone}})
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(60)
    assert sim.get(f"{APPS}/app") is None and sim.maps() == ["a"]
    (left,) = left_behind(sim)
    assert "its destination is not there" in left["message"]


def test_a_deletion_without_its_project_deletes_nothing() -> None:
    sim, _ = tenant(config("a"))
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"
    finalizers = ["resources-finalizer.argocd.argoproj.io"]
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": finalizers}, "spec": {"project": "gone"}})
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(60)
    assert sim.maps() == ["a"]
    assert "project gone does not exist" in sim.conditions()["DeletionError"]
