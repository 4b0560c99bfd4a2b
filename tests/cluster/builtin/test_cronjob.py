"""CronJobs in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cluster.world import World, job

from syncline.cluster.builtin.workloads.cronjob.schedule import parse_schedule

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


NEW_YORK, BERLIN, HOWE = "America/New_York", "Europe/Berlin", "Australia/Lord_Howe"


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "due"),
    [
        ("30 2 * * *", NEW_YORK, "2026-03-07T07:30:00", "2026-03-09T06:30 2026-03-10T06:30"),
        ("0 2 * * *", NEW_YORK, "2026-03-08T06:00:00", "2026-03-09T06:00 2026-03-10T06:00"),
        ("0 3 * * *", NEW_YORK, "2026-03-08T06:00:00", "2026-03-08T07:00 2026-03-09T07:00"),
        ("*/30 * * * *", NEW_YORK, "2026-03-08T06:30:00", "2026-03-08T07:00 2026-03-08T07:30"),
        ("0 * * * *", NEW_YORK, "2026-11-01T04:00:00", "2026-11-01T05:00 2026-11-01T06:00 2026-11-01T07:00"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T04:00:00", "2026-11-01T05:30 2026-11-01T06:30 2026-11-02T06:30"),
        ("*/20 1 * * *", NEW_YORK, "2026-11-01T05:00:00", "2026-11-01T05:20 2026-11-01T05:40 2026-11-01T06:00"),
        ("30 1 1 11 *", NEW_YORK, "2026-11-01T05:30:00", "2026-11-01T06:30 2027-11-01T05:30 2028-11-01T05:30"),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T03:00:00", "2018-11-05T02:00 2018-11-06T02:00"),
        ("30 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00", "2018-11-05T02:30 2018-11-06T02:30"),
        ("15 2 * * *", HOWE, "2026-10-03T00:00:00", "2026-10-04T15:15 2026-10-05T15:15"),
        (
            "*/15 1 * * *",
            HOWE,
            "2026-04-04T14:00:00",
            "2026-04-04T14:15 2026-04-04T14:30 2026-04-04T14:45 2026-04-04T15:00",
        ),
        ("0 2 29 2 *", BERLIN, "2026-03-07T07:30:10", "2028-02-29T01:00 2032-02-29T01:00"),
        ("30 2 * * 0", BERLIN, "2026-03-22T07:30:10", "2026-04-05T00:30 2026-04-12T00:30"),
        ("@every 1h30m", "", "2026-03-07T07:30:10", "2026-03-07T09:00:10 2026-03-07T10:30:10"),
    ],
)
def test_due_times_around_changes_of_the_clock_are_those_of_robfig_cron(
    schedule: str, zone: str, after: str, due: str
) -> None:
    parsed = parse_schedule(schedule, zone)
    assert parsed is not None
    moment: datetime | None = at(after)
    for text in due.split():
        assert moment is not None
        before, moment = moment, parsed.following(moment)
        assert moment == at(text)
        assert parsed.latest(before, at(text)) == moment


def test_a_job_that_is_due_every_so_often_starts_so_often() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(schedule="@every 7m"))
    world.advance(7 * 60 * 3 + 5)
    starts = [each["metadata"]["annotations"][SCHEDULED] for each in world.items(f"{PATH}/jobs")]
    assert starts == ["2026-01-01T00:07:00Z", "2026-01-01T00:14:00Z", "2026-01-01T00:21:00Z"]


def test_replace_ends_the_job_that_still_runs() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(concurrencyPolicy="Replace"))
    world.advance(600)
    (first,) = world.items(f"{PATH}/jobs")
    world.advance(605)
    assert [each["metadata"]["name"] == first["metadata"]["name"] for each in world.items(f"{PATH}/jobs")] == [False]


def test_a_time_missed_by_more_than_the_deadline_is_missed_for_good() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(suspend=True, startingDeadlineSeconds=60))
    world.advance(600 + 61)
    world.merge(f"{PATH}/cronjobs/tick", {"spec": {"suspend": False}})
    world.advance(5)
    assert world.items(f"{PATH}/jobs") == []
    world.advance(600)
    assert len(world.items(f"{PATH}/jobs")) == 1


def test_after_many_missed_times_one_job_starts_and_people_are_told_once() -> None:
    world = World()
    world.post(f"{PATH}/cronjobs", cronjob(schedule="* * * * *", suspend=True))
    world.advance(150 * 60)
    world.merge(f"{PATH}/cronjobs/tick", {"spec": {"suspend": False}})
    world.settle()
    (job_,) = world.items(f"{PATH}/jobs")
    assert job_["metadata"]["annotations"][SCHEDULED] == "2026-01-01T02:30:00Z"
    assert [reason for reason, _ in world.events("default")].count("TooManyMissedTimes") == 1


@pytest.mark.parametrize(("ttl", "there"), [(0, False), (100, True)])
def test_a_finished_job_goes_when_its_time_after_the_end_is_over(ttl: int, there: bool) -> None:
    world = World()
    world.post(f"{PATH}/jobs", job("one", ttlSecondsAfterFinished=ttl))
    world.settle()
    (pod,) = world.items("/api/v1/namespaces/default/pods")
    world.pod_status("default", pod["metadata"]["name"], {"phase": "Succeeded"})
    world.advance(5)
    world.reap("default")
    world.settle()
    assert world.exists(f"{PATH}/jobs/one") is there
    world.advance(100)
    world.reap("default")
    world.advance(5)
    assert not world.exists(f"{PATH}/jobs/one") and world.items("/api/v1/namespaces/default/pods") == []


def test_a_time_after_the_end_that_is_set_or_prolonged_later_counts() -> None:
    world = World()
    world.post(f"{PATH}/jobs", job("one"))
    world.settle()
    (pod,) = world.items("/api/v1/namespaces/default/pods")
    world.pod_status("default", pod["metadata"]["name"], {"phase": "Succeeded"})
    world.advance(500)
    assert world.exists(f"{PATH}/jobs/one"), "without a time it stays"
    world.merge(f"{PATH}/jobs/one", {"spec": {"ttlSecondsAfterFinished": 1000}})
    world.advance(400)
    world.merge(f"{PATH}/jobs/one", {"spec": {"ttlSecondsAfterFinished": 2000}})
    world.advance(400)
    assert world.exists(f"{PATH}/jobs/one")
    world.merge(f"{PATH}/jobs/one", {"spec": {"ttlSecondsAfterFinished": 1}})
    world.settle()
    world.reap("default")
    world.advance(5)
    assert not world.exists(f"{PATH}/jobs/one")


def _class(kind: str, name: str, **metadata: object) -> dict[str, object]:
    group = {"StorageClass": "storage.k8s.io/v1", "IngressClass": "networking.k8s.io/v1"}[kind]
    body = {"provisioner": "x/y"} if kind == "StorageClass" else {"spec": {"controller": "x/y"}}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, **metadata}, **body}


CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"


def test_the_newest_default_class_is_taken_by_claims_and_ingresses_without_one() -> None:
    world = World()
    storage, ingress = "/apis/storage.k8s.io/v1/storageclasses", "/apis/networking.k8s.io/v1/ingressclasses"
    backend = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    before = world.post(CLAIMS, {"metadata": {"name": "before"}, **CLAIM})
    assert "storageClassName" not in before["spec"]
    assert "ingressClassName" not in world.post(INGRESSES, {"metadata": {"name": "before"}, "spec": backend})["spec"]
    for name in ("old", "new"):
        world.post(storage, _class("StorageClass", name, annotations={f"{STORAGE}/is-default-class": "true"}))
        world.post(ingress, _class("IngressClass", name, annotations={f"{INGRESS}/is-default-class": "true"}))
        world.advance(60)
    world.post(storage, _class("StorageClass", "other"))
    assert world.post(CLAIMS, {"metadata": {"name": "a"}, **CLAIM})["spec"]["storageClassName"] == "new"
    own = {"metadata": {"name": "b"}, "spec": CLAIM["spec"] | {"storageClassName": ""}}
    assert world.post(CLAIMS, own)["spec"]["storageClassName"] == ""
    assert world.post(INGRESSES, {"metadata": {"name": "a"}, "spec": backend})["spec"]["ingressClassName"] == "new"
    by_annotation = {"name": "b", "annotations": {"kubernetes.io/ingress.class": "x"}}
    assert "ingressClassName" not in world.post(INGRESSES, {"metadata": by_annotation, "spec": backend})["spec"]
    world.settle()
    assert world.get(f"{CLAIMS}/before")["spec"]["storageClassName"] == "old", "assigned once there was a default"


STORAGE, INGRESS = "storageclass.kubernetes.io", "ingressclass.kubernetes.io"
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
