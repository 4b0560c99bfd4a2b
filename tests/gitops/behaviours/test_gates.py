"""Gates between waves: operators with their definitions and webhooks, storage classes, waits in place of Jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.assembly.test_forecast import plan
from tests.gitops.behaviours.sim import APPS, JOBS, PROJECTS, Simulation, annotated, config, rows
from tests.gitops.behaviours.test_extensions import annotate, ours

from syncline.assembly.inspection.preview import observed_application
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.cli.views.cause import describe_cause
from syncline.clustergroup.defaults import SEQUENCE_IMAGE
from syncline.clustergroup.objects.subscriptions import waiting_script
from syncline.control.executor import run_in_place
from syncline.explain.application import explain_application
from syncline.explain.view import View
from syncline.gitops.gates.checks import GATES, Hidden
from syncline.gitops.gates.sequence import Awaited, awaited_by
from syncline.kube.kinds.operatorlifecycle import service_version_crd, subscription_crd
from syncline.kube.objects import Obj, ObjectRef, dig

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OLM = "/apis/operators.coreos.com/v1alpha1/namespaces/default"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CHART: Obj = {"source": {"repoURL": "https://charts.example.com", "chart": "clustergroup", "targetRevision": "0.9.1"}}
CLASS: Obj = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "rbd"},
    "provisioner": "example.com/rbd",
}
READY: Obj = {
    "installedCSV": "odf.v1",
    "currentCSV": "odf.v1",
    "state": "AtLatestKnown",
    "lastUpdated": "2026-01-01T00:00:00Z",
}
HEALTHY: Obj = READY | {
    "conditions": [{"type": "CatalogSourcesUnhealthy", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
}


def subscription(name: str = "odf", wave: str = "5", **spec: Any) -> Obj:
    body = {"channel": "stable", "name": name, "source": "s", "sourceNamespace": "m", **spec}
    made = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": name}}
    return annotated(made | {"spec": body}, sync_wave=wave)


def csv(phase: str, **spec: Any) -> Obj:
    strategy = {"strategy": "deployment", "spec": {"deployments": []}}
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "odf.v1"},
        "spec": {"displayName": "odf", "install": strategy, **spec},
        "status": {"phase": phase, "reason": "InstallWaiting"},
    }


def sequence_job(name: str = "odf-sequencejob", wave: str = "5", script: str = "") -> Obj:
    text = script or waiting_script({"resourceType": "sc", "resourceName": "rbd"})
    container = {"name": name, "image": SEQUENCE_IMAGE, "command": ["/bin/bash", "-c", text]}
    spec = {"template": {"spec": {"restartPolicy": "OnFailure", "containers": [container]}}}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    return annotated(made, hook="Sync", sync_wave=wave)


def staged(*objects: Obj, group: bool = True, **spec: Any) -> Simulation:
    """An Application of these objects in a cluster that serves OLM's kinds, whose manager does not run."""
    sim = Simulation(*objects, spec=(CHART if group else {}) | spec)
    for definition in (subscription_crd(), service_version_crd()):
        sim.world.send("POST", CRDS, definition)
    sim.driver.advance(5)
    return sim


def settle_operator(sim: Simulation, phase: str = "Succeeded", **spec: Any) -> None:
    """What OLM does: the Subscription has its version, and the version a phase."""
    made = csv(phase, **spec)
    if sim.get(f"{OLM}/clusterserviceversions/odf.v1") is None:
        sim.world.send("POST", f"{OLM}/clusterserviceversions", made)
    sim.patch(f"{OLM}/clusterserviceversions/odf.v1/status", {"status": made["status"]})
    sim.patch(f"{OLM}/subscriptions/odf/status", {"status": HEALTHY})


# -- what a gate looks at ----------------------------------------------------------------------------------------------


def _objects(*pairs: tuple[str, Obj]) -> dict[ObjectRef, Obj]:
    return {ObjectRef.parse(ref): obj for ref, obj in pairs}


