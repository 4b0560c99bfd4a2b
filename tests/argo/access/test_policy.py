"""The lines of policy.csv, the built-in policy and decisions by them: Argo CD's own tables, in our words."""

from __future__ import annotations

import pytest

from syncline.argo.access.builtin import BUILTIN
from syncline.argo.access.enforcing import Enforcer, MatchMode, Request
from syncline.argo.access.policy import MAX_LINES, PolicyError, policy_text, read_policy


def enforcer(text: str, mode: MatchMode = MatchMode.GLOB) -> Enforcer:
    return Enforcer(read_policy(text, "policy.csv"), mode)


def allowed(rules: Enforcer, subject: str, resource: str, action: str, target: str) -> bool:
    return bool(rules.decide(subject, Request(resource, action, target)))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "#",
        "# p, nothing",
        "p, role:admin, projects, delete, *, allow",
        'p, "role,admin", projects, delete, *, allow',
        " p, role:admin, projects, delete, *, allow ",
        "g, your-github-org:your-team, role:org-admin",
        "p,a,b,c,d,",
    ],
)
def test_a_line_is_a_comment_a_permission_or_a_membership(line: str) -> None:
    policy = read_policy(line, "policy.csv")
    assert len(policy.permissions) + len(policy.memberships) == (line.strip()[:1] in ("p", "g"))


@pytest.mark.parametrize(
    "line",
    [
        "this, is, not, a, good, policy",
        "this\ttoo",
        "p",
        "p, a, b, c, d",
        "p, role:Myrole, applications, *, myproj/* allow",
        ", role:Myrole, applications, *, myproj/*, allow",
        "agh, foo, bar",
        "g, a",
        "g, a, b, c",
        "p2, a, b, c, d, allow",
        'p, a"b, c, d, e, allow',
        'p, "a, c, d, e, allow',
        'p, "a"b, c, d, e, allow',
    ],
)
def test_another_line_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(PolicyError, match=r"^policy\.csv line 2"):
        read_policy(f"# a comment\n{line}", "policy.csv")


def test_a_quoted_field_keeps_commas_and_doubled_quotes() -> None:
    (line,) = read_policy('p, "role,a", "https://x/*,y", "say ""hi""", d, allow', "policy.csv").permissions
    assert (line.subject, line.resource, line.action) == ("role,a", "https://x/*,y", 'say "hi"')


def test_a_field_keeps_its_trailing_blanks() -> None:
    (line,) = read_policy("p, a , b, c, d, allow", "policy.csv").permissions
    assert line.subject == "a "


def test_a_policy_has_a_bound() -> None:
    with pytest.raises(PolicyError, match=f"at most {MAX_LINES}"):
        read_policy("\n" * MAX_LINES, "policy.csv")
    with pytest.raises(PolicyError, match="at most 4096 are allowed"):
        read_policy("p, " + "a" * 5000, "policy.csv")


def test_further_policies_follow_the_main_one_by_name() -> None:
    data = {"policy.B.csv": "b", "policy.A.csv": "a", "policy.csv": "main", "other": "x", "policy.default": "y"}
    assert policy_text(data) == "main\na\nb"
    assert policy_text({}) == ""


@pytest.mark.parametrize(
    ("subject", "action", "expected"),
    [
        ("admin", "get", True),
        ("admin", "delete", True),
        ("admin", "rollback", True),
        ("role:admin", "get", True),
        ("role:readonly", "get", True),
        ("role:readonly", "create", False),
        ("role:readonly", "delete", False),
        ("role:readonly", "rollback", False),
        ("bob", "get", False),
        ("", "get", False),
    ],
)
def test_the_built_in_policy_has_an_administrator_and_a_reader(subject: str, action: str, expected: bool) -> None:
    assert allowed(Enforcer(BUILTIN), subject, "applications", action, "foo/bar") is expected
    assert not allowed(Enforcer(read_policy("", "")), subject, "applications", action, "foo/bar")


def test_a_role_reaches_the_objects_of_its_pattern_alone() -> None:
    rules = enforcer(
        "p, role:foo-admin, *, *, foo/*, allow\np, role:bar-admin, *, *, bar/*, allow\n"
        "g, alice, role:foo-admin\ng, bob, role:bar-admin"
    )
    assert allowed(rules, "bob", "applications", "delete", "bar/obj")
    assert not allowed(rules, "bob", "applications", "delete", "foo/obj")
    assert allowed(rules, "alice", "applications", "delete", "foo/obj")
    assert not allowed(rules, "alice", "applications", "delete", "bar/obj")


