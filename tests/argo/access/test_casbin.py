"""Drawn policies and requests: our decisions are those of casbin's published package with Argo CD's model."""

from __future__ import annotations

import logging
from typing import Any

import casbin
from hypothesis import given, settings
from hypothesis import strategies as st

from syncline.argo.access.enforcing import Enforcer, Request
from syncline.argo.access.policy import read_policy
from syncline.kube.text.glob import glob_matches

MODEL = """
[request_definition]
r = sub, res, act, obj
[policy_definition]
p = sub, res, act, obj, eft
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = g(r.sub, p.sub) && matches(r.res, p.res) && matches(r.act, p.act) && matches(r.obj, p.obj)
"""

SUBJECTS = st.sampled_from(("alice", "bob", "role:a", "role:b", "role:c", "team:x", ""))
RESOURCES = st.sampled_from(("applications", "logs", "*", "app*"))
ACTIONS = st.sampled_from(("get", "update", "update/*", "*", "action/apps/Deployment/*"))
OBJECTS = st.sampled_from(("*", "*/*", "p/*", "p/a", "{p,q}/a", "q/n/a"))
PERMISSIONS = st.tuples(SUBJECTS, RESOURCES, ACTIONS, OBJECTS, st.sampled_from(("allow", "allow", "deny", "other")))
REQUESTS = st.tuples(
    SUBJECTS,
    st.sampled_from(("applications", "logs", "applicationsets")),
    st.sampled_from(("get", "update", "update/apps/Deployment/n/x", "action/apps/Deployment/restart")),
    st.sampled_from(("p/a", "q/n/a", "p/b", "x")),
)


def oracle(permissions: list[Any], memberships: list[Any]) -> casbin.Enforcer:
    model = casbin.Model()
    model.load_model_from_text(MODEL)
    judge = casbin.Enforcer(model)
    logging.getLogger("casbin").setLevel(logging.ERROR)
    judge.add_function("matches", lambda text, pattern: glob_matches(pattern, text))
    judge.add_policies([list(line) for line in permissions])
    judge.add_grouping_policies([list(line) for line in memberships])
    return judge


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PERMISSIONS, min_size=1, max_size=8, unique=True),
    st.lists(st.tuples(SUBJECTS, SUBJECTS), max_size=6, unique=True),
    st.lists(REQUESTS, min_size=1, max_size=6),
)
def test_decisions_are_those_of_casbin(permissions: list[Any], memberships: list[Any], requests: list[Any]) -> None:
    lines = [", ".join(("p", *map(_quoted, line))) for line in permissions]
    lines += [", ".join(("g", *map(_quoted, line))) for line in memberships]
    ours = Enforcer(read_policy("\n".join(lines), "drawn"))
    judge = oracle(permissions, memberships)
    for subject, *request in requests:
        assert bool(ours.decide(subject, Request(*request))) is judge.enforce(subject, *request), lines


def _quoted(text: str) -> str:
    return f'"{text}"'
