"""Questions about pulled Applications in virtual time: what is answered, to whom, and what no question reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import msgspec
import pytest
from tests.fleet.queries import (
    ADMIN,
    QUERIES,
    Two,
    events,
    fleet_of_two,
    grant,
    post_as,
    question,
    rows,
    secret,
    send,
    status,
)
from tests.fleet.test_pull_controllers import APPS
from tests.fleet.world import Fleet, Site, config_map

from syncline.assembly.fleet.agent import agent_user
from syncline.assembly.inspection.resource_tree import tree_of, tree_rows
from syncline.base.clock import parse_time
from syncline.cli.access.connection import Connection
from syncline.cli.fleet.asking import about, asked
from syncline.cli.frame.failure import CommandFailed
from syncline.control.executor import run_in_place
from syncline.fleet.pull.queries.judging import MAX_KEPT, MAX_OPEN, MAX_OPEN_OF_ONE, Asked, AskedOf, plan_queries
from syncline.fleet.pull.queries.model import Ask, Question, query_object, question_of
from syncline.fleet.spoke.queries.answering import Found, fitted
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Forbidden, Unavailable
from syncline.kube.kinds.applicationqueries import MAX_ANSWER
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef

SPOKE_APP = f"{APPS.format('argocd')}/web-c1"


@pytest.fixture(scope="module")
def made() -> Two:
    return fleet_of_two()


@pytest.fixture
def fleet(made: Two) -> Iterator[Two]:
    """The fleet, whose agent begins again after each test, when the questions have expired."""
    yield made
    made.members["c1"].own_cable.mend()
    made.members["c1"].hub_cable.mend()
    if made.pull is None:
        made.start_pull()
    made.start_agent("c1")
    made.time.advance(310)


@pytest.fixture(scope="module")
def unattended() -> Two:
    """A fleet where people of cluster c1 change the status of Applications, and no controller corrects it."""
    fleet = fleet_of_two()
    fleet.time.actors.remove(fleet.gitops["c1"])
    return fleet


def patch(site: Site, path: str, body: Obj) -> Response:
    headers = {"content-type": "application/merge-patch+json"}
    return site.admin.send(Request("PATCH", path, headers=headers, body=body))


def names(found: list[Obj]) -> list[str]:
    return [f"{one['kind']}/{one['name'].partition('-')[0]}" for one in found]


# -- answers -----------------------------------------------------------------------------------------------------------


def test_the_tree_of_an_application_comes_from_its_cluster(fleet: Fleet) -> None:
    found = rows(fleet, question(Ask.RESOURCES))
    assert names(found) == ["ConfigMap/web", "Secret/key", "Deployment/ui", "ReplicaSet/ui", "Pod/ui"]
    assert [one["depth"] for one in found] == [0, 0, 0, 1, 2]
    assert found[0]["status"] == "Synced"
    assert found[2]["health"]["status"] == "Progressing"
    assert list(tree_rows(tree_of(found))) == found


def test_each_cluster_answers_about_its_own_application(fleet: Fleet) -> None:
    for cluster in ("c1", "c2"):
        asked = question(Ask.MANIFESTS, f"web-{cluster}", source="live", select=ObjectRef("", "ConfigMap", "", ""))
        (found,) = rows(fleet, asked, cluster)
        assert found["data"] == {"cluster": cluster}


@pytest.mark.parametrize("source", ["git", "live"])
def test_values_of_secrets_are_masked(fleet: Fleet, source: str) -> None:
    found = status(fleet, question(Ask.MANIFESTS, source=source))
    assert found["phase"] == "Answered"
    text = str(found)
    assert "very-secret" not in text
    assert "dmVyeS1zZWNyZXQ" not in text, "nor in base64"
    assert "++++++++" in text


def test_a_difference_is_what_the_cluster_has_against_what_its_repository_says(fleet: Fleet) -> None:
    assert rows(fleet, question(Ask.DIFF)) == []
    # Automated syncs do not heal by themselves.
    fleet.members["c1"].send("PATCH", "/api/v1/namespaces/web/configmaps/web", {"data": {"cluster": "mars"}})
    fleet.members["c1"].send("PATCH", "/api/v1/namespaces/web/secrets/key", {"stringData": {"password": "changed"}})
    found = {one["kind"]: one for one in rows(fleet, question(Ask.DIFF))}
    assert (found["ConfigMap"]["live"]["data"], found["ConfigMap"]["wanted"]["data"]) == (
        {"cluster": "mars"},
        {"cluster": "c1"},
    )
    assert found["Secret"]["live"]["data"] != found["Secret"]["wanted"]["data"], "masks differ where values do"
    assert "changed" not in str(found)
    assert "Y2hhbmdlZA" not in str(found)
    fleet.members["c1"].send("PATCH", "/api/v1/namespaces/web/configmaps/web", {"data": {"cluster": "c1"}})
    fleet.members["c1"].send(
        "PATCH", "/api/v1/namespaces/web/secrets/key", {"stringData": {"password": "very-secret-c1"}}
    )


def test_who_asked_what_is_an_event_on_the_application_and_the_question_goes(fleet: Fleet) -> None:
    path = send(fleet, question(Ask.DIFF))
    assert f"web-c1: diff on cluster c1, asked by {ADMIN}" in events(fleet)
    fleet.time.advance(301)
    assert fleet.hub.absent(path)


class Logs:
    """A transport to the cluster whose logs are a text."""

    def __init__(self, inner: Transport, text: bytes, asked: list[Request]) -> None:
        self.inner, self.text, self.asked = inner, text, asked

    def send(self, request: Request) -> Response:
        if not request.path.endswith("/log"):
            return self.inner.send(request)
        self.asked.append(request)
        return Response.encoded(200, self.text)


@pytest.mark.parametrize("filler", [b"\x00", b"\n", b"\xff", b"a"])
def test_a_giant_log_is_cut_to_an_object(fleet: Fleet, filler: bytes) -> None:
    asked: list[Request] = []
    fleet.start_agent("c1", wrap_own=lambda inner: Logs(inner, filler * 3_000_000, asked))
    found = status(fleet, question(Ask.LOGS, lines=100_000))
    assert found["phase"] == "Answered"
    (row,) = (msgspec.json.decode(one) for one in found["rows"])
    assert row["cut"] is True
    assert row["text"]
    assert len(msgspec.json.encode(found)) < MAX_ANSWER + 2000
    assert asked[0].query["tailLines"] == "100000"
    assert int(asked[0].query["limitBytes"]) < MAX_ANSWER


def test_flags_of_logs_reach_the_kubelet(fleet: Fleet) -> None:
    asked: list[Request] = []
    fleet.start_agent("c1", wrap_own=lambda inner: Logs(inner, b"one\n", asked))
    select = ObjectRef("apps", "Deployment", "web", "ui")
    (row,) = rows(fleet, question(Ask.LOGS, select=select, lines=7, since_s=9, previous=True, container="main"))
    assert row["text"] == "one\n"
    wanted = {"tailLines": "7", "sinceSeconds": "9", "previous": "true", "container": "main"}
    assert wanted.items() <= asked[0].query.items()
    assert "no pods to read" in status(fleet, question(Ask.LOGS, container="other"))["error"]


# -- who may ask -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tenants(made: Two) -> Two:
    for user in ("ann", "bob", "eve"):
        grant(made, user, "c1", "syncline.dev", ["applicationqueries"], "create", "get")
    grant(made, "ann", "argocd", "argoproj.io", ["applications"], "get")
    grant(made, "bob", "argocd", "argoproj.io", ["applications", "applications/logs"], "get")
    return made


@pytest.mark.parametrize(
    ("user", "ask", "as_whom", "refused"),
    [
        ("ann", Ask.DIFF, "ann", ""),
        ("ann", Ask.LOGS, "ann", "user ann may not get applications/logs web-c1 in namespace argocd"),
        ("bob", Ask.LOGS, "bob", ""),
        ("ann", Ask.DIFF, "bob", "spec.askedBy must be the name of your user: ann"),
        ("eve", Ask.RESOURCES, "eve", "user eve may not get applications web-c1 in namespace argocd"),
    ],
)
def test_who_asks_may_read_the_application_and_gives_no_other_name(
    tenants: Two, fleet: Two, user: str, ask: Ask, as_whom: str, refused: str
) -> None:
    found = post_as(tenants, user, question(ask, asked_by=as_whom))
    assert refused in str(found.get("message")) if refused else found["kind"] == "ApplicationQuery"


def test_a_question_is_not_changed_after_it_was_admitted(fleet: Fleet) -> None:
    path = send(fleet, question(Ask.DIFF))
    answer = fleet.hub.admin.send(
        Request("PATCH", path, headers={"content-type": "application/merge-patch+json"}, body={"spec": {"ask": "logs"}})
    )
    assert answer.status == 422
    assert "a question is not changed" in str(answer.obj)


def test_a_question_cannot_be_kept_from_expiring(fleet: Fleet) -> None:
    query = query_object(question(Ask.DIFF), "c1", "kept")
    query["metadata"]["finalizers"] = ["example.com/mine"]
    answer = fleet.hub.admin.send(Request("POST", QUERIES.format("c1"), body=query))
    assert "a question has no finalizers: it expires" in str(answer.obj)


def test_a_question_about_the_application_of_another_cluster_is_refused(fleet: Fleet) -> None:
    found = status(fleet, question(Ask.MANIFESTS, "web-c2"), "c1")
    assert (found["phase"], "rows" in found) == ("Refused", False)
    assert "cluster c1 pulls no Application argocd/web-c2" in found["error"]
    absent = status(fleet, question(Ask.MANIFESTS, "web-c3"), "c1")
    assert absent["error"] == found["error"].replace("web-c2", "web-c3"), "the same whether it exists or not"


def test_an_agent_asks_nothing_and_answers_in_its_own_namespace_only(fleet: Fleet) -> None:
    asked = question(Ask.DIFF, "web-c2")
    fleet.members["c2"].hub_cable.cut()
    path = send(fleet, asked, "c2")
    agent = fleet.hub.core.transport(agent_user("c1", "agent1"))
    merge = {"content-type": "application/merge-patch+json"}
    false_answer = {"status": {"phase": "Answered", "rows": ["{}"]}}
    assert agent.send(Request("PATCH", f"{path}/status", headers=merge, body=false_answer)).status == 403
    assert agent.send(Request("GET", path)).status == 403
    own = query_object(question(Ask.DIFF, asked_by="system:open-cluster-management:c1:agent1"), "c1", "mine")
    assert agent.send(Request("POST", QUERIES.format("c1"), body=own)).status == 403
    # Whatever RBAC grants by mistake:
    grant(fleet, agent_user("c1", "agent1").name, "c2", "syncline.dev", ["applicationqueries/status"], "patch")
    refused = agent.send(Request("PATCH", f"{path}/status", headers=merge, body=false_answer))
    assert "may not write applicationqueries of other clusters" in str(refused.obj)
    fleet.members["c2"].hub_cable.mend()


# -- what a question does not reach ------------------------------------------------------------------------------------


def _planted(fleet: Fleet, *more: Obj) -> None:
    found = fleet.members["c1"].get(SPOKE_APP)["status"]["resources"]
    body = {"status": {"resources": [*(one for one in found if one["namespace"] != "other"), *more]}}
    patch(fleet.members["c1"], SPOKE_APP, body).or_raise()


def _row(kind: str, namespace: str, name: str) -> Obj:
    return {"version": "v1", "kind": kind, "namespace": namespace, "name": name, "status": "Synced"}


@pytest.mark.parametrize("ask", [Ask.RESOURCES, Ask.MANIFESTS])
def test_a_row_in_the_status_does_not_make_an_object_the_applications_own(unattended: Two, ask: Ask) -> None:
    member = unattended.members["c1"]
    name = f"theirs-{ask}"
    member.send("POST", "/api/v1/namespaces/other/configmaps", config_map(name, "other", plan="invade"))
    member.send("POST", "/api/v1/namespaces/other/secrets", secret(name, "hidden", "other"))
    _planted(unattended, _row("ConfigMap", "other", name), _row("Secret", "other", name))
    found = rows(unattended, question(ask, source="live"))
    assert "invade" not in str(found)
    if ask is Ask.RESOURCES:
        theirs = [(one["exists"], one["unread"]) for one in found if one["name"] == name]
        assert theirs == [(False, "it is not tracked by the Application")] * 2
    else:
        assert [one["kind"] for one in found] == ["ConfigMap", "Secret", "Deployment"]


def test_what_the_project_does_not_permit_is_not_read(unattended: Two) -> None:
    member = unattended.members["c1"]
    tracked = config_map("marked", "other", plan="invade")
    tracked["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "web-c1:/ConfigMap:other/marked"}
    member.send("POST", "/api/v1/namespaces/other/configmaps", tracked)
    _planted(unattended, _row("ConfigMap", "other", "marked"))
    asked = question(Ask.MANIFESTS, source="live")
    assert "invade" in str(rows(unattended, asked)), "the default project permits it"
    project = f"{APPS.format('argocd').removesuffix('applications')}appprojects/default"
    before = member.get(project)["spec"]["destinations"]
    patch(member, project, {"spec": {"destinations": [{"server": "*", "namespace": "web"}]}}).or_raise()
    found = rows(unattended, asked)
    patch(member, project, {"spec": {"destinations": before}}).or_raise()
    assert "invade" not in str(found), "the mark alone proves nothing"
    assert len(found) == 3


def test_an_application_that_no_work_of_the_hub_brought_is_not_read(fleet: Two) -> None:
    class ReadOnly:
        """The agent cannot take the Application back as its own."""

        def __init__(self, inner: Transport) -> None:
            self.inner = inner

        def send(self, request: Request) -> Response:
            if request.method != "GET" and request.path == SPOKE_APP:
                return Response.refused(Forbidden("not now"))
            return self.inner.send(request)

    fleet.start_agent("c1", wrap_own=ReadOnly)
    fleet.time.advance(5)
    patch(fleet.members["c1"], SPOKE_APP, {"metadata": {"ownerReferences": None}}).or_raise()
    found = status(fleet, question(Ask.RESOURCES))
    assert found["phase"] == "Failed"
    assert "Application argocd/web-c1 on cluster c1 was not brought by ManifestWork web-c1-" in found["error"]


def test_a_work_that_carries_another_application_answers_nothing(fleet: Two) -> None:
    fleet.stop_agent("c1")
    path = send(fleet, question(Ask.RESOURCES))
    patch(fleet.hub, f"{path}/status", {"status": {"work": "another"}}).or_raise()
    fleet.start_agent("c1")
    fleet.time.advance(5)
    assert "no work of the hub brings Application argocd/web-c1" in fleet.hub.get(path)["status"]["error"]


def test_an_agent_reads_and_never_writes(fleet: Fleet) -> None:
    seen: list[Request] = []

    class Watching:
        def __init__(self, inner: Transport) -> None:
            self.inner = inner

        def send(self, request: Request) -> Response:
            seen.append(request)
            return self.inner.send(request)

    fleet.start_agent("c1", wrap_own=Watching)
    fleet.time.advance(60)
    seen.clear()
    for ask in Ask:
        rows(fleet, question(ask))
    assert {one.method for one in seen} == {"GET"}
    whole = [one for one in seen if one.path.endswith("/namespaces/web/secrets") and not one.headers.get("accept")]
    assert whole == [], "of Secrets of the namespace only names are listed"


# -- limits, expiry, faults --------------------------------------------------------------------------------------------


def test_questions_expire_also_when_the_cluster_never_answers(fleet: Fleet) -> None:
    fleet.stop_agent("c1")
    path = send(fleet, question(Ask.DIFF))
    fleet.time.advance(299)
    assert fleet.hub.get(path)["status"]["phase"] == "Accepted"
    fleet.time.advance(2)
    assert fleet.hub.absent(path)
    fleet.start_agent("c1")
    fleet.time.advance(60)
    assert fleet.hub.absent(path), "an agent that is back answers nothing that has expired"


def _judged(asked: list[Question], phase: str = "") -> dict[str, str]:
    """Return the phase that each question gets; deleted ones are gone."""
    from syncline.base.clock import VirtualClock, format_time

    now, seen = VirtualClock().now(), []
    for number, one in enumerate(asked):
        query = query_object(one, "c1", f"q{number:03}")
        query["metadata"] |= {"creationTimestamp": format_time(now), "uid": str(number)}
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": one.name}}
        seen.append(Asked(query | ({"status": {"phase": phase}} if phase else {}), app, "work"))
    found = {f"q{number:03}": phase for number in range(len(asked))}
    for action in plan_queries(AskedOf("c1", seen), now).actions:
        if action.describe().startswith("delete"):
            del found[action.name]  # type: ignore[attr-defined]
        elif action.describe().startswith("set status"):
            found[action.name] = action.new["phase"]  # type: ignore[attr-defined]
    return found


def _by(person: str, number: int) -> list[Question]:
    return [question(Ask.DIFF, asked_by=person)] * number


@pytest.mark.parametrize(
    ("asked", "accepted"),
    [
        (_by("ann", MAX_OPEN_OF_ONE + 3), MAX_OPEN_OF_ONE),
        ([one for n in range(10) for one in _by(f"p{n}", 4)], MAX_OPEN),
        (_by("ann", 30) + _by("bob", 2), MAX_OPEN_OF_ONE + 2),
    ],
)
def test_open_questions_are_bounded_for_a_person_and_for_a_cluster(asked: list[Question], accepted: int) -> None:
    found = _judged(asked)
    assert len(found) == len(asked)
    assert sum(1 for one in found.values() if one == "Accepted") == accepted
    assert all(one in ("Accepted", "Refused") for one in found.values())


def test_of_a_flood_of_questions_the_oldest_stay() -> None:
    assert list(_judged(_by("eve", MAX_KEPT + 50), "Refused")) == [f"q{number:03}" for number in range(MAX_KEPT)]


class Dies(Exception):
    """The process ends here."""


def test_an_agent_that_dies_between_reading_and_answering_answers_when_it_is_back(fleet: Fleet) -> None:
    class Dying:
        def __init__(self, inner: Transport) -> None:
            self.inner = inner

        def send(self, request: Request) -> Response:
            if "applicationqueries" in request.path and request.method == "PATCH":
                raise Dies
            return self.inner.send(request)

    fleet.start_agent("c1", wrap_hub=Dying)
    fleet.time.advance(5)
    with pytest.raises(Dies):
        send(fleet, question(Ask.RESOURCES))
    (query,) = fleet.hub.admin.send(Request("GET", QUERIES.format("c1"))).obj["items"]
    assert query["status"]["phase"] == "Accepted"
    fleet.start_agent("c1")
    fleet.time.advance(5)
    path = f"{QUERIES.format('c1')}/{query['metadata']['name']}"
    assert fleet.hub.get(path)["status"]["phase"] == "Answered"


def test_a_cluster_that_was_cut_off_answers_when_it_is_back(fleet: Fleet) -> None:
    member = fleet.members["c1"]
    member.hub_cable.cut()
    path = send(fleet, question(Ask.RESOURCES))
    fleet.time.advance(30)
    assert fleet.hub.get(path)["status"]["phase"] == "Accepted"
    member.hub_cable.mend()
    fleet.time.advance(60)
    assert fleet.hub.get(path)["status"]["phase"] == "Answered"


@dataclass
class Killed:
    """The connection of the hub's controllers, which die after so many writes. ``left``: one number."""

    inner: Transport
    left: list[int]

    def send(self, request: Request) -> Response:
        if self.left[0] <= 0:
            return Response.refused(Unavailable("killed"))
        self.left[0] -= request.method != "GET"
        return self.inner.send(request)


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_hub_that_dies_in_the_middle_of_a_question_goes_on_with_it(fleet: Two, writes: int) -> None:
    before = list(events(fleet)).count(f"web-c1: {ADMIN} asks cluster c1 for its resources")
    left = [10**6]
    fleet.start_pull(partial(Killed, left=left))
    fleet.time.advance(5)
    left[0] = writes
    path = send(fleet, question(Ask.RESOURCES))
    fleet.time.advance(20)
    begun = fleet.hub.get(path).get("status", {}).get("phase")
    assert begun is None if not writes else begun in (None, "Answered"), "it died before or after it passed it on"
    fleet.start_pull()
    fleet.time.advance(20)
    assert fleet.hub.get(path)["status"]["phase"] == "Answered"
    assert list(events(fleet)).count(f"web-c1: {ADMIN} asks cluster c1 for its resources") >= min(before, 1)
    fleet.time.advance(310)
    assert fleet.hub.absent(path)


