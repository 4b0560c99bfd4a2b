"""``syncline report`` and the explanations around it, of what controllers and agents wrote in virtual time: word for
word (``golden/fleet/``), with clusters that fail, are silent, are missing, and write hostile texts."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from tests.cli.fleethub import GOLDEN, golden
from tests.fleet.test_pull_controllers import SETS
from tests.fleet.test_pull_whole import fleet_of, pulled_set
from tests.fleet.world import Fleet, config_map
from tests.gitops.behaviours.sim import Source

from syncline.assembly.inspection.pulled import pulled
from syncline.assembly.inspection.setplan import PlannedSet
from syncline.base.cause import Cause
from syncline.base.clock import parse_time
from syncline.cli.fleet.applications import applications_obj, applications_text
from syncline.cli.frame.terminal import plain
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.page import MAX_FAILURES, MAX_ROW, MAX_TEXT, policy, report_page
from syncline.cli.views.fleet.setreport import report_obj, reports_text
from syncline.explain.applicationset import _in_clusters
from syncline.explain.fleet.applications import (
    ApplicationState,
    Failure,
    Ordered,
    Standing,
    application_state,
    failures_of,
)
from syncline.explain.fleet.carried import applications_of, explain_carried
from syncline.explain.fleet.setreport import SetReport, application_report, set_report
from syncline.explain.graph import explain_object
from syncline.explain.view import View
from syncline.kube.objects import Obj, ObjectRef

SET = ObjectRef("argoproj.io", "ApplicationSet", "argocd", "set")
NOW = parse_time("2026-01-01T00:00:00Z")
SERVICE: Obj = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "ui", "namespace": "nowhere"},
    "spec": {"ports": [{"port": 80}]},
}
HOSTILE = '<script>alert(1)</script>\x1b[31mred\x1b[0m\u202egnp.exe & "quoted" \' </td></table> \ud800 ' + "x" * 40_000


def deployment(name: str, image: str = "missing.test/web:1") -> Obj:
    labels = {"app": name}
    container = {"name": "web", "image": image}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
    spec["template"]["spec"] = {"containers": [container]}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"replicas": 1, "progressDeadlineSeconds": 60, **spec},
    }


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """c1 is well, a Service fails in c2, c3 is cut off, pods are missing in c4, no cluster is c9."""
    web = config_map("web")
    sources = {"c1": Source(web), "c2": Source(web, SERVICE), "c3": Source(web), "c4": Source(web, deployment("web"))}
    made = fleet_of(sources)
    made.hub.send("POST", SETS, pulled_set("c1", "c2", "c3", "c4", "c9"))
    made.time.advance(60)
    made.members["c3"].hub_cable.cut()
    made.time.advance(480)
    return made


@pytest.fixture(scope="module")
def view(fleet: Fleet) -> View:
    return View(pulled(fleet.hub.admin, {}), fleet.clock.now())


@pytest.fixture(scope="module")
def report(view: View) -> SetReport:
    appset = view.cluster.get(SET)
    assert appset is not None
    return set_report(view, appset, "argocd")


def steady(text: str) -> str:
    """Return the text with the ends of names of works and pods, which are drawn, as zeros."""
    text = re.sub(r"\b(web-c\d)-[0-9a-f]{5}\b", r"\1-00000", text)
    return re.sub(r"\bweb-[0-9a-z]{8,10}-[0-9a-z]{5}\b", "web-000000000-00000", text)


def app(view: View, name: str) -> Obj:
    found = view.cluster.get(ObjectRef("argoproj.io", "Application", "argocd", name))
    assert found is not None
    return found


def test_a_table_has_a_line_for_each_cluster_with_its_first_cause(report: SetReport) -> None:
    golden("set-report", steady(reports_text([report], 140, wide=False)))


def test_every_line_fits_the_terminal(report: SetReport) -> None:
    for width in (120, 140, 200):
        lines = reports_text([report], width, wide=False).splitlines()[:-1]
        assert max(map(len, lines)) <= width


def test_json_has_every_failure_with_its_whole_message(report: SetReport) -> None:
    golden("set-report-json", steady(json.dumps(report_obj(report), indent=2)))


def test_the_page_is_the_same_each_time(report: SetReport) -> None:
    path = GOLDEN / "set-report.html"
    text = steady(report_page([report]))
    if os.environ.get("SYNCLINE_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_counts_are_those_of_the_report_of_the_set(fleet: Fleet, report: SetReport) -> None:
    path = "/apis/apps.open-cluster-management.io/v1alpha1/namespaces/argocd/multiclusterapplicationsetreports/set"
    summary = fleet.hub.get(path)["statuses"]["summary"]
    carried = SetReport(report.subject, tuple(one for one in report.rows if one.work is not None), report.now)
    assert {key: str(value) for key, value in carried.counts.items() if key in summary} == summary


def test_values_of_a_cluster_that_does_not_report_are_never_shown_as_current(report: SetReport) -> None:
    (row,) = [one for one in report_obj(report)["clusters"] if one["cluster"] == "c3"]
    assert (row["standing"], row["current"], row["sync"]) == ("silent", False, "Synced")
    assert row["notReportedSince"] is not None
    (line,) = [one for one in reports_text([report], 140, wide=False).splitlines() if one.startswith("c3")]
    assert "(Synced)" in line and "(Healthy)" in line and "not reported since" in line


def test_a_chain_leads_from_the_application_to_what_failed_in_its_cluster(view: View) -> None:
    texts = []
    for name in ("c1", "c2", "c3", "c4", "c9"):
        found = explain_carried(view, app(view, f"web-{name}"))
        assert found.blocked is (name != "c1")
        texts.append(describe_cause(found.cause, view.now))
    golden("set-report-explain", steady("\n\n".join(texts)))


def test_a_cluster_names_the_applications_that_fail_there(view: View) -> None:
    cluster = view.cluster.get(ObjectRef("cluster.open-cluster-management.io", "ManagedCluster", "", "c2"))
    assert cluster is not None
    found = explain_object(view, cluster)
    assert found.blocked
    assert "1 of 1 Applications need attention" in found.cause.message
    assert found.cause.because[-1].subject == "Application argocd/web-c2"


def test_an_application_that_is_pushed_has_the_same_line(view: View) -> None:
    pushed = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd"},
        "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
        "status": {
            "sync": {"status": "OutOfSync", "revision": "1" * 40},
            "health": {"status": "Degraded"},
            "conditions": [{"type": "ComparisonError", "message": "authentication required"}],
        },
    }
    (row,) = application_report(view, pushed, "argocd").rows
    assert (row.cluster, row.pulled, row.standing) == ("in-cluster", False, Standing.FAILING)
    assert row.failures[0].line == "ComparisonError: authentication required"


def test_without_an_agent_that_reports_messages_the_report_says_so(view: View) -> None:
    known = application_state(view, app(view, "web-c4"))
    row = replace(known, detailed=False, failures=())
    text = reports_text([SetReport(SET, (row,), view.now)], 200, wide=False)
    assert "its agent reports no messages: Syncline's agent does" in text


# -- what failed first -------------------------------------------------------------------------------------------------


def test_a_source_that_cannot_be_read_comes_before_resources_and_a_sync_error_is_not_repeated() -> None:
    content = {
        "conditions": [
            {"type": "SyncError", "message": "Failed last sync attempt: one or more objects failed"},
            {"type": "ComparisonError", "message": "no such branch"},
        ],
        "operation": {"phase": "Failed", "message": "one or more objects failed"},
        "failed": [{"kind": "Service", "namespace": "a", "name": "b", "reason": "SyncFailed", "message": "forbidden"}],
    }
    assert [one.reason for one in failures_of(content)] == ["ComparisonError", "SyncFailed"]


def test_an_operation_that_failed_without_a_resource_is_a_failure() -> None:
    content = {"operation": {"phase": "Error", "message": "hook timed out"}}
    assert [one.line for one in failures_of(content)] == ["sync Error: hook timed out"]


# -- hostile texts -----------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The elements, texts and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def hostile(count: int = 1) -> SetReport:
    cause = Cause(HOSTILE[:80], HOSTILE[:80], HOSTILE, next_action=HOSTILE)
    one = Failure(HOSTILE, HOSTILE, "", HOSTILE, HOSTILE, HOSTILE, (cause,))
    app = {"metadata": {"name": HOSTILE, "namespace": HOSTILE}}
    state = ApplicationState(HOSTILE, app, True, health=HOSTILE, sync=HOSTILE, failures=(one,) * count)
    return SetReport(SET, (state, replace(state, operation={"phase": HOSTILE, "revision": HOSTILE})), NOW)


def test_no_text_of_a_cluster_becomes_part_of_the_page() -> None:
    text = report_page([hostile()])
    text.encode()
    seen, harmless = Tags(), Tags()
    seen.feed(text)
    harmless.feed(report_page([replace(hostile(), rows=())]))
    assert seen.tags.count("script") == harmless.tags.count("script") == 1
    assert not [key for key, _ in seen.attributes if key.startswith("on") or key in ("src", "href", "style")]
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert "<script>alert" not in text and "&lt;script&gt;" in text


def test_the_page_loads_nothing_and_runs_only_its_own_lines() -> None:
    text = report_page([hostile()])
    assert f'content="{policy()}"' in text and "default-src 'none'" in policy()
    assert not re.search(r"https?://|@import|url\(", text)


def test_the_page_is_bounded_by_text_by_row_and_as_a_whole() -> None:
    one = hostile(MAX_FAILURES * 3)
    text = report_page([one])
    assert len(text) < 2 * 6 * MAX_ROW
    assert text.count("more are left out") == 2
    many = report_page([replace(one, rows=one.rows * 30)])
    assert len(many) < 2 * MAX_TEXT
    assert "too long for one page" in many and many.count("<tr") == 61, "every cluster has its row"


def test_each_value_of_the_page_has_a_name_for_those_who_hear_it_or_see_a_part(report: SetReport) -> None:
    text = report_page([report])
    found = re.search("<table>.*</table>", text, re.S)
    assert found is not None
    table = ElementTree.fromstring(found[0])
    assert "".join((table.find("caption") or table).itertext()).startswith("ApplicationSet argocd/set")
    columns = ["".join(one.itertext()) for one in table.iter("th") if one.get("scope") == "col"]
    for row in table.findall("tbody/tr"):
        first, *others = row
        assert (first.tag, first.get("scope")) == ("th", "row")
        assert [one.get("data-label") for one in others] == columns[1:]
    assert "<body><main>" in text
    assert 'role="status"' in text, "how many rows the filter leaves is said"
    assert {one.get("tabindex") for one in table.iter("pre")} == {"0"}, "what scrolls can be reached by key"


def test_a_table_shows_control_characters_as_escapes_in_one_line() -> None:
    lines = reports_text([hostile()], 140, wide=False).splitlines()
    assert len(lines) == 4
    assert all(plain(line) == line for line in lines)
    assert "\\u001b[31m" in report_page([hostile()])


# -- the order over clusters, and sets ---------------------------------------------------------------------------------


def test_a_cluster_whose_turn_has_not_come_says_what_it_waits_for(view: View) -> None:
    held = Cause("cluster c9 (wave 2)", "Waiting", "wave 1 is not done: c1 is proving the release", NOW)
    state = ApplicationState("c9", app(view, "web-c9"), True, ordered=Ordered("2", "Waiting", held))
    report = SetReport(SET, (state,), view.now)
    lines = reports_text([report], 200, wide=False).splitlines()
    assert lines[0].split()[-3:] == ["WAVE", "RELEASE", "CAUSE"]
    assert lines[1].endswith("2      Waiting   Waiting: wave 1 is not done: c1 is proving the release")
    assert not report.urgent, "waiting for its turn is no fault"
    assert report_obj(report)["clusters"][0]["release"]["held"]["message"] == held.message
    assert '<th scope="col">Wave</th>' in report_page([report])


def test_a_set_leads_to_the_applications_that_need_attention(view: View, report: SetReport) -> None:
    made = _in_clusters(view.cluster.get(SET) or {}, plan_of("argocd", "set"), report.rows)
    assert made is not None and made.blocked
    assert made.cause.message == "4 of 5 Applications need attention in their clusters"
    assert [one.subject for one in made.cause.because][:2] == [
        f"Application argocd/web-{name}" for name in ("c2", "c4")
    ]
    well = [one for one in report.rows if one.standing is Standing.WELL]
    assert _in_clusters(view.cluster.get(SET) or {}, plan_of("argocd", "set"), well) is None


def plan_of(namespace: str, name: str) -> PlannedSet:
    return PlannedSet(ObjectRef(*SET[:2], namespace, name), "sync", 5)


def test_a_cluster_counts_its_applications(view: View) -> None:
    assert applications_text(applications_of(view, "c2")) == "1, 1 failing (web-c2)"
    assert applications_text(applications_of(view, "c1")) == "1"
    assert applications_text([]) == "" and applications_text(None) == "?"
    assert applications_obj(applications_of(view, "c2")) == {
        "total": 1,
        "failing": 1,
        "listed": [{"name": "argocd/web-c2", "standing": "failing"}],
    }
