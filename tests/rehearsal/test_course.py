"""The course of syncs: in the order of what was written, whatever the clock says."""

from __future__ import annotations

from datetime import timedelta

from syncline.base.clock import EPOCH
from syncline.kube.objects import Obj, ref_of
from syncline.rehearsal.answer.timeline import bars_of
from syncline.rehearsal.reality.course import course_of
from syncline.rehearsal.record import Ending, Record, Version

ADDRESS = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}


def result(phase: str, kind: str, name: str, status: str = "Synced") -> Obj:
    return {"syncPhase": phase, "group": "", "kind": kind, "namespace": "", "name": name, "status": status}


def state(commit: str, phase: str, *results: Obj) -> Obj:
    """An Application whose operation began at the first second; its result is known from the first row on."""
    found = {"startedAt": "2026-01-01T00:00:00Z", "phase": phase, "operation": {"sync": {"revision": commit}}}
    done = {} if phase == "Running" else {"finishedAt": "2026-01-01T00:00:00Z"}
    known = {"syncResult": {"revision": commit, "resources": list(results)}} if results else {}
    return ADDRESS | {"metadata": {"name": "shop"}, "status": {"operationState": found | done | known}}


def record_of(*states: Obj, apart_s: float = 0) -> Record:
    at = [EPOCH + timedelta(seconds=apart_s * number) for number in range(len(states))]
    versions = tuple(Version(when, ref_of(obj), obj) for when, obj in zip(at, states, strict=True))
    return Record(EPOCH, at[-1], Ending.DONE, None, (), versions, ())


def said(record: Record) -> list[str]:
    return [step.what for step in course_of(record)["app/shop"]]


def test_an_operation_that_begins_in_the_second_in_which_the_last_one_ended_is_one_of_its_own() -> None:
    failed, made = result("Sync", "ConfigMap", "a", "SyncFailed"), result("Sync", "ConfigMap", "a")
    one, other = "1" * 12, "2" * 12
    states = (state(one, "Running"), state(one, "Failed", failed), state(other, "Running"))
    record = record_of(*states, state(other, "Succeeded", made), apart_s=0.1)
    assert said(record) == [
        f"a sync of {one} begins",
        "Sync wave 0: ConfigMap/a SyncFailed",
        "the sync ends Failed",
        f"a sync of {other} begins",
        "Sync wave 0: ConfigMap/a Synced",
        "the sync ends Succeeded",
    ]
    assert [bar.state for bar in bars_of(record) if bar.row == "app/shop"] == ["Failed", "Succeeded"]


def test_what_has_one_time_counts_in_the_order_in_which_it_was_written() -> None:
    space, job = result("PreSync", "Namespace", "shop"), result("PreSync", "Job", "migrate")
    early = {"apiVersion": "v1", "kind": "Job", "metadata": {"name": "migrate"}}
    early["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": "-1"}  # type: ignore[index]
    commit = "1" * 12
    states = (state(commit, "Running", space), state(commit, "Succeeded", space, job | {"group": ""}))
    assert said(record_of(early, *states)) == [
        f"a sync of {commit} begins",
        "PreSync wave 0: Namespace/shop Synced",
        "PreSync wave -1: Job/migrate Synced",
        "the sync ends Succeeded",
    ]
