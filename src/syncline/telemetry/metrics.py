"""Prometheus metrics of the GitOps controllers, under Argo CD's names, with Syncline's own beside them.

:class:`GitOpsMetrics` counts while a loop runs; :func:`exposition` renders everything as text. Names, labels and
buckets follow reference argocd-app 7. No value of a Secret is exported: labels are names, states and addresses without
credentials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import starmap
from typing import TypeAlias

from syncline.argo.application import IN_CLUSTER_SERVER, AppView
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.informer import Change
from syncline.control.loop import Observer
from syncline.control.workqueue import Key
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, is_terminating, labels_of, ref_of
from syncline.sources.errors import mask_credentials
from syncline.sources.remote.address import normalize_url

Labels: TypeAlias = tuple[tuple[str, str], ...]
Sample: TypeAlias = tuple[str, Labels, float]

BUCKETS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SET_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ENDED = ("Succeeded", "Failed", "Error")


@dataclass(slots=True)
class Histogram:
    bounds: tuple[float, ...] = BUCKETS
    counts: Counter[int] = field(default_factory=Counter)
    """By the index of the bound; the last is for what is above all."""
    total: float = 0.0

    def observe(self, value: float) -> None:
        self.total += value
        self.counts[sum(value > bound for bound in self.bounds)] += 1


@dataclass
class GitOpsMetrics(Observer):
    """Counters since the process started. ``mine`` selects the Applications of this replica, so that sums over replicas
    count each Application once."""

    cache: Snapshot
    mine: Callable[[ObjectRef], bool] = lambda _ref: True
    syncs: Counter[Labels] = field(default_factory=Counter)
    sync_seconds: Counter[Labels] = field(default_factory=Counter)
    reconciles: dict[Labels, Histogram] = field(default_factory=dict)
    set_reconciles: dict[Labels, Histogram] = field(default_factory=dict)
    passes: Counter[str] = field(default_factory=Counter)
    labels: tuple[str, ...] = ()
    """Labels of Applications for ``argocd_app_labels``; empty: the metric is not exported."""
    set_labels: tuple[str, ...] = ()
    """The same of ApplicationSets for ``argocd_appset_labels``."""
    git_requests: Callable[[], list[tuple[str, str, bool, int]]] = list
    """Returns the counts of Git requests: address without credentials, command, success, count."""
    spans: Callable[[], tuple[int, int]] | None = None
    """Returns how many spans were exported and dropped; None if tracing is off."""

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        if kind == APPLICATION.group_kind:
            for change in changes:
                self._application_changed(change)
        elif kind == APPLICATION_SET.group_kind:
            for change in changes:
                if change.new is None and change.old is not None:
                    self.forget(ref_of(change.old))

    def _application_changed(self, change: Change) -> None:
        """Count the operation that ended between the two states of the change, if one did."""
        if change.old is None or change.new is None or not self.mine(AppView(change.new).ref):
            return
        before, after = AppView(change.old).operation_state or {}, AppView(change.new).operation_state or {}
        same = before.get("startedAt") == after.get("startedAt")
        if after.get("phase") not in ENDED or (same and before.get("phase") in ENDED):
            return
        base = (*_identity(change.new), ("dest_server", _server(change.new)))
        dry = str(bool(dig(after, "operation", "sync", "dryRun", default=False))).lower()
        self.syncs[*base, ("phase", str(after["phase"])), ("dry_run", dry)] += 1
        began, ended = time_or_none(after.get("startedAt")), time_or_none(after.get("finishedAt"))
        if began is not None and ended is not None:
            self.sync_seconds[base] += int((ended - began).total_seconds())

    def reconciled(self, key: Key, began: datetime, ended: datetime) -> None:
        if not self.mine(key.ref):
            return
        self.passes[key.controller] += 1
        app = self.cache.get(key.ref) if key.ref.group_kind == APPLICATION.group_kind else None
        if app is not None:
            labels = (("namespace", AppView(app).namespace), ("dest_server", _server(app)))
            self.reconciles.setdefault(labels, Histogram()).observe((ended - began).total_seconds())
        elif key.ref.group_kind == APPLICATION_SET.group_kind:
            known = self.set_reconciles.setdefault(_place(key.ref), Histogram(SET_BUCKETS))
            known.observe((ended - began).total_seconds())

    def forget(self, ref: ObjectRef) -> None:
        """Drop the histogram of a deleted set, so that their number is bounded by the sets that exist."""
        self.set_reconciles.pop(_place(ref), None)


def _place(ref: ObjectRef) -> Labels:
    return (("namespace", ref.namespace), ("name", ref.name))


def _identity(app: Obj) -> Labels:
    view = AppView(app)
    return (("namespace", view.namespace), ("name", view.name), ("project", view.project))


def _server(app: Obj) -> str:
    view = AppView(app)
    return IN_CLUSTER_SERVER if view.in_cluster else str(view.destination.get("server") or "")


# -- text -----------------------------------------------------------------------------------------------------------


def exposition(
    metrics: GitOpsMetrics, cache: Snapshot, queue_depth: int, more: Mapping[str, tuple[str, float]] | None = None
) -> str:
    """Return all metrics in Prometheus' text format. ``more``: further gauges by name, each with help and value."""
    apps = [app for app in cache.objects(APPLICATION.group_kind) if metrics.mine(AppView(app).ref)]
    parts = [
        _family("argocd_app_info", "gauge", "Information about Applications.", map(_info, apps)),
        _family("argocd_app_condition", "gauge", "Conditions of Applications.", _conditions(apps)),
        _family("argocd_app_sync_total", "counter", "Operations that ended.", _counted("", metrics.syncs)),
        _family(
            "argocd_app_sync_duration_seconds_total",
            "counter",
            "Seconds that operations took.",
            _counted("", metrics.sync_seconds),
        ),
        _family(
            "argocd_app_reconcile",
            "histogram",
            "Seconds that one pass over an Application took.",
            _histograms(metrics.reconciles),
        ),
        *_sets(metrics, cache),
        _family(
            "syncline_passes_total",
            "counter",
            "Passes of controllers.",
            [("", (("controller", name),), float(count)) for name, count in sorted(metrics.passes.items())],
        ),
        *_labelled("argocd_app_labels", "Applications", metrics.labels, [(_identity(app), app) for app in apps]),
        *_git(metrics.git_requests()),
        *_spans(metrics),
        _family("syncline_queue_depth", "gauge", "Keys that wait or are worked on.", [("", (), float(queue_depth))]),
    ]
    for name, (report, value) in sorted((more or {}).items()):
        parts.append(_family(name, "gauge", report, [("", (), value)]))
    return "".join(parts)


