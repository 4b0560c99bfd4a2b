"""Which new objects are refused, and with which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncline.cluster.validation.engine import names
from syncline.kube.objects import Obj

from .writing import job, plain, pod, prepared, refusals, service, workload  # type: ignore[import-untyped]


def _container(**parts: Any) -> Obj:
    return pod(containers=[{"name": "c", "image": "x:1"} | parts])


CASES: list[tuple[str, Obj, list[str]]] = [
    ("a plain pod is fine", pod(), []),
    (
        "two containers of one name",
        pod(containers=[{"name": "c", "image": "x"}, {"name": "c", "image": "y"}]),
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    (
        "a port without a number",
        _container(ports=[{"name": "http"}]),
        ["spec.containers[0].ports[0].containerPort: Required value"],
    ),
    (
        "a port beyond the range",
        _container(ports=[{"containerPort": 70000}]),
        [
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ],
    ),
    (
        "a mount without its volume",
        _container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ),
    (
        "a probe of two kinds",
        _container(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}}),
        ["spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    ),
    (
        "a probe of no kind",
        _container(readinessProbe={"periodSeconds": 3}),
        ["spec.containers[0].readinessProbe: Required value: must specify a handler type"],
    ),
    (
        "a toleration with seconds and another effect",
        pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]),
        [
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set"
        ],
    ),
    (
        "a Deployment without a selector",
        workload("Deployment", selector=None),
        [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
        ],
    ),
    (
        "a DaemonSet that moves nothing",
        workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
    ),
    (
        "an unknown strategy",
        workload("Deployment", strategy={"type": "Magic"}),
        [
            'spec.strategy: Unsupported value: {"Type":"Magic","RollingUpdate":null}: supported values: '
            '"Recreate", "RollingUpdate"'
        ],
    ),
    (
        "a failure policy that looks at nothing",
        job(podFailurePolicy={"rules": [{"action": "Ignore"}]}),
        [
            "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is "
            "required"
        ],
    ),
    (
        "a success policy without indexes",
        job(successPolicy={"rules": [{"succeededCount": 1}]}),
        [
            'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
        ],
    ),
    (
        "a Deployment that selects everything",
        workload("Deployment", selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    (
        "Recreate with a rolling update",
        workload("Deployment", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
        [
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ],
    ),
    (
        "a deadline shorter than being ready takes",
        workload("Deployment", progressDeadlineSeconds=5, minReadySeconds=5),
        ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
    ),
    (
        "a Job whose index is not counted",
        job(completionMode="Indexed", parallelism=2),
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    (
        "a Service of two nameless ports",
        service(ports=[{"port": 80}, {"port": 81}]),
        ["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
    ),
    (
        "an unknown volume type",
        pod(volumes=[{"name": "v", "secret": {}}]),
        ["spec.volumes[0].secret.secretName: Required value"],
    ),
    (
        "a key that no file can have",
        plain("ConfigMap", data={"a b": "v"}),
        [
            'data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '
            "'-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')"
        ],
    ),
    (
        "no name server where there must be one",
        pod(dnsPolicy="None"),
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    (
        "white space around an image",
        pod(containers=[{"name": "c", "image": " x "}]),
        ['spec.containers[0].image: Invalid value: " x ": must not have leading or trailing whitespace'],
    ),
    (
        "the same white space in a template",
        workload(
            "Deployment",
            template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": " x "}]}},
        ),
        [],
    ),
    (
        "an Event about another namespace",
        plain("Event", involvedObject={"kind": "Pod", "namespace": "other"}),
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
    (
        "ranges for a Service that nobody outside reaches",
        service(loadBalancerSourceRanges=["10.0.0.0/8"]),
        ["spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
    ),
    (
        "a port twice",
        service(ports=[{"name": "a", "port": 80}, {"name": "b", "port": 80}]),
        [
            'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,'
            '"NodePort":0}'
        ],
    ),
    (
        "a lease of no length",
        plain("Lease", "coordination.k8s.io/v1", spec={"leaseDurationSeconds": 0}),
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    (
        "a role in a namespace for addresses",
        plain("Role", "rbac.authorization.k8s.io/v1", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
        ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ),
]


@pytest.mark.parametrize(("obj", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_an_object_is_refused_in_kubernetes_words(obj: Obj, expected: list[str]) -> None:
    assert refusals(obj) == expected


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("*/5 * * * *", ""),
        ("@hourly", ""),
        ("0 0 * jan mon-fri", ""),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * * * */0", "step of range should be a positive number: */0"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("* *", "expected exactly 5 fields, found 2: [* *]"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1- * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("9999999999 * * * *", "end of range (9999999999) above maximum (59): 9999999999"),
    ],
)
def test_a_cron_schedule_is_read_as_cron_reads_it(schedule: str, problem: str) -> None:
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}
    spec = {"schedule": schedule, "jobTemplate": template}
    found = refusals(plain("CronJob", "batch/v1", spec=spec))
    assert found == ([f'spec.schedule: Invalid value: "{schedule}": {problem}'] if problem else [])


def test_a_cron_jobs_name_leaves_room_for_its_jobs() -> None:
    cron = plain("CronJob", "batch/v1")
    cron["metadata"]["name"] = "a" * 53
    found = refusals(cron)
    assert f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters' in found


@pytest.mark.parametrize(
    ("limits", "requests", "quality"),
    [
        (None, None, "BestEffort"),
        ({"cpu": "1", "memory": "1Gi"}, None, "Guaranteed"),
        ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
        (None, {"cpu": "1"}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m"}, "Burstable"),
    ],
)
def test_quality_of_service_follows_from_the_resources(limits: Any, requests: Any, quality: str) -> None:
    resources = {"limits": limits, "requests": requests}
    assert prepared(_container(resources=resources))["status"] == {"phase": "Pending", "qosClass": quality}


def test_a_job_selects_its_pods_by_its_own_uid() -> None:
    made = prepared(job())
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["labels"]["job-name"] == "j"


def test_a_jobs_own_labels_are_left_alone() -> None:
    labelled = job()
    labelled["metadata"]["labels"] = {"mine": "yes"}
    assert prepared(labelled)["metadata"]["labels"] == {"mine": "yes"}


def test_a_name_fault_is_told_before_the_rest() -> None:
    assert names.dns_label("ab") == []
    assert names.dns_label("a" * 64) == ["must be no more than 63 characters"]
    assert names.path_segment("a/b%") == ["may not contain '/'", "may not contain '%'"]
    assert names.prefixed_dns_subdomain("job-") == []


def test_a_refused_name_is_no_reason_to_refuse_another_one() -> None:
    """Verdicts are remembered, and some checks add to them."""

    def judged(controller: str) -> list[str]:
        found = refusals(plain("IngressClass", "networking.k8s.io/v1", spec={"controller": controller}))
        return [one for one in found if one.startswith("spec.")]

    assert judged("remembered.example.com/not a path")
    assert judged("remembered.example.com/path") == []


@pytest.mark.parametrize("check", [names.dns_label, names.dns_subdomain, names.path_segment, names.qualified_name])
def test_a_verdict_on_a_name_belongs_to_who_asked(check: Callable[[str], list[str]]) -> None:
    check("mine").append("something else")
    assert check("mine") == []
