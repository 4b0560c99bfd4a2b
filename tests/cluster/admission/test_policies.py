"""Admission policies beyond the recorded conversations: those that people copy, and what they are told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.admission.hooks import GROUP, MAPS, MERGE, World, hook, label

from syncline.cluster.access.users import UserInfo
from syncline.kube.objects import Obj

APPS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"]}
CORE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
DEPLOYMENTS = "/apis/apps/v1/namespaces/demo/deployments"
PODS = "/api/v1/namespaces/demo/pods"


def policy(
    world: World, spec: Obj, binding: Obj | None = None, *, mutating: bool = False, rule: Obj | None = None
) -> None:
    kind = ("Mutating" if mutating else "Validating") + "AdmissionPolicy"
    operations = {"operations": ["CREATE", "UPDATE"]} if mutating else {}
    made = {"matchConstraints": {"resourceRules": [(rule or CORE) | operations]}, "failurePolicy": "Fail", **spec}
    if mutating:
        made.setdefault("reinvocationPolicy", "Never")
    plural = kind.lower().removesuffix("y") + "ies"
    world.made(f"{GROUP}/{plural}", {"metadata": {"name": "rule"}, "spec": made})
    bound = {"policyName": "rule", **({} if mutating else {"validationActions": ["Deny"]}), **(binding or {})}
    world.made(f"{GROUP}/{kind.lower()}bindings", {"metadata": {"name": "bound"}, "spec": bound})


def deployment(replicas: int = 1, **template: Any) -> Obj:
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "shop/web:1"}], **template},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    return {"metadata": {"name": "web", "labels": {"team": "red"}}, "spec": spec}


def why(answer: Any) -> str:
    return str(answer.obj["message"])


# --- the pages' examples, in our words -----------------------------------------------------------------------------

COPIED: dict[str, tuple[Obj, Obj, Obj, str]] = {
    "replicas are bounded": (
        {"validations": [{"expression": "object.spec.replicas <= 5"}]},
        deployment(5),
        deployment(6),
        "failed expression: object.spec.replicas <= 5",
    ),
    "the limit depends on who asks": (
        {
            "variables": [
                {"name": "most", "expression": "'team' in object.metadata.labels ? 3 : 1"},
                {"name": "asked", "expression": "object.spec.replicas"},
            ],
            "validations": [
                {
                    "expression": "variables.asked <= variables.most",
                    "messageExpression": "'at most ' + string(variables.most) + ', not ' + string(variables.asked)",
                    "reason": "Forbidden",
                }
            ],
        },
        deployment(3),
        deployment(4),
        "at most 3, not 4",
    ),
    "images come from one registry": (
        {
            "variables": [{"name": "own", "expression": "object.spec.template.spec.containers"}],
            "validations": [
                {
                    "expression": "variables.own.all(c, c.image.startsWith('shop/'))",
                    "messageExpression": "'foreign: ' + variables.own.map(c, c.image).join(', ')",
                }
            ],
        },
        deployment(),
        deployment(containers=[{"name": "c", "image": "other/web:1"}]),
        "foreign: other/web:1",
    ),
    "containers do not run as root": (
        {
            "validations": [
                {
                    "expression": "has(object.spec.template.spec.securityContext.runAsNonRoot) && "
                    "object.spec.template.spec.securityContext.runAsNonRoot",
                    "message": "run as somebody",
                }
            ]
        },
        deployment(securityContext={"runAsNonRoot": True}),
        deployment(),
        "run as somebody",
    ),
    "quantities are compared as quantities": (
        {
            "validations": [
                {
                    "expression": "object.spec.template.spec.containers.all(c, !has(c.resources.limits) || "
                    "quantity(c.resources.limits['memory']).isLessThan(quantity('1Gi')))",
                    "message": "too much memory",
                }
            ]
        },
        deployment(),
        deployment(containers=[{"name": "c", "image": "i", "resources": {"limits": {"memory": "2Gi"}}}]),
        "too much memory",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIED)
def test_policies_that_people_copy(name: str) -> None:
    spec, fine, wrong, said = COPIED[name]
    world = World()
    policy(world, spec, rule=APPS)
    assert world.send("POST", f"{DEPLOYMENTS}?dryRun=All", fine).ok
    answer = world.send("POST", DEPLOYMENTS, wrong)
    bound = "ValidatingAdmissionPolicy 'rule' with binding 'bound' denied request"
    assert why(answer) == f'deployments.apps "web" is forbidden: {bound}: {said}'
    reason = spec["validations"][0].get("reason", "Invalid")
    assert (answer.status, answer.obj["reason"]) == ({"Invalid": 422, "Forbidden": 403}[reason], reason)


def test_a_parameter_of_a_custom_kind_is_read_in_its_version() -> None:
    world = World()
    schema = {"type": "object", "properties": {"most": {"type": "integer"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Limit", "plural": "limits"}
    crd = {"group": "rules.example.com", "scope": "Cluster", "names": names, "versions": [version]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    world.made(path, {"metadata": {"name": "limits.rules.example.com"}, "spec": crd})
    limit = {"apiVersion": "rules.example.com/v1", "kind": "Limit", "metadata": {"name": "two"}, "most": 2}
    world.made("/apis/rules.example.com/v1/limits", limit)
    spec = {
        "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Limit"},
        "validations": [{"expression": "object.spec.replicas <= params.most"}],
    }
    policy(world, spec, {"paramRef": {"name": "two", "parameterNotFoundAction": "Deny"}}, rule=APPS)
    assert world.send("POST", f"{DEPLOYMENTS}?dryRun=All", deployment(2)).ok
    assert world.send("POST", DEPLOYMENTS, deployment(3)).status == 422


# --- actions -------------------------------------------------------------------------------------------------------


def test_warn_and_audit_let_pass_and_tell() -> None:
    world = World()
    spec = {
        "validations": [{"expression": "false", "message": "hm"}],
        "auditAnnotations": [{"key": "who", "valueExpression": "request.userInfo.username"}],
    }
    policy(world, spec, {"validationActions": ["Warn", "Audit"]})
    answer = world.map()
    assert answer.ok
    told = "Validation failed for ValidatingAdmissionPolicy 'rule' with binding 'bound': hm"
    assert answer.headers["warning"] == f'299 - "{told}"'
    annotations = dict(answer.annotations or {})
    assert annotations["rule/who"] == "kubernetes-admin"
    [failure] = json.loads(annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert failure == {
        "message": "hm",
        "policy": "rule",
        "binding": "bound",
        "expressionIndex": 0,
        "validationActions": ["Warn", "Audit"],
    }


def test_a_policy_without_a_binding_is_in_force_for_nobody() -> None:
    world = World()
    policy(world, {"validations": [{"expression": "false"}]})
    assert world.map().status == 422
    world.send("DELETE", f"{GROUP}/validatingadmissionpolicybindings/bound").or_raise()
    assert world.map().ok
    assert not world.api.backend.admission.configured.active


def test_expressions_that_cost_too_much_are_stopped() -> None:
    world = World()
    many = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b + c + d != 'x'))))"
    policy(world, {"validations": [{"expression": many}]})
    answer = world.map(**{f"k{number}": "v" for number in range(40)})
    assert answer.status == 422
    assert "cost limit exceeded" in why(answer)


def test_the_authorizer_answers_for_the_one_who_asks() -> None:
    world = World()
    asks = "authorizer.group('').resource('secrets').namespace('demo').check('list').allowed()"
    policy(world, {"validations": [{"expression": asks, "message": "not for you"}]})
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    world.made(f"{rbac}/clusterroles", {"metadata": {"name": "maker"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maker"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    world.made(f"{rbac}/clusterrolebindings", {"metadata": {"name": "j"}, "roleRef": role, "subjects": [subject]})
    assert world.map().ok
    answer = world.send("POST", MAPS, {"metadata": {"name": "hers"}}, user=UserInfo("jane"))
    assert why(answer).endswith("denied request: not for you")


def test_policies_come_before_webhooks() -> None:
    world = World({"/a": label("a")})
    world.configure(hook("/a"))
    policy(world, {"validations": [{"expression": "false"}]})
    assert world.map().status == 422
    assert not world.asked


def test_questions_about_access_are_never_refused_by_a_policy() -> None:
    world = World()
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    policy(world, {"validations": [{"expression": "false"}]}, rule=everything)
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    assert world.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body).ok
    assert world.map().status == 422
    assert world.send("DELETE", f"{GROUP}/validatingadmissionpolicies/rule").ok


@pytest.mark.parametrize("mutating", [False, True])
def test_nobody_lets_a_policy_read_what_they_may_not_read(mutating: bool) -> None:
    world = World()
    kind = ("Mutating" if mutating else "Validating") + "AdmissionPolicy"
    plural = kind.lower().removesuffix("y") + "ies"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
    world.made(f"{rbac}/clusterroles", {"metadata": {"name": "keeper"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "keeper"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    world.made(f"{rbac}/clusterrolebindings", {"metadata": {"name": "j"}, "roleRef": role, "subjects": [subject]})
    match = {"resourceRules": [CORE | {"operations": ["CREATE"]}]}
    spec: Obj = {"paramKind": {"apiVersion": "v1", "kind": "Secret"}, "matchConstraints": match}
    if mutating:
        spec |= {"mutations": [apply("Object{data: {'a': params.metadata.name}}")], "reinvocationPolicy": "Never"}
    else:
        spec["validations"] = [{"expression": "false", "messageExpression": "string(params.data.key)"}]
    body = {"metadata": {"name": "spy"}, "spec": spec}
    answer = world.send("POST", f"{GROUP}/{plural}", body, user=UserInfo("jane"))
    assert answer.status == 422
    assert 'spec.paramKind: Forbidden: user "jane" must have "get" permission on all objects' in why(answer)
    world.made(f"{GROUP}/{plural}", body)
    ref = {"name": "s", "namespace": "demo", "parameterNotFoundAction": "Deny"}
    bound: Obj = {"policyName": "spy", "paramRef": ref, **({} if mutating else {"validationActions": ["Deny"]})}
    bind = {"metadata": {"name": "spy"}, "spec": bound}
    answer = world.send("POST", f"{GROUP}/{kind.lower()}bindings", bind, user=UserInfo("jane"))
    assert 'spec.paramRef: Forbidden: user "jane" does not have "get" permission' in why(answer)
    assert world.send("POST", f"{GROUP}/{kind.lower()}bindings", bind).ok


# --- mutations -----------------------------------------------------------------------------------------------------

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
POD_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def apply(expression: str) -> Obj:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def steps(expression: str) -> Obj:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def test_a_sidecar_is_merged_by_its_name() -> None:
    world = World()
    sidecar = "Object.spec.initContainers{name: 'proxy', image: 'mesh:1', restartPolicy: 'Always'}"
    missing = {"name": "m", "expression": "!object.spec.?initContainers.orValue([]).exists(c, c.name == 'proxy')"}
    spec = {
        "matchConditions": [missing],
        "mutations": [apply(f"Object{{spec: Object.spec{{initContainers: [{sidecar}]}}}}")],
    }
    policy(world, spec, mutating=True, rule=POD_RULE)
    made = world.send("POST", PODS, POD).or_raise()
    [proxy] = made["spec"]["initContainers"]
    assert (proxy["name"], proxy["restartPolicy"], proxy["terminationMessagePolicy"]) == ("proxy", "Always", "File")
    assert proxy["volumeMounts"], "our own admission looks again at what policies add"


def test_a_container_is_changed_by_its_key_and_the_others_stay() -> None:
    world = World()
    change = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'web', imagePullPolicy: 'Never'}]}}"
    policy(world, {"mutations": [apply(change)]}, mutating=True, rule=POD_RULE)
    made = world.send("POST", PODS, POD).or_raise()
    assert [(c["image"], c["imagePullPolicy"]) for c in made["spec"]["containers"]] == [("web:1", "Never")]


def test_what_is_replaced_as_a_whole_cannot_be_applied() -> None:
    world = World()
    change = "Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: 'a', operator: 'Exists'}]}}"
    policy(world, {"mutations": [apply(change)]}, mutating=True, rule=POD_RULE)
    answer = world.send("POST", PODS, POD)
    assert answer.status == 403
    assert "may not mutate atomic arrays, maps or structs: .spec.tolerations" in why(answer)


def test_labels_are_patched_where_there_were_none() -> None:
    world = World()
    change = (
        "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'env': 'test'}}, "
        "JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/tier'), value: 'web'}]"
    )
    policy(world, {"mutations": [steps(change)]}, mutating=True)
    made = world.send("POST", MAPS, {"metadata": {"name": "menu"}}).or_raise()
    assert made["metadata"]["labels"] == {"env": "test", "example.com/tier": "web"}
    assert "labels" not in json.dumps(made["metadata"].get("managedFields", [])), "nobody owns what a policy adds"


def test_policies_change_before_webhooks_and_again_after_them_where_asked() -> None:
    world = World({"/a": label("hooked")})
    world.configure(hook("/a"), mutating=True)
    count = "string(size(object.metadata.labels))"
    change = f"Object{{metadata: Object.metadata{{annotations: {{'labels': {count}}}}}}}"
    policy(world, {"mutations": [apply(change)], "reinvocationPolicy": "IfNeeded"}, mutating=True)
    made = world.map().or_raise()
    assert world.asked[0][1]["object"]["metadata"]["annotations"] == {"labels": "1"}
    assert made["metadata"]["annotations"] == {"labels": "2"}


def test_a_failing_mutation_is_passed_over_where_failures_are_ignored() -> None:
    world = World()
    broken = apply("Object{metadata: Object.metadata{labels: {'x': object.data.none}}}")
    policy(world, {"mutations": [broken], "failurePolicy": "Ignore"}, mutating=True)
    assert world.map().ok


def test_deletions_are_never_mutated() -> None:
    world = World()
    world.map()
    policy(world, {"mutations": [apply("Object{data: {'a': 'b'}}")]}, mutating=True)
    assert world.send("DELETE", f"{MAPS}/menu").ok


def test_an_update_is_mutated_and_judged_as_it_will_be_stored() -> None:
    world = World()
    world.map(soup="pea")
    policy(world, {"mutations": [apply("Object{data: {'salt': 'yes'}}")]}, mutating=True)
    policy(world, {"validations": [{"expression": "object.data.salt == 'yes' && !has(oldObject.data.salt)"}]})
    assert world.send("PATCH", f"{MAPS}/menu", {"data": {"soup": "leek"}}, MERGE).or_raise()["data"] == {
        "soup": "leek",
        "salt": "yes",
    }