def gauges(families: Iterable[tuple[str, str, list[tuple[Labels, float]]]]) -> str:
    """Return gauges as text. Each family is a name, a help text and values by labels."""
    return "".join(
        _family(name, "gauge", report, (("", *each) for each in values)) for name, report, values in families
    )


def _info(app: Obj) -> Sample:
    view = AppView(app)
    repo = str((view.sources[0] if view.sources else {}).get("repoURL") or "")
    operation = "delete" if is_terminating(app) else ("sync" if view.operation is not None else "")
    labels = (
        *_identity(app),
        ("autosync_enabled", str("automated" in view.policy).lower()),
        ("repo", mask_credentials(normalize_url(repo))),
        ("dest_server", _server(app)),
        ("dest_namespace", view.destination_namespace),
        ("sync_status", str(dig(view.status, "sync", "status", default="") or "Unknown")),
        ("health_status", str(dig(view.status, "health", "status", default="") or "Unknown")),
        ("operation", operation),
    )
    return "", labels, 1.0


_OUTSIDE = re.compile(r"[^a-zA-Z0-9_]")


def _labelled(name: str, kinds: str, chosen: tuple[str, ...], objects: Iterable[tuple[Labels, Obj]]) -> list[str]:
    """Return the labels of objects that the flags of the process name, as a metric."""
    if not chosen:
        return []

    def one(identity: Labels, obj: Obj) -> Sample:
        known = labels_of(obj)
        wanted = ((f"label_{_OUTSIDE.sub('_', label)}", str(known.get(label, ""))) for label in chosen)
        return "", (*identity, *wanted), 1.0

    return [_family(name, "gauge", f"Labels of {kinds}.", starmap(one, objects))]


