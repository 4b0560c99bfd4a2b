"""Refusals become the Role to ask for: one sentence for each namespace, ready to be pasted."""

from __future__ import annotations

import pytest

from syncline.kube.rights import Right, ask_for, missing_right, role_for
from syncline.kube.yaml.loading import load

CANNOT = 'User "dev" cannot'


@pytest.mark.parametrize(
    ("message", "right"),
    [
        (
            f'pods is forbidden: {CANNOT} list resource "pods" in API group "" in the namespace "shop"',
            Right("shop", "", "pods", "list"),
        ),
        (
            f'deployments.apps "web" is forbidden: {CANNOT} patch resource "deployments" in API group "apps" in the '
            'namespace "shop": RBAC: role.rbac.authorization.k8s.io "gone" not found',
            Right("shop", "apps", "deployments", "patch"),
        ),
        (
            f'pods is forbidden: {CANNOT} get resource "pods/log" in API group "" in the namespace "a"',
            Right("a", "", "pods/log", "get"),
        ),
        (
            f'nodes is forbidden: {CANNOT} list resource "nodes" in API group "" at the cluster scope',
            Right("", "", "nodes", "list"),
        ),
        ('pods "web" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1', None),
        ("", None),
    ],
)
def test_a_refusal_by_rbac_names_the_right_and_others_name_none(message: str, right: Right | None) -> None:
    assert missing_right(message) == right


def test_rights_of_a_namespace_are_one_sentence_whose_rules_are_yaml() -> None:
    found = ask_for(
        [
            Right("shop", "apps", "deployments", "get", "web"),
            Right("shop", "", "pods", "list"),
            Right("", "", "nodes", "get", "n1"),
            Right("shop", "", "pods", "get"),
        ]
    )
    assert found == [
        'you may not get nodes n1 at the cluster scope; ask for a ClusterRole with rules: [{apiGroups: [""], '
        'resources: ["nodes"], resourceNames: ["n1"], verbs: ["get"]}]',
        "you may not get and list pods, get deployments.apps web in namespace shop; ask for a Role in shop with rules: "
        '[{apiGroups: [""], resources: ["pods"], verbs: ["get", "list"]}, '
        '{apiGroups: ["apps"], resources: ["deployments"], resourceNames: ["web"], verbs: ["get"]}]',
    ]
    rules = load(found[1].partition("rules: ")[2])
    assert rules[1] == {
        "apiGroups": ["apps"],
        "resources": ["deployments"],
        "resourceNames": ["web"],
        "verbs": ["get"],
    }


def test_a_rule_for_many_objects_is_one_for_all() -> None:
    many = [Right("shop", "", "secrets", "get", f"s{number}") for number in range(30)]
    assert role_for(many) == 'a Role in shop with rules: [{apiGroups: [""], resources: ["secrets"], verbs: ["get"]}]'
