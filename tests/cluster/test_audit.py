"""Which requests the audit policy picks, at which level, and what is told of each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.access.audit import MAX_OBJECT_BYTES, AuditRecord, AuditTrail, event_of
from syncline.cluster.access.auditpolicy import METADATA_OF_ALL, AuditPolicyError, Level, Stage, parse_policy
from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.routes import route_of, verb_of
from syncline.kube.client import Request, Response
from syncline.kube.errors import BadRequest, Forbidden
from syncline.kube.objects import Obj
from syncline.kube.yaml import loading as yaml

JO = UserInfo("jo", ("devs", "system:authenticated"), "u-1", {"scopes": ("a",)})
WEB = "/apis/apps/v1/namespaces/shop/deployments/web"
NONE, METADATA, REQUEST, WHOLE = Level.NONE, Level.METADATA, Level.REQUEST, Level.REQUEST_RESPONSE

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: [system:kube-proxy], verbs: [watch], resources: [{group: "", resources: [endpoints, services]}]}
- {level: None, userGroups: [system:nodes]}
- {level: None, nonResourceURLs: ["/healthz*", /version, "/swagger*"]}
- level: Metadata
  resources:
  - {group: "", resources: [secrets, configmaps]}
  - {group: authentication.k8s.io, resources: [tokenreviews]}
- {level: RequestResponse, resources: [{group: "", resources: [pods]}]}
- {level: Metadata, resources: [{group: "", resources: [pods/log, pods/status]}]}
- {level: None, resources: [{group: "", resources: [serviceaccounts], resourceNames: [default]}]}
- {level: Request, namespaces: [kube-system], verbs: [update, patch], omitStages: [ResponseStarted]}
- {level: Request, resources: [{group: "*", resources: ["*/scale"]}]}
- {level: RequestResponse, resources: [{group: apps, resources: ["deployments/*"]}]}
- {level: Request, resources: [{group: "", resources: [pods/exec]}], namespaces: [shop]}
- {level: Metadata, namespaces: [""]}
"""
"""Of the rules that people copy from the Kubernetes pages and from GCE's ``configure-helper.sh``."""


@pytest.mark.parametrize(
    ("user", "method", "path", "level"),
    [
        ("system:kube-proxy", "GET", "/api/v1/endpoints?watch=1", NONE),
        ("system:kube-proxy", "GET", "/api/v1/endpoints", METADATA),
        ("jo", "GET", "/healthz", NONE),
        ("jo", "GET", "/healthz/ping", NONE),
        ("jo", "GET", "/version", NONE),
        ("jo", "GET", "/version/x", NONE),
        ("jo", "GET", "/metrics", NONE),
        ("jo", "POST", "/api/v1/namespaces/a/secrets", METADATA),
        ("jo", "POST", "/api/v1/namespaces/a/pods", WHOLE),
        ("jo", "GET", "/api/v1/namespaces/a/pods/p/log", METADATA),
        ("jo", "POST", "/api/v1/namespaces/a/pods/p/exec", NONE),
        ("jo", "POST", "/api/v1/namespaces/shop/pods/p/exec", REQUEST),
        ("jo", "GET", "/api/v1/namespaces/a/serviceaccounts/default", NONE),
        ("jo", "PUT", "/apis/batch/v1/namespaces/kube-system/jobs/j", REQUEST),
        ("jo", "GET", "/apis/batch/v1/namespaces/kube-system/jobs/j", NONE),
        ("jo", "PATCH", f"{WEB}/scale", REQUEST),
        ("jo", "PATCH", f"{WEB}/status", WHOLE),
        ("jo", "PATCH", WEB, WHOLE),
        ("jo", "GET", "/api/v1/nodes", METADATA),
        ("jo", "GET", "/apis/batch/v1/namespaces/a/jobs", NONE),
    ],
)
def test_the_first_rule_that_matches_decides(user: str, method: str, path: str, level: Level) -> None:
    policy = parse_policy(yaml.load(POLICY))
    path, _, query = path.partition("?")
    route = route_of(path)
    found = policy.decide(UserInfo(user), verb_of(method, route, {"watch": "1"} if query else {}), route)
    assert found.level is level
    assert Stage.RECEIVED in found.omitted


def test_groups_and_refused_credentials_are_judged_too() -> None:
    policy = parse_policy(yaml.load(POLICY))
    assert policy.decide(UserInfo("n", ("system:nodes",)), "get", route_of("/api/v1/nodes")).level is NONE
    assert policy.decide(None, "get", route_of("/api/v1/nodes")).level is METADATA
    assert policy.decide(None, "create", route_of("/api/v1/namespaces/a/pods")).level is WHOLE


