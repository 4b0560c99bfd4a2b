"""Defaulting adds what Kubernetes adds, drops what it drops, and does nothing the second time."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from syncline.kube.defaults import LABELLED_BY_TEMPLATE, fill_defaults
from syncline.kube.defaults.pods import image_tag
from syncline.kube.errors import BadRequest
from syncline.kube.objects import Obj, gvk_of

CONTAINER = {"name": "c", "image": "nginx", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 1}}}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER], "volumes": [{"name": "v"}]}}


def _object(kind: str, version: str = "v1", **parts: Any) -> Obj:
    return copy.deepcopy({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **parts})


SAMPLES = [
    _object("Namespace"),
    _object("Pod", spec=TEMPLATE["spec"]),
    _object("Node", status={"capacity": {"cpu": "4"}}),
    _object("Secret", stringData={"a": "b"}),
    _object("Service", spec={"type": "LoadBalancer", "ports": [{"port": 80}]}),
    _object("Event", involvedObject={"kind": "Pod"}),
    _object("LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}),
    _object("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1024Mi"}}}),
    _object("Deployment", "apps/v1", spec={"template": TEMPLATE}),
    _object("StatefulSet", "apps/v1", spec={"template": TEMPLATE, "volumeClaimTemplates": [{"spec": {}}]}),
    _object("DaemonSet", "apps/v1", spec={"template": TEMPLATE}),
    _object("Job", "batch/v1", spec={"template": TEMPLATE}),
    _object("CronJob", "batch/v1", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}}),
    _object("HorizontalPodAutoscaler", "autoscaling/v2", spec={"maxReplicas": 3, "behavior": {}}),
    _object("Ingress", "networking.k8s.io/v1", spec={"rules": [{"http": {"paths": [{"path": "/"}]}}]}),
    _object("NetworkPolicy", "networking.k8s.io/v1", spec={"egress": [{"ports": [{"port": 53}]}]}),
    _object("RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={"kind": "Role", "name": "r"}),
    _object("EndpointSlice", "discovery.k8s.io/v1", endpoints=[{"addresses": ["192.0.2.1"]}], ports=[{"port": 1}]),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["kind"]))
def test_filling_twice_changes_nothing_more(sample: Obj) -> None:
    once = copy.deepcopy(sample)
    fill_defaults(gvk_of(once), once)
    twice = copy.deepcopy(once)
    fill_defaults(gvk_of(twice), twice)
    assert once != sample
    assert twice == once


def test_custom_resources_are_left_alone() -> None:
    custom = _object("Boat", "example.com/v1", spec={"empty": [], "nothing": None, "text": ""})
    before = copy.deepcopy(custom)
    fill_defaults(gvk_of(custom), custom)
    assert custom == before


def test_empty_parts_disappear_but_values_of_maps_do_not() -> None:
    config = _object("ConfigMap", data={"empty": "", "k": "v"}, binaryData={}, immutable=None)
    config["metadata"] |= {"labels": {}, "finalizers": [], "annotations": {"a": ""}}
    fill_defaults(gvk_of(config), config)
    expected = _object("ConfigMap", data={"empty": "", "k": "v"})
    expected["metadata"]["annotations"] = {"a": ""}
    assert config == expected


def test_pointers_keep_their_zero() -> None:
    claim = _object("PersistentVolumeClaim", spec={"storageClassName": "", "resources": {}})
    fill_defaults(gvk_of(claim), claim)
    assert claim["spec"]["storageClassName"] == ""
    idle = _object("Deployment", "apps/v1", spec={"replicas": 0, "template": copy.deepcopy(TEMPLATE)})
    fill_defaults(gvk_of(idle), idle)
    assert idle["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nginx", "latest"),
        ("nginx:latest", "latest"),
        ("nginx:1.2", "1.2"),
        ("host:5000/team/app", "latest"),
        ("host:5000/team/app:v1", "v1"),
        ("app@sha256:" + "0" * 64, ""),
        ("Not An Image", ""),
        ("", ""),
    ],
)
def test_only_latest_is_always_pulled(image: str, tag: str) -> None:
    assert image_tag(image) == tag
    pod = _object("Pod", spec={"containers": [{"name": "c", "image": image}]})
    fill_defaults(gvk_of(pod), pod)
    policy = "Always" if tag == "latest" else "IfNotPresent"
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_on_the_hosts_network_a_port_is_the_hosts() -> None:
    pod = _object("Pod", spec={"hostNetwork": True, "containers": [copy.deepcopy(CONTAINER)]})
    fill_defaults(gvk_of(pod), pod)
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_namespace_is_labelled_with_its_name_whatever_it_says() -> None:
    namespace = _object("Namespace")
    namespace["metadata"]["labels"] = {"kubernetes.io/metadata.name": "other"}
    fill_defaults(gvk_of(namespace), namespace)
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


def test_plain_secret_text_wins_over_encoded() -> None:
    secret = _object("Secret", data={"a": "b2xk"}, stringData={"a": "new"})
    fill_defaults(gvk_of(secret), secret)
    assert secret["data"] == {"a": "bmV3"}
    assert "stringData" not in secret


def test_a_value_that_does_not_fit_its_type_is_a_bad_request() -> None:
    odd = _object("Pod", spec={"containers": [{"name": "c", "resources": {"limits": {"cpu": "lots"}}}]})
    with pytest.raises(BadRequest, match='Pod in version "v1" cannot be handled as a Pod: quantities must match'):
        fill_defaults(gvk_of(odd), odd)
    broken = _object("Secret", data={"a": "not base64!"})
    with pytest.raises(BadRequest, match="illegal base64 data at input byte 3") as caught:
        fill_defaults(gvk_of(broken), broken)
    assert "not base64" not in str(caught.value)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["kind"]))
@pytest.mark.parametrize("part", ["spec", "status"])
def test_spec_and_status_are_filled_independently_of_each_other(sample: Obj, part: str) -> None:
    """What the API relies on when a write leaves one of them as it is stored."""
    whole = copy.deepcopy(sample)
    fill_defaults(gvk_of(whole), whole)
    apart = {key: value for key, value in copy.deepcopy(sample).items() if key != part}
    fill_defaults(gvk_of(apart), apart)
    rest = whole.keys() - {part}
    if gvk_of(sample).group_kind in LABELLED_BY_TEMPLATE:
        apart["metadata"].setdefault("labels", whole["metadata"].get("labels"))
    assert {key: apart.get(key) for key in rest} == {key: whole[key] for key in rest}