class Line:
    """The connection of a command to the hub in virtual time: each look at the clock lets a second pass."""

    server = "https://hub.test"

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.mapper = fleet, Mapper()
        self.mapper.replace(run_in_place(discover(), fleet.hub.admin))

    def send(self, request: Request) -> Response:
        answer = self.fleet.hub.admin.send(request)
        self.fleet.time.settle()
        return answer

    def ask(self, request: Request) -> Obj:
        return self.check(self.send(request))

    def check(self, answer: Response) -> Obj:
        found: Obj = answer.or_raise()
        return found

    def now(self) -> datetime:
        self.fleet.time.advance(1)
        return self.fleet.clock.now()


def _fails(fleet: Fleet) -> str:
    """Ask as a command does, for three seconds; return why there is no answer."""
    app = fleet.hub.get(f"{APPS.format('argocd')}/web-c1")
    before = fleet.hub.get(QUERIES.format("c1"))["items"]
    with pytest.raises(CommandFailed) as failed:
        asked(cast("Connection", Line(fleet)), app, about(app, Ask.RESOURCES), 3)
    assert fleet.hub.get(QUERIES.format("c1"))["items"] == before, "the question is taken back"
    return str(failed.value)


def test_a_command_says_who_has_not_answered_and_since_when(fleet: Two, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.time.advance(310)
    fleet.stop_pull()
    assert _fails(fleet) == "no answer within 3 s: the hub's role `pull` has not passed it on"
    fleet.start_pull()
    fleet.members["c1"].hub_cable.cut()
    assert _fails(fleet) == "no answer within 3 s: the agent of cluster c1 has not answered"
    assert capsys.readouterr().err == ""
    cut = fleet.clock.now()
    fleet.time.advance(600)
    text = _fails(fleet)
    warning = capsys.readouterr().err
    found = re.fullmatch(
        r"no answer within 3 s: the agent of cluster c1 has not answered: "
        r"(cluster c1 has not reported since (\S+): .*)",
        text,
    )
    assert found is not None and cut < parse_time(found[2]) < cut + timedelta(seconds=600)
    assert warning == f"warning: {found[1]}; waiting for 3 s\n"


def test_a_cluster_that_does_not_answer_its_agent_is_an_answer_too(fleet: Fleet) -> None:
    fleet.members["c1"].own_cable.cut()
    found = status(fleet, question(Ask.RESOURCES))
    assert found["phase"] == "Failed"
    assert "cut off" in found["error"]


# -- parts -------------------------------------------------------------------------------------------------------------


def test_an_answer_that_does_not_fit_goes_on_at_the_next_row() -> None:
    found = Found(tuple({"kind": "ConfigMap", "name": str(n), "data": "x" * 400} for n in range(10)), ("a",) * 80)
    seen, offset, parts = [], 0, 0
    while True:
        answered = fitted(found, offset, 1000)
        seen += [msgspec.json.decode(one)["name"] for one in answered.rows]
        parts += 1
        assert len(answered.notes) == 50
        if not answered.next:
            break
        assert answered.next > offset
        offset = answered.next
    assert (seen, parts) == ([str(n) for n in range(10)], 5)


def test_a_row_that_is_larger_than_an_object_is_named() -> None:
    (row,) = fitted(Found(({"kind": "Secret", "name": "big", "data": "x" * 5000},)), 0, 1000).rows
    assert msgspec.json.decode(row) == {"kind": "Secret", "name": "big", "tooLarge": 5055}


def test_a_question_survives_its_object() -> None:
    asked = question(Ask.LOGS, select=ObjectRef("apps", "Deployment", "web", "ui"), lines=3, since_s=5, previous=True)
    assert question_of(query_object(asked, "c1", "q")) == asked


HOSTILE: list[Any] = [
    {"spec": {"ask": "everything"}},
    {"spec": {"ask": ["logs"]}},
    {"spec": "logs"},
    {},
]


@pytest.mark.parametrize("query", HOSTILE)
def test_what_is_no_question_is_none(query: Obj) -> None:
    assert question_of(query) is None


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"depth": 10**9, "exists": True, "created": "tomorrow"},
        {"depth": -1, "health": "Healthy"},
        {"depth": True, "health": {"status": ["Healthy"]}, "name": {"a": 1}},
        {"depth": "1", "health": {"status": "Splendid"}, "created": 7, "exists": 1},
    ],
)
def test_rows_of_a_hostile_agent_make_a_tree_that_can_be_shown(row: Obj) -> None:
    from syncline.base.clock import VirtualClock
    from syncline.cli.views.tree import app_tree, node_objects, resource_tree_table

    nodes = tree_of([row] * 50)
    now = VirtualClock().now()
    assert app_tree(nodes, now, detailed=True)
    assert resource_tree_table(nodes, (), now, detailed=True)
    assert len(node_objects(nodes, False)) == 50
