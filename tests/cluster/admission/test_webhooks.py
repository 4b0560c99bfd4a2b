"""Admission webhooks as Kubernetes calls them (virtual time; what answers is a function)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cluster.admission.hooks import APPLY, GROUP, MAPS, MERGE, World, allow, deny, hook, label, patches

from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.kube.transport.outbound import NO_NETWORK, Outcome

FAILED = 'Internal error occurred: failed calling webhook "{}.hooks.example.com": '


def why(answer: Any) -> str:
    return str(answer.obj["message"])


# --- verdicts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (None, 400, "without explanation"),
        ({"message": "no way", "code": 403}, 403, ": no way"),
        ({"reason": "Because", "code": 200}, 400, ": Because"),
        ({"message": "gone", "code": 410, "details": {"name": "x"}}, 410, ": gone"),
    ],
)
def test_a_refusal_tells_the_webhook_and_its_words(status: Obj | None, code: int, said: str) -> None:
    world = World({"/no": deny(status)})
    world.configure(hook("/no"))
    answer = world.map()
    assert answer.status == code
    assert (
        why(answer)
        == f'admission webhook "no.hooks.example.com" denied the request{"" if said[0] == ":" else " "}{said}'
    )
    assert not world.store.list("/configmaps")


def test_mutations_are_stored_in_the_order_of_their_configurations() -> None:
    world = World({"/b": label("b"), "/a": label("a"), "/c": label("c")})
    world.configure(hook("/c"), mutating=True, name="second")
    world.configure(hook("/b"), hook("/a"), mutating=True, name="first")
    made = world.map().or_raise()
    assert made["metadata"]["labels"] == {"app": "web", "a": "yes", "b": "yes", "c": "yes"}
    assert world.paths() == ["/b", "/a", "/c"]
    assert [set(request["object"]["metadata"]["labels"]) for _, request in world.asked] == [
        {"app"},
        {"app", "b"},
        {"app", "a", "b"},
    ]


def test_what_mutations_add_belongs_to_nobody() -> None:
    world = World({"/a": label("a")})
    world.configure(hook("/a"), mutating=True)
    fields = world.map().or_raise()["metadata"]["managedFields"][0]["fieldsV1"]
    assert fields["f:metadata"]["f:labels"] == {".": {}, "f:app": {}}


def test_warnings_and_audit_annotations_are_passed_on() -> None:
    said = {"allowed": True, "warnings": ["take care", "two\nlines"], "auditAnnotations": {"seen": "yes"}}
    world = World({"/a": lambda request: said})
    world.configure(hook("/a"))
    answer = world.map()
    assert answer.headers["warning"] == '299 - "take care"'
    assert answer.annotations == {"a.hooks.example.com/seen": "yes"}


def test_mutations_are_told_to_the_audit_log() -> None:
    world = World({"/a": label("a"), "/b": allow})
    world.configure(hook("/a"), hook("/b"), mutating=True)
    told = dict(world.map().annotations or {})
    assert json.loads(told["patch.webhook.admission.k8s.io/round_0_index_0"])["patch"][0]["op"] == "add"
    changed = {
        key: json.loads(told[f"mutation.webhook.admission.k8s.io/round_0_index_{key}"])["mutated"] for key in (0, 1)
    }
    assert changed == {0: True, 1: False}


# --- who is asked --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, True),
        ({"rule": {"operations": ["UPDATE"]}}, False),
        ({"rule": {"apiGroups": ["apps"]}}, False),
        ({"rule": {"apiVersions": ["v2"]}}, False),
        ({"rule": {"resources": ["*"]}}, True),
        ({"rule": {"resources": ["configmaps/status"]}}, False),
        ({"rule": {"resources": ["*/*"]}}, True),
        ({"rule": {"scope": "Cluster"}}, False),
        ({"rule": {"scope": "Namespaced"}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "blue"}}}, False),
        ({"objectSelector": {"matchLabels": {"app": "web"}}}, True),
        ({"objectSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}, False),
        ({"matchConditions": [{"name": "c", "expression": "object.data.soup == 'tomato'"}]}, True),
        ({"matchConditions": [{"name": "c", "expression": "request.userInfo.username == 'jane'"}]}, False),
        (
            {"matchConditions": [{"name": "c", "expression": "authorizer.requestResource.check('create').allowed()"}]},
            True,
        ),
    ],
)
def test_rules_selectors_and_conditions_choose_who_is_asked(fields: Obj, asked: bool) -> None:
    world = World({"/a": allow})
    world.configure(hook("/a", **fields))
    assert world.map(soup="tomato").ok
    assert bool(world.asked) is asked


def test_a_condition_that_cannot_be_evaluated_refuses_unless_failures_are_ignored() -> None:
    broken = [{"name": "c", "expression": "object.data.nothing == 'x'"}]
    world = World({"/a": allow, "/b": allow})
    world.configure(hook("/b", matchConditions=broken, failurePolicy="Ignore"))
    assert world.map("first", soup="x").ok
    world.configure(hook("/a", matchConditions=broken), name="strict")
    answer = world.map(soup="x")
    assert answer.status == 403
    told = "expression 'object.data.nothing == 'x'' resulted in error: no such key: nothing"
    assert why(answer) == f'configmaps "menu" is forbidden: {told}'
    assert not world.asked


def test_an_equivalent_resource_is_shown_in_the_version_of_the_rule() -> None:
    rule = {"apiGroups": ["autoscaling"], "apiVersions": ["v2"], "resources": ["horizontalpodautoscalers"]}
    scaler = {
        "metadata": {"name": "s"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
    }
    path = "/apis/autoscaling/v1/namespaces/demo/horizontalpodautoscalers"
    world = World({"/a": allow, "/b": patches({"op": "replace", "path": "/spec/maxReplicas", "value": 7})})
    world.configure(hook("/a", rule=rule, matchPolicy="Exact"))
    world.configure(hook("/b", rule=rule), mutating=True)
    made = world.send("POST", path, scaler).or_raise()
    assert world.paths() == ["/b"]
    request = world.asked[0][1]
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v2", "v1")
    assert request["object"]["apiVersion"] == "autoscaling/v2"
    assert (made["apiVersion"], made["spec"]["maxReplicas"]) == ("autoscaling/v1", 7)


def test_configurations_of_admission_are_never_judged() -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    world = World({"/no": deny()})
    world.configure(hook("/no", rule=everything))
    world.configure(hook("/no", rule=everything), name="again")
    for name in ("hooks", "again"):
        assert world.send("DELETE", f"{GROUP}/validatingwebhookconfigurations/{name}").ok
    assert not world.asked
    assert world.map().ok


def test_what_a_cluster_gives_itself_is_not_judged() -> None:
    from syncline.cluster.serving.direct import DirectTransport

    world = World({"/no": deny()})
    world.configure(hook("/no"))
    assert DirectTransport(world.api, judged=False).send(Request("POST", MAPS, body={"metadata": {"name": "a"}})).ok


# --- every verb ----------------------------------------------------------------------------------------------------


def test_each_verb_is_asked_about_with_its_objects() -> None:
    world = World({"/a": allow})
    world.map("menu", soup="pea")
    world.map("other")
    world.configure(hook("/a"))
    menu = f"{MAPS}/menu"
    world.send("PUT", menu, {"metadata": {"name": "menu"}, "data": {"soup": "leek"}}).or_raise()
    world.send("PATCH", menu, {"data": {"soup": "rye"}}, MERGE).or_raise()
    fresh = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fresh"}}
    world.send("PATCH", f"{MAPS}/fresh?fieldManager=me", fresh, APPLY).or_raise()
    world.send("DELETE", f"{menu}?propagationPolicy=Background").or_raise()
    world.send("DELETE", MAPS).or_raise()
    observed = [
        (
            request["operation"],
            request.get("name", ""),
            request["options"]["kind"],
            (request["object"] or {}).get("data"),
            (request["oldObject"] or {}).get("data"),
        )
        for _, request in world.asked
    ]
    assert observed == [
        ("UPDATE", "menu", "UpdateOptions", {"soup": "leek"}, {"soup": "pea"}),
        ("UPDATE", "menu", "UpdateOptions", {"soup": "rye"}, {"soup": "leek"}),
        ("CREATE", "fresh", "CreateOptions", None, None),
        ("DELETE", "menu", "DeleteOptions", None, {"soup": "rye"}),
        ("DELETE", "", "DeleteOptions", None, None),
        ("DELETE", "", "DeleteOptions", None, None),
    ]
    assert not world.store.list("/configmaps")


def test_a_refused_collection_stays_whole() -> None:
    world = World({"/no": lambda request: {"allowed": request["oldObject"]["metadata"]["name"] != "b"}})
    for name in "abc":
        world.map(name)
    world.configure(hook("/no", rule={"operations": ["DELETE"]}))
    assert world.send("DELETE", MAPS).status == 400
    assert len(world.store.list("/configmaps")) == 3


POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
SUBRESOURCES: list[tuple[str, str, Obj, str, str]] = [
    ("pods/eviction", "/pods/web/eviction", {"metadata": {"name": "web"}}, "Eviction", "CREATE"),
    ("pods/binding", "/pods/web/binding", {"metadata": {"name": "web"}, "target": {"name": "n"}}, "Binding", "CREATE"),
    ("serviceaccounts/token", "/serviceaccounts/default/token", {"spec": {}}, "TokenRequest", "CREATE"),
]


@pytest.mark.parametrize(("resource", "path", "body", "kind", "operation"), SUBRESOURCES, ids=lambda v: str(v)[:20])
def test_subresources_are_refused_by_name(resource: str, path: str, body: Obj, kind: str, operation: str) -> None:
    world = World({"/no": deny({"message": "not now"})})
    world.made("/api/v1/namespaces/demo/pods", POD)
    world.configure(hook("/no", rule={"resources": [resource]}))
    answer = world.send("POST", f"/api/v1/namespaces/demo{path}", body)
    if resource != "serviceaccounts/token":  # this cluster has no key to sign tokens with, and says so first
        assert why(answer) == 'admission webhook "no.hooks.example.com" denied the request: not now'
        assert (world.asked[0][1]["kind"]["kind"], world.asked[0][1]["operation"]) == (kind, operation)


class _NoCommands:
    """Where commands would run; none gets so far here."""

    def exec(self, pod: Obj, container: str, wish: Any) -> Any:
        raise AssertionError(f"{wish} was let through")


def test_a_connection_into_a_container_is_asked_about_before_it_begins() -> None:
    world = World({"/no": deny({"message": "no shells"})})
    world.api.backend.commands = _NoCommands()
    placed = {**POD, "spec": {**POD["spec"], "nodeName": "n"}}
    world.made("/api/v1/namespaces/demo/pods", placed)
    world.configure(hook("/no", rule={"resources": ["pods/exec"], "operations": ["CONNECT"]}))
    request = Request(
        "POST",
        "/api/v1/namespaces/demo/pods/web/exec",
        {"command": "sh", "stdout": "true"},
        raw_query="command=sh&command=-c&stdout=true&container=web",
    )
    answer = world.api.handle(request, ADMIN)
    assert why(answer) == 'admission webhook "no.hooks.example.com" denied the request: no shells'
    asked = world.asked[0][1]
    assert (asked["operation"], asked["kind"]["kind"], asked["subResource"]) == ("CONNECT", "PodExecOptions", "exec")
    assert asked["object"]["command"] == ["sh", "-c"]
    assert asked["oldObject"] is None


def test_a_scale_is_shown_as_a_scale_and_changed_as_one() -> None:
    world = World({"/a": patches({"op": "replace", "path": "/spec/replicas", "value": 4}), "/b": allow})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = "/apis/apps/v1/namespaces/demo/deployments"
    world.made(path, {"metadata": {"name": "web"}, "spec": spec})
    rule = {"apiGroups": ["apps"], "resources": ["deployments/scale"]}
    world.configure(hook("/a", rule=rule), mutating=True)
    world.configure(hook("/b", rule=rule))
    answer = world.send("PATCH", f"{path}/web/scale", {"spec": {"replicas": 2}}, MERGE).or_raise()
    assert answer["spec"]["replicas"] == 4
    assert [(r["kind"]["kind"], r["object"]["spec"]["replicas"]) for _, r in world.asked] == [
        ("Scale", 2),
        ("Scale", 4),
    ]
    assert world.send("GET", f"{path}/web").obj["spec"]["replicas"] == 4


def test_a_review_of_access_is_a_request_too() -> None:
    world = World({"/no": deny({"message": "ask nobody"})})
    rule = {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"]}
    world.configure(hook("/no", rule=rule))
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    assert "ask nobody" in why(world.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body))


def test_a_namespace_is_selected_by_its_new_labels() -> None:
    world = World({"/no": deny({"message": "no zoo"})})
    chosen = {"namespaceSelector": {"matchLabels": {"zoo": "yes"}}, "rule": {"resources": ["namespaces"]}}
    world.configure(hook("/no", **chosen))
    assert world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "plain"}}).ok
    assert not world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "z", "labels": {"zoo": "yes"}}}).ok
    assert not world.send("PATCH", "/api/v1/namespaces/plain", {"metadata": {"labels": {"zoo": "yes"}}}, MERGE).ok


def test_the_user_is_told_with_groups_and_extra() -> None:
    world = World({"/a": allow})
    world.configure(hook("/a"))
    user = UserInfo("jane", ("system:masters", "staff"), "u1", {"scope": ("a", "b")})
    world.send("POST", MAPS, {"metadata": {"name": "menu"}}, user=user).or_raise()
    assert world.asked[0][1]["userInfo"] == {
        "username": "jane",
        "uid": "u1",
        "groups": ["system:masters", "staff"],
        "extra": {"scope": ["a", "b"]},
    }


def test_a_generated_name_is_known_to_validation_only() -> None:
    world = World({"/a": allow, "/b": allow})
    world.configure(hook("/a"), mutating=True)
    world.configure(hook("/b"))
    made = world.send("POST", MAPS, {"metadata": {"generateName": "menu-"}}).or_raise()
    (_, first), (_, second) = world.asked
    assert "name" not in first
    assert "uid" not in first["object"]["metadata"]
    assert second["name"] == second["object"]["metadata"]["name"] == made["metadata"]["name"]
    assert second["object"]["metadata"]["uid"] == made["metadata"]["uid"]


# --- dry runs, versions --------------------------------------------------------------------------------------------


def test_a_dry_run_says_so_and_stores_nothing() -> None:
    world = World({"/a": allow})
    world.configure(hook("/a", sideEffects="NoneOnDryRun"))
    assert world.send("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "menu"}}).ok
    assert world.asked[0][1]["dryRun"] is True
    assert world.asked[0][1]["options"]["dryRun"] == ["All"]
    assert not world.store.list("/configmaps")


def test_the_first_known_version_of_a_review_is_spoken() -> None:
    world = World({"/a": allow, "/b": lambda request: {"uid": "another", "allowed": True}})
    world.configure(hook("/a", admissionReviewVersions=["v7", "v1beta1", "v1"]))
    world.configure(hook("/b", admissionReviewVersions=["v1beta1"]), name="old")
    assert world.map().ok
    assert [json.loads(call.body)["apiVersion"] for call in world.calls] == ["admission.k8s.io/v1beta1"] * 2


# --- reinvocation --------------------------------------------------------------------------------------------------


def test_a_webhook_that_asks_for_it_is_called_again_after_later_changes() -> None:
    world = World({"/a": allow, "/b": label("b"), "/c": allow})
    again = {"reinvocationPolicy": "IfNeeded"}
    world.configure(hook("/a", **again), hook("/b"), hook("/c", **again), mutating=True)
    assert world.map().ok
    assert world.paths() == ["/a", "/b", "/c", "/a"]


def test_mutations_never_loop() -> None:
    def grow(request: Obj) -> Obj:
        count = int(request["object"]["data"]["n"]) + 1
        return patches({"op": "replace", "path": "/data/n", "value": str(count)})(request)

    world = World({"/a": grow, "/b": grow})
    again = {"reinvocationPolicy": "IfNeeded"}
    world.configure(hook("/a", **again), hook("/b", **again), mutating=True)
    made = world.map(n="0").or_raise()
    assert world.paths() == ["/a", "/b"] * 2, "each is called twice at the most"
    assert made["data"]["n"] == "4"


def test_our_own_admission_looks_again_at_what_webhooks_changed() -> None:
    extra = {"op": "add", "path": "/spec/containers/-", "value": {"name": "proxy", "image": "proxy:1"}}
    world = World({"/a": patches(extra)})
    world.configure(hook("/a", rule={"resources": ["pods"], "operations": ["CREATE"]}), mutating=True)
    pod = world.send("POST", "/api/v1/namespaces/demo/pods", POD).or_raise()
    mounts = [container["volumeMounts"][0]["mountPath"] for container in pod["spec"]["containers"]]
    assert mounts == ["/var/run/secrets/kubernetes.io/serviceaccount"] * 2
    assert pod["spec"]["containers"][1]["terminationMessagePath"] == "/dev/termination-log"


# --- faults --------------------------------------------------------------------------------------------------------

CALL = "failed to call webhook: "
DOWN = Outcome(
    failure='Post "https://hooks.example.com/a?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (DOWN, f"failed to call webhook: {DOWN.failure}"),
        (Outcome(200, {"content-type": "t"}), f"{CALL}0-length response with status code: 200 and content type: t"),
        (Outcome(500, {}, b"boom"), f'{CALL}an error on the server ("boom") has prevented the request from succeeding'),
        (Outcome(404, {}, b"x"), "failed to call webhook: the server could not find the requested resource"),
        (Outcome(200, {}, b"{}"), "received invalid webhook response: webhook response was absent"),
    ],
)  # fmt: skip
def test_what_is_no_answer_refuses_and_names_the_webhook(outcome: Outcome, said: str) -> None:
    world = World({"/a": outcome})
    world.configure(hook("/a"))
    answer = world.map()
    assert answer.status == 500
    assert why(answer) == FAILED.format("a") + said


@pytest.mark.parametrize("mutating", [True, False])
def test_a_failure_that_is_ignored_lets_the_request_pass_and_is_noted(mutating: bool) -> None:
    world = World({"/a": DOWN})
    world.configure(hook("/a", failurePolicy="Ignore"), mutating=mutating)
    answer = world.map()
    assert answer.ok
    assert "a.hooks.example.com" in [value for key, value in (answer.annotations or {}).items() if "failed-open" in key]


@pytest.mark.parametrize(
    ("step", "code", "said"),
    [
        ({"op": "remove", "path": "/nope/x"}, 500, 'remove operation does not apply: doc is missing path: "/nope/x"'),
        ({"op": "test", "path": "/data/soup", "value": "z"}, 500, "testing value /data/soup failed: test failed"),
        ({"op": "add", "path": "/data/x", "value": 5}, 500, "into Go struct field ConfigMap.data of type string"),
        ({"op": "replace", "path": "/metadata/labels", "value": {"a b": "c"}}, 422, 'is invalid: metadata.labels'),
        ({"op": "replace", "path": "/metadata/namespace", "value": "x"}, 400, "does not match the namespace sent"),
    ],
)  # fmt: skip
def test_a_patch_that_does_not_fit_refuses_the_request(step: Obj, code: int, said: str) -> None:
    world = World({"/a": patches(step)})
    world.configure(hook("/a"), mutating=True)
    answer = world.map(soup="pea")
    assert (answer.status, said in why(answer)) == (code, True), why(answer)
    assert not world.store.list("/configmaps")


def test_a_deletion_cannot_be_patched() -> None:
    world = World({"/a": label("a")})
    world.map()
    world.configure(hook("/a"), mutating=True)
    answer = world.send("DELETE", f"{MAPS}/menu")
    assert "attempted to modify the object, which is not supported for this operation" in why(answer)


def test_without_anybody_who_calls_the_failure_policy_decides_and_the_reason_is_told() -> None:
    world = World()
    world.api.caller = None
    world.configure(hook("/a"))
    assert why(world.map()).endswith(f": {NO_NETWORK}")
    world.send("DELETE", f"{GROUP}/validatingwebhookconfigurations/hooks").or_raise()
    world.configure(hook("/a", failurePolicy="Ignore"))
    assert world.map().ok


# --- while they think ----------------------------------------------------------------------------------------------


def begun(world: World, name: str) -> Any:
    answer = world.api.begin(
        Request("PATCH", f"{MAPS}/{name}", {}, {"content-type": MERGE}, {"data": {"b": "2"}}), ADMIN
    )
    assert answer.pending is not None
    return answer.pending


def finished(world: World, pending: Any) -> Any:
    answer = pending.resume([world._call(call) for call in pending.calls])
    while answer.pending is not None:
        answer = answer.pending.resume([world._call(call) for call in answer.pending.calls])
    return answer


def test_others_write_while_a_webhook_thinks_and_nothing_of_theirs_is_lost() -> None:
    world = World({"/a": allow})
    world.map(a="1")
    world.configure(hook("/a", matchConditions=[{"name": "b", "expression": "has(object.data.b)"}]))
    pending = begun(world, "menu")
    world.send("PATCH", f"{MAPS}/menu", {"data": {"a": "9", "c": "3"}}, MERGE).or_raise()
    answer = finished(world, pending)
    assert answer.or_raise()["data"] == {"a": "9", "b": "2", "c": "3"}
    assert [request["object"]["data"] for _, request in world.asked] == [
        {"a": "1", "b": "2"},
        {"a": "9", "b": "2", "c": "3"},
    ], "what is stored was judged as it is stored"


def test_an_object_that_went_while_a_webhook_thought_is_not_found() -> None:
    world = World({"/a": allow})
    world.map(a="1")
    world.configure(hook("/a", rule={"operations": ["UPDATE"]}))
    pending = begun(world, "menu")
    world.send("DELETE", f"{MAPS}/menu").or_raise()
    assert finished(world, pending).status == 404


def test_a_request_gives_up_after_its_time() -> None:
    world = World({"/a": allow, "/b": allow})
    world.map(a="1")
    world.configure(hook("/a"), hook("/b"), mutating=True)
    pending = begun(world, "menu")
    outcomes = [world._call(call) for call in pending.calls]
    world.clock.advance(35)
    answer = pending.resume(outcomes)
    assert (answer.status, answer.obj["reason"]) == (504, "Timeout")


def test_timeouts_shrink_with_what_is_left_of_the_request() -> None:
    world = World({"/a": allow, "/b": allow})
    world.map(a="1")
    world.configure(hook("/a", timeoutSeconds=30), hook("/b", timeoutSeconds=30), mutating=True)
    pending = begun(world, "menu")
    assert pending.calls[0].url.endswith("?timeout=30s")
    outcomes = [world._call(call) for call in pending.calls]
    world.clock.advance(28)
    answer = pending.resume(outcomes)
    assert answer.pending.calls[0].url.endswith("/b?timeout=6s")


# --- services ------------------------------------------------------------------------------------------------------


def test_a_service_leads_to_its_endpoints() -> None:
    world = World({"/a": allow})
    world.made("/api/v1/namespaces/demo/services", {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}})
    slice_ = {
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 9443, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["10.0.0.9"], "conditions": {"ready": False}},
            {"addresses": ["192.0.2.7"], "conditions": {"ready": True}},
        ],
    }
    world.made("/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices", slice_)
    service = {"service": {"name": "hook", "namespace": "demo", "path": "/a"}}
    world.configure(hook("/a", clientConfig=service))
    assert world.map().ok
    call = world.calls[0]
    assert (call.address, call.server_name) == (("192.0.2.7", 9443), "hook.demo.svc")
    assert call.url == "https://hook.demo.svc:443/a?timeout=10s"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (None, 'service "hook" not found'),
        ({"ports": [{"port": 80}]}, 'no service port 443 found for service "hook"'),
        ({"ports": [{"port": 443}]}, 'no endpoints available for service "hook"'),
    ],
)
def test_a_service_that_leads_nowhere_says_why(spec: Obj | None, said: str) -> None:
    world = World()
    if spec is not None:
        world.made("/api/v1/namespaces/demo/services", {"metadata": {"name": "hook"}, "spec": spec})
    world.configure(hook("/a", clientConfig={"service": {"name": "hook", "namespace": "demo"}}))
    url = "https://hook.demo.svc:443/?timeout=10s"
    assert why(world.map()) == FAILED.format("a") + f'failed to call webhook: Post "{url}": {said}'
    assert not world.calls


def test_an_external_name_is_called_as_it_stands() -> None:
    world = World({"/": allow})
    spec = {"type": "ExternalName", "externalName": "hooks.example.org"}
    world.made("/api/v1/namespaces/demo/services", {"metadata": {"name": "hook"}, "spec": spec})
    world.configure(hook("/a", clientConfig={"service": {"name": "hook", "namespace": "demo", "port": 8443}}))
    assert world.map().ok
    assert world.calls[0].address == ("hooks.example.org", 8443)


def test_addresses_of_pods_are_not_called_because_nothing_routes_them() -> None:
    world = World()
    world.made("/api/v1/namespaces/demo/services", {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}})
    slice_ = {
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 9443}],
        "endpoints": [{"addresses": ["10.244.0.9"], "targetRef": {"kind": "Pod", "name": "web"}}],
    }
    world.made("/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices", slice_)
    world.configure(hook("/a", clientConfig={"service": {"name": "hook", "namespace": "demo"}}))
    assert 'pod "web" behind service "hook" cannot be reached: nothing routes Pod addresses here' in why(world.map())
