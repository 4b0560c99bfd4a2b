from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.cluster.access.authz import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Authorizer,
    forbidden,
)
from syncline.cluster.access.rbac import Attributes, Rule, aggregated_rules, missing_rules
from syncline.cluster.access.users import ADMIN, ANONYMOUS, UserInfo, service_account_user
from syncline.cluster.storage.store import Key, Store

JANE = UserInfo("jane", ("devs", "system:authenticated"))
GET_WEB = Attributes("get", "apps", "deployments", namespace="demo", name="web")


def role(name: str, namespace: str = "demo", /, **rule: list[str]) -> tuple[Key, dict[str, Any]]:
    resource = ROLES if namespace else CLUSTER_ROLES
    obj = {"metadata": {"name": name, "namespace": namespace}, "rules": [rule] if rule else []}
    return Key(resource, namespace, name), obj


def binding(
    name: str, subject: dict[str, str], role_name: str, *, namespace: str = "demo", kind: str = "Role"
) -> tuple[Key, dict[str, Any]]:
    resource = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name}
    return Key(resource, namespace, name), {
        "metadata": {"name": name, "namespace": namespace},
        "subjects": [subject],
        "roleRef": ref,
    }


DEVS = {"kind": "Group", "name": "devs"}
READ = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}


def world(*objects: tuple[Key, dict[str, Any]]) -> tuple[Store, Authorizer]:
    store = Store()
    authorizer = Authorizer(store)
    for key, obj in objects:
        store.put(key, obj, expect=0)
    return store, authorizer


def test_a_role_binding_allows_in_its_namespace_and_says_which() -> None:
    _, authorizer = world(role("dev", **READ), binding("devs", DEVS, "dev"))
    decision = authorizer.decide(JANE, GET_WEB)
    assert decision.allowed
    assert decision.reason == 'RBAC: allowed by RoleBinding "devs/demo" of Role "dev" to Group "devs"'
    assert not authorizer.decide(JANE, Attributes("get", "apps", "deployments", namespace="other")).allowed
    assert not authorizer.decide(JANE, Attributes("delete", "apps", "deployments", namespace="demo")).allowed


def test_a_cluster_role_binding_allows_everywhere_and_comes_first() -> None:
    _, authorizer = world(
        role("dev", **READ),
        binding("devs", DEVS, "dev"),
        role("reader", "", **READ),
        binding("readers", {"kind": "User", "name": "jane"}, "reader", namespace="", kind="ClusterRole"),
    )
    reason = 'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "jane"'
    assert authorizer.decide(JANE, GET_WEB).reason == reason
    assert authorizer.decide(JANE, Attributes("get", "apps", "deployments")).reason == reason


def test_a_service_account_subject_defaults_to_the_namespace_of_the_binding() -> None:
    _, authorizer = world(role("dev", **READ), binding("b", {"kind": "ServiceAccount", "name": "robot"}, "dev"))
    decision = authorizer.decide(service_account_user("demo", "robot"), GET_WEB)
    assert decision.reason == 'RBAC: allowed by RoleBinding "b/demo" of Role "dev" to ServiceAccount "robot/demo"'
    assert not authorizer.decide(service_account_user("other", "robot"), GET_WEB).allowed


def test_decisions_follow_every_change_of_roles_and_bindings() -> None:
    store, authorizer = world()
    assert not authorizer.decide(JANE, GET_WEB).allowed
    bound, bound_obj = binding("b", DEVS, "dev")
    store.put(bound, bound_obj, expect=0)
    assert authorizer.decide(JANE, GET_WEB).reason == 'RBAC: role.rbac.authorization.k8s.io "dev" not found'
    key, obj = role("dev", **READ)
    store.put(key, obj, expect=0)
    assert authorizer.decide(JANE, GET_WEB).allowed
    store.put(key, {**obj, "rules": None}, expect=None)
    assert not authorizer.decide(JANE, GET_WEB).allowed
    store.put(key, obj, expect=None)
    store.delete(bound, expect=None)
    assert not authorizer.decide(JANE, GET_WEB).allowed


def test_masters_may_do_everything_without_a_reason() -> None:
    _, authorizer = world()
    decision = authorizer.decide(ADMIN, Attributes("get", path="/metrics"))
    assert decision.allowed and decision.reason == ""


@pytest.mark.parametrize(
    ("rule", "asked", "allowed"),
    [
        (Rule(("*",), ("",), ("pods",)), Attributes("get", "", "pods", "log"), False),
        (Rule(("get",), ("",), ("pods/log",)), Attributes("get", "", "pods", "log"), True),
        (Rule(("get",), ("",), ("pods/log",)), Attributes("get", "", "pods"), False),
        (Rule(("get",), ("*",), ("*/scale",)), Attributes("get", "apps", "deployments", "scale"), True),
        (Rule(("get",), ("*",), ("*/scale",)), Attributes("get", "apps", "deployments"), False),
        (Rule(("get",), ("*",), ("*",)), Attributes("get", "apps", "deployments", "scale"), True),
        (Rule(("get",), ("",), ("secrets",), ("one",)), Attributes("get", "", "secrets", name="one"), True),
        (Rule(("get",), ("",), ("secrets",), ("one",)), Attributes("get", "", "secrets", name="two"), False),
        (Rule(("list",), ("",), ("secrets",), ("one",)), Attributes("list", "", "secrets"), False),
        (Rule(("get",), non_resource_urls=("/apis/*",)), Attributes("get", path="/apis/apps"), True),
        (Rule(("get",), non_resource_urls=("/apis",)), Attributes("get", path="/apis/apps"), False),
        (Rule(("get",), non_resource_urls=("*",)), Attributes("get", "", "pods"), False),
        (Rule(("*",), ("*",), ("*",)), Attributes("get", path="/apis"), False),
    ],
)
def test_a_rule_allows_what_kubernetes_says(rule: Rule, asked: Attributes, allowed: bool) -> None:
    assert rule.allows(asked) is allowed