def _sets(metrics: GitOpsMetrics, cache: Snapshot) -> list[str]:
    """Return what upstream's ``applicationset/metrics`` exports."""
    sets = [one for one in cache.objects(APPLICATION_SET.group_kind) if metrics.mine(ref_of(one))]
    named = [(_place(ref_of(one)), one) for one in sets]
    return [
        _family("argocd_appset_info", "gauge", "Information about ApplicationSets.", starmap(_set_info, named)),
        _family(
            "argocd_appset_owned_applications",
            "gauge",
            "Applications in the status of ApplicationSets.",
            [("", place, float(len(dig(one, "status", "resources", default=[]) or []))) for place, one in named],
        ),
        _family(
            "argocd_appset_reconcile",
            "histogram",
            "Seconds that one pass over an ApplicationSet took.",
            _histograms(metrics.set_reconciles),
        ),
        *_labelled("argocd_appset_labels", "ApplicationSets", metrics.set_labels, named),
    ]


def _set_info(place: Labels, appset: Obj) -> Sample:
    conditions = dig(appset, "status", "conditions", default=[]) or []
    found = (str(one.get("reason")) for one in conditions if one.get("type") == "ResourcesUpToDate")
    return "", (*place, ("resource_update_status", next(found, "Unknown"))), 1.0


def _conditions(apps: Iterable[Obj]) -> list[Sample]:
    found: Counter[Labels] = Counter()
    for app in apps:
        for condition in dig(app, "status", "conditions", default=[]) or []:
            found[*_identity(app), ("condition", str(condition.get("type")))] += 1
    return _counted("", found)


def _counted(suffix: str, counts: Mapping[Labels, int]) -> list[Sample]:
    return [(suffix, labels, float(count)) for labels, count in sorted(counts.items())]


def _git(requests: list[tuple[str, str, bool, int]]) -> list[str]:
    """Return the counters of Git requests and, by kind, of those that failed."""
    total: Counter[Labels] = Counter()
    failed: dict[str, Counter[Labels]] = {"fetch": Counter(), "ls-remote": Counter()}
    for repo, command, success, count in requests:
        total[("repo", repo), ("request_type", command)] += count
        if not success and command in failed:
            failed[command][(("repo", repo),)] += count
    message = "Calls of git remotes"
    return [
        _family("argocd_git_request_total", "counter", f"{message}.", _counted("", total)),
        _family("argocd_git_fetch_fail_total", "counter", f"{message}: failed fetches.", _counted("", failed["fetch"])),
        _family(
            "argocd_git_lsremote_fail_total",
            "counter",
            f"{message}: failed ls-remotes.",
            _counted("", failed["ls-remote"]),
        ),
    ]


def _spans(metrics: GitOpsMetrics) -> list[str]:
    if metrics.spans is None:
        return []
    exported, dropped = map(float, metrics.spans())
    return [
        _family("syncline_spans_exported_total", "counter", "Spans that the collector took.", [("", (), exported)]),
        _family("syncline_spans_dropped_total", "counter", "Spans that were given up.", [("", (), dropped)]),
    ]


def _histograms(known: Mapping[Labels, Histogram]) -> list[Sample]:
    samples: list[Sample] = []
    for labels, histogram in sorted(known.items(), key=lambda pair: pair[0]):
        running = 0
        for index, bound in enumerate((*map(_number, histogram.bounds), "+Inf")):
            running += histogram.counts[index]
            samples.append(("_bucket", (*labels, ("le", bound)), float(running)))
        samples.append(("_sum", labels, histogram.total))
        samples.append(("_count", labels, float(running)))
    return samples


def _family(name: str, kind: str, message: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {message}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
