"""``syncline rollout`` over HTTP: what is written, refused and printed; the status is written by the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.commanding import Shell
from tests.fleet.world import WORKS, config_map, managed_cluster, manifest_work
from tests.live import Served, served_cluster

from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.cli.fleet.rolling import Group, written
from syncline.fleet.pull import names
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE
from syncline.fleet.pull.order.steering import Steered
from syncline.kube.client import Request
from syncline.kube.kinds.applicationset import APPLICATION_SET, application_set_crd
from syncline.kube.kinds.argoproj import crds
from syncline.kube.kinds.fleetrollouts import fleet_rollout_crd
from syncline.kube.kinds.managedclusters import hub_cluster_crds
from syncline.kube.kinds.manifestworks import manifest_work_crd
from syncline.kube.objects import Obj

ROLLOUTS = "/apis/syncline.dev/v1alpha1/namespaces/default/fleetrollouts"
CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
SETS = "/apis/argoproj.io/v1alpha1/namespaces/default/applicationsets"
APPS = "/apis/argoproj.io/v1alpha1/namespaces/default/applications"
REVISIONS = "/apis/apps/v1/namespaces/{}/controllerrevisions"
MERGE = {"content-type": "application/merge-patch+json"}
OF_CLUSTER = {"argocd.argoproj.io/secret-type": "cluster"}
ALONE = {"name": "alone", "labels": {names.PULL: "true"}}
RELEASE, BEFORE = "3fa9c1e2ab44", "77aa01b2c3d4"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("hub"), ClusterSettings(nodes=0)) as found:
        with Connection(str(found.kubeconfig)) as link:
            kinds = (*hub_cluster_crds(), manifest_work_crd(), *crds())
            link.run(ensure_objects((fleet_rollout_crd(), application_set_crd(), *kinds)))
        for name, labels in (("c1", {}), ("c2", {CLUSTER_WAVE: "1"})):
            ask(found, "POST", CLUSTERS, managed_cluster(name, labels=labels))
            ready = {"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "r", "message": ""}
            since = {"lastTransitionTime": "2026-03-01T11:00:00Z"}
            more = [{**ready, "type": kind} for kind in ("HubAcceptedManagedCluster", "ManagedClusterJoined")]
            conditions = [one | since for one in (ready, *more)]
            ask(found, "PATCH", f"{CLUSTERS}/{name}/status", {"status": {"conditions": conditions}})
        for name in ("shop", "new"):
            make(found, name)
        ask(found, "POST", ROLLOUTS, rollout("shop"))
        status(found, "shop", GOING)
        yield found


@pytest.fixture
def shell(served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
    return Shell(capsys, [])


def ask(served: Served, verb: str, path: str, body: Any = None) -> Obj:
    with Connection(str(served.kubeconfig)) as link:
        headers = MERGE if verb == "PATCH" else {}
        found: Obj = link.ask(Request(verb, path, headers=headers, body=body))
        return found


def rollout(name: str) -> Obj:
    spec = {"of": {"kind": "ApplicationSet", "name": name}}
    kind = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetRollout"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def status(served: Served, name: str, value: Obj) -> None:
    ask(served, "PATCH", f"{ROLLOUTS}/{name}/status", {"status": value})


GOING: Obj = {
    "release": RELEASE,
    "phase": "Progressing",
    "message": "wave 1: 0 of 1 done",
    "progress": "1/2",
    "waves": [{"wave": 0, "total": 1, "done": 1}, {"wave": 1, "total": 1, "pending": 1}],
    "clusters": [{"cluster": "c2", "application": "shop-c2", "wave": 1, "state": "Waiting", "why": "window"}],
    "history": [{"release": RELEASE, "startedAt": "2026-03-01T12:00:00Z"}],
}


def make(served: Served, name: str) -> None:
    """A set with an Application for each of two clusters; the first has proven an earlier release of ``shop``."""
    template: Obj = {"metadata": {"name": "x"}, "spec": {"project": "default", "destination": {}}}
    spec = {"generators": [], "template": template}
    kind = {"apiVersion": APPLICATION_SET.api_version, "kind": APPLICATION_SET.kind}
    owner = ask(served, "POST", SETS, {**kind, "metadata": {"name": name}, "spec": spec})
    reference = {**kind, "name": name, "uid": owner["metadata"]["uid"], "controller": True}
    for cluster in ("c1", "c2"):
        metadata = {
            "name": f"{name}-{cluster}",
            "labels": {names.PULL: "true"},
            "annotations": {names.CLUSTER: cluster},
            "ownerReferences": [reference],
        }
        source = {"repoURL": "https://git.example.org/shop.git", "path": "."}
        of = {"project": "default", "source": source, "destination": {"name": cluster, "namespace": "shop"}}
        app: Obj = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": of}
        made = ask(served, "POST", APPS, app)
        if (name, cluster) == ("shop", "c1"):
            prove(served, made)


def prove(served: Served, app: Obj) -> None:
    ask(served, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}})
    work = ask(served, "POST", WORKS.format("c1"), manifest_work("c1", names.work_name(app), config_map("x")))
    owner = {key: work[key] for key in ("apiVersion", "kind")}
    reference = {**owner, "name": work["metadata"]["name"], "uid": work["metadata"]["uid"]}
    metadata = {"name": "r1", "ownerReferences": [reference]}
    data = {"groupRelease": BEFORE, "release": "a", "manifests": []}
    kind = {"apiVersion": "apps/v1", "kind": "ControllerRevision"}
    ask(served, "POST", REVISIONS.format("c1"), {**kind, "metadata": metadata, "revision": 1, "data": data})


def spec_of(served: Served, name: str) -> Obj:
    found: Obj = ask(served, "GET", f"{ROLLOUTS}/{name}")["spec"]
    return found


def test_a_roll_out_is_listed_shown_and_has_a_history(shell: Shell) -> None:
    rows = [line.split()[:4] for line in shell("rollout", "list", "-A").splitlines()]
    assert ["default", "shop", "appset/shop", "Progressing"] in rows
    assert "fleetrollout.syncline.dev/shop" in shell("rollout", "list", "-o", "name").splitlines()
    assert "1      c2        shop-c2       Waiting" in shell("rollout", "get", "shop")
    assert shell.json("rollout", "get", "appset/default/shop")["status"]["release"] == RELEASE
    assert shell.json("rollout", "history", "rollout/shop")[0]["release"] == RELEASE


def test_stop_and_resume_are_written_once_and_say_what_follows(served: Served, shell: Shell) -> None:
    said = shell("rollout", "stop", "shop", "--reason", "slow")
    assert said == "rollout/shop stopped\nnext: wave 1 (1 cluster) does not begin\n"
    stopped = spec_of(served, "shop")["stopped"]
    assert stopped["reason"] == "slow" and stopped["by"]
    before = ask(served, "GET", f"{ROLLOUTS}/shop")["metadata"]["resourceVersion"]
    assert "is stopped already since" in shell("rollout", "stop", "shop", "--reason", "other")
    assert ask(served, "GET", f"{ROLLOUTS}/shop")["metadata"]["resourceVersion"] == before
    assert "rollout/shop goes on" in shell("rollout", "resume", "shop")
    assert "stopped" not in spec_of(served, "shop")


def test_stop_makes_the_roll_out_of_a_set_that_has_no_order_yet(served: Served, shell: Shell) -> None:
    assert "ApplicationSet default/new has no FleetRollout: no order" in shell("rollout", "get", "new", code=1)
    assert "rollout/new stopped" in shell("rollout", "stop", "new")
    assert spec_of(served, "new")["of"] == {"kind": "ApplicationSet", "name": "new"}
    make(served, "gone")
    alone = ask(served, "GET", f"{APPS}/gone-c1")
    ask(served, "POST", APPS, {**alone, "metadata": {**ALONE, "annotations": alone["metadata"]["annotations"]}})
    shell("rollout", "stop", "app/alone")
    assert spec_of(served, "alone.app")["of"] == {"kind": "Application", "name": "alone"}
    for name, kind in (("new", "ApplicationSet"), ("alone.app", "Application")):
        (owner,) = ask(served, "GET", f"{ROLLOUTS}/{name}")["metadata"]["ownerReferences"]
        assert (owner["kind"], f"{owner['name']}.") == (kind, f"{name.removesuffix('.app')}."), "it goes with its owner"


def test_a_stop_that_holds_nothing_back_yet_says_so(served: Served, shell: Shell) -> None:
    template: Obj = {"metadata": {"name": "x"}, "spec": {"project": "default", "destination": {}}}
    kind = {"apiVersion": APPLICATION_SET.api_version, "kind": APPLICATION_SET.kind}
    spec = {"generators": [], "template": template}
    ask(served, "POST", SETS, {**kind, "metadata": {"name": "empty"}, "spec": spec})
    said = shell("rollout", "stop", "empty")
    assert "next: no cluster pulls an Application of it now; one that comes does not begin" in said


def test_a_roll_back_can_be_taken_back(served: Served, shell: Shell) -> None:
    ask(served, "POST", ROLLOUTS, rollout("undo"))
    status(served, "undo", {"release": RELEASE, "phase": "RolledBack", "clusters": []})
    ask(served, "PATCH", f"{ROLLOUTS}/undo", {"spec": {"rollBack": {"from": RELEASE}}})
    said = shell("rollout", "roll-back", "undo", "--undo")
    assert f"rollout/undo goes forward to release {RELEASE} again" in said
    assert "rollBack" not in spec_of(served, "undo")


def test_a_list_of_one_namespace_says_which(shell: Shell) -> None:
    said = shell("rollout", "list", "-n", "kube-system")
    assert said == "No FleetRollouts found in namespace kube-system; -A lists those of all namespaces.\n"


def test_a_cluster_is_skipped_and_included_again(served: Served, shell: Shell) -> None:
    assert f"rollout/shop passes over cluster c2 in release {RELEASE}" in shell("rollout", "skip", "shop", "c2")
    (entry,) = spec_of(served, "shop")["skip"]
    assert (entry["cluster"], entry["release"]) == ("c2", RELEASE)
    assert "includes cluster c2 again" in shell("rollout", "unskip", "shop", "c2")
    assert "skip" not in spec_of(served, "shop")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["skip", "shop", "gcp-1"], 1, "shop: cluster gcp-1 is not in the group; its clusters are c1, c2"),
        (["get", "shpo"], 1, "ApplicationSet shpo does not exist; `syncline rollout list -A` shows the roll-outs."),
        (["get", "a/b/c/d"], 2, "names no roll-out; write SET, app/NAME or NAMESPACE/SET"),
        (["get", "shop", "--watch", "-o", "json"], 2, "--watch prints lines"),
        (["get", "shop", "--watch", "--timeout", "-5"], 2, "-5 is not in the range x>=0"),
        (["get", "a?b=c"], 2, "'a?b=c' is no name: "),
        (["get", "../shop"], 2, "'..' is no name: "),
        (["get", "shop", "-n", "a b"], 2, "'a b' is no name: "),
        (["get", "shop", "-n", "other"], 1, "namespace default has a roll-out of that name: -n default"),
        (["stop", "app/shop-c1"], 1, "is of ApplicationSet shop, whose roll-out orders it: write shop"),
        (["stop", "shop", "--reason", "x" * 1025], 2, "it has 1025 characters; at most 1024 are kept"),
        (["roll-back", "shop"], 2, "nothing was rolled back: add --yes"),
    ],
    ids=[
        "skip other",
        "unknown",
        "usage",
        "watch as json",
        "watch before now",
        "a query",
        "a path",
        "no namespace",
        "another namespace",
        "of a set",
        "a novel",
        "roll back unasked",
    ],
)
def test_nonsense_is_refused_with_what_to_write(shell: Shell, words: list[str], code: int, text: str) -> None:
    assert text in shell("rollout", *words, code=code)


def test_roll_back_shows_what_each_cluster_goes_back_to(served: Served, shell: Shell) -> None:
    said = shell("rollout", "roll-back", "shop", "--yes", "--reason", "wrong")
    assert f"c1        shop-c1       {RELEASE}   {BEFORE}" in said
    assert "c2        -             -              -              does not carry the release" in said
    assert "next: c1 goes back, the last wave first, by the same gates" in said
    assert spec_of(served, "shop")["rollBack"]["from"] == RELEASE
    assert f"rolls back from release {RELEASE} already" in shell("rollout", "roll-back", "shop")
    ask(served, "PATCH", f"{ROLLOUTS}/shop", {"spec": {"rollBack": None}})


def test_roll_back_is_refused_where_nothing_is_proven_before(served: Served, shell: Shell) -> None:
    ask(served, "POST", ROLLOUTS, rollout("bare"))
    status(served, "bare", {"release": BEFORE, "clusters": []})
    said = shell("rollout", "roll-back", "bare", "--yes", code=1)
    assert f"bare: nothing is proven before release {BEFORE}" in said and "Revert the change in Git" in said


@pytest.mark.parametrize(
    ("phase", "code"), [("Done", 0), ("RolledBack", 0), ("Failed", 1), ("Waiting", 3), ("Stopped", 3)]
)
def test_a_watch_ends_with_the_roll_out(served: Served, shell: Shell, phase: str, code: int) -> None:
    name = f"watch-{phase.lower()}"
    ask(served, "POST", ROLLOUTS, rollout(name))
    status(served, name, {"release": RELEASE, "phase": phase, "message": "here"})
    said = shell("rollout", "get", name, "--watch", "--timeout", "1", code=code)
    assert f"{phase}: here" in said


def test_a_watch_begins_before_the_hub_has_put_a_set_in_order(served: Served, shell: Shell) -> None:
    make(served, "early")
    said = shell("rollout", "get", "early", "--watch", "--timeout", "1", code=3)
    assert "waiting for the hub to put early in order" in said and "early is not done: no order is in force" in said


def test_the_order_ahead_is_planned_from_what_the_hub_holds(served: Served, shell: Shell) -> None:
    make(served, "ahead")
    said = shell("plan", "rollout/default/ahead", code=2)
    assert "Order over clusters of default/ahead, in force: " in said
    assert "+ c1  ahead-c1  (none) → " in said and "begins now" in said
    assert "waits: wave 0 comes first: ahead-c1 on cluster c1 has not proved this release" in said
    document = json.loads(shell("plan", "rollout/ahead", "-N", "default", "-o", "json", code=2))
    assert [(one["cluster"], one["wave"], one["beginsNow"]) for one in document["clusters"]] == [
        ("c1", 0, True),
        ("c2", 1, False),
    ]
    shell("rollout", "stop", "ahead")
    assert "the roll-out is stopped by" in shell("plan", "rollout/ahead", "-N", "default", code=3)
    assert "default/nope has no order over clusters in force" in shell("plan", "rollout/default/nope", code=1)
    assert "give the set: plan appset/NAME -f FILE" in shell("plan", "rollout/ahead", "--revision", "v2", code=2)


def test_explain_leads_from_the_cluster_to_the_roll_out_that_it_waits_for(served: Served, shell: Shell) -> None:
    ask(served, "POST", ROLLOUTS, rollout("waits"))
    make(served, "waits")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cluster", "labels": OF_CLUSTER}}
    secret["stringData"] = {"name": "waits-c2", "config": "waits-c2-word"}
    ask(served, "POST", "/api/v1/namespaces/default/secrets", secret)
    why = "wave 0 comes first"
    entry = {"cluster": "c2", "application": "waits-c2", "wave": 1, "state": "Waiting", "why": why}
    status(
        served,
        "waits",
        {"release": RELEASE, "phase": "Waiting", "message": "waits-c2 and waits-c2-word wait", "clusters": [entry]},
    )
    assert f"  rollout waits Waiting: waits-c2 (wave 1): {why}" in shell("explain", "cluster/c2", code=3)
    said = shell("explain", "app/waits-c2", "-N", "default")
    assert f"Application default/waits-c2 Held: in cluster c2: the order over clusters holds it back: {why}" in said
    assert f"    cluster c2 (wave 1) Waiting: {why}" in said
    said = shell("explain", "rollout/waits", "-N", "default")
    assert "FleetRollout default/waits Waiting: waits-c2 and *** wait" in said, "names of clusters are no secrets"
    assert "Wave:          1" in shell("cluster", "get", "c2")


def test_a_write_that_comes_between_is_read_and_asked_again(served: Served) -> None:
    ask(served, "POST", ROLLOUTS, rollout("busy"))
    seen = []

    def change(found: Obj) -> Steered:
        seen.append(found["spec"])
        if len(seen) == 1:
            ask(served, "PATCH", f"{ROLLOUTS}/busy", {"spec": {"skip": [{"cluster": "c1", "release": RELEASE}]}})
        return Steered({**found["spec"], "stopped": {"reason": "r"}}, "stopped")

    with Connection(str(served.kubeconfig)) as link:
        before = ask(served, "GET", f"{ROLLOUTS}/busy")
        written(link, Group("default", APPLICATION_SET, "busy", before), change)
    spec = spec_of(served, "busy")
    assert len(seen) == 2 and spec["stopped"] == {"reason": "r"} and spec["skip"][0]["cluster"] == "c1"
