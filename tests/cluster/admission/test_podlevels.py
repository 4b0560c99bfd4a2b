"""Pod security admission beyond the recorded refusals: warnings, the audit log, namespaces that become stricter."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.admission.hooks import MERGE, World, hook, patches

from syncline.cluster.admission.podsecurity import BASELINE, LATEST, PRIVILEGED, RESTRICTED, evaluate, message
from syncline.kube.objects import Obj

LABEL = "pod-security.kubernetes.io/"
PRIVILEGE = 'privileged (container "c" must not set securityContext.privileged=true)'


def pod(name: str = "web", **context: Any) -> Obj:
    container = {"name": "c", "image": "i", "securityContext": context}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def world(**labels: str) -> World:
    made = World()
    relabel(made, **labels)
    return made


def relabel(made: World, **labels: str) -> Any:
    named = {f"{LABEL}{key.replace('_', '-')}": value for key, value in labels.items()}
    return made.send("PATCH", "/api/v1/namespaces/demo", {"metadata": {"labels": named}}, MERGE)


PODS = "/api/v1/namespaces/demo/pods"


def test_without_labels_everything_is_allowed() -> None:
    answer = world().send("POST", PODS, pod(privileged=True))
    assert answer.ok
    assert "warning" not in answer.headers
    assert not answer.annotations


def test_what_is_refused_is_not_warned_of_and_all_is_told_to_the_audit_log() -> None:
    made = world(enforce="baseline", audit="restricted", audit_version="v1.20")
    answer = made.send("POST", PODS, pod(privileged=True))
    assert answer.obj["message"] == f'pods "web" is forbidden: violates PodSecurity "baseline:latest": {PRIVILEGE}'
    assert "warning" not in answer.headers
    annotations = dict(answer.annotations or {})
    assert annotations[f"{LABEL}enforce-policy"] == "baseline:latest"
    assert annotations[f"{LABEL}audit-violations"].startswith(
        f'would violate PodSecurity "restricted:v1.20": {PRIVILEGE}'
    )


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis/apps/v1/namespaces/demo/deployments", "plain"),
        ("/apis/apps/v1/namespaces/demo/daemonsets", "plain"),
        ("/apis/batch/v1/namespaces/demo/jobs", "job"),
        ("/apis/batch/v1/namespaces/demo/cronjobs", "cron"),
        ("/api/v1/namespaces/demo/podtemplates", "template"),
    ],
)
def test_templates_are_warned_of_and_never_refused(path: str, kind: str) -> None:
    made = world(enforce="baseline")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(privileged=True)["spec"]}
    if kind in ("job", "cron"):
        template["spec"]["restartPolicy"] = "Never"
    spec: Obj = {"template": template}
    if kind == "plain":
        spec["selector"] = {"matchLabels": {"a": "b"}}
    if kind == "cron":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    body = {"metadata": {"name": "web"}, **(spec if kind == "template" else {"spec": spec})}
    answer = made.send("POST", path, body)
    assert answer.ok, answer.obj
    assert 'would violate PodSecurity \\"baseline:latest\\": privileged' in answer.headers["warning"]


def test_a_namespace_that_becomes_stricter_tells_of_its_pods() -> None:
    made = world()
    for name in ("a", "b", "c"):
        made.send("POST", PODS, pod(name, privileged=True)).or_raise()
    made.send("POST", PODS, pod("d", capabilities={"add": ["NET_ADMIN"]})).or_raise()
    lines = relabel(made, enforce="baseline").headers["warning"].splitlines()
    assert lines == [
        '299 - "existing pods in namespace \\"demo\\" violate the new PodSecurity enforce level \\"baseline:latest\\""',
        '299 - "a (and 2 other pods): privileged"',
        '299 - "d: non-default capabilities"',
    ]
    assert "warning" not in relabel(made, enforce="privileged").headers


def test_labels_that_cannot_be_read_are_refused_but_stay_where_they_were() -> None:
    made = world()
    answer = relabel(made, enforce="strict")
    assert (answer.status, answer.obj["reason"]) == (422, "Invalid")
    assert "must be one of privileged, baseline, restricted" in answer.obj["message"]


def test_what_a_webhook_makes_of_a_pod_is_judged() -> None:
    made = world(enforce="baseline")
    made.answers["/a"] = patches({"op": "add", "path": "/spec/hostPID", "value": True})
    made.configure(hook("/a", rule={"resources": ["pods"], "operations": ["CREATE"]}), mutating=True)
    answer = made.send("POST", PODS, pod())
    assert "host namespaces (hostPID=true)" in answer.obj["message"]


@pytest.mark.parametrize("version", [0, 10, 19, 25, 31, 35, LATEST])
def test_levels_are_ordered(version: int) -> None:
    """What a stricter level allows, a laxer one allows."""
    pods: list[Obj] = [
        pod(),
        pod(privileged=True),
        pod(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"], "add": ["NET_RAW"]}, runAsNonRoot=True),
        pod(procMount="Unmasked"),
        {"spec": {"containers": [], "hostNetwork": True, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}},
    ]
    for one in pods:
        found = [evaluate(level, version, {}, one["spec"]) for level in (PRIVILEGED, BASELINE, RESTRICTED)]
        assert not found[0]
        assert found[2] or not found[1], message(found[1])
