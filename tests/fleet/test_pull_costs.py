"""What the pull model costs a hub, as counts: writes for each change, and only leases at rest (``bench/pull.py``)."""

from __future__ import annotations

import pytest
from bench.pull import changed, others_than_leases, spending
from bench.pullfleet import SETS, PullFleet

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
    # The generator of the sets asks each 180 s what its Placement decided, for all sets at once.
    looked = others_than_leases(spent)
    assert set(looked) <= {("gitops", "list", "placementdecisions")}
    assert looked.total() <= 2 * 3600 / 180
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
