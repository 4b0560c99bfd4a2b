"""Probes of processes: how answers are counted, as tables, and real probes on a served cluster."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.machines.test_exec import Cluster as Inside
from tests.cluster.machines.test_process import LONGEST_S, WAIT, Cluster
from tests.live import served_cluster

from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cluster.machines.probes import Course, Failure, Probe
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.cluster.machines.processes.prober import Answer, Prober, Tally, course_at_start, course_with

PROBLEM = sandbox_problem()
GOOD, BAD = Answer(True), Answer(False, "no")
ANY = {"exec": {"command": ["true"]}}


def courses(container: dict[str, Any], probe: Probe, answers: str) -> list[Course]:
    """After each answer, one a second; ``+`` is a good one."""
    spec = container[f"{probe.lower()}Probe"]
    course, tally, found = course_at_start(container), Tally.of(probe, spec), []
    for at_s, letter in enumerate(answers, 1):
        answer = GOOD if letter == "+" else BAD
        tally = tally.after(answer.ok)
        course = course_with(course, container, probe, tally, answer, float(at_s))
        found.append(course)
    return found


@pytest.mark.parametrize(
    ("fields", "answers", "ready"),
    [
        ({}, "+", "+"),
        ({}, "-+", "-+"),
        ({"successThreshold": 2}, "+++", "-++"),
        ({"successThreshold": 2}, "+-++", "---+"),
        ({"failureThreshold": 3}, "+---+", "+++-+"),
        ({"failureThreshold": 3}, "+--+--", "++++++"),
        ({"failureThreshold": 1}, "+-+-+", "+-+-+"),
    ],
)
def test_readiness_comes_and_goes_with_rows_of_answers(fields: dict[str, int], answers: str, ready: str) -> None:
    found = courses({"readinessProbe": ANY | fields}, Probe.READINESS, answers)
    shown = ["+" if each.ready_s is not None and each.unready_s is None else "-" for each in found]
    assert "".join(shown) == ready


def test_a_container_is_killed_when_it_fails_as_often_as_is_tolerated() -> None:
    found = courses({"livenessProbe": ANY | {"failureThreshold": 2}}, Probe.LIVENESS, "+-+--")
    assert [each.killed_s for each in found] == [None, None, None, None, 5.0]
    assert found[-1].killed_by == "liveness"
    assert found[-1].failures == tuple(Failure(at_s, Probe.LIVENESS, "no") for at_s in (2.0, 4.0, 5.0))


def test_a_slow_start_is_waited_for_and_then_readiness() -> None:
    container = {"startupProbe": ANY | {"failureThreshold": 3}, "readinessProbe": ANY}
    assert course_at_start(container).ready_s is None
    found = courses(container, Probe.STARTUP, "--+")
    assert (found[1].started_s, found[2].started_s, found[2].ready_s) == (None, 3.0, None)
    assert courses({"startupProbe": ANY}, Probe.STARTUP, "+")[0].ready_s == 1.0
    assert courses(container, Probe.STARTUP, "---")[-1].killed_by == "startup"


def test_people_are_not_told_for_ever() -> None:
    found = courses({"readinessProbe": ANY | {"failureThreshold": 1}}, Probe.READINESS, "+-" * 500)
    assert len(found[-1].failures) == 64


def test_nothing_is_asked_before_the_start_is_over_and_nothing_after_the_end() -> None:
    container = {name: ANY | {"periodSeconds": 0.01} for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    ended, enough, seen = threading.Event(), threading.Event(), list[Probe]()

    def note(probe: Probe, tally: Tally, answer: Answer) -> None:
        seen.append(probe)
        if len(seen) > 10 and {Probe.LIVENESS, Probe.READINESS} <= set(seen):
            enough.set()

    asked = iter([BAD, BAD])
    Prober(container, lambda spec, timeout_s: next(asked, GOOD), note, ended).start()
    assert enough.wait(LONGEST_S), f"liveness and readiness were not both asked in {LONGEST_S} s: {seen[:20]}"
    ended.set()
    assert seen[:3] == [Probe.STARTUP] * 3 and Probe.STARTUP not in seen[3:]


# -- real ones -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.SANDBOXED)
    with served_cluster(tmp_path_factory.mktemp("served"), settings) as served:
        mine = Cluster(served.kubeconfig)
        mine.oc("wait", "serviceaccount/default", "--for=create", WAIT)
        yield mine


def start(cluster: Cluster, name: str, script: str, policy: str = "OnFailure", **container: Any) -> None:
    cluster.start(name, "sh", "-c", script, container=container, restartPolicy=policy, terminationGracePeriodSeconds=1)


def said(cluster: Cluster, name: str) -> set[str]:
    events = json.loads(cluster.oc("get", "events", "-o", "json"))["items"]
    return {each["message"] for each in events if each["involvedObject"]["name"] == name}


def wait(cluster: Cluster, name: str, what: str) -> None:
    cluster.oc("wait", f"pod/{name}", f"--for={what}", WAIT)


def await_event(cluster: Cluster, name: str, *messages: str) -> None:
    """Until the pod has been told each of them; an event comes a moment after what it tells."""
    until = time.monotonic() + LONGEST_S
    while not set(messages) <= (found := said(cluster, name)):
        assert time.monotonic() < until, f"{name} was not told {messages} in {LONGEST_S} s, but {found}"


QUICK = {"periodSeconds": 1, "timeoutSeconds": 60, "failureThreshold": 1}
"""A probe's own limit is no part of what is shown here, but where ``timeoutSeconds`` is given."""
needs_sandbox = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)


