"""What the pull model costs a hub, as counts: writes for each change, and only leases at rest (``bench/pull.py``)."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import msgspec
import pytest
from bench.pull import DISCOVERY, changed, others_than_leases, spending
from bench.pullfleet import NAMESPACE, SETS, PullFleet

from syncline.cluster.storage.store import Key
from syncline.control.cache import Cache
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.observe import APPS, DETAILS, INDICES, PROJECTS, WORKS
from syncline.fleet.pull.observe import CLUSTERS as CLUSTERS_KIND
from syncline.fleet.pull.order.groups import BY_GROUP, ROLLOUTS, key_of
from syncline.fleet.pull.order.groups import INDICES as ORDER_INDICES
from syncline.fleet.pull.order.model import Target
from syncline.fleet.pull.order.observe import Reading
from syncline.fleet.pull.reporting.entries import Entries, Sources
from syncline.kube.client import Request
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, gvk_of

CLUSTERS, APPLICATIONS = 5, 3


@pytest.fixture(scope="module")
def fleet() -> PullFleet:
    made = PullFleet(CLUSTERS)
    made.fill(range(APPLICATIONS))
    wanted = CLUSTERS * APPLICATIONS
    made.crowd.until(lambda: made.ledger.done() == wanted and made.ledger.reported() == wanted, 60)
    made.crowd.advance(4000)  # Events of the beginning are gone
    return made


def test_a_change_of_one_application_in_every_cluster_costs_three_writes_for_each(fleet: PullFleet) -> None:
    spent = changed(fleet, "app-000", list(fleet.clusters), 5.0)
    for kind in ("applications", "manifestworks", "applicationreports"):
        assert spent.writes[kind] == CLUSTERS, kind
    assert spent.writes["multiclusterapplicationsetreports"] == 1, "the report of the set is written once"
    assert spent.lasted <= 3.0, "virtual seconds from the commit to the last report"
    assert not spent.idle, "no write without a change"


def test_a_change_in_one_cluster_writes_no_object_of_another_one(fleet: PullFleet) -> None:
    spent = changed(fleet, "app-001", ["c0002"], 5.0)
    assert spent.changed == 4
    others = set(fleet.clusters) - {"c0002"}
    asked = {what for _, verb, what in spent.requests if verb not in ("watch", "list", "get")}
    assert asked - {"leases"} == {
        "applications",
        "manifestworks/status",
        "applicationreports",
        "multiclusterapplicationsetreports",
    }
    assert all(fleet.ledger.apps[f"{name}-app-001"] != fleet.ledger.apps["c0002-app-001"] for name in others)


def test_an_hour_in_which_nothing_changes_costs_the_hub_leases_only(fleet: PullFleet) -> None:
    with spending(fleet) as spent:
        fleet.crowd.advance(3600)
    assert 45 <= sum(count for (_, _, what), count in spent.requests.items() if what == "leases") / CLUSTERS <= 65
    assert not others_than_leases(spent), "generators read what Placements decided from the watch cache"
    looks = sum(count for (_, _, what), count in spent.requests.items() if what == DISCOVERY)
    assert looks <= 14 * CLUSTERS, "each agent looks every ten minutes for kinds that are not served, with two requests"
    assert spent.changed == 0


def test_a_cluster_that_was_away_reports_what_changed_and_nothing_else(fleet: PullFleet) -> None:
    link = fleet.clusters["c0001"].link
    assert link is not None
    link.cut()
    fleet.crowd.advance(600)
    release = fleet.sources.release("app-002")
    fleet.send("PATCH", f"{SETS}/app-002", {"spec": {"template": {"spec": {"source": {"targetRevision": release}}}}})
    fleet.crowd.wake(fleet.hub)
    fleet.crowd.advance(60)
    assert fleet.ledger.reports["app-002"][release] == CLUSTERS - 1
    before = len(fleet.ledger.apps)
    with spending(fleet) as spent:
        link.whole = True
        fleet.crowd.until(lambda: fleet.ledger.reports["app-002"][release] == CLUSTERS, 120)
        fleet.crowd.advance(5)
    assert len(fleet.ledger.apps) == before
    assert spent.writes["applications"] <= 2
    assert spent.kinds["applications", "DELETED"] == spent.kinds["manifestworks", "DELETED"] == 0


# -- what grows with the fleet ----------------------------------------------------------------------------------------

REPORTS = "/apis/apps.open-cluster-management.io/v1alpha1/namespaces/default/multiclusterapplicationsetreports"
MANY = 400
JSON_PATCH = {"content-type": "application/json-patch+json"}


def entry(number: int, revision: str) -> Obj:
    said = {"syncStatus": "Synced", "healthStatus": "Healthy", "operationStatePhase": "Succeeded"}
    return {"cluster": f"c{number:04}", **said, "syncRevision": revision, "app": f"argocd/web-{number}/c{number}/web"}


def made(fleet: PullFleet, name: str, entries: int) -> Any:
    """Make a report with so many entries; return what reads its entries as stored."""
    listed = [entry(number, "a") for number in range(entries)]
    statuses = {"clusterConditions": listed, "resources": [], "summary": {"clusters": str(entries)}}
    kind = {"apiVersion": "apps.open-cluster-management.io/v1alpha1", "kind": "MulticlusterApplicationSetReport"}
    fleet.send("POST", REPORTS, {**kind, "metadata": {"name": name}, "statuses": statuses})
    key = Key("apps.open-cluster-management.io/multiclusterapplicationsetreports", "default", name)
    stored = fleet.core.store.get
    return lambda: stored(key).obj["statuses"]["clusterConditions"]  # type: ignore[union-attr]


def patched(fleet: PullFleet, name: str, number: int, revision: str) -> int:
    """Replace one entry of a report; return the calls of functions of ours that it took."""
    calls: Counter[str] = Counter()
    body = [{"op": "replace", "path": f"/statuses/clusterConditions/{number}", "value": entry(number, revision)}]
    request = Request("PATCH", f"{REPORTS}/{name}", {}, JSON_PATCH, body)
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _of: calls.update([event]) if "bench" not in frame.f_code.co_filename else None)
    try:
        answer = fleet.admin.send(request)
    finally:
        sys.setprofile(before)
    answer.or_raise()
    return calls["call"]


def test_the_entries_of_a_report_that_stay_cost_a_write_of_it_next_to_nothing(fleet: PullFleet) -> None:
    few, many = made(fleet, "few", MANY // 10), made(fleet, "many", MANY)
    for name in ("few", "many"):
        patched(fleet, name, 0, "b")  # what is remembered of a schema is made
    before = many()
    spent = {name: patched(fleet, name, 7, "c") for name in ("few", "many")}
    after = many()
    assert [number for number in range(MANY) if after[number] is not before[number]] == [7]
    assert few()[7] == after[7] == entry(7, "c")
    assert spent["many"] - spent["few"] <= (MANY - MANY // 10) / 4, spent
    for name in ("few", "many"):
        fleet.send("DELETE", f"{REPORTS}/{name}")


def test_an_entry_that_stays_is_still_judged_by_the_schema_when_a_patch_breaks_another(fleet: PullFleet) -> None:
    entries = made(fleet, "broken", MANY)
    patched(fleet, "broken", 0, "b")
    body = [{"op": "replace", "path": "/statuses/clusterConditions/3/syncStatus", "value": 5}]
    answer = fleet.admin.send(Request("PATCH", f"{REPORTS}/broken", {}, JSON_PATCH, body))
    assert answer.status == 422 and "statuses.clusterConditions[3].syncStatus" in str(answer.obj)
    body = [{"op": "add", "path": "/statuses/clusterConditions/3/colour", "value": "red"}]
    fleet.admin.send(Request("PATCH", f"{REPORTS}/broken", {}, JSON_PATCH, body)).or_raise()
    assert entries()[3] == entry(3, "a"), "an unknown field goes also beside entries that stay"
    fleet.send("DELETE", f"{REPORTS}/broken")


def test_one_report_of_a_cluster_makes_one_entry_of_the_set_anew_and_a_gone_application_none(fleet: PullFleet) -> None:
    store = fleet.core.store
    found = {
        (kind, one.key.namespace, one.key.name): one.obj
        for kind, resource in (
            ("Application", "argoproj.io/applications"),
            ("ManifestWork", "work.open-cluster-management.io/manifestworks"),
            ("ApplicationReport", "syncline.dev/applicationreports"),
        )
        for one in store.list(resource)
    }

    def get(ref: ObjectRef) -> Obj | None:
        return found.get((ref.kind, ref.namespace, ref.name))

    def whole(cluster: str, work: str) -> Obj | None:
        return found.get(("ApplicationReport", cluster, work))

    works = [one for (kind, _, name), one in found.items() if kind == "ManifestWork" and "-app-001-" in name]
    kept, sources = Entries(), Sources(APPS, DETAILS, get, whole)
    first = kept.of(("openshift-gitops", "app-001"), works, sources)
    assert len(first) == CLUSTERS and all(one.carried for one in first)
    second = first[1]
    found["ApplicationReport", second.details_ref.namespace, second.details_ref.name] = {"report": {}}
    assert second.app_ref is not None and first[2].app_ref is not None
    del found["Application", first[2].app_ref.namespace, first[2].app_ref.name]
    now = kept.of(("openshift-gitops", "app-001"), works, sources)
    assert [one is other for one, other in zip(now, first, strict=True)] == [True, False, False, True, True]
    assert [one.carried for one in now] == [True, True, False, True, True]


def test_an_order_reads_only_the_clusters_that_changed_unless_something_of_all_changes(fleet: PullFleet) -> None:
    cache = Cache(Mapper(), {**INDICES, **ORDER_INDICES})
    for resource in fleet.core.store.resources():
        for one in fleet.core.store.list(resource):
            cache.put(gvk_of(one.obj).group_kind, one.obj)
    reading, group = Reading(PullSettings(argo_namespace=NAMESPACE)), ObjectRef(*ROLLOUTS, NAMESPACE, "app-001")

    def members() -> tuple[Target, ...]:
        return reading.members(cache, group, cache.indexed(BY_GROUP, key_of(group)))

    def same(now: tuple[Target, ...], before: tuple[Target, ...]) -> list[bool]:
        return [one is other for one, other in zip(now, before, strict=True)]

    first = members()
    assert len(first) == CLUSTERS and all(one.wanted for one in first)
    assert same(members(), first) == [True] * CLUSTERS
    work = first[3].work
    assert work is not None
    cache.put(WORKS, {**work, "status": {}})
    cache.drop(CLUSTERS_KIND, "", first[1].cluster.name)
    second = members()
    assert same(second, first) == [True, False, True, False, True]
    assert second[1].aside and second[3].facts != first[3].facts
    (project,) = cache.objects(PROJECTS)
    cache.put(PROJECTS, {**project, "spec": {**project["spec"], "sourceRepos": ["https://git.example.com/*"]}})
    assert same(members(), second) == [False] * CLUSTERS


def test_what_the_hub_stores_is_what_its_bytes_say_after_all_this(fleet: PullFleet) -> None:
    store = fleet.core.store
    stored = [one for resource in store.resources() for one in store.list(resource)]
    assert len(stored) > 100
    for one in stored:
        assert msgspec.json.encode(one.obj) == one.raw, one.key
