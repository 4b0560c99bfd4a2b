"""What a ConfigurationPolicy says of a cluster: sentences, in upstream's words.

The messages are those of upstream's config-policy-controller on the same objects (docs/policies.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.fleet.world import Fleet, Member
from tests.patterns.policies.world import CONFIGURATION, GROUP, made, namespace

from syncline.kube.client import Request
from syncline.kube.objects import Obj


def config(name: str, space: str = "default", labels: dict[str, str] | None = None, **data: Any) -> Obj:
    one = made("v1", "ConfigMap", name, space)
    return {**one, "metadata": {**one["metadata"], **({"labels": labels} if labels else {})}, "data": data}


def unnamed(space: str = "", **data: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": space} if space else {}, "data": data}


def role(name: str, *rules: Obj) -> Obj:
    return {**made("rbac.authorization.k8s.io/v1", "Role", name, "default"), "rules": list(rules)}


def rule(group: str, resource: str, *verbs: str) -> Obj:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def deployment(name: str, **pod: Any) -> Obj:
    one = made("apps/v1", "Deployment", name, "default")
    labels = {"app": name}
    container = {"name": "web", "image": "nginx:1", "resources": {"limits": {"memory": "1024Mi"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}}
    return {**one, "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}}


def part(name: str, **spec: Any) -> Obj:
    return {**made("apps/v1", "Deployment", name, "default"), "spec": spec}


def containers(*listed: Obj) -> Obj:
    return {"template": {"spec": {"containers": list(listed)}}}


@dataclass(frozen=True)
class Case:
    """``there``: objects of the cluster; ``wanted``: those of the policy; ``says``: its last message, ``before``: the
    one before it."""

    there: tuple[Obj, ...]
    wanted: tuple[Obj, ...]
    says: str
    before: str = ""
    kind: str = "musthave"
    action: str = "inform"
    more: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)


def case(there: list[Obj], wanted: list[Obj], says: str, **more: Any) -> Case:
    return Case(tuple(there), tuple(wanted), says, **more)


BAD, GOOD = "NonCompliant; violation - ", "Compliant; notification - "
PODS = rule("", "pods", "get", "list")
TEMPLATE = 'failed to resolve the template {"apiVersion":"v1","data":'
CASES = {
    "a namespace that must be there is missing": case([], [namespace("m1")], BAD + "namespaces [m1] not found"),
    "a namespace that must be there is there": case(
        [namespace("m2")], [namespace("m2")], GOOD + "namespaces [m2] found as specified"
    ),
    "an enforced namespace is made": case(
        [],
        [namespace("m3")],
        GOOD + "namespaces [m3] found as specified",
        before=GOOD + "namespaces [m3] was created successfully",
        action="enforce",
    ),
    "a label is missing": case(
        [namespace("m4")], [namespace("m4", team="a")], BAD + "namespaces [m4] found but not as specified"
    ),
    "an enforced label is set": case(
        [namespace("m5")],
        [namespace("m5", team="a")],
        GOOD + "namespaces [m5] found as specified",
        before=GOOD + "namespaces [m5] was updated successfully",
        action="enforce",
    ),
    "what must not be there is there": case(
        [config("n1", a="1")], [config("n1")], BAD + "configmaps [n1] found in namespace default", kind="mustnothave"
    ),
    "what must not be there is deleted": case(
        [config("n2", a="1")],
        [config("n2")],
        GOOD + "configmaps [n2] missing as expected in namespace default",
        before=GOOD + "configmaps [n2] was deleted successfully in namespace default",
        kind="mustnothave",
        action="enforce",
    ),
    "more data than a template names is right": case(
        [config("d1", a="1", b="2")],
        [config("d1", a="1")],
        GOOD + "configmaps [d1] found as specified in namespace default",
    ),
    "more data than a template names is wrong where only that may be there": case(
        [config("d2", a="1", b="2")],
        [config("d2", a="1")],
        BAD + "configmaps [d2] found but not as specified in namespace default",
        kind="mustonlyhave",
    ),
    "more labels than a template names are wrong where only those may be there": case(
        [config("d3", labels={"x": "1", "y": "2"}, a="1")],
        [config("d3", labels={"x": "1"}, a="1")],
        BAD + "configmaps [d3] found but not as specified in namespace default",
        more={"metadataComplianceType": "mustonlyhave"},
    ),
    "a quantity is compared by its amount": case(
        [deployment("q1")],
        [part("q1", **containers({"name": "web", "resources": {"limits": {"memory": "1Gi"}}}))],
        GOOD + "deployments [q1] found as specified in namespace default",
    ),
    "a container is found by its name": case(
        [deployment("q2")],
        [part("q2", **containers({"name": "web", "image": "nginx:2"}))],
        BAD + "deployments [q2] found but not as specified in namespace default",
    ),
    "empty maps that the API leaves out are right": case(
        [deployment("q3")],
        [part("q3", template={"spec": {"nodeSelector": {}, "securityContext": {}}})],
        GOOD + "deployments [q3] found as specified in namespace default",
    ),
    "a missing value equals the zero of its type": case(
        [deployment("q4")],
        [part("q4", paused=False, template={"spec": {"hostNetwork": False}})],
        GOOD + "deployments [q4] found as specified in namespace default",
    ),
    "an immutable field is not changed without recreateOption": case(
        [deployment("q5")],
        [part("q5", selector={"matchLabels": {"other": "x"}})],
        BAD
        + "deployments [q5] in namespace default cannot be updated, likely due to immutable fields not matching, you "
        'may set spec["object-templates"][].recreateOption to recreate the object',
        action="enforce",
    ),
    "the order of a list does not count": case(
        [role("r1", PODS, rule("apps", "deployments", "get"))],
        [role("r1", rule("", "pods", "list", "get"))],
        GOOD + "roles [r1] found as specified in namespace default",
    ),
    "a list with more items is wrong where only those may be there": case(
        [role("r2", PODS, rule("apps", "deployments", "get"))],
        [role("r2", PODS)],
        BAD + "roles [r2] found but not as specified in namespace default",
        kind="mustonlyhave",
    ),
    "a selector names the namespaces": case(
        [namespace("s-a", s="1"), namespace("s-b", s="1"), namespace("s-c", s="1")],
        [unnamed(a="1") | {"metadata": {"name": "inner"}}],
        BAD + "configmaps [inner] not found in namespaces: s-a, s-b",
        spec={"namespaceSelector": {"matchLabels": {"s": "1"}, "exclude": ["*-c"]}},
    ),
    "an object without a namespace and a policy without a selector": case(
        [],
        [unnamed(a="1") | {"metadata": {"name": "inner"}}],
        BAD + "namespaced object inner of kind ConfigMap has no namespace specified from the policy namespaceSelector "
        "nor the object metadata",
    ),
    "any object like it is enough without a name": case(
        [namespace("u1"), config("a", "u1", k="1"), config("b", "u1", k="1")],
        [unnamed("u1", k="1")],
        GOOD + "configmaps [a, b] found as specified in namespace u1",
    ),
    "no object is like it": case(
        [namespace("u2"), config("a", "u2", k="1")],
        [unnamed("u2", k="7")],
        BAD + "configmaps found but not as specified in namespace u2",
        action="enforce",
    ),
    "labels select objects": case(
        [namespace("o1"), config("a", "o1", {"z": "1"}, k="1"), config("b", "o1", {"z": "1"}, k="2")],
        [unnamed("o1", k="1")],
        BAD + "configmaps [b] found but not as specified in namespace o1",
        more={"objectSelector": {"matchLabels": {"z": "1"}}},
    ),
    "labels select nothing": case(
        [namespace("o2")],
        [unnamed("o2", k="1")],
        GOOD + "No objects of kind ConfigMap were matched from the policy objectSelector",
        more={"objectSelector": {"matchLabels": {"z": "1"}}},
    ),
    "a kind is not served": case(
        [],
        [made("example.com/v1", "Nope", "x")],
        BAD
        + "couldn't find mapping resource with kind Nope in API version example.com/v1, please check if you have CRD "
        "deployed",
    ),
    "one of two templates is violated": case(
        [namespace("t1")],
        [namespace("t1"), namespace("t2")],
        "NonCompliant; notification - namespaces [t1] found as specified; violation - namespaces [t2] not found",
    ),
    "a Secret is compared as text": case(
        [{**made("v1", "Secret", "x1", "default"), "stringData": {"a": "x"}}],
        [{**made("v1", "Secret", "x1", "default"), "stringData": {"a": "x"}}],
        GOOD + "secrets [x1] found as specified in namespace default",
    ),
    "the API refuses what cannot be made": case(
        [],
        [config("x2", "not-there", a="1")],
        BAD + "configmaps [x2] in namespace not-there is missing, and cannot be created, reason: `namespaces "
        '"not-there" not found`',
        action="enforce",
    ),
    "an annotation is a number": case(
        [config("x3", a="1")],
        [
            {
                **made("v1", "ConfigMap", "x3", "default"),
                "metadata": {"name": "x3", "namespace": "default", "annotations": {"n": 1}},
            }
        ],
        BAD + 'invalid annotation, error: contains non-string value in the map under key "n": 1 is of the type int64, '
        "expected string",
    ),
    "a status is only looked at": case(
        [namespace("x4")],
        [{**namespace("x4"), "status": {"phase": "Terminating"}}],
        BAD + "namespaces [x4] found but not as specified",
        action="enforce",
    ),
    "a template reads a ConfigMap": case(
        [config("p1-source", v="12"), config("p1", v="12")],
        [config("p1", v='{{ fromConfigMap "default" "p1-source" "v" }}')],
        GOOD + "configmaps [p1] found as specified in namespace default",
    ),
    "a template gives a number": case(
        [deployment("p2")],
        [part("p2", replicas='{{ "0" | toInt }}')],
        GOOD + "deployments [p2] found as specified in namespace default",
    ),
    "a template copies all data": case(
        [config("p3-source", a="1", b="2"), config("p3", a="1", b="2")],
        [{**made("v1", "ConfigMap", "p3", "default"), "data": '{{ copyConfigMapData "default" "p3-source" }}'}],
        GOOD + "configmaps [p3] found as specified in namespace default",
    ),
    "a template asks for what is not there": case(
        [],
        [config("p4", v='{{ fromConfigMap "default" "none" "v" }}')],
        BAD + TEMPLATE + '{"v":"{{ fromConfigMap \\"default\\" \\"none\\" \\"v\\" }}"},"kind":"ConfigMap",'
        '"metadata":{"name":"p4","namespace":"default"}}: template: tmpl:3:9: executing "tmpl" at '
        '<fromConfigMap "default" "none" "v">: error calling fromConfigMap: failed getting the ConfigMap none from '
        'default: configmaps "none" not found',
    ),
    "a template asks for the environment": case(
        [],
        [config("p5", a='{{ env "HOME" }}')],
        BAD
        + TEMPLATE
        + '{"a":"{{ env \\"HOME\\" }}"},"kind":"ConfigMap","metadata":{"name":"p5","namespace":"default"}}: '
        'template: tmpl:3:9: executing "tmpl" at <env "HOME">: error calling env: use of denylisted template function: '
        "function 'env' is considered a security risk",
    ),
    "a template names the object that it is for": case(
        [namespace("p6"), config("a", "p6", {"z": "1"}, me="a"), config("b", "p6", {"z": "1"}, me="x")],
        [unnamed("p6", me="{{ .ObjectName }}")],
        BAD + "configmaps [b] found but not as specified in namespace p6",
        more={"objectSelector": {"matchLabels": {"z": "1"}}},
    ),
    "a template skips its object": case(
        [],
        [config("p7", me="{{ skipObject true }}")],
        GOOD + "All objects of kind ConfigMap were skipped by the `skipObject` template function",
    ),
    "a text makes the templates": case(
        [namespace("w1")],
        [],
        "NonCompliant; notification - namespaces [w1] found as specified; violation - namespaces [w2] not found",
        spec={
            "object-templates-raw": '{{- range $n := list "w1" "w2" }}\n- complianceType: musthave\n'
            "  objectDefinition:\n    apiVersion: v1\n    kind: Namespace\n    metadata:\n      name: {{ $n }}\n"
            "{{- end }}\n"
        },
    ),
    "a policy has words of its own": case(
        [],
        [namespace("c1x")],
        "NonCompliant; missing! NonCompliant; violation - namespaces [c1x] not found",
        spec={"customMessage": {"noncompliant": "missing! {{ .DefaultMessage }}"}},
    ),
    "a policy is looked at once": case(
        [],
        [namespace("e1")],
        BAD + "namespaces [e1] not found. This policy will not be evaluated again due to "
        'spec.evaluationInterval.noncompliant being set to "never".',
        spec={"evaluationInterval": {"noncompliant": "never"}},
    ),
}


def names() -> dict[str, str]:
    return {sentence: f"case-{number}" for number, sentence in enumerate(CASES)}


@pytest.fixture(scope="module")
def cluster() -> Member:
    """A cluster with the objects of all cases, and all of their policies."""
    fleet = Fleet("c1")
    fleet.time.advance(2)
    member = fleet.members["c1"]
    objects = [namespace("c1"), *(one for each in CASES.values() for one in each.there)]
    for one in sorted(objects, key=lambda each: each["kind"] != "Namespace"):
        _post(member, one)
    fleet.time.advance(2)
    for sentence, each in CASES.items():
        listed = [{"complianceType": each.kind, "objectDefinition": one, **each.more} for one in each.wanted]
        spec = {"remediationAction": each.action, **({"object-templates": listed} if listed else {}), **each.spec}
        _post(member, {**made(f"{GROUP}/v1", "ConfigurationPolicy", names()[sentence], "c1"), "spec": spec})
    fleet.time.advance(40)
    return member


def _post(member: Member, obj: Obj) -> None:
    version, place = obj["apiVersion"], obj["metadata"].get("namespace")
    plural = "configurationpolicies" if obj["kind"] == "ConfigurationPolicy" else obj["kind"].lower() + "s"
    path = f"/{'apis' if '/' in version else 'api'}/{version}{f'/namespaces/{place}' if place else ''}/{plural}"
    member.admin.send(Request("POST", path, body=obj)).or_raise()


@pytest.mark.parametrize("sentence", CASES)
def test_a_policy_says(cluster: Member, sentence: str) -> None:
    found = cluster.get(f"{CONFIGURATION.format('c1')}/{names()[sentence]}")["status"]
    messages = [one["message"] for one in found["history"]]
    assert messages[0] == CASES[sentence].says
    assert CASES[sentence].before in ("", messages[1] if len(messages) > 1 else None)
    assert found["compliant"] == messages[0].partition(";")[0]


def _diff(cluster: Member, sentence: str) -> str:
    found = cluster.get(f"{CONFIGURATION.format('c1')}/{names()[sentence]}")["status"]["relatedObjects"][0]
    return str(found["properties"]["diff"])


def test_what_differs_is_recorded_but_nothing_of_what_may_be_secret(cluster: Member) -> None:
    assert "-      - image: nginx:1\n" in _diff(cluster, "a container is found by its name")
    masked = "more labels than a template names are wrong where only those may be there"
    assert _diff(cluster, masked).startswith("# The difference is redacted")
