"""Formats the report of an ApplicationSet as a table and as JSON. Values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from syncline.base.clock import format_time
from syncline.cli.frame.output import table
from syncline.cli.frame.terminal import one_cell
from syncline.explain.fleet.applications import NEEDS_AGENT, ApplicationState, Failure, Standing
from syncline.explain.fleet.setreport import SetReport
from syncline.explain.graph import cause_to_obj
from syncline.kube.objects import Obj, name_of, namespace_of
from syncline.views.applications import short_revision
from syncline.views.texts import age

HEADERS: Final = ("CLUSTER", "APPLICATION", "SYNC", "HEALTH", "OPERATION", "REVISION", "SINCE", "CAUSE")
ORDER_HEADERS: Final = ("WAVE", "RELEASE")
"""Columns before the cause, where the set has an order over clusters."""
MAX_ROWS: Final = 200
"""Rows of a table; ``-o json`` has all."""
MAX_CAUSES: Final = 3
"""Failures of one cluster in a table."""
MIN_CAUSE: Final = 30
"""Width of the last column on any terminal."""
MAX_CELL: Final = 60
"""Width of a name: Kubernetes allows 253 characters."""


def report_table(report: SetReport, width: int, *, wide: bool) -> str:
    """Return one line for each cluster, further failures below it. ``width``: of the terminal; the causes are cut to
    fit, unless ``wide``."""
    rows: list[list[str]] = []
    ordered = any(one.ordered is not None for one in report.rows)
    headers = (*HEADERS[:-1], *(ORDER_HEADERS if ordered else ()), HEADERS[-1])
    for one in report.rows[:MAX_ROWS]:
        first, *more = causes_of(one, report.now, whole=wide)
        rows.append([*_cells(one, report.now), *(place_of(one) if ordered else ()), first])
        rows += [[*(" " for _ in headers[1:]), each] for each in more]
    if not wide:
        used = [max(len(header), *(len(row[i]) for row in rows)) + 3 for i, header in enumerate(headers[:-1])]
        room = max(width - sum(used), MIN_CAUSE)
        rows = [[*row[:-1], cut(one_cell(row[-1]), room)] for row in rows]
    left = len(report.rows) - MAX_ROWS
    text = table(headers, rows)
    return f"{text}\n… and {left} more rows (-o json has all)" if left > 0 else text


def cut(text: str, width: int) -> str:
    """Return the text, at most ``width`` characters long."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _cells(one: ApplicationState, now: datetime) -> list[str]:
    """Return the cells of a row but for the cause; the last values of a cluster that is silent are in parentheses."""
    name = name_of(one.app) if one.app is not None else "-"
    since = age(one.since, now) if one.since else "-"
    values = (one.sync, one.health, one.operation.get("phase") or "-", short_revision(one.revision) or "-")
    if one.app is None or (one.problem is not None and one.sync == "Unknown"):
        values = ("-", "-", "-", "-")
    shown = [f"({each})" if one.standing is Standing.SILENT and each != "-" else each for each in values]
    return [one_cell(cut(each, MAX_CELL)) for each in (one.cluster, name, *shown, since)]


def place_of(one: ApplicationState) -> tuple[str, str]:
    """Return the wave of an Application, and how its cluster stands in the roll-out."""
    return (one.ordered.wave, one.ordered.state or "-") if one.ordered is not None else ("-", "-")


def causes_of(one: ApplicationState, now: datetime, *, whole: bool = False) -> list[str]:
    """Return a line for each failure, the first cause of it; at least one line. ``whole``: of all failures."""
    lines = [silence(one, now)] if one.standing is Standing.SILENT else []
    if one.problem is not None:
        below = one.problem.because[0] if one.problem.because else one.problem
        lines.append(below.message or one.problem.message)
    lines += [each.line if whole else each.brief for each in one.failures]
    if one.ordered is not None and one.ordered.held is not None:
        lines.append(f"{one.ordered.state}: {one.ordered.held.message}".removesuffix(": "))
    if one.standing is Standing.PROGRESSING and not lines:
        lines.append(str(one.operation.get("message") or "") if one.operation.get("phase") == "Running" else "")
        lines += [each.line for each in one.waits]
    lines = [line for line in lines if line]
    unsaid = not lines and one.sync == "OutOfSync"
    if one.pulled and not one.detailed and one.work is not None and (one.standing is Standing.FAILING or unsaid):
        lines.append(NEEDS_AGENT)
    lines = lines or ["-"]
    if len(lines) > MAX_CAUSES and not whole:
        lines = [*lines[:MAX_CAUSES], f"and {len(lines) - MAX_CAUSES} more (-o wide shows all)"]
    return lines


