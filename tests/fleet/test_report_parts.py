"""Reports in parts: joined they are the whole, each is small enough, and a crash between two writes is mended."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fleet.test_pull_controllers import APPS, application
from tests.fleet.world import Fleet

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.base.action import Action
from syncline.base.clock import EPOCH
from syncline.control.cache import Cache
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.explain.fleet.applications import application_state
from syncline.explain.view import View
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.controllers.reports import plan_in_parts
from syncline.fleet.pull.report import Collected, ReportsObserved
from syncline.fleet.pull.reporting.parts import in_parts, joined, part_name, size_of, whole_name
from syncline.fleet.pull.reporting.setparts import divided, is_part, report_name, whole
from syncline.kube.kinds.syncline import MAX_REPORTED
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, name_of, ref_of

LISTS = ("conditions", "waits", "failed", "resources")
texts = st.text(max_size=60)
rows = st.lists(st.fixed_dictionaries({"name": texts, "message": texts}), max_size=30)
contents = st.fixed_dictionaries(
    {"application": st.just({"namespace": "a", "name": "b"}), "health": st.just({"status": "Degraded"})},
    optional=dict.fromkeys(LISTS, rows),
).map(lambda one: {key: value for key, value in one.items() if value})


def together(parts: Sequence[Obj]) -> Obj:
    return joined(parts[0], lambda number: parts[number - 1] if number <= len(parts) else None)


@settings(max_examples=60, deadline=None)
@given(contents, st.integers(900, 4000))
def test_joined_parts_are_the_whole_and_each_is_below_the_limit(content: Obj, limit: int) -> None:
    parts = in_parts(content, limit=limit, parts=1000)
    assert together(parts) == content
    assert all(size_of(one) <= limit for one in parts)
    assert all(one["application"] == content["application"] for one in parts)


@settings(max_examples=40, deadline=None)
@given(contents, st.integers(1, 4))
def test_what_fits_into_no_part_is_counted(content: Obj, most: int) -> None:
    parts = in_parts(content, limit=1200, parts=most)
    assert len(parts) <= most
    found = together(parts)
    there = sum(len(found.get(key) or ()) for key in LISTS)
    assert there + found.get("omitted", 0) == sum(len(content.get(key) or ()) for key in LISTS)


@settings(max_examples=40, deadline=None)
@given(contents, contents, st.integers(0, 40))
def test_parts_of_two_versions_are_never_mixed_and_totals_are_those_of_the_first(
    before: Obj, after: Obj, written: int
) -> None:
    old, new = (in_parts(one, limit=1200, parts=1000) for one in (before, after))
    stored = dict(enumerate(old, 1))
    order = [*range(len(new), 0, -1)]
    for number in order[:written]:  # the agent dies after so many writes
        stored[number] = new[number - 1]
    first = stored[1]
    wanted = after if first is new[0] else before
    found = joined(first, stored.get)
    for key in ("failed", "resources"):
        shown = found.get(key) or []
        assert all(one in (wanted.get(key) or ()) for one in shown)
        assert len(shown) + found.get("omitted", 0) >= len(wanted.get(key) or ())


def test_a_cluster_that_writes_nonsense_into_parts_is_read_all_the_same() -> None:
    first = {"application": {}, "failed": [{"name": "a"}], "part": {"of": 20, "digest": "d", "failed": 3}}
    assert joined(first, lambda _number: {"part": {"number": 70, "digest": "d"}, "failed": [{"name": "b"}]}) == {
        "application": {},
        "failed": [{"name": "a"}],
        "omitted": 2,
    }
    asked: list[int] = []
    joined({"part": {"of": 10**9}}, lambda number: asked.append(number))
    assert len(asked) < 20, "no more parts are asked for than an agent writes"


def test_names_of_parts_lead_back_to_the_report() -> None:
    assert [part_name("web", number) for number in (1, 2)] == ["web", "web.part-2"]
    assert [whole_name(one) for one in ("web", "web.part-2", "web.part-x", "a.part-1.part-3")] == [
        "web",
        "web",
        "web.part-x",
        "a.part-1",
    ]


# -- from an agent to its hub ------------------------------------------------------------------------------------------


def test_an_agent_reports_in_parts_and_takes_back_what_is_too_much() -> None:
    settings_ = PullSettings()
    fleet = Fleet()
    fleet.start_role(pull_role(settings_, objects=tuple(pull_objects(settings_))))
    member = fleet.add("c1")
    for one in pull_objects(settings_):
        if one["kind"] == "CustomResourceDefinition" and "argoproj" in one["spec"]["group"]:
            member.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
    member.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    fleet.time.advance(60)
    app = fleet.hub.send("POST", APPS.format("argocd"), application("web"))
    fleet.time.advance(60)
    path = f"{APPS.format('argocd')}/web"
    details = f"/apis/syncline.dev/v1alpha1/namespaces/c1/applicationreports/{names.work_name(app)}"

    def resources(count: int) -> list[Obj]:
        return [{"kind": "ConfigMap", "version": "v1", "name": f"m{n}", "status": "Synced"} for n in range(count)]

    status = {"health": {"status": "Healthy"}, "sync": {"status": "Synced"}, "resources": resources(MAX_REPORTED + 7)}
    member.send("PATCH", path, {"status": status})
    fleet.time.advance(5)
    assert fleet.hub.get(details)["report"]["part"]["resources"] == MAX_REPORTED + 7
    further = fleet.hub.get(f"{details}.part-2")
    assert [one["name"] for one in further["report"]["resources"]] == [f"m{MAX_REPORTED + n}" for n in range(7)]
    assert further["metadata"]["ownerReferences"] == fleet.hub.get(details)["metadata"]["ownerReferences"]
    member.send("PATCH", path, {"status": {"resources": resources(3)}})
    fleet.time.advance(5)
    assert fleet.hub.absent(f"{details}.part-2")
    assert "part" not in fleet.hub.get(details)["report"]


# -- reports of sets ---------------------------------------------------------------------------------------------------

KEY = ("argocd", "set")


def work(cluster: str, health: str) -> Obj:
    annotations = {names.HOSTING_SET: "argocd/set", names.HUB_NAME: f"web-{cluster}", names.HUB_NAMESPACE: "argocd"}
    values = [{"name": "healthStatus", "fieldValue": {"type": "String", "string": health}}]
    metadata = {"name": f"web-{cluster}-12345", "namespace": cluster, "labels": {names.SET: "true"}}
    status = {"resourceStatus": {"manifests": [{"statusFeedback": {"values": values}}]}}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {**metadata, "annotations": annotations, "uid": cluster},
        "status": status,
    }


class Reports:
    """The reports of one set as the API has them."""

    def __init__(self) -> None:
        self.objects: dict[str, Obj] = {}
        self.works: list[Obj] = []
        self.there = True

    def plan(self, limit: int) -> Plan:
        first = self.objects.get("set")
        parts = [self.objects[name] for name in sorted(self.objects, key=_number) if name != "set"]
        sets = frozenset({KEY}) if self.there else frozenset[tuple[str, str]]()
        errors = tuple(
            {"cluster": one["metadata"]["namespace"], "conditions": [{"type": "SyncError", "message": "x" * 90}]}
            for one in self.works
        )
        seen = ReportsObserved(sets, self.works, [first] if first else [], {KEY: Collected((), errors)}, parts)
        return plan_in_parts(seen, limit)

    def carry_out(self, actions: Sequence[Action]) -> None:
        for one in actions:
            match one:
                case Create(obj=obj) | Replace(obj=obj):
                    assert isinstance(one, Replace) is (name_of(obj) in self.objects)
                    self.objects[name_of(obj)] = deepcopy(obj)
                case Delete():
                    self.objects.pop(one.name, None)

    @property
    def joined(self) -> Obj:
        parts = [self.objects[name] for name in sorted(self.objects, key=_number) if name != "set"]
        found: Obj = whole(self.objects["set"], parts)["statuses"]
        return found


def _number(name: str) -> int:
    return int(name.rpartition("-")[2]) if "part-" in name else 1


LIMIT = 2500


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.integers(0, 12),
)
def test_a_crash_between_writes_is_mended_and_the_summary_is_always_one_that_was_true(
    sizes: list[int], crash: int
) -> None:
    reports, true = Reports(), []
    for round_, size in enumerate(sizes):
        health = ("Healthy", "Degraded")[round_ % 2]
        reports.works = [work(f"c{number:02}", health) for number in range(size)]
        plan = reports.plan(LIMIT)
        made = [one.obj for one in plan.actions if isinstance(one, Create | Replace) and not is_part(one.obj)]
        true += [one["statuses"]["summary"] for one in made]
        reports.carry_out(plan.actions[:crash])
        if "set" in reports.objects:
            assert reports.objects["set"]["statuses"]["summary"] in true
        for _ in range(2):
            reports.carry_out(reports.plan(LIMIT).actions)
        assert not reports.plan(LIMIT).actions, "nothing is written twice"
        if size:
            assert [one["cluster"] for one in reports.joined["clusterConditions"]] == [f"c{n:02}" for n in range(size)]
            assert reports.objects["set"]["statuses"]["summary"]["clusters"] == str(size)
            assert all(size_of(one["statuses"]) <= LIMIT for one in reports.objects.values())


def test_a_large_report_has_parts_and_goes_with_all_of_them() -> None:
    reports = Reports()
    reports.works = [work(f"c{number:02}", "Healthy") for number in range(40)]
    plan = reports.plan(LIMIT)
    *parts, first = [one.obj for one in plan.actions if isinstance(one, Create)]
    assert len(parts) > 2 and name_of(first) == "set", "the first, with the summary, is written last"
    assert all(report_name(one) == "set" and is_part(one) for one in parts)
    reports.carry_out(plan.actions)
    reports.there = False
    gone = [one for one in reports.plan(LIMIT).actions if isinstance(one, Delete)]
    assert {one.name for one in gone} >= {*reports.objects, *(name_of(one) for one in reports.works)}
    assert gone[-1].name == "set", "a crash before leaves the report, which names what is left"


def test_parts_of_a_report_that_is_gone_go() -> None:
    reports = Reports()
    reports.works = [work(f"c{number:02}", "Healthy") for number in range(40)]
    reports.carry_out(reports.plan(LIMIT).actions)
    del reports.objects["set"]
    reports.works, reports.there = [], False
    reports.carry_out(reports.plan(LIMIT).actions)
    assert not reports.objects


def test_a_report_that_fits_is_as_upstreams() -> None:
    statuses = {"resources": [], "clusterConditions": [{"cluster": "a"}], "summary": {"clusters": "1"}}
    assert divided(statuses) == [statuses]


def test_a_report_in_parts_is_whole_for_who_asks() -> None:
    app = application("web", metadata={"uid": "12345678", "name": "web", "namespace": "argocd"})
    app["metadata"] |= {"labels": {names.PULL: "true"}, "annotations": {names.CLUSTER: "c1"}}
    failed = [{"kind": "Service", "name": f"s{n}", "reason": "SyncFailed", "message": "x" * 300} for n in range(20)]
    cache = Cache(Mapper())
    carried = {**work("c1", "Degraded"), "metadata": {"name": "web-12345", "namespace": "c1", "uid": "w"}}
    cache.put(ref_of(carried).group_kind, carried)
    for number, content in enumerate(in_parts({"application": {"name": "web"}, "failed": failed}, limit=3000), 1):
        report = {"apiVersion": "syncline.dev/v1alpha1", "kind": "ApplicationReport", "report": content}
        report["metadata"] = {"name": part_name("web-12345", number), "namespace": "c1"}
        cache.put(ref_of(report).group_kind, report)
    state = application_state(View(cache, EPOCH), app)
    assert [one.name for one in state.failures] == [f"s{n}" for n in range(20)]
