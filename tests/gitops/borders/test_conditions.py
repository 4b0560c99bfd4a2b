"""An adversary who writes conditions into a repository learns nothing of objects that his project may not see."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, MAPS, PROJECTS, Simulation, config
from tests.gitops.behaviours.test_extensions import annotate, ours

from syncline.assembly.inspection.preview import planned_sync
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.control.executor import run_in_place
from syncline.explain.graph import cause_to_obj
from syncline.kube.objects import Obj

VALUE = "hunter2hunter2"
ENCODED = "aHVudGVyMmh1bnRlcjI="
HERE = "https://kubernetes.default.svc"


def tenant(*objects: Obj, **spec: Any) -> Simulation:
    """``app`` in project ``tenant``, which may use namespace ``default`` only; another team lives in ``payments``."""
    sim = Simulation()
    project(sim, **spec)
    sim.world.send("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "payments"}})
    sim.patch(f"{APPS}/app", {"spec": {"project": "tenant"}})
    sim.source.commit(*objects)
    sim.refresh()
    return sim


def project(sim: Simulation, name: str = "tenant", annotations: Obj | None = None, **spec: Any) -> None:
    base: Obj = {"destinations": [{"server": HERE, "namespace": "default"}], "sourceRepos": ["*"]}
    metadata = {"name": name, "annotations": annotations or {}}
    made = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": metadata, "spec": base | spec}
    sim.world.send("POST", PROJECTS, made)


def secret(sim: Simulation, namespace: str) -> None:
    made = {"kind": "Secret", "metadata": {"name": "db"}, "data": {"password": ENCODED}}
    sim.world.send("POST", f"/api/v1/namespaces/{namespace}/secrets", made)


def everything_said(sim: Simulation) -> str:
    """All that the Application, its Events, its plan and its explanation say."""
    from tests.explain.test_waiting import found_of

    app = sim.app()
    events = sim.world.send("GET", "/api/v1/namespaces/argocd/events")["items"]
    settings = sim.world.settings
    cache = run_in_place(snapshot_of_cluster(application_indices(settings)), sim.world.admin).cache
    planned = planned_sync(cache, app, sim.source, settings, sim.world.clock.now())
    explained = cause_to_obj(found_of(sim).cause)
    return json.dumps([app["status"], [e["message"] for e in events], planned.to_obj(), explained])


SECRETS: list[Obj] = [
    {"kind": "Secret", "name": "db"},
    {"kind": "Secret", "name": "db", "jsonpath": "{.data}=x"},
    {"kind": "Secret", "name": "db", "jsonpath": f"{{.data.password}}={ENCODED}"},
    {"kind": "Secret", "name": "db", "cel": "object.data.password.startsWith('a')"},
    {"kind": "Secret", "name": "db", "cel": "int(object.data.password) > 0"},
    {"kind": "Secret", "name": "db", "condition": "Ready"},
    {"kind": "Secret", "group": "", "name": "db", "jsonpath": "{.data}=x"},
    {"kind": "secret", "name": "db", "jsonpath": "{.data}=x"},
    {"kind": "Secret", "group": "v1", "name": "db"},
]


@pytest.mark.parametrize("namespace", ["default", "payments"])
@pytest.mark.parametrize("condition", SECRETS, ids=lambda one: json.dumps(one)[1:-1])
def test_a_condition_never_looks_at_a_secret(condition: Obj, namespace: str) -> None:
    wanted = [{**condition, "namespace": namespace}]
    sim = tenant(config("first", sync_wave="-1"), ours(config("a"), wait_for=json.dumps(wanted)))
    absent = sim.sync(limit_s=60)
    told = everything_said(sim)
    secret(sim, namespace)
    present = sim.sync(limit_s=60)
    assert (absent["phase"], sim.maps()) == ("Failed", []), "refused before anything is applied"
    assert "Secrets are refused in every project" in absent["message"]
    assert present["message"] == absent["message"], "whether it exists is not learnt"
    for said in (told, everything_said(sim)):
        assert VALUE not in said and ENCODED not in said


@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ({"kind": "ConfigMap", "namespace": "payments", "name": "prices"}, "spec.destinations"),
        (
            {"kind": "ConfigMap", "namespace": "payments", "name": "prices", "jsonpath": ".data.k=v"},
            "spec.destinations",
        ),
        ({"kind": "ConfigMap", "namespace": "payments", "name": "prices", "cel": "true"}, "spec.destinations"),
        ({"kind": "Application", "namespace": "argocd", "name": "prices"}, "spec.destinations"),
        ({"kind": "Namespace", "name": "payments"}, "spec.clusterResourceWhitelist"),
        ({"kind": "Node", "name": "node-1", "condition": "Ready"}, "spec.clusterResourceWhitelist"),
        ({"kind": "ConfigMap", "name": "x/ConfigMap/payments/prices"}, "no object can have"),
    ],
)
def test_what_a_project_may_not_see_is_refused_in_the_same_words_whether_it_exists(condition: Obj, rule: str) -> None:
    sim = tenant(ours(config("a"), wait_for=json.dumps(condition)))
    absent = sim.sync(limit_s=60)
    sim.world.send("POST", MAPS.replace("default", "payments"), config("prices"))
    sim.create("prices")
    present = sim.sync(limit_s=60)
    assert absent["phase"] == present["phase"] == "Failed"
    assert absent["message"] == present["message"] and rule in absent["message"]
    assert "tenant" in absent["message"] or rule == "no object can have"


@pytest.mark.parametrize(
    "condition",
    [
        {"jsonpath": "{.data.k}=no"},
        {"cel": "object.data.k == 'no'"},
        {"cel": "int(object.data.k) == 1"},
        {"cel": "object[object.data.k] == 1"},
        {"cel": "object.data.k"},
        {"jsonpath": "{.data.k.x}=no"},
        {"condition": "Ready"},
    ],
    ids=str,
)
def test_a_value_that_was_found_is_never_printed(condition: Obj) -> None:
    wanted = json.dumps({"kind": "ConfigMap", "name": "seen"} | condition)
    sim = tenant(ours(config("a"), wait_for=wanted))
    observed = config("seen", VALUE)
    status = {"status": {"conditions": [{"type": "Ready", "status": VALUE}]}}
    sim.world.send("POST", MAPS, observed | (status if "condition" in condition else {}))
    sim.begin()
    sim.driver.advance(20)
    assert "/ConfigMap/default/a waits: " in sim.state()["message"]
    assert VALUE not in everything_said(sim)


def test_a_condition_within_the_project_still_holds() -> None:
    wanted = json.dumps({"kind": "ConfigMap", "name": "seen", "jsonpath": ".data.k=v"})
    sim = tenant(ours(config("a"), wait_for=wanted))
    sim.world.send("POST", MAPS, config("seen"))
    assert sim.sync(limit_s=60)["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"deadline": "1000000h"}, "found '1000000h'; allowed are more than 0s and at most 720h"),
        ({"deadline": "-5m"}, "found '-5m'"),
        ({"deadline": "0s"}, "found '0s'"),
        ({"jsonpath": "{.data[}"}, "jsonpath: "),
        ({"cel": "'" + "x" * 20_000 + "' == ''"}, "characters; at most 16384"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_a_value_out_of_bounds_is_refused_before_anything_is_applied(entry: Obj, told: str) -> None:
    sim = tenant(ours(config("a"), wait_for=json.dumps({"kind": "ConfigMap", "name": "b"} | entry)))
    state = sim.sync(limit_s=60)
    assert (state["phase"], sim.maps()) == ("Failed", []) and told in state["message"]


def test_the_conditions_of_an_operation_are_bounded() -> None:
    many = json.dumps([{"kind": "ConfigMap", "name": f"n{n}"} for n in range(50)])
    sim = tenant(*(ours(config(f"a{n}"), wait_for=many) for n in range(11)))
    assert "found 550 conditions in all manifests; at most 500" in sim.sync(limit_s=60)["message"]


# -- other Applications ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [False, True])
def test_an_application_of_another_project_is_waited_for_as_one_that_is_not_there(exists: bool) -> None:
    sim = tenant(config("a"))
    annotate(sim, depends_on="prices")
    if exists:
        sim.create("prices")
    sim.begin()
    sim.driver.advance(60)
    assert sim.maps() == []
    assert sim.state()["message"] == (
        "waiting for Application argocd/prices, which is none of project tenant; of others it sees only those in "
        "namespaces of its spec.destinations"
    )
    said = everything_said(sim)
    assert "prices (" not in said and "prices OutOfSync" not in said


def test_an_application_of_the_same_project_is_seen() -> None:
    sim = tenant(config("a"))
    sim.create("db", {"project": "tenant"})
    annotate(sim, depends_on="db")
    sim.begin()
    sim.driver.advance(30)
    assert sim.state()["message"].startswith("waiting for Application argocd/db (OutOfSync")


def test_a_project_that_may_make_applications_sees_them() -> None:
    sim = tenant(config("a"), destinations=[{"server": HERE, "namespace": "*"}])
    sim.create("db")
    annotate(sim, depends_on="db")
    sim.begin()
    sim.driver.advance(30)
    assert sim.state()["message"].startswith("waiting for Application argocd/db (OutOfSync")


def test_dependencies_beyond_another_project_are_not_followed() -> None:
    sim = tenant(config("a"))
    sim.create("mine", {"project": "tenant"})
    sim.create("theirs")
    annotate(sim, depends_on="mine")
    annotate(sim, "mine", depends_on="theirs")
    annotate(sim, "theirs", depends_on="app")
    sim.begin()
    sim.driver.advance(30)
    assert "circle" not in everything_said(sim)
    assert sim.state()["message"].startswith("waiting for Application argocd/mine (")


def test_an_application_names_at_most_so_many_others() -> None:
    sim = tenant(config("a"))
    annotate(sim, depends_on=",".join(f"n{n}" for n in range(60)))
    state = sim.sync(limit_s=60)
    assert state["phase"] == "Error"
    assert "syncline.dev/depends-on: found 60 Applications; at most 50" in state["message"]