@needs_sandbox
def test_a_command_inside_decides_whether_a_process_is_ready(cluster: Cluster, tmp_path: Path) -> None:
    probe = QUICK | {"exec": {"command": ["cat", "/tmp/ready"]}}
    start(cluster, "comes", "sleep 600", readinessProbe=probe)
    await_event(cluster, "comes", "Readiness probe failed: cat: /tmp/ready: No such file or directory\n")
    inside = Inside(cluster.kubeconfig, tmp_path)
    for command, ready in (("true", "false"), ("touch /tmp/ready", "true"), ("rm /tmp/ready", "false")):
        inside.exec(*command.split(), pod="comes")
        wait(cluster, "comes", f"jsonpath={{.status.containerStatuses[0].ready}}={ready}")


@needs_sandbox
def test_a_process_that_is_not_alive_is_started_again(cluster: Cluster) -> None:
    probe = QUICK | {"exec": {"command": ["sh", "-c", "echo is dead; exit 3"]}}
    start(cluster, "dies", "sleep 600", livenessProbe=probe)
    restarted = "Container c failed liveness probe, will be restarted"
    await_event(cluster, "dies", "Liveness probe failed: is dead\n", restarted)
    wait(cluster, "dies", "jsonpath={.status.containerStatuses[0].lastState.terminated}")
    count = cluster.oc("get", "pod", "dies", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
    assert int(count) >= 1


HEADERS = [{"name": "X-Probe", "value": "yes"}]
SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.headers.get("X-Probe") == "yes" and self.headers["User-Agent"].startswith("kube-probe/")
        self.send_response(200 if self.path == "/good" and known else 503)
        self.end_headers()
http.server.HTTPServer(("", 8080), Handler).serve_forever()
"""


@needs_sandbox
@pytest.mark.parametrize(
    ("name", "handler", "message"),
    [
        (
            "http-good",
            {"httpGet": {"path": "/good", "port": "web", "httpHeaders": HEADERS}},
            "",
        ),
        ("http-bad", {"httpGet": {"path": "/bad", "port": 8080}}, "HTTP probe failed with statuscode: 503"),
        ("tcp-good", {"tcpSocket": {"port": 8080}}, ""),
        ("tcp-bad", {"tcpSocket": {"port": 8081}}, "dial tcp 127.0.0.1:8081: connect: connection refused"),
        (
            "slow",
            {"exec": {"command": ["sleep", "60"]}, "timeoutSeconds": 1},
            'command timed out: "sleep 60" timed out after 1s',
        ),
    ],
)
def test_ports_inside_are_asked(cluster: Cluster, name: str, handler: dict[str, Any], message: str) -> None:
    up = QUICK | {"tcpSocket": {"port": "web"}, "failureThreshold": 60}
    fields = {"startupProbe": up, "readinessProbe": QUICK | handler, "ports": [{"name": "web", "containerPort": 8080}]}
    python = "for p in /opt/syncline/python/bin/python3* python3; do command -v $p && break; done | head -1"
    script = f"export LD_LIBRARY_PATH=/opt/syncline/python/lib; exec $({python}) -I -c '{SERVER}'"
    start(cluster, name, script, **fields)
    wait(cluster, name, "jsonpath={.status.containerStatuses[0].started}=true")
    if not message:
        wait(cluster, name, "condition=Ready")
        return
    wait(cluster, name, "condition=Ready=false")
    await_event(cluster, name, f"Readiness probe failed: {message}")
