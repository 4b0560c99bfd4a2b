"""What identities may do: accounts, groups, default roles, tokens and roles of AppProjects."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.argo.access.enforcing import Request
from syncline.argo.access.policy import PolicyError
from syncline.argo.access.rights import Rights, identity_of, project_policy, read_rights, refusal

ROLE = "proj:my-proj:my-role"


def project(policies: list[str] | None = None, groups: list[str] | None = None) -> dict[str, Any]:
    lines = [f"p, {ROLE}, {res}, {act}, my-proj/*, allow" for res, act in ASKED] if policies is None else policies
    role = {"name": "my-role", "policies": lines, "groups": ["my-org:my-team"] if groups is None else groups}
    return {"metadata": {"name": "my-proj"}, "spec": {"roles": [role]}}


ASKED = (("applications", "create"), ("logs", "get"), ("exec", "create"))


def rights(policy: str = "", found: dict[str, Any] | None = None, **data: str) -> Rights:
    mine = found or project()
    keys = {"default": "policy.default", "mode": "policy.matchMode"}
    return read_rights(
        {"policy.csv": policy} | {keys.get(key, key): value for key, value in data.items()},
        lambda name: mine if name == "my-proj" else None,
    )


def may(rules: Rights, claims: dict[str, Any], resource: str, action: str, target: str) -> bool:
    return bool(rules.decide(identity_of(claims), Request(resource, action, target)))


BOB = "\n".join(f"p, bob, {res}, {act}, my-proj/*, allow" for res, act in ASKED)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"sub": "bob"}, True),
        ({"sub": "x", "federated_claims": {"user_id": "bob"}}, True),
        ({"sub": "bob", "federated_claims": {"user_id": ""}}, True),
        ({"sub": ROLE, "iat": 1234}, True),
        ({"groups": ["my-org:my-team"]}, True),
        ({"groups": "my-org:my-team"}, True),
        ({"sub": "cathy"}, False),
        ({"sub": "proj:other:my-role"}, False),
        ({"sub": "cathy", "groups": [ROLE]}, False),
        ({"sub": "cathy", "groups": ["role:admin"]}, True),  # as upstream: identity providers are trusted with groups
        ({}, False),
    ],
)
def test_policies_of_administrators_and_of_projects_count(claims: dict[str, Any], expected: bool) -> None:
    for resource, action in ASKED:
        assert may(rights(BOB), claims, resource, action, "my-proj/my-app") is expected


def test_a_role_of_a_project_reads_its_project_and_no_other() -> None:
    assert may(rights(), {"sub": ROLE}, "projects", "get", "my-proj")
    assert may(rights(), {"groups": ["my-org:my-team"]}, "projects", "get", "my-proj")
    assert not may(rights(), {"sub": ROLE}, "projects", "get", "other")
    assert not may(rights(), {"sub": ROLE}, "applications", "create", "other/app")
    assert not may(rights(), {"sub": ROLE}, "clusters", "get", "https://kubernetes.default.svc")


def test_groups_are_read_of_the_claims_that_scopes_name() -> None:
    rules = rights(scopes="[cognito:groups]")
    assert may(rules, {"cognito:groups": ["my-org:my-team"]}, "applications", "create", "my-proj/a")
    assert not may(rules, {"groups": ["my-org:my-team"]}, "applications", "create", "my-proj/a")


@pytest.mark.parametrize("scopes", ["groups", "{a: b}", "[1]", "[", "a: b: c"])
def test_scopes_are_a_list_of_texts(scopes: str) -> None:
    with pytest.raises(PolicyError, match="argocd-rbac-cm scopes"):
        rights(scopes=scopes)


def test_a_group_counts_where_a_policy_names_it_as_a_member() -> None:
    rules = rights("p, my-org:team, applications, get, */*, allow")
    assert not may(rules, {"sub": "x", "groups": ["my-org:team"]}, "applications", "get", "a/b")
    assert may(rights("g, my-org:team, role:readonly"), {"groups": ["my-org:team"]}, "applications", "get", "a/b")


def test_the_default_role_is_what_everyone_has() -> None:
    assert not may(rights(), {"sub": "x"}, "applications", "get", "a/b")
    assert may(rights(default="role:readonly"), {"sub": "x"}, "applications", "get", "a/b")
    assert may(rights(default="role:readonly"), {"sub": "x"}, "applications", "get", "my-proj/b")
    assert may(rights(default="role:readonly"), {"sub": "proj:other:r"}, "applications", "get", "my-proj/b")
    denied = rights("p, x, applications, get, */*, deny", default="role:readonly")
    assert may(denied, {"sub": "x"}, "applications", "get", "a/b")  # as upstream: the role is asked first


@pytest.mark.parametrize(
    "line",
    [
        "this, is, not, a, good, policy",
        "p, role:admin, applications, *, my-proj/*, deny",
        "p, alice, applications, *, */*, allow",
        f"p, {ROLE}, applications, get, my-proj/*, allow\np, alice, *, *, *, allow",
        f"g, alice, role:admin\np, {ROLE}, applications, get, my-proj/*, allow",
    ],
)
def test_a_project_gives_no_rights_to_others_and_takes_none(line: str) -> None:
    hostile = project([line])
    with pytest.raises(PolicyError, match="AppProject my-proj role my-role"):
        project_policy(hostile)
    rules = rights(found=hostile)
    assert may(rules, {"sub": "admin"}, "applications", "update", "my-proj/a")
    assert not may(rules, {"sub": "alice"}, "applications", "get", "my-proj/a")
    assert not may(rules, {"sub": ROLE}, "applications", "get", "my-proj/a")


def test_a_group_of_a_project_is_one_member_and_no_line() -> None:
    hostile = project([], ["x, role:admin\ng, alice"])
    with pytest.raises(PolicyError):
        project_policy(hostile)
    assert may(rights(found=project([], ['"CN=a,OU=b"'])), {"groups": ["CN=a,OU=b"]}, "projects", "get", "my-proj")


def test_a_project_that_changes_changes_its_rights() -> None:
    mine = project()
    rules = rights(found=mine)
    assert may(rules, {"sub": ROLE}, "applications", "create", "my-proj/a")
    mine["spec"] = {"roles": []}
    assert not may(rules, {"sub": ROLE}, "applications", "create", "my-proj/a")


def test_a_refusal_names_request_subject_and_time_of_the_token() -> None:
    request = Request("applications", "get", "foo/bar")
    assert refusal(identity_of({}), request) == "permission denied: applications, get, foo/bar"
    claims = {"sub": "proj:default:admin", "iat": 1593035962}
    text = "permission denied: applications, get, foo/bar, sub: proj:default:admin, iat: 2020-06-24T21:59:22Z"
    assert refusal(identity_of(claims), request) == text