def test_a_line_that_denies_outweighs_all_that_permit() -> None:
    rules = enforcer("p, mike, *, get, foo/obj, allow\np, role:x, *, get, foo/obj, deny\ng, mike, role:x")
    found = rules.decide("mike", Request("applications", "get", "foo/obj"))
    assert not found
    assert found.rule == "p, role:x, *, get, foo/obj, deny (policy.csv line 2)"


def test_an_effect_that_is_neither_decides_nothing() -> None:
    rules = enforcer("p, a, *, *, *, Allow\np, b, *, *, *, allow\np, b, *, *, *, no")
    assert not allowed(rules, "a", "applications", "get", "x/y")
    assert allowed(rules, "b", "applications", "get", "x/y")


def test_a_subject_is_no_pattern() -> None:
    assert not allowed(enforcer("p, *, *, *, *, allow"), "alice", "applications", "get", "x/y")


def test_roles_are_followed_through_ten_memberships() -> None:
    chain = "\n".join(f"g, role:{index}, role:{index + 1}" for index in range(12))
    for last, expected in ((10, True), (11, False)):
        rules = enforcer(f"p, role:{last}, *, *, *, allow\n{chain}")
        assert allowed(rules, "role:0", "applications", "get", "x/y") is expected


def test_roles_that_have_each_other_end() -> None:
    rules = enforcer("p, role:b, *, *, *, allow\ng, role:a, role:b\ng, role:b, role:a")
    assert allowed(rules, "role:a", "applications", "get", "x/y")
    assert rules.roles_of("role:a") == {"role:a", "role:b"}


@pytest.mark.parametrize(
    ("pattern", "target", "expected"),
    [
        ("foo/https://github.com/argoproj/argo-cd.git", "foo/https://github.com/argoproj/argo-cd.git", True),
        ("foo/https://github.com/argoproj/argo-cd.git", "foo/https://github.com/golang/go.git", False),
        ("foo/*", "foo/https://github.com/golang/go.git", True),
        ('"https://github.com/*/*.git"', "https://github.com/argoproj/argo-cd.git", True),
        ('"https://github.com/*/*.git"', "https://github.com/argo-cd.git", False),
    ],
)
def test_a_glob_crosses_slashes(pattern: str, target: str, expected: bool) -> None:
    rules = enforcer(f"p, alice, repositories, *, {pattern}, allow")
    assert allowed(rules, "alice", "repositories", "delete", target) is expected


@pytest.mark.parametrize(
    ("action", "asked", "expected"),
    [
        ("action/*", "action/argoproj.io/Rollout/resume", True),
        ("action/argoproj.io/Rollout/*", "action/argoproj.io/Rollout/resume", True),
        ("action/argoproj.io/Rollout/*", "action/argoproj.io/NewCrd/abort", False),
        ("action/argoproj.io/Rollout/resume", "action/argoproj.io/Rollout/abort", False),
        ("delete", "delete/apps/Deployment/ns/name", False),
        ("update/*", "update", False),
    ],
)
def test_actions_on_resources_are_permitted_by_pattern(action: str, asked: str, expected: bool) -> None:
    rules = enforcer(f"p, bob, applications, {action}, my-proj/*, allow")
    assert allowed(rules, "bob", "applications", asked, "my-proj/my-app") is expected


def test_expressions_may_match_anywhere_and_a_broken_one_denies() -> None:
    text = 'p, alice, clusters, get, "https://github.com/argo[a-z]{4}/argo-[a-z]+.git", allow'
    rules = enforcer(text, MatchMode.REGEX)
    assert allowed(rules, "alice", "clusters", "get", "https://github.com/argoproj/argo-cd.git")
    assert not allowed(rules, "alice", "clusters", "get", "https://github.com/argoproj/1argo-cd.git")
    broken = enforcer("p, alice, clusters, get, x, allow\np, alice, clusters, get, (, deny", MatchMode.REGEX)
    found = broken.decide("alice", Request("clusters", "get", "x"))
    assert not found
    assert "invalid pattern" in found.rule
    slow = enforcer("p, alice, clusters, get, ^(a+)+$, allow", MatchMode.REGEX)
    assert not allowed(slow, "alice", "clusters", "get", "a" * 500 + "!")


def test_the_match_mode_is_globs_unless_it_is_regex() -> None:
    assert [MatchMode.of(text) for text in ("regex", "glob", "", "Regex")] == ["regex", "glob", "glob", "glob"]


def test_roles_without_any_line_are_found() -> None:
    rules = "p, role:depA, *, get, foo/obj, allow\n"
    assert enforcer(rules + "g, depC, role:depC\ng, role:depC, role:depA").empty_roles() == ()
    assert enforcer(rules + "g, depC, role:depC").empty_roles() == ("role:depC",)
