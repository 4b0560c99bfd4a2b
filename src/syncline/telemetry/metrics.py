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
from typing import TypeAlias

from syncline.argo.application import IN_CLUSTER_SERVER, AppView
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.informer import Change
from syncline.control.loop import Observer
from syncline.control.workqueue import Key
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, is_terminating, labels_of
from syncline.sources.errors import mask_credentials
from syncline.sources.remote.address import normalize_url

Labels: TypeAlias = tuple[tuple[str, str], ...]
Sample: TypeAlias = tuple[str, Labels, float]

BUCKETS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
ENDED = ("Succeeded", "Failed", "Error")


@dataclass(slots=True)
class Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, value: float) -> None:
        self.total += value
        self.counts[sum(value > bound for bound in BUCKETS)] += 1


@dataclass
class GitOpsMetrics(Observer):
    """Counters since the process started. ``mine`` selects the Applications of this replica, so that sums over replicas
    count each Application once."""

    cache: Snapshot
    mine: Callable[[ObjectRef], bool] = lambda _ref: True
    syncs: Counter[Labels] = field(default_factory=Counter)
    sync_seconds: Counter[Labels] = field(default_factory=Counter)
    reconciles: dict[Labels, Histogram] = field(default_factory=dict)
    passes: Counter[str] = field(default_factory=Counter)
    labels: tuple[str, ...] = ()
    """Labels of Applications for ``argocd_app_labels``; empty: the metric is not exported."""
    git_requests: Callable[[], list[tuple[str, str, bool, int]]] = list
    """Returns the counts of Git requests: address without credentials, command, success, count."""
    spans: Callable[[], tuple[int, int]] | None = None
    """Returns how many spans were exported and dropped; None if tracing is off."""

    def changed(self, kind: GroupKind, changes: Sequence[Change]) -> None:
        if kind == APPLICATION.group_kind:
            for change in changes:
                self._application_changed(change)

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
            "argocd_app_reconcile", "histogram", "Seconds that one pass over an Application took.", _histograms(metrics)
        ),
        _family(
            "syncline_passes_total",
            "counter",
            "Passes of controllers.",
            [("", (("controller", name),), float(count)) for name, count in sorted(metrics.passes.items())],
        ),
        *_labelled(apps, metrics.labels),
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


def _labelled(apps: Iterable[Obj], names: tuple[str, ...]) -> list[str]:
    """Return the labels of Applications that ``--metrics-application-labels`` names, as a metric."""
    if not names:
        return []

    def one(app: Obj) -> Sample:
        known = labels_of(app)
        wanted = ((f"label_{_OUTSIDE.sub('_', name)}", str(known.get(name, ""))) for name in names)
        return "", (*_identity(app), *wanted), 1.0

    return [_family("argocd_app_labels", "gauge", "Labels of Applications.", map(one, apps))]


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


def _histograms(metrics: GitOpsMetrics) -> list[Sample]:
    samples: list[Sample] = []
    for labels, histogram in sorted(metrics.reconciles.items(), key=lambda pair: pair[0]):
        running = 0
        for bound, count in zip((*map(_number, BUCKETS), "+Inf"), histogram.counts, strict=True):
            running += count
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
