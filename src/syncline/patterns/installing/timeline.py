"""What of a pattern was installed when: rows from the objects of a cluster; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.clock import format_time, time_or_none
from syncline.kube.objects import Obj, annotations_of, dig, gvk_of, labels_of, name_of, namespace_of
from syncline.patterns.installing.pattern import LABEL

TRACKING: Final = "argocd.argoproj.io/tracking-id"
WAVE: Final = "argocd.argoproj.io/sync-wave"
MAX_ROWS: Final = 60


@dataclass(frozen=True, slots=True)
class Listed:
    """A kind that a timeline is made of. ``path``: of its list."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def path(self) -> str:
        return (
            f"/apis/{self.group}/{self.version}/{self.plural}" if self.group else f"/api/{self.version}/{self.plural}"
        )

    def items(self, answer: Any) -> list[Obj]:
        """Return the objects of a list, each with its kind."""
        api = f"{self.group}/{self.version}" if self.group else self.version
        found = answer.get("items") if isinstance(answer, dict) else None
        return [{**one, "apiVersion": api, "kind": self.kind} for one in found or ()]


LISTED: Final = (
    Listed("", "v1", "events", "Event"),
    Listed("operators.coreos.com", "v1alpha1", "subscriptions", "Subscription"),
    Listed("operators.coreos.com", "v1alpha1", "clusterserviceversions", "ClusterServiceVersion"),
    Listed("batch", "v1", "jobs", "Job"),
    Listed("argoproj.io", "v1alpha1", "applications", "Application"),
    Listed("storage.k8s.io", "v1", "storageclasses", "StorageClass"),
)
"""What a timeline is made of, as far as the cluster serves it."""


def by_schedule(job: Obj) -> bool:
    """Return whether a CronJob made a Job: such Jobs come and go, and end no installation."""
    return any(one.get("kind") == "CronJob" for one in dig(job, "metadata", "ownerReferences") or ())


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that took time. ``ended`` None: it goes on."""

    what: str
    began: datetime
    ended: datetime | None
    state: str
    wave: str = ""

    @property
    def kind(self) -> str:
        """``pattern``, ``operator``, ``sync``, ``job``, ``wait`` or ``storage``."""
        return self.what.partition(" ")[0].rstrip(":").lower()

    @property
    def obj(self) -> Obj:
        """The row as JSON."""
        ended = format_time(self.ended) if self.ended is not None else None
        return {
            "what": self.what,
            "wave": self.wave,
            "began": format_time(self.began),
            "ended": ended,
            "state": self.state,
        }


def rows_of(pattern: Obj, objects: Iterable[Obj], now: datetime) -> list[Row]:
    """Return the rows of a Pattern in the order of their beginnings: its operators, Jobs, Applications, and the storage
    classes that came meanwhile. ``objects``: of the cluster, of any kind."""
    listed = list(objects)
    began = _time(pattern, "metadata", "creationTimestamp") or now
    apps = [
        one for one in listed if gvk_of(one).kind == "Application" and labels_of(one).get(LABEL) == name_of(pattern)
    ]
    names = {name_of(one) for one in apps}
    versions = {(namespace_of(one), name_of(one)): one for one in listed if gvk_of(one).kind == "ClusterServiceVersion"}
    rows = [row for one in listed if (row := _row(one, names, versions, began)) is not None]
    done = dig(pattern, "status", "lastStep") == "reconcile complete"
    step = str(dig(pattern, "status", "lastStep") or "")
    ends = [row.ended for row in rows if row.ended is not None]
    whole = Row(
        f"Pattern {name_of(pattern)}", began, max(ends, default=began) if done and _all_ended(rows) else None, step
    )
    return in_order([whole], rows)


def in_order(rows: Sequence[Row], more: Iterable[Row]) -> list[Row]:
    """Return the whole, then all others in the order of their beginnings."""
    return [rows[0], *sorted((*rows[1:], *more), key=lambda row: (row.began, row.what))][:MAX_ROWS]


def _row(one: Obj, apps: set[str], versions: Mapping[tuple[str, str], Obj], since: datetime) -> Row | None:
    kind, wave = gvk_of(one).kind, annotations_of(one).get(WAVE, "")
    created = _time(one, "metadata", "creationTimestamp")
    if created is None or created < since:
        return None
    mine = annotations_of(one).get(TRACKING, "").partition(":")[0] in apps
    if kind == "Application" and name_of(one) in apps:
        state = dig(one, "status", "operationState") or {}
        began = _time(state, "startedAt") or created
        said = ", ".join(str(dig(one, "status", part, "status") or "Unknown") for part in ("sync", "health"))
        return Row(f"sync of {name_of(one)}", began, _time(state, "finishedAt"), said)
    if kind == "Subscription" and mine:
        csv = versions.get((namespace_of(one), str(dig(one, "status", "installedCSV") or "")))
        phase = str(dig(csv, "status", "phase") or dig(one, "status", "state") or "requested")
        ended = _time(csv, "status", "lastTransitionTime") if phase == "Succeeded" else None
        return Row(f"operator {name_of(one)}", created, ended, phase, wave)
    if kind == "Job" and mine and not by_schedule(one):
        ended = _time(one, "status", "completionTime")
        return Row(f"job {name_of(one)}", created, ended, "Complete" if ended else "Running", wave)
    if kind == "StorageClass":
        return Row(f"storage class {name_of(one)}", created, created, "made")
    return None


def _all_ended(rows: Iterable[Row]) -> bool:
    return all(row.ended is not None for row in rows)


def _time(obj: Any, *path: str) -> datetime | None:
    return time_or_none(dig(obj, *path)) if obj else None
