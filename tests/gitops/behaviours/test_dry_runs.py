"""Dry runs before a sync: what an earlier object of the sync makes possible is asked for again at its turn."""

from __future__ import annotations

import pytest
from tests.gitops.behaviours.sim import JOBS, Simulation, annotated, config, job, rows

from syncline.kube.objects import Obj

PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


def account(name: str, **annotations: str) -> Obj:
    return annotated({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, **annotations)


def pod(name: str, runs_as: str = "default", **annotations: str) -> Obj:
    spec = {"serviceAccountName": runs_as, "containers": [{"name": "c", "image": "web:1"}]}
    return annotated({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, **annotations)


def quota(pods: int, **annotations: str) -> Obj:
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": pods}}}
    return annotated(made, **annotations)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"sync_wave": "-1"}, {}),
        ({}, {}),
        ({"hook": "PreSync"}, {}),
        ({}, {"hook": "PostSync"}),
    ],
    ids=["an earlier wave", "its own wave", "an earlier phase", "a hook of a later phase"],
)
def test_a_pod_whose_account_comes_first_is_synced(first: dict[str, str], then: dict[str, str]) -> None:
    sim = Simulation(account("runner", **first), pod("web", "runner", **then))
    state = sim.sync()
    assert state["phase"] == "Succeeded", state["message"]
    assert rows(state)["Pod/web"]["message"] == "pod/web created" or then


def test_what_is_asked_again_says_so_until_its_turn() -> None:
    sim = Simulation(account("runner"), job("slow", seconds=60, sync_wave="1"), pod("web", "runner", sync_wave="2"))
    sim.begin()
    sim.driver.advance(10)
    row = rows(sim.state())["Pod/web"]
    assert "repeated at its turn" in row["message"] and 'serviceaccount "runner" not found' in row["message"]
    assert "status" not in row and "hookPhase" not in row
    assert sim.finish()["phase"] == "Succeeded"


def test_a_quota_that_an_earlier_wave_raises_is_no_reason_to_refuse() -> None:
    sim = Simulation(quota(5, sync_wave="-1"), pod("web"))
    sim.world.send("POST", QUOTAS, quota(0))
    sim.driver.advance(5)
    assert sim.sync()["phase"] == "Succeeded"


def test_a_policy_that_an_earlier_wave_relaxes_is_no_reason_to_refuse() -> None:
    def policy(expression: str) -> Obj:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression, "message": "no"}],
        }
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
        return kind | {"metadata": {"name": "p"}, "spec": spec}

    sim = Simulation(annotated(policy("true"), sync_wave="-1"), config("a"))
    sim.world.send("POST", POLICIES, policy("object.metadata.name != 'a'"))
    binding = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}
    spec = {"policyName": "p", "validationActions": ["Deny"]}
    sim.world.send("POST", BINDINGS, binding | {"metadata": {"name": "p"}, "spec": spec})
    sim.driver.advance(5)
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Succeeded", ["a"]), state["message"]


def test_a_refusal_that_stands_at_its_turn_fails_before_its_wave_begins() -> None:
    sim = Simulation(account("other"), pod("web", "runner", sync_wave="1"), job("z", sync_wave="1"))
    state = sim.sync()
    assert state["phase"] == "Failed"
    assert 'serviceaccount "runner" not found' in rows(state)["Pod/web"]["message"]
    assert "repeated" not in rows(state)["Pod/web"]["message"]
    assert sim.names(JOBS) == []


def test_what_nothing_earlier_can_change_still_stops_everything() -> None:
    sim = Simulation(config("a"), pod("web", "runner", sync_wave="-1"))
    state = sim.sync()
    assert (state["phase"], sim.maps()) == ("Failed", [])
    assert state["message"].startswith("one or more objects failed to apply (dry run)")


def test_objects_in_sync_change_nothing_so_a_refusal_stands() -> None:
    sim = Simulation(account("other", sync_wave="-1"), config("a"))
    sim.sync()
    sim.source.commit(account("other", sync_wave="-1"), config("a"), pod("web", "runner", sync_wave="-1"))
    sim.refresh()
    state = sim.sync()
    assert state["message"].startswith("one or more objects failed to apply (dry run)")


def test_a_dry_run_of_people_says_what_it_could_not_ask() -> None:
    sim = Simulation(account("runner", sync_wave="-1"), pod("web", "runner"))
    state = sim.sync({"dryRun": True})
    assert state["phase"] == "Succeeded"
    assert "repeated at its turn" in rows(state)["Pod/web"]["message"]
    assert sim.get(f"{PODS}/web") is None