def silence(one: ApplicationState, now: datetime) -> str:
    """Return since when a cluster has not reported."""
    if one.since is None:
        return "has not reported; its values are the last known"
    return f"not reported since {format_time(one.since)} ({age(one.since, now)})"


def summary_line(report: SetReport) -> str:
    """Return the counts in one line, and what they are not sure of."""
    counts = report.counts
    parts = [f"{counts[key]} {word}" for key, word in _COUNTED if counts[key] or key in ("healthy", "synced")]
    clusters = f"{counts['clusters']} cluster{'' if counts['clusters'] == 1 else 's'}"
    line = f"{clusters}: {', '.join(parts)}"
    if counts["silent"]:
        many = counts["silent"] > 1
        line += f"; {counts['silent']} {'do' if many else 'does'} not report: what is counted is the last known"
    if counts["missing"]:
        line += f"; {counts['missing']} without a running Application"
    return line


_COUNTED: Final = (
    ("healthy", "healthy"),
    ("notHealthy", "not healthy"),
    ("inProgress", "in progress"),
    ("synced", "synced"),
    ("notSynced", "not synced"),
)


def title(report: SetReport) -> str:
    """Return ``ApplicationSet NAMESPACE/NAME``."""
    return f"{report.subject.kind} {report.subject.namespace}/{report.subject.name}"


# -- JSON --------------------------------------------------------------------------------------------------------------


def report_obj(report: SetReport) -> Obj:
    """Return the report for ``-o json``; the shape is documented in docs/pull-model.md, and fields are only added."""
    return {
        "kind": report.subject.kind,
        "namespace": report.subject.namespace,
        "name": report.subject.name,
        "asOf": format_time(report.now),
        "needsAttention": report.urgent,
        "summary": report.counts,
        "clusters": [_row_obj(one) for one in report.rows],
    }


def _row_obj(one: ApplicationState) -> Obj:
    app = f"{namespace_of(one.app)}/{name_of(one.app)}" if one.app is not None else None
    work = f"{namespace_of(one.work)}/{name_of(one.work)}" if one.work is not None else None
    silent = one.standing is Standing.SILENT
    return {
        "cluster": one.cluster,
        "application": app,
        "model": "pull" if one.pulled or one.app is None else "push",
        "work": work,
        "standing": str(one.standing),
        "current": not silent,
        "notReportedSince": format_time(one.since) if silent and one.since else None,
        "sync": one.sync,
        "health": one.health,
        "operation": {key: value for key, value in one.operation.items() if key != "revision"},
        "revision": one.revision,
        "since": format_time(one.since) if one.since else None,
        "detailed": one.detailed,
        "release": _release_obj(one),
        "problem": cause_to_obj(one.problem) if one.problem is not None else None,
        "failures": [_failure_obj(each) for each in one.failures],
        "waits": [_failure_obj(each) for each in one.waits],
        "omitted": one.omitted,
    }


def _release_obj(one: ApplicationState) -> Obj | None:
    if one.ordered is None:
        return None
    held = cause_to_obj(one.ordered.held) if one.ordered.held is not None else None
    return {"wave": one.ordered.wave, "state": one.ordered.state, "held": held}


def _failure_obj(one: Failure) -> Obj:
    named = {"group": one.group, "kind": one.kind, "namespace": one.namespace, "name": one.name}
    return {
        "resource": named if one.kind else None,
        "reason": one.reason,
        "message": one.message,
        "firstCause": one.line,
        "causes": [cause_to_obj(each) for each in one.because],
    }


def reports_text(reports: Sequence[SetReport], width: int, *, wide: bool) -> str:
    """Return the tables of several reports, each below its title where there are several."""
    parts = []
    for one in reports:
        head = [title(one)] if len(reports) > 1 else []
        body = [report_table(one, width, wide=wide)] if one.rows else ["no Application, and no cluster is selected"]
        parts.append("\n".join([*head, *body, summary_line(one)]))
    return "\n\n".join(parts)
