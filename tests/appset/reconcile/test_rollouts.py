"""RollingSync: steps, limits, gates, evidence, and the order of deletion (behaviours 49-56)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.appset.rounds import NOW, Table, at_now
from tests.appset.sets import FINALIZER, app, app_spec, appset, condition, names, parameters, rows, table, writes

from syncline.base.clock import format_time
from syncline.kube.objects import Obj, annotations_of, finalizers, name_of, owner_references

ON = parameters(enable_progressive_syncs="true")
SPEC = app_spec()
DONE: Obj = {
    "sync": {"status": "Synced", "revision": "r1", "comparedTo": {**SPEC}},
    "health": {"status": "Healthy"},
    "reconciledAt": "@now-30s@",
    "operationState": {
        "phase": "Succeeded",
        "startedAt": "@now-60s@",
        "finishedAt": "@now-40s@",
        "syncResult": {"revision": "r1", "source": SPEC["source"]},
    },
}
"""The status of an Application that ran what it should, and was seen healthy afterwards."""


def step(*values: str, key: str = "env", operator: str = "In", **more: Any) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}], **more}


def rolling(*steps: Obj, status: tuple[Obj, ...] = (), strict: bool = False, **given: Any) -> Obj:
    """A set of ``d1``, ``d2`` (dev) and ``p1`` (prod) with these steps."""
    strategy = {"type": "RollingSync", "rollingSync": {"steps": list(steps)}, **given.pop("strategy", {})}
    generators = given.pop("generators", (rows("d1", "d2", env="dev"), rows("p1", env="prod")))
    marks = {"annotations": {"syncline.dev/rollout-evidence": "strict"}} if strict else {}
    template = {"labels": {"env": "{{env}}"}}
    statuses = {"status": {"applicationStatus": list(status)}} if status else {}
    return appset(*generators, strategy=strategy, template=template, **marks, **statuses, **given)


def entry(name: str, status: str, step: str = "1", since: str = "@now-50s@", revision: str = "r1") -> Obj:
    texts = {"application": name, "status": status, "step": step, "message": "m", "lastTransitionTime": since}
    return {**texts, "targetRevisions": [revision]}


def member(name: str, sync: str = "Synced", health: str = "Healthy", revision: str = "r1", **status: Any) -> Obj:
    env = "prod" if name.startswith("p") else "dev"
    states: Obj = {"sync": {"status": sync, "revision": revision}, "health": {"status": health}}
    return app(name, labels={"env": env}, status={**states, "reconciledAt": "@now-30s@", **status})


def stage(*objects: Obj) -> Table:
    return table(ON, *(at_now(one) for one in objects))


def entries(one: Table) -> dict[str, str]:
    found = one.of("ApplicationSet")[0].get("status") or {}
    return {row["application"]: f"{row['status']} {row['step']}" for row in found.get("applicationStatus") or ()}


def requested(one: Table) -> list[str]:
    return [name_of(found) for found in one.of("Application") if found.get("operation")]


TWO = (step("dev"), step("prod"))


def test_b49_the_next_step_waits_for_the_one_before() -> None:
    waiting = (entry("d1", "Progressing"), entry("d2", "Healthy"), entry("p1", "Waiting", "2"))
    apps = (member("d1", health="Progressing"), member("d2"), member("p1", sync="OutOfSync"))
    one = stage(rolling(*TWO, status=waiting), *apps)
    one.reconcile()
    assert entries(one) == {"d1": "Progressing 1", "d2": "Healthy 1", "p1": "Waiting 2"} and requested(one) == []
    assert condition(one, "RolloutProgressing")["message"] == "ApplicationSet is performing rollout of step 1"


def test_b49_a_complete_step_opens_the_next_and_the_reconcile_after_that_starts_syncs() -> None:
    one = stage(rolling(*TWO), member("d1"), member("d2"), member("p1", sync="OutOfSync"))
    one.reconcile()
    assert entries(one)["p1"] == "Pending 2" and requested(one) == []
    one.reconcile()
    assert requested(one) == ["p1"]


def test_b50_an_application_in_no_step_is_never_synced() -> None:
    lone = (rows("d1", env="dev"), rows("x", env="qa"))
    one = stage(rolling(*TWO, generators=lone), member("d1"), member("x", sync="OutOfSync"))
    one.reconcile()
    one.reconcile()
    assert entries(one)["x"] == "Waiting -1" and requested(one) == []


@pytest.mark.parametrize(
    ("limit", "pending", "valid"),
    [
        ("10%", 1, True),
        ("50%", 2, True),
        ("100%", 5, True),
        (0, 0, True),
        ("0%", 0, True),
        (3, 3, True),
        (-1, 0, True),
        ("3", 1, False),
        ("x%", 1, False),
        (None, 5, True),
    ],
)
def test_b51_at_most_max_update_applications_are_updated_at_a_time(limit: Any, pending: int, valid: bool) -> None:
    five = [f"d{number}" for number in range(5)]
    limited = step("dev", **({} if limit is None else {"maxUpdate": limit}))
    one = stage(rolling(limited, generators=(rows(*five, env="dev"),)), *(member(name, "OutOfSync") for name in five))
    one.reconcile()
    assert list(entries(one).values()).count("Pending 1") == pending
    assert condition(one, "InvalidRolloutConfig")["status"] == ("False" if valid else "True")


def test_b52_an_application_that_stays_out_of_sync_blocks_the_rollout() -> None:
    stuck = (entry("d1", "Progressing"), entry("d2", "Healthy"))
    one = stage(rolling(*TWO, status=stuck), member("d1", sync="OutOfSync"), member("d2"), member("p1", "OutOfSync"))
    for _ in range(3):
        one.reconcile()
    assert entries(one) == {"d1": "Progressing 1", "d2": "Healthy 1", "p1": "Waiting 2"}


def test_b53_a_new_commit_sends_an_application_back_to_waiting() -> None:
    one = stage(
        rolling(*TWO, status=(entry("d1", "Healthy"), entry("d2", "Progressing"))),
        member("d1", sync="OutOfSync", revision="r2"),
        member("d2", sync="OutOfSync", revision="r2"),
    )
    one.reconcile()
    found = one.of("ApplicationSet")[0]["status"]["applicationStatus"]
    assert [row["targetRevisions"] for row in found] == [["r2"], ["r2"]]
    assert entries(one) == {"d1": "Pending 1", "d2": "Pending 1"}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (step("dev", operator="Exists"), "Step 1 has invalid matchExpression operators: Exists."),
        (step("dev", "prod"), "Application 'p1' is selected by multiple steps: (1-2)"),
        (step("none"), "Steps [1] have no applications matching their criteria"),
        (step("dev", maxUpdate="ten"), "Step 1 has an invalid maxUpdate value: ten"),
    ],
)
def test_b54_problems_of_the_steps_are_named(bad: Obj, said: str) -> None:
    one = stage(rolling(bad, step("prod")), *(member(name) for name in ("d1", "d2", "p1")))
    one.reconcile()
    found = condition(one, "InvalidRolloutConfig")
    assert found["status"] == "True" and found["message"].startswith(said)


@pytest.mark.parametrize("way", ["strategy removed", "switched off"])
def test_b55_without_a_rollout_its_states_and_conditions_go(way: str) -> None:
    found = rolling(*TWO, status=(entry("d1", "Healthy"),))
    found["status"]["conditions"] = [
        {"type": "RolloutProgressing", "status": "True", "reason": "r", "message": "m"},
        {"type": "InvalidRolloutConfig", "status": "True", "reason": "r", "message": "m"},
    ]
    if way == "strategy removed":
        del found["spec"]["strategy"]
    settings = parameters(enable_progressive_syncs="true" if way == "strategy removed" else "false")
    one = table(settings, at_now(found), *(at_now(member(name)) for name in ("d1", "d2", "p1")))
    one.reconcile()
    assert entries(one) == {}
    if way == "strategy removed":
        assert not condition(one, "RolloutProgressing") and not condition(one, "InvalidRolloutConfig")


def test_b56_applications_go_one_at_a_time_the_last_step_first() -> None:
    going = rolling(*TWO, strategy={"deletionOrder": "reverse"}, finalizers=[FINALIZER], deletionTimestamp="@now@")
    others = (app("free", labels={"env": "qa"}), app("foreign", owner="other"))
    one = stage(going, *(member(name) for name in ("d1", "d2", "p1")), *others)
    order = []
    for _ in range(6):
        order += writes(one)
        for left in one.of("Application"):
            if left["metadata"].get("deletionTimestamp"):
                assert writes(one) == [], "one that is being deleted is waited for"
                one.put({**left, "metadata": {**left["metadata"], "finalizers": []}})
    assert order == ["delete p1", "delete d1", "delete d2"]
    assert names(one) == ["foreign", "free"] and one.of("ApplicationSet") == []


def test_b56_an_application_that_does_not_go_is_reported() -> None:
    going = rolling(*TWO, strategy={"deletionOrder": "Reverse"}, finalizers=[FINALIZER], deletionTimestamp="@now@")
    stuck = member("d1")
    stuck["metadata"]["deletionTimestamp"] = "@now-180s@"
    found = stage(going, stuck).reconcile()
    assert found.error == "application has not been deleted in over 2 minutes"
    assert any("DeletionSlow" in text and FINALIZER in text for text in found.events)


def test_a_set_in_reverse_order_gets_the_finalizer_that_makes_it_wait() -> None:
    one = stage(rolling(*TWO, strategy={"deletionOrder": "Reverse"}))
    one.reconcile()
    assert finalizers(one.of("ApplicationSet")[0]) == [FINALIZER] and names(one) == ["d1", "d2", "p1"]


def test_automated_sync_is_off_for_the_applications_of_a_rollout_and_its_prune_is_used() -> None:
    automated = {"syncPolicy": {"automated": {"prune": True}, "syncOptions": ["A=b"], "retry": {"limit": 2}}}
    one = stage(rolling(*TWO, app=automated, status=(entry("d1", "Pending"),)), member("d1", sync="OutOfSync"))
    one.reconcile()
    found = next(one for one in one.of("Application") if name_of(one) == "d1")
    assert found["spec"]["syncPolicy"]["automated"] == {"prune": True, "enabled": False}


def test_a_label_that_changes_moves_an_application_to_another_step() -> None:
    moved = (rows("d1", env="dev"), rows("d2", env="prod"))
    one = stage(
        rolling(*TWO, generators=moved, status=(entry("d2", "Healthy"),)), member("d1", "OutOfSync"), member("d2")
    )
    one.reconcile()
    assert entries(one) == {"d1": "Pending 1", "d2": "Healthy 2"}


def test_a_set_that_shrinks_while_a_step_runs_goes_on_without_the_application() -> None:
    running = (entry("d1", "Healthy"), entry("d2", "Progressing"), entry("p1", "Waiting", "2"))
    left = (rows("d1", env="dev"), rows("p1", env="prod"))
    gone = member("d2", sync="OutOfSync")
    gone["metadata"]["finalizers"] = []
    one = stage(rolling(*TWO, generators=left, status=running), member("d1"), gone, member("p1", "OutOfSync"))
    one.reconcile()
    one.reconcile()
    assert entries(one) == {"d1": "Healthy 1", "p1": "Pending 2"} and names(one) == ["d1", "p1"]


# -- strict evidence -------------------------------------------------------------------------------------------


def strictly(**changes: Any) -> dict[str, str]:
    """The states after a look at ``d1`` that is done but for ``changes`` of its status."""
    status = {
        **DONE,
        **{key: {**DONE[key], **value} if isinstance(value, dict) else value for key, value in changes.items()},
    }
    one = stage(
        rolling(*TWO, generators=(rows("d1", env="dev"),), strict=True, status=(entry("d1", "Progressing"),)),
        app("d1", labels={"env": "dev"}, status=status),
    )
    one.reconcile()
    return entries(one)


def test_strict_evidence_is_a_sync_of_what_is_wanted_and_health_seen_after_it() -> None:
    assert strictly() == {"d1": "Healthy 1"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"reconciledAt": "@now-60s@"}, id="health seen before the sync ended"),
        pytest.param({"operationState": {"phase": "Running"}}, id="a sync that runs"),
        pytest.param({"operationState": {"phase": "Failed"}}, id="a sync that failed"),
        pytest.param(
            {"operationState": {"syncResult": {"revision": "r0", "source": SPEC["source"]}}}, id="an old revision"
        ),
        pytest.param(
            {"operationState": {"syncResult": {"revision": "r1", "source": {"repoURL": "other"}}}}, id="another source"
        ),
        pytest.param({"sync": {"comparedTo": {**SPEC, "source": {"repoURL": "x"}}}}, id="compared with an old spec"),
        pytest.param({"sync": {"comparedTo": {**SPEC, "destination": {"name": "x"}}}}, id="of another destination"),
        pytest.param({"health": {"status": "Degraded"}}, id="degraded"),
    ],
)
def test_strict_evidence_is_not(changes: Obj) -> None:
    assert strictly(**changes) == {"d1": "Progressing 1"}


def test_strict_a_changed_spec_is_synced_although_the_old_status_says_synced_and_healthy() -> None:
    """Upstream takes the status of before for that of the new spec, and opens the next step at once."""

    def both(strict: bool) -> dict[str, str]:
        apps = [app(name, labels={"env": "dev"}, status=DONE, spec={"project": "old"}) for name in ("d1", "d2")]
        last = app("p1", labels={"env": "prod"}, status={**DONE, "sync": {**DONE["sync"], "status": "OutOfSync"}})
        status = (entry("d1", "Healthy"), entry("d2", "Healthy"), entry("p1", "Waiting", "2"))
        one = stage(rolling(*TWO, strict=strict, status=status), *apps, last)
        one.reconcile()
        return entries(one)

    assert both(strict=False) == {"d1": "Healthy 1", "d2": "Healthy 1", "p1": "Pending 2"}
    assert both(strict=True) == {"d1": "Pending 1", "d2": "Pending 1", "p1": "Waiting 2"}


def test_strict_asks_an_application_to_look_again_at_its_health_once_its_sync_has_ended() -> None:
    stale = {**DONE, "reconciledAt": "@now-60s@"}
    one = stage(
        rolling(*TWO, generators=(rows("d1", env="dev"),), strict=True, status=(entry("d1", "Progressing"),)),
        app("d1", labels={"env": "dev"}, status=stale),
    )
    one.reconcile()
    (asked,) = one.of("Application")
    assert annotations_of(asked) == {"argocd.argoproj.io/refresh": "normal"}
    assert one.reconcile().writes == []
    one.now = NOW + timedelta(seconds=5)
    one.put(
        {
            **asked,
            "metadata": {**asked["metadata"], "annotations": {}},
            "status": at_now({**DONE, "reconciledAt": format_time(one.now)}),
        }
    )
    one.reconcile()
    assert entries(one) == {"d1": "Healthy 1"}


def test_strict_starts_a_sync_once() -> None:
    ran = {**DONE["operationState"], "startedAt": "@now-20s@", "finishedAt": "@now-10s@"}
    for strict, expected in ((False, ["d1"]), (True, [])):
        one = stage(
            rolling(*TWO, generators=(rows("d1", env="dev"),), strict=strict, status=(entry("d1", "Pending"),)),
            app("d1", labels={"env": "dev"}, status={**DONE, "operationState": ran, "reconciledAt": "@now-10s@"}),
        )
        one.reconcile()
        assert entries(one) == {"d1": "Progressing 1"} and requested(one) == expected
        assert len(owner_references(one.of("Application")[0])) == 1
