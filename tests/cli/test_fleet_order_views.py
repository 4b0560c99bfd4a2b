"""What ``syncline rollout`` prints, word for word (``golden/fleet/rollout-*``)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.cli.fleethub import golden

from syncline.base.clock import parse_time
from syncline.cli.views.fleet.rollout import (
    describe_rollout,
    history_of,
    history_rows,
    progress_lines,
    rollout_rows,
)
from syncline.kube.objects import Obj

NOW = parse_time("2026-03-01T12:10:00Z")
RELEASE, BEFORE = "3fa9c1e2ab44", "77aa01b2c3d4"
COMMITS = {RELEASE: "9be981fe" * 5, BEFORE: "c83e5487" * 5}


def revisions(release: str) -> list[Obj]:
    source = {"repoURL": "https://git.example.org/shop.git", "targetRevision": "main"}
    return [source | {"commit": COMMITS[release]}]


def cluster(name: str, wave: int, state: str, why: str, since: str, **more: Any) -> Obj:
    made = {"cluster": name, "application": f"shop-{name}", "wave": wave, "state": state, "why": why}
    return made | {"since": f"2026-03-01T{since}Z", **more}


PROVING = cluster(
    "aws-1",
    0,
    "Proving",
    "healthy since 12:03:00, must stay so for 10m",
    "12:01:00",
    permitted=RELEASE,
    healthySince="2026-03-01T12:03:00Z",
    until="2026-03-01T12:13:00Z",
)
WAITING = [
    cluster("aws-3", 1, "Waiting", "waits for wave 0: aws-1", "12:00:30"),
    cluster("aws-2", 1, "Waiting", "waits for wave 0: aws-1", "12:00:30"),
]
GOING: Obj = {
    "metadata": {"name": "shop", "namespace": "argocd", "generation": 2},
    "spec": {"of": {"kind": "ApplicationSet", "name": "shop"}},
    "status": {
        "observedGeneration": 2,
        "release": RELEASE,
        "revisions": revisions(RELEASE),
        "startedAt": "2026-03-01T12:00:30Z",
        "phase": "Progressing",
        "message": "wave 0: 0 of 1 done",
        "wave": 0,
        "progress": "0/3",
        "waves": [
            {"wave": 0, "total": 1, "inProgress": 1, "since": "2026-03-01T12:00:30Z"},
            {"wave": 1, "total": 2, "pending": 2},
        ],
        "clusters": [*WAITING, PROVING],
        "history": [
            {
                "release": BEFORE,
                "revisions": revisions(BEFORE),
                "startedAt": "2026-03-01T10:00:00Z",
                "endedAt": "2026-03-01T10:31:05Z",
                "outcome": "Done",
            },
            {"release": RELEASE, "revisions": revisions(RELEASE), "startedAt": "2026-03-01T12:00:30Z"},
        ],
    },
}


def state(**status: Any) -> Obj:
    return GOING | {"status": GOING["status"] | status}


STEERED = state(
    phase="Stopped",
    message="stopped since 12:05:00 by ada",
) | {
    "spec": {
        **GOING["spec"],
        "stopped": {"since": "2026-03-01T12:05:00Z", "by": "ada", "reason": "the canary is slow"},
        "skip": [{"cluster": "aws-3", "release": RELEASE}, {"cluster": "aws-2", "release": BEFORE}],
        "rollBack": {"from": BEFORE, "reason": "wrong image"},
    }
}
NEW: Obj = {
    "metadata": {"name": "web.app", "namespace": "team"},
    "spec": {"of": {"kind": "Application", "name": "web"}},
}


def test_a_list_names_the_phase_the_current_wave_and_what_is_done() -> None:
    golden("rollout-list", rollout_rows([GOING, STEERED, NEW], NOW, wide=True))


def test_a_roll_out_shows_its_waves_and_what_each_cluster_waits_for() -> None:
    golden("rollout-get", describe_rollout(GOING, NOW))


def test_what_people_asked_stands_above_the_waves() -> None:
    golden("rollout-get-steered", describe_rollout(STEERED, NOW))


def test_a_roll_out_without_a_status_says_so() -> None:
    assert describe_rollout(NEW, NOW).splitlines()[0] == "FleetRollout team/web.app Unordered"


def test_a_history_shows_the_newest_release_first() -> None:
    golden("rollout-history", history_rows(GOING, NOW))


def test_a_watch_prints_what_changes_a_line_each() -> None:
    second = state(
        waves=[{"wave": 0, "total": 1, "done": 1}, {"wave": 1, "total": 2, "inProgress": 2}],
        clusters=[
            one | {"state": "Progressing", "permitted": RELEASE, "why": "syncs", "since": "2026-03-01T12:13:00Z"}
            for one in WAITING
        ],
        message="wave 1: 0 of 2 done",
    )
    done = state(
        phase="Done",
        message="3 of 3 clusters have it",
        waves=[{"wave": 0, "total": 1, "done": 1}, {"wave": 1, "total": 2, "done": 2}],
        clusters=[],
    )
    another = state(release=BEFORE, revisions=revisions(BEFORE))
    states = [None, GOING, GOING, second, done, another]
    lines = [line for old, new in pairwise(states) if new for line in progress_lines(old, new)]
    golden("rollout-watch", "\n".join(lines))


def test_the_release_under_way_is_the_first_of_a_history() -> None:
    found = history_of(
        {"status": {**ENDED_ONE, "release": BEFORE, "phase": "Failed", "startedAt": "2026-03-01T12:00:00Z"}}
    )
    assert [(one["release"], one["outcome"]) for one in found] == [(BEFORE, "Failed"), (RELEASE, "Done")]
    done = {**ENDED_ONE, "release": RELEASE, "phase": "Done", "startedAt": "2026-03-01T10:00:00Z"}
    assert len(history_of({"status": done})) == 1


ENDED_ONE: Obj = {
    "history": [
        {
            "release": RELEASE,
            "outcome": "Done",
            "startedAt": "2026-03-01T10:00:00Z",
            "endedAt": "2026-03-01T11:00:00Z",
        }
    ]
}


def test_a_watch_repeats_no_line_of_a_cluster_that_waits_for_one_that_moves() -> None:
    def waiting(why: str) -> Obj:
        waits = {
            "cluster": "c2",
            "application": "a",
            "state": "Waiting",
            "why": f"wave 0 comes first: b on cluster c1{why}",
        }
        return {"status": {"release": RELEASE, "phase": "Progressing", "clusters": [waits]}}

    before = waiting(" (sync is OutOfSync)")
    assert list(progress_lines(before, waiting(" (its health is Progressing)"))) == []
    assert list(progress_lines(before, waiting(", until 2026-03-01T12:00:00Z"))) == []
    assert len(list(progress_lines(before, waiting("2")))) == 1
