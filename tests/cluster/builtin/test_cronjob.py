"""CronJobs in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cluster.world import World, job

from syncline.cluster.builtin.cronjob.schedule import parse_schedule

PATH = "/apis/batch/v1/namespaces/default"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "following"),
    [
        ("*/15 * * * *", "", "2026-01-01T00:01", "2026-01-01T00:15"),
        ("0 3 * * *", "", "2026-01-01T03:00", "2026-01-02T03:00"),
        ("0 0 29 2 *", "", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 0 13 * fri", "", "2026-01-01T00:00", "2026-01-02T00:00"),
        ("30 6 * * mon-fri", "", "2026-01-02T07:00", "2026-01-05T06:30"),
        ("@monthly", "", "2026-01-01T00:00", "2026-02-01T00:00"),
        ("0 9 * * *", "Asia/Tokyo", "2026-01-01T00:01", "2026-01-02T00:00"),
    ],
)
def test_a_schedule_knows_its_next_time(schedule: str, zone: str, after: str, following: str) -> None:
    parsed = parse_schedule(schedule, zone)
    assert parsed is not None
    assert parsed.following(at(after)) == at(following)
    assert parsed.latest(at(after), at(following)) == at(following)


def cronjob(**spec: object) -> dict[str, object]:
    body = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": job()["spec"]}} | spec
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": body}


def test_a_job_starts_at_each_due_time_and_once() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob())
    world.advance(601)
    world.restart()
    world.advance(60)
    assert len(world.items(f"{PATH}/jobs")) == 1
    assert world.get(f"{PATH}/cronjobs/tick")["status"]["lastScheduleTime"] == "2026-01-01T00:10:00Z"
    world.advance(600)
    assert len(world.items(f"{PATH}/jobs")) == 2


def test_forbid_starts_no_second_job_beside_the_first() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(concurrencyPolicy="Forbid"))
    world.advance(1900)
    assert len(world.items(f"{PATH}/jobs")) == 1


def test_a_suspended_cronjob_starts_nothing() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(suspend=True))
    world.advance(1900)
    assert world.items(f"{PATH}/jobs") == []


def test_finished_jobs_beyond_the_limit_go() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(successfulJobsHistoryLimit=1))
    for _ in range(3):
        world.advance(600)
        for pod in world.items("/api/v1/namespaces/default/pods"):
            world.pod_status("default", pod["metadata"]["name"], {"phase": "Succeeded"})
        world.advance(5)
    assert len(world.items(f"{PATH}/jobs")) == 1


def test_an_hour_that_the_clock_shows_twice_brings_time_forward_only() -> None:
    parsed = parse_schedule("*/10 * * * *", "Europe/Berlin")
    assert parsed is not None
    moment = at("2026-10-25T00:00")  # the clock goes back from 03:00 to 02:00 at 01:00 UTC
    for _ in range(20):
        following = parsed.following(moment)
        assert following is not None
        assert following > moment
        moment = following