@pytest.mark.parametrize(
    ("rule", "path", "level"),
    [
        ({}, "/api/v1/namespaces/a/secrets", METADATA),
        ({"resources": [{"group": "", "resources": ["*"]}]}, "/api/v1/namespaces/a/secrets", METADATA),
        ({"resources": [{"group": ""}]}, "/api/v1/namespaces/a/secrets/s", METADATA),
        ({"resources": [{"group": "*", "resources": ["secrets"]}]}, "/api/v1/namespaces/a/secrets", METADATA),
        ({"resources": [{"group": "", "resources": ["secrets"]}]}, "/api/v1/namespaces/a/secrets", WHOLE),
        ({"resources": [{"group": "", "resources": ["pods", "secrets"]}]}, "/api/v1/namespaces/a/pods", WHOLE),
        ({}, "/api/v1/namespaces/a/serviceaccounts/x/token", METADATA),
        ({}, "/api/v1/namespaces/a/serviceaccounts/x", WHOLE),
        ({}, "/apis/authentication.k8s.io/v1/tokenreviews", METADATA),
        ({}, "/api/v1/namespaces/a/configmaps", WHOLE),
    ],
)
def test_credentials_are_told_only_to_who_names_them(rule: Obj, path: str, level: Level) -> None:
    policy = parse_policy(
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse", **rule}]}
    )
    assert policy.decide(JO, "create", route_of(path)).level is level


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "Pod"}, "it is no Policy of audit.k8s.io/v1"),
        ({"apiVersion": "audit.k8s.io/v1beta1"}, "it is no Policy of audit.k8s.io/v1"),
        ({"rules": []}, "a policy has at least one rule"),
        ({"rules": [{"level": "All"}]}, r'rules\[0\].level: is "All"; write one of None, Metadata, Request, Request'),
        ({"rules": [{}]}, r'rules\[0\].level: is ""'),
        ({"rules": [{"level": "None", "verb": ["get"]}]}, r"rules\[0\].verb: is unknown"),
        ({"rules": [{"level": "None", "verbs": "get"}]}, r"rules\[0\].verbs: is no list of texts"),
        ({"omitStages": ["Received"]}, 'omitStages: "Received" is none; allowed stages are RequestReceived,'),
        ({"rules": [{"level": "None", "nonResourceURLs": ["healthz"]}]}, "begin with a '/'"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["/a*b"]}]}, "must be the final character"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["x"]}]}, "cannot apply to both"),
        ({"rules": [{"level": "None", "resources": [{"group": "apps/v1"}]}]}, '"apps/v1" is no API group'),
        ({"rules": [{"level": "None", "resources": [{"resourceNames": ["x"]}]}]}, "requires at least one resource"),
        ({"rules": [{"level": "None", "resources": ["pods"]}]}, "is no object; write group and resources"),
        ({"rules": ["x"]}, r"rules\[0\]: is no object"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_by_its_fields(change: Obj, message: str) -> None:
    good: Obj = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    parse_policy(good)
    with pytest.raises(AuditPolicyError, match=message):
        parse_policy(good | change)


# -- events -------------------------------------------------------------------------------------------------------


class Told:
    def __init__(self, **rule: Any) -> None:
        self.records: list[AuditRecord] = []
        self.clock = VirtualClock()
        policy = METADATA_OF_ALL
        if rule:
            policy = parse_policy({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]})
        self.trail = AuditTrail(policy, self.records.append, self.clock, Entropy(1))

    def run(self, request: Request, answer: Response, body: bytes | None = None, acting: UserInfo = JO) -> list[Obj]:
        audited = self.trail.begin(request, JO, "127.0.0.1", self.clock.now())
        if audited is not None:
            audited.acting = JO if acting is JO else acting
            self.clock.advance(0.25)
            self.trail.read(audited, body)
            self.trail.complete(audited, answer)
        return [event_of(each) for each in self.records]


def test_an_event_holds_no_credential_of_an_address_or_a_message() -> None:
    refused = Response.refused(BadRequest("cannot reach https://u:hunter2@host"))
    (event,) = Told().run(Request("GET", "/api/v1/pods", raw_query="access_token=hunter2&watch=0"), refused)
    assert event["requestURI"] == "/api/v1/pods?access_token=***&watch=0"
    assert "hunter2" not in str(event) and "https://***@host" in event["responseStatus"]["message"]


def test_an_event_says_who_did_what_to_which_object_and_holds_no_body() -> None:
    request = Request("PATCH", f"{WEB}/scale", {"fieldManager": "a b"}, {"user-agent": "kubectl"})
    (event,) = Told().run(request, Response.of(200, {"x": 1}), b"{}")
    assert event["requestURI"] == f"{WEB}/scale?fieldManager=a+b"
    assert (event["kind"], event["apiVersion"], event["level"]) == ("Event", "audit.k8s.io/v1", "Metadata")
    assert (event["verb"], event["stage"], event["userAgent"]) == ("patch", "ResponseComplete", "kubectl")
    who = {"username": "jo", "uid": "u-1", "groups": ["devs", "system:authenticated"], "extra": {"scopes": ["a"]}}
    assert event["user"] == who and event["sourceIPs"] == ["127.0.0.1"] and "impersonatedUser" not in event
    assert event["objectRef"] == {
        "resource": "deployments",
        "namespace": "shop",
        "name": "web",
        "apiGroup": "apps",
        "apiVersion": "v1",
        "subresource": "scale",
    }
    assert event["requestReceivedTimestamp"] == "2026-01-01T00:00:00.000000Z"
    assert event["stageTimestamp"] == "2026-01-01T00:00:00.250000Z"
    assert event["responseStatus"] == {"metadata": {}, "code": 200}
    assert not {"requestObject", "responseObject"} & set(event)