@pytest.mark.parametrize(
    ("user", "asked", "message", "details"),
    [
        (
            JANE,
            Attributes("list", "", "pods", namespace="demo"),
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "demo"',
            {"kind": "pods"},
        ),
        (
            JANE,
            GET_WEB,
            'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments" in API group "apps" '
            'in the namespace "demo"',
            {"name": "web", "group": "apps", "kind": "deployments"},
        ),
        (
            JANE,
            Attributes("get", "", "nodes", "proxy", name="n"),
            'nodes "n" is forbidden: User "jane" cannot get resource "nodes/proxy" in API group "" '
            "at the cluster scope",
            {"name": "n", "kind": "nodes"},
        ),
        (
            ANONYMOUS,
            Attributes("get", path="/metrics"),
            'forbidden: User "system:anonymous" cannot get path "/metrics"',
            {},
        ),
    ],
)
def test_a_refusal_has_the_words_of_kubernetes(
    user: UserInfo, asked: Attributes, message: str, details: dict[str, str]
) -> None:
    status = forbidden(user, asked).to_status()
    assert (status["message"], status["details"], status["code"]) == (message, details, 403)


def test_nobody_grants_more_than_they_hold() -> None:
    _, authorizer = world(role("dev", **READ), binding("devs", DEVS, "dev"))
    wanted = (Rule(("get", "delete"), ("apps",), ("deployments",)),)
    assert authorizer.escalation(JANE, wanted, "demo") == (
        'user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently '
        'held:\n{APIGroups:["apps"], Resources:["deployments"], Verbs:["delete"]}'
    )
    assert authorizer.escalation(JANE, (Rule(("get",), ("apps",), ("deployments",)),), "demo") == ""
    assert authorizer.escalation(ADMIN, wanted, "demo") == ""


def test_missing_rules_are_named_one_by_one_and_joined_by_resource() -> None:
    everything = (Rule(("*",), ("*",), ("*",)), Rule(("*",), non_resource_urls=("*",)))
    assert [str(rule) for rule in missing_rules((), everything)] == [
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}',
        '{NonResourceURLs:["*"], Verbs:["*"]}',
    ]
    wanted = (Rule(("get", "list"), ("",), ("pods", "secrets"), ("a",)),)
    assert [str(rule) for rule in missing_rules((Rule(("get",), ("",), ("pods",)),), wanted)] == [
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["list"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get" "list"]}',
    ]


SOME = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=2, unique=True).map(tuple)
RESOURCES = st.lists(st.sampled_from(["x", "x/s", "*/s", "*"]), min_size=1, max_size=2, unique=True).map(tuple)
NAMES = st.lists(st.sampled_from(["n", "m"]), max_size=2, unique=True).map(tuple)
RULES = st.lists(
    st.builds(Rule, verbs=SOME, api_groups=SOME, resources=RESOURCES, resource_names=NAMES), max_size=3
).map(tuple)
ASKED = st.builds(
    Attributes,
    verb=st.sampled_from("ab"),
    group=st.sampled_from("ab"),
    resource=st.just("x"),
    subresource=st.sampled_from(["", "s"]),
    name=st.sampled_from(["", "n", "m"]),
)


@given(held=RULES, wanted=RULES, asked=ASKED)
def test_what_is_covered_is_allowed(held: tuple[Rule, ...], wanted: tuple[Rule, ...], asked: Attributes) -> None:
    if not missing_rules(held, wanted) and any(rule.allows(asked) for rule in wanted):
        assert any(rule.allows(asked) for rule in held)


@given(held=RULES, wanted=RULES)
def test_what_is_missing_is_enough_to_cover_the_rest(held: tuple[Rule, ...], wanted: tuple[Rule, ...]) -> None:
    assert missing_rules((*held, *missing_rules(held, wanted)), wanted) == ()


def test_rules_of_a_user_are_those_of_the_cluster_and_of_the_namespace_with_the_errors() -> None:
    _, authorizer = world(role("dev", **READ), binding("devs", DEVS, "dev"), binding("gone", DEVS, "gone"))
    rules, errors = authorizer.rules(JANE, "demo")
    assert rules == (Rule(("get",), ("apps",), ("deployments",)),)
    assert errors == 'role.rbac.authorization.k8s.io "gone" not found'
    assert authorizer.rules(JANE, "") == ((), "")


def test_an_aggregating_role_takes_the_rules_of_the_selected_roles_by_name() -> None:
    def source(name: str, verb: str, **labels: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": labels}, "rules": [{"verbs": [verb]}]}

    whole = {
        "metadata": {"name": "whole", "labels": {"to": "x"}},
        "rules": [{"verbs": ["old"]}],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]},
    }
    others = [source("b", "get", to="x"), source("a", "list", to="x"), source("c", "get", to="x"), source("d", "no")]
    assert aggregated_rules(whole, [whole, *others]) == [{"verbs": ["list"]}, {"verbs": ["get"]}]
    assert aggregated_rules(others[0], others) is None