SUB = ("operators.coreos.com/Subscription/ns/odf", {"spec": {}, "status": READY})
CSV = "operators.coreos.com/ClusterServiceVersion/ns/odf.v1"
OWNED: Obj = {
    "customresourcedefinitions": {"owned": [{"name": "a.example.com"}]},
    "webhookdefinitions": [{"deploymentName": "odf.manager"}],
}
DONE = (CSV, {"status": {"phase": "Succeeded"}, "spec": OWNED})
CRD = (
    "apiextensions.k8s.io/CustomResourceDefinition//a.example.com",
    {"status": {"conditions": [{"type": "Established", "status": "True"}]}},
)
NEW = (CRD[0], {})
UNREADY = "Service ns/odf-manager-service of a webhook has no ready pod"
SERVICE = ("/Service/ns/odf-manager-service", {})
SERVES = ("/Endpoints/ns/odf-manager-service", {"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]})
HOOKS = ("admissionregistration.k8s.io/MutatingWebhookConfiguration//odf", {"webhooks": [{"clientConfig": {}}]})
PENDING: Obj = {"conditions": [{"type": "InstallPlanPending", "status": "True", "reason": "RequiresApproval"}]}
UNSOLVED: Obj = {"conditions": [{"type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable"}]}
MANUAL: Obj = {"spec": {"installPlanApproval": "Manual"}, "status": READY | {"currentCSV": "odf.v2"}}
SERVICED: Obj = {"clientConfig": {"caBundle": "eA==", "service": {"namespace": "ns", "name": "odf-manager-service"}}}


@pytest.mark.parametrize(
    ("gate", "name", "there", "problem"),
    [
        ("csv-succeeded", "odf", (), "Subscription ns/odf is not there"),
        ("csv-succeeded", "odf", ((SUB[0], {}),), "Subscription ns/odf has no installed version yet"),
        (
            "csv-succeeded",
            "odf",
            ((SUB[0], {"status": PENDING | {"installPlanRef": {"name": "install-x"}}}),),
            "Subscription ns/odf has no installed version yet: InstallPlan install-x waits for approval",
        ),
        (
            "csv-succeeded",
            "odf",
            ((SUB[0], {"status": UNSOLVED}),),
            "Subscription ns/odf has no installed version yet: ResolutionFailed (ConstraintsNotSatisfiable)",
        ),
        (
            "csv-succeeded",
            "odf",
            ((SUB[0], {"status": READY | {"currentCSV": "odf.v2"}}),),
            "Subscription ns/odf: odf.v2 is to replace odf.v1",
        ),
        ("csv-succeeded", "odf", (SUB,), "ClusterServiceVersion ns/odf.v1 is not there"),
        (
            "csv-succeeded",
            "odf",
            (SUB, (CSV, {"status": {"phase": "Installing", "reason": "InstallWaiting"}})),
            "ClusterServiceVersion ns/odf.v1 is Installing (InstallWaiting)",
        ),
        ("csv-succeeded", "odf", (SUB, DONE), "CustomResourceDefinition a.example.com is not there"),
        ("csv-succeeded", "odf", (SUB, DONE, NEW), "CustomResourceDefinition a.example.com is not established"),
        ("csv-succeeded", "odf", (SUB, DONE, CRD), "Service ns/odf-manager-service of a webhook is not there"),
        ("csv-succeeded", "odf", (SUB, DONE, CRD, SERVICE), UNREADY),
        ("csv-succeeded", "odf", (SUB, DONE, CRD, SERVICE, SERVES), ""),
        (
            "csv-succeeded",
            "odf",
            ((SUB[0], MANUAL), (CSV, {"status": {"phase": "Succeeded"}})),
            "",
        ),
        ("crd-established", "a.example.com", (CRD,), ""),
        ("crd-established", "b.example.com", (CRD,), "CustomResourceDefinition b.example.com is not there"),
        ("storageclass-present", "rbd", (), "StorageClass rbd is not there"),
        ("storageclass-present", "rbd", (("storage.k8s.io/StorageClass//rbd", {}),), ""),
        ("webhook-serving", "odf", (), "no webhook configuration is named odf"),
        ("webhook-serving", "odf", (HOOKS,), ""),
        (
            "webhook-serving",
            "odf",
            ((HOOKS[0], {"webhooks": [{"clientConfig": {"service": {"namespace": "ns", "name": "x"}}}]}),),
            "webhook configuration odf has no CA bundle yet",
        ),
        ("webhook-serving", "odf", ((HOOKS[0], {"webhooks": [SERVICED]}), SERVICE, SERVES), ""),
        (
            "webhook-serving",
            "odf",
            ((HOOKS[0], {"webhooks": [SERVICED]}), SERVICE),
            "Service ns/odf-manager-service of a webhook has no ready pod",
        ),
    ],
)  # fmt: skip
def test_a_gate_says_what_is_missing_and_opens_when_nothing_is(
    gate: str, name: str, there: tuple[tuple[str, Obj], ...], problem: str
) -> None:
    subject = GATES[gate].named(name, "ns")[0]
    assert GATES[gate].problem(subject, _objects(*there).get) == problem


def test_an_operator_with_too_many_definitions_keeps_its_gate_closed() -> None:
    owned = {"customresourcedefinitions": {"owned": [{"name": f"c{n}.example.com"} for n in range(201)]}}
    there = _objects(SUB, (CSV, {"status": {"phase": "Succeeded"}, "spec": owned}))
    problem = GATES["csv-succeeded"].problem(ObjectRef.parse(SUB[0]), there.get)
    assert problem == "ClusterServiceVersion ns/odf.v1 owns more than 200 definitions and webhooks"


def changed(at: str, **status: str) -> Obj:
    """A Subscription that is up to date, and whose channel was written at a time."""
    mine = {"manager": "gitops", "time": at, "fieldsV1": {"f:spec": {"f:channel": {}}}}
    theirs = {
        "manager": "catalog",
        "time": "2026-01-01T09:00:00Z",
        "subresource": "status",
        "fieldsV1": {"f:status": {}},
    }
    metadata = {"name": "odf", "namespace": "ns", "managedFields": [mine, theirs]}
    return {"metadata": metadata, "spec": {"channel": "new"}, "status": READY | status}


@pytest.mark.parametrize(
    ("answered", "second", "closed"),
    [
        ("2026-01-01T00:00:00Z", 0, True),
        ("2026-01-01T10:00:00Z", 29, True),
        ("2026-01-01T10:00:01Z", 2, False),
        ("2026-01-01T00:00:00Z", 30, False),
    ],
)
def test_a_changed_subscription_is_answered_before_its_installed_version_counts(
    answered: str, second: int, closed: bool
) -> None:
    subscription = changed("2026-01-01T10:00:00Z", lastUpdated=answered)
    there = _objects((SUB[0], subscription), (CSV, {"status": {"phase": "Succeeded"}, "spec": {}}))
    now = datetime(2026, 1, 1, 10, 0, second, tzinfo=UTC)
    problem = GATES["csv-succeeded"].problem(ObjectRef.parse(SUB[0]), there.get, now)
    said = (
        "Subscription ns/odf was changed, and is not answered yet; without an answer odf.v1 counts at "
        "2026-01-01T10:00:30Z"
    )
    assert problem == (said if closed else "")


def test_what_may_not_be_read_is_not_absent() -> None:
    def known(_ref: ObjectRef) -> Obj | None:
        raise Hidden("it may not be read: forbidden")

    with pytest.raises(Hidden):
        GATES["storageclass-present"].problem(ObjectRef("storage.k8s.io", "StorageClass", "", "rbd"), known)


# -- in wait-for -------------------------------------------------------------------------------------------------------


def test_an_object_is_applied_once_its_gate_is_open() -> None:
    wanted = json.dumps({"gate": "storageclass-present", "name": "rbd"})
    sim = Simulation(ours(config("a"), wait_for=wanted))
    sim.begin()
    sim.driver.advance(60)
    said = "/ConfigMap/default/a waits: gate storageclass-present: StorageClass rbd is not there"
    assert (sim.maps(), sim.state()["message"]) == ([], said)
    sim.world.send("POST", CLASSES, CLASS)
    assert sim.finish(limit_s=30)["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"gate": "moon-full", "name": "a"}, "gate: found 'moon-full'; allowed are crd-established, csv-succeeded"),
        ({"gate": "crd-established"}, "write {gate: crd-established, name: NAME}"),
        (
            {"gate": "crd-established", "name": "a", "cel": "true"},
            "unknown field 'cel' of a gate; allowed are deadline",
        ),
    ],
)
def test_a_gate_that_cannot_be_read_applies_nothing(entry: Obj, said: str) -> None:
    sim = Simulation(ours(config("a"), wait_for=json.dumps(entry)))
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert said in state["message"]


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        ({"gate": "storageclass-present", "name": "rbd"}, "StorageClass.storage.k8s.io rbd"),
        ({"gate": "csv-succeeded", "name": "odf", "namespace": "kube-system"}, "Subscription.operators.coreos.com"),
        ({"gate": "webhook-serving", "name": "odf"}, "ValidatingWebhookConfiguration.admissionregistration.k8s.io odf"),
    ],
)
def test_a_project_refuses_gates_on_what_it_does_not_permit(entry: Obj, refused: str) -> None:
    sim = staged(ours(config("a"), wait_for=json.dumps(entry)), group=False)
    limits = {"clusterResourceWhitelist": [], "destinations": [{"server": "*", "namespace": "default"}]}
    sim.patch(f"{PROJECTS}/default", {"spec": limits})
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert f"project default does not permit {refused}" in state["message"]