def test_a_refusal_is_told_with_its_reason_and_other_paths_name_no_object() -> None:
    (event,) = Told().run(Request("GET", "/metrics"), Response.refused(Forbidden("no")))
    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "no",
        "reason": "Forbidden",
        "code": 403,
    }
    assert "objectRef" not in event


def test_bodies_are_told_at_their_levels_and_stages_in_order() -> None:
    obj = {"metadata": {"name": "m", "managedFields": [{}]}, "data": {"a": "b"}}
    request = Request("POST", "/api/v1/namespaces/a/configmaps", headers={"content-type": "application/yaml"})
    told = Told(level="RequestResponse", omitManagedFields=True)
    received, complete = told.run(request, Response.of(201, obj), b"metadata: {name: m}\ndata: {a: b}")
    assert (received["stage"], complete["stage"]) == ("RequestReceived", "ResponseComplete")
    assert received["auditID"] == complete["auditID"] and "requestObject" not in received
    assert "responseStatus" not in received
    assert complete["requestObject"] == {"metadata": {"name": "m"}, "data": {"a": "b"}}
    assert complete["responseObject"] == {"metadata": {"name": "m"}, "data": {"a": "b"}}
    _, only_request = Told(level="Request").run(request, Response.of(201, obj), b"data: {a: b}")
    assert only_request["requestObject"] == {"data": {"a": "b"}} and "responseObject" not in only_request


def test_bodies_that_are_too_long_or_unreadable_are_said_to_be_so() -> None:
    request = Request("POST", "/api/v1/namespaces/a/configmaps", headers={"content-type": "application/json"})
    rule = {"level": "Request", "omitStages": ["RequestReceived"]}
    (event,) = Told(**rule).run(request, Response.of(413, {}), b" " * (MAX_OBJECT_BYTES + 1))
    assert event["annotations"] == {"audit.k8s.io/truncated": "true"} and "requestObject" not in event
    (event,) = Told(**rule).run(request, Response.of(400, {}), b"\xff{")
    assert event["requestObject"] == {"kind": "Unknown", "bytes": 2}


def test_who_acts_as_another_is_told_with_both_and_ids_of_callers_are_kept() -> None:
    request = Request("GET", "/api/v1/pods", headers={"audit-id": "mine"})
    (event,) = Told().run(request, Response.of(200, {}), acting=UserInfo("bob", ("x",)))
    assert event["user"]["username"] == "jo" and event["impersonatedUser"] == {"username": "bob", "groups": ["x"]}
    assert event["auditID"] == "mine"
    for odd in ("x" * 65, "é", "a\nb", ""):
        (event,) = Told().run(Request("GET", "/api/v1/pods", headers={"audit-id": odd}), Response.of(200, {}))
        assert len(event["auditID"]) == 36


def test_what_the_policy_leaves_out_is_not_told() -> None:
    told = Told(level="None")
    assert told.run(Request("GET", "/api/v1/pods"), Response.of(200, {})) == []
    told = Told(level="Metadata", omitStages=["RequestReceived", "ResponseComplete"])
    assert told.run(Request("GET", "/api/v1/pods"), Response.of(200, {})) == []


def test_refused_credentials_and_our_own_faults_have_stages_of_their_own() -> None:
    told = Told(level="Metadata", omitStages=["RequestReceived"])
    audited = told.trail.begin(Request("GET", "/api/v1/pods"), None, "1.2.3.4", told.clock.now())
    assert audited is not None
    told.trail.refused(audited, "Authentication failed, attempted: bearer")
    told.trail.panicked(audited, "why")
    refused, panic = (event_of(each) for each in told.records)
    assert refused["user"] == {} and refused["stage"] == "ResponseStarted"
    assert refused["responseStatus"]["code"] == 401 and "attempted: bearer" in refused["responseStatus"]["message"]
    assert (panic["stage"], panic["responseStatus"]["code"]) == ("Panic", 500)


def test_time_is_told_in_order() -> None:
    told = Told(level="Metadata")
    received, complete = told.run(Request("GET", "/api/v1/pods"), Response.of(200, {}))
    assert received["stageTimestamp"] == received["requestReceivedTimestamp"] < complete["stageTimestamp"]
    assert told.records[1].at - told.records[0].at == timedelta(seconds=0.25)
