"""A sync that admission stops: the webhook, the policy or the level is named, with the next step."""

from __future__ import annotations

import pytest
from tests.explain.test_waiting import told
from tests.gitops.behaviours.sim import Simulation, config, deployment

from syncline.kube.objects import Obj
from syncline.kube.transport.outbound import OutboundCall, Outcome

GROUP = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}


def stopped(sim: Simulation) -> list[str]:
    sim.begin({"prune": True})
    sim.driver.advance(30)
    return told(sim)


def hooked(**fields: object) -> Simulation:
    sim = Simulation(config("a"))
    hook: Obj = {
        "name": "gate.example.org",
        "clientConfig": {"url": "https://gate.example.org/check"},
        "rules": [RULE],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 3,
        **fields,
    }
    sim.world.send(
        "POST", f"{GROUP}/validatingwebhookconfigurations", {"metadata": {"name": "gate"}, "webhooks": [hook]}
    )
    return sim


def never(call: OutboundCall) -> Outcome:
    return Outcome(failure=f'Post "{call.url}": context deadline exceeded')


def test_a_webhook_that_never_answers_is_named() -> None:
    sim = hooked()
    sim.world.core.api.caller = never
    lines = "\n".join(stopped(sim))
    assert 'failed calling webhook "gate.example.org"' in lines
    assert "get the service behind webhook gate.example.org to answer, or take the webhook away" in lines


def test_a_webhook_that_may_be_passed_over_stops_nothing() -> None:
    sim = hooked(failurePolicy="Ignore")
    sim.world.core.api.caller = never
    assert "gate.example.org" not in "\n".join(stopped(sim))
    assert sim.world.send("GET", "/api/v1/namespaces/default/configmaps/a")


def test_in_virtual_time_nobody_answers_for_a_webhook_unless_a_test_does() -> None:
    assert "no calls are made from here" in "\n".join(stopped(hooked()))


def test_a_policy_that_refuses_is_named() -> None:
    sim = Simulation(config("a"))
    spec = {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "object.metadata.name != 'a'", "message": "not this one"}],
    }
    sim.world.send("POST", f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": "names"}, "spec": spec})
    bound = {"metadata": {"name": "names"}, "spec": {"policyName": "names", "validationActions": ["Deny"]}}
    sim.world.send("POST", f"{GROUP}/validatingadmissionpolicybindings", bound)
    lines = "\n".join(stopped(sim))
    assert "not this one" in lines
    assert "do what ValidatingAdmissionPolicy names asks for, or change it" in lines


@pytest.mark.parametrize("label", ["restricted"])
def test_a_level_that_pods_do_not_meet_is_named(label: str) -> None:
    sim = Simulation(deployment("web"))
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": label}}}
    sim.patch("/api/v1/namespaces/default", labels)
    lines = "\n".join(stopped(sim))
    assert 'violates PodSecurity "restricted:latest"' in lines
    assert "meet the Pod Security level of the namespace, or change its label" in lines