# -- after the wave of a Subscription ----------------------------------------------------------------------------------


def test_a_cluster_group_holds_what_comes_after_an_operator_until_its_version_succeeded() -> None:
    sim = staged(subscription(), config("after", sync_wave="10"))
    sim.begin()
    sim.driver.advance(30)
    settle_operator(sim, "Installing")
    sim.driver.advance(30)
    who = "operators.coreos.com/Subscription/default/odf holds what comes after wave 5"
    said = f"{who}: gate csv-succeeded: ClusterServiceVersion default/odf.v1 is Installing (InstallWaiting)"
    assert (sim.maps(), sim.state()["message"]) == ([], said)
    settle_operator(sim)
    assert sim.finish(limit_s=30)["phase"] == "Succeeded"
    assert sim.maps() == ["after"]


DEFAULTS = [(False, "", False), (False, "csv-succeeded", True), (True, "none", False)]


@pytest.mark.parametrize(("group", "gate", "holds"), DEFAULTS)
def test_the_gate_of_an_operator_is_the_default_in_cluster_groups_only(group: bool, gate: str, holds: bool) -> None:
    one = ours(subscription(), gate=gate) if gate else subscription()
    sim = staged(one, config("after", sync_wave="10"), group=group)
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim, "Installing")
    sim.driver.advance(30)
    assert sim.maps() == ([] if holds else ["after"])


@pytest.mark.parametrize(("then", "phase", "maps"), [("fail", "Failed", []), ("continue", "Succeeded", ["after"])])
def test_a_deadline_of_the_subscription_ends_its_gate(then: str, phase: str, maps: list[str]) -> None:
    one = ours(subscription(), gate_deadline="2m", on_deadline=then)
    sim = staged(one, config("after", sync_wave="10"))
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim, "Installing")
    state = sim.finish(limit_s=300)
    assert (state["phase"], sim.maps()) == (phase, maps)
    if then == "fail":
        assert (
            "waited for 120 s: gate csv-succeeded: ClusterServiceVersion" in rows(state)["Subscription/odf"]["message"]
        )


def test_an_unknown_gate_of_a_subscription_applies_nothing() -> None:
    sim = staged(ours(subscription(), gate="moon"), config("after"))
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert "syncline.dev/gate: found 'moon'; allowed are csv-succeeded, none" in state["message"]


# -- in place of a Job -------------------------------------------------------------------------------------------------


def waited(sim: Simulation) -> None:
    """The wait replaces the Job: nothing runs, and the rest comes once the object is there."""
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim)
    sim.driver.advance(60)
    assert (sim.maps(), sim.names(JOBS)) == ([], [])
    who = "batch/Job/default/odf-sequencejob holds what comes after wave 5"
    assert sim.state()["message"] == f"{who}: storage.k8s.io/StorageClass//rbd is not there"
    sim.world.send("POST", CLASSES, CLASS)
    assert sim.finish(limit_s=30)["phase"] == "Succeeded"
    assert (sim.maps(), sim.names(JOBS)) == (["after"], [])


def test_b29_a_default_sequence_job_becomes_a_wait_without_a_pod_by_its_subscription() -> None:
    waited(staged(ours(subscription(), sequence_job="wait"), sequence_job(), config("after", sync_wave="10")))


def test_a_default_sequence_job_becomes_a_wait_without_a_pod_by_its_application() -> None:
    sim = staged(subscription(), sequence_job(), config("after", sync_wave="10"))
    annotate(sim, sequence_job="wait")
    waited(sim)


def test_a_wait_in_the_last_wave_holds_the_end_of_the_sync_as_its_job_would() -> None:
    sim = staged(ours(subscription(), sequence_job="wait"), sequence_job())
    sim.begin()
    sim.driver.advance(60)
    assert sim.state()["message"].startswith("batch/Job/default/odf-sequencejob holds the end of the sync")
    sim.world.send("POST", CLASSES, CLASS)
    assert sim.finish(limit_s=30)["phase"] == "Succeeded"


def test_a_wait_ends_at_its_deadline_with_who_waited_for_what() -> None:
    one = ours(subscription(), sequence_job="wait", gate_deadline="2m", on_deadline="fail")
    sim = staged(one, sequence_job(), config("after", sync_wave="10"))
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim)
    state = sim.finish(limit_s=300)
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert "odf-sequencejob waited for 120 s: storage.k8s.io/StorageClass//rbd is not there" in str(state)


@pytest.mark.parametrize(
    "one",
    [
        sequence_job(script="while [ 1 ]; do oc get sc rbd && break; sleep 5; done"),
        sequence_job() | {"metadata": sequence_job()["metadata"] | {"name": "another"}},
    ],
    ids=["own-command", "not-of-the-subscription"],
)
def test_b25_a_job_with_its_own_command_stays_a_job(one: Obj) -> None:
    sim = staged(ours(subscription(), sequence_job="wait"), one, config("after", sync_wave="10"))
    sim.begin()
    sim.driver.advance(10)
    assert sim.names(JOBS) == [one["metadata"]["name"]]


def test_a_project_refuses_a_wait_for_what_it_does_not_permit() -> None:
    sim = staged(ours(subscription(), sequence_job="wait"), sequence_job(), config("after", sync_wave="10"))
    sim.patch(f"{PROJECTS}/default", {"spec": {"clusterResourceWhitelist": []}})
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert (
        "syncline.dev/sequence-job: project default does not permit StorageClass.storage.k8s.io rbd" in state["message"]
    )


def test_a_resource_that_the_api_does_not_serve_yet_is_waited_for() -> None:
    script = waiting_script({"resourceType": "cephclusters.ceph.rook.io", "resourceName": "c"})
    sim = staged(ours(subscription(), sequence_job="wait"), sequence_job(script=script), config("z", sync_wave="10"))
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim)
    sim.driver.advance(40)
    assert sim.state()["message"].endswith("the API serves no resource cephclusters.ceph.rook.io yet")


@pytest.mark.parametrize(
    ("script", "awaited"),
    [
        (waiting_script({"resourceType": "sc", "resourceName": "rbd"}), Awaited("sc", "rbd")),
        (
            waiting_script({"resourceType": "deploy", "resourceName": "a", "resourceNamespace": "ns"}),
            Awaited("deploy", "a", "ns"),
        ),
        ("until kubectl get crd/a.example.com; do sleep 1; done", Awaited("crd", "a.example.com")),
        ("oc get pods -o yaml", None),
        ("rm -rf /", None),
    ],
)
def test_the_object_of_a_loop_is_read_from_the_command(script: str, awaited: Awaited | None) -> None:
    assert awaited_by(sequence_job(script=script)) == awaited


# -- what is said of it ------------------------------------------------------------------------------------------------


def test_the_plan_names_gates_waits_and_what_jobs_look_for() -> None:
    loop = sequence_job("mine", script="while [ 1 ]; do oc get sc other && break; sleep 5; done")
    one = ours(subscription(), sequence_job="wait")
    sim = staged(one, sequence_job(), loop, config("after", sync_wave="10"))
    (first, _last) = plan(sim).groups
    assert first.limits == (
        "Subscription default/odf: gate csv-succeeded (now: gate csv-succeeded: Subscription default/odf is not there) "
        "(Subscription odf)",
        "StorageClass rbd: it is there, at most 60m (now: storage.k8s.io/StorageClass//rbd is not there) "
        "(Job odf-sequencejob, without a pod)",
        "Job mine, which looks for sc other in a loop without an end",
    )


def test_a_closed_gate_is_explained_with_who_holds_what_since_when_and_until_when() -> None:
    one = ours(subscription(), sequence_job="wait")
    sim = staged(one, sequence_job(), config("after", sync_wave="10"))
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim)
    sim.driver.advance(50)
    settings, now = sim.world.settings, sim.world.clock.now()
    cache = run_in_place(snapshot_of_cluster(application_indices(settings)), sim.world.admin).cache
    app = ObjectRef("argoproj.io", "Application", "argocd", "app")
    observed = observed_application(cache, app, sim.source, settings, now)
    assert observed is not None
    lines = [
        line.strip() for line in describe_cause(explain_application(View(cache, now), observed).cause, now).splitlines()
    ]
    assert lines[1] == (
        "StorageClass rbd Missing for 60s: Job odf-sequencejob holds what comes after wave 5: "
        "storage.k8s.io/StorageClass//rbd is not there; the operation fails at 2026-01-01T01:00:05Z"
    )


def test_the_application_keeps_its_status_while_a_gate_is_closed() -> None:
    sim = staged(subscription(), config("after", sync_wave="10"))
    sim.begin()
    sim.driver.advance(10)
    settle_operator(sim, "Installing")
    sim.driver.advance(920)
    assert dig(sim.get(f"{APPS}/app"), "status", "operationState", "phase") == "Running"
    assert "GateOverdueWarning" in sim.conditions()
