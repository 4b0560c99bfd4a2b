"""Formats roll-outs over clusters: lists, waves and clusters of one, its history. Values in, text out; no requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time, time_or_none
from syncline.cli.frame.output import table
from syncline.fleet.pull.order.explaining import ENDED, phase_of, since_of
from syncline.fleet.pull.order.steering import Proven, carrying, counted, stopped_by, typed_target
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.views.applications import short_revision
from syncline.views.texts import age, one_line

HEADERS = ("NAMESPACE", "NAME", "OF", "PHASE", "SINCE", "WAVE", "DONE", "FAILED", "RELEASE")
WAVE_HEADERS = ("WAVE", "CLUSTERS", "DONE", "IN PROGRESS", "PENDING", "FAILED", "FOR")
CLUSTER_HEADERS = ("WAVE", "CLUSTER", "APPLICATION", "STATE", "FOR", "UNTIL", "WHY")
HISTORY_HEADERS = ("RELEASE", "OUTCOME", "STARTED", "ENDED", "TOOK", "REVISIONS")
MAX_CLUSTERS = 200
"""Clusters that a table shows; ``-o json`` has all."""
KINDS = {"ApplicationSet": "appset", "Application": "app"}


def rollout_rows(found: Iterable[Obj], now: datetime, *, wide: bool) -> str:
    """Return the table of ``rollout list``."""
    rows = []
    for one in found:
        waves = waves_of(one)
        row = [
            namespace_of(one),
            name_of(one),
            target_text(one),
            phase_of(one),
            age(since_of(one), now) if since_of(one) else "-",
            wave_text(waves),
            str(dig(one, "status", "progress") or "-"),
            str(dig(one, "status", "failed") or 0),
            str(dig(one, "status", "release") or "-"),
        ]
        if wide:
            row += [revisions_text(one.get("status") or {}), one_line(str(dig(one, "status", "message") or "-"))]
        rows.append(row)
    return table([*HEADERS, *(("REVISIONS", "MESSAGE") if wide else ())], rows)


def target_text(rollout: Obj) -> str:
    """Return ``appset/shop``: whose Applications it orders."""
    of = dig(rollout, "spec", "of") or {}
    return f"{KINDS.get(str(of.get('kind')), str(of.get('kind') or '?'))}/{of.get('name') or '?'}"


def waves_of(rollout: Obj) -> Sequence[Obj]:
    return dig(rollout, "status", "waves") or ()


def clusters_of(rollout: Obj) -> list[Obj]:
    """Return the clusters that are not done, by wave and name."""
    found: Sequence[Obj] = dig(rollout, "status", "clusters") or ()
    return sorted(found, key=lambda one: (int(one.get("wave") or 0), str(one.get("cluster")), _app(one)))


def wave_text(waves: Sequence[Obj]) -> str:
    """Return the first wave that is not done and the last one: ``1 of 0-2``."""
    left = [one for one in waves if int(one.get("done") or 0) < int(one.get("total") or 0)]
    if not waves:
        return "-"
    numbers = [one.get("wave") for one in waves]
    span = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
    return f"{left[0].get('wave')} of {span}" if left else f"all of {span}"


def revisions_text(status: Mapping[str, Any]) -> str:
    """Return ``main → 9be981f`` for each source of a release."""
    return ", ".join(_revision(one) for one in status.get("revisions") or ()) or "-"


def _revision(one: Mapping[str, Any]) -> str:
    asked, resolved = str(one.get("targetRevision") or "HEAD"), str(one.get("commit") or one.get("revision") or "")
    return f"{asked} → {short_revision(resolved)}" if resolved and resolved != asked else asked


def describe_rollout(rollout: Obj, now: datetime) -> str:
    """Return the text of ``rollout get``: the release, what people asked, waves, and clusters that are not done."""
    lines = _header(rollout, now)
    waves = waves_of(rollout)
    if waves:
        lines += ["", table(WAVE_HEADERS, [_wave_row(one, now) for one in waves])]
    clusters = clusters_of(rollout)
    if clusters:
        rows = [cluster_row(one, now) for one in clusters[:MAX_CLUSTERS]]
        lines += ["", table(CLUSTER_HEADERS, rows)]
    if len(clusters) > MAX_CLUSTERS:
        lines.append(f"… and {len(clusters) - MAX_CLUSTERS} more (-o json shows all)")
    return "\n".join(lines)


def _header(rollout: Obj, now: datetime) -> list[str]:
    status, spec = rollout.get("status") or {}, rollout.get("spec") or {}
    since = since_of(rollout)
    message = one_line(str(status.get("message") or ""))
    head = f"FleetRollout {namespace_of(rollout)}/{name_of(rollout)} {phase_of(rollout)}"
    head += (f" for {age(since, now)}" if since else "") + (f": {message}" if message else "")
    lines = [head, f"  of:       {target_text(rollout)}", f"  release:  {status.get('release') or '-'}"]
    for one in status.get("revisions") or ():
        named = " ".join(str(one[key]) for key in ("repoURL", "chart") if one.get(key))
        lines.append(f"            {named} {_revision(one)}")
    if "stopped" in spec:
        said = one_line(stopped_by(spec["stopped"])).strip(" :")
        lines.append(f"  stopped:  {said}; syncline rollout resume {typed_target(rollout)} lets it go on")
    release = status.get("release")
    for one in spec.get("skip") or ():
        counts = "" if one.get("release") == release else f" (of release {one.get('release')}: it does not count now)"
        lines.append(f"  skipped:  {one.get('cluster')}{counts}")
    back = spec.get("rollBack") or {}
    if back:
        counts = "" if back.get("from") == release else ": it has ended, since the release is another one"
        reason = f" ({one_line(str(back['reason']))})" if back.get("reason") else ""
        lines.append(f"  back:     from release {back.get('from')}{reason}{counts}")
    return lines


def _wave_row(one: Obj, now: datetime) -> tuple[str, ...]:
    counts = (str(int(one.get(key) or 0)) for key in ("total", "done", "inProgress", "pending", "failed"))
    since = time_or_none(one.get("since"))
    return (str(one.get("wave")), *counts, age(since, now) if since else "-")


def cluster_row(one: Obj, now: datetime) -> tuple[str, ...]:
    """Return a line about a cluster that is not done."""
    since, until = time_or_none(one.get("since")), time_or_none(one.get("until"))
    healthy = time_or_none(one.get("healthySince"))
    why = one_line(str(one.get("why") or ""))
    return (
        str(one.get("wave")),
        str(one.get("cluster") or "-"),
        _app(one),
        str(one.get("state") or "-"),
        age(healthy or since, now) if healthy or since else "-",
        format_time(until) if until else "-",
        why or "-",
    )


def _app(one: Obj) -> str:
    return str(one.get("application") or "-")


# -- history -----------------------------------------------------------------------------------------------------------


def history_rows(rollout: Obj, now: datetime) -> str:
    """Return the table of ``rollout history``: the newest first; the release under way before those that ended."""
    return table(HISTORY_HEADERS, [_past(one, now) for one in history_of(rollout)])


def history_of(rollout: Obj) -> list[Obj]:
    """Return the releases of a roll-out, the newest first: the one under way, with its phase, and those that ended."""
    status: Obj = rollout.get("status") or {}
    found: list[Obj] = list(status.get("history") or ())
    listed = any(one.get("release") == status.get("release") and not one.get("endedAt") for one in found)
    if status.get("release") and phase_of(rollout) not in ENDED and not listed:
        current: Obj = {key: status[key] for key in ("release", "revisions", "startedAt") if key in status}
        found.insert(0, {**current, "outcome": phase_of(rollout)})
    return sorted(found, key=lambda one: str(one.get("startedAt") or ""), reverse=True)


def _past(one: Obj, now: datetime) -> tuple[str, ...]:
    started, ended = time_or_none(one.get("startedAt")), time_or_none(one.get("endedAt"))
    return (
        str(one.get("release") or "-"),
        str(one.get("outcome") or "Progressing"),
        format_time(started) if started else "-",
        format_time(ended) if ended else "-",
        age(started, ended or now) if started else "-",
        revisions_text(one),
    )


def back_rows(rollout: Obj, members: Iterable[str], proven: Sequence[Proven], now: datetime) -> str:
    """Return the table of what a roll back does: what each cluster of the group goes back to."""
    there = set(carrying(rollout, members))
    known = {one.cluster for one in proven}
    release = str(dig(rollout, "status", "release") or "-")
    rows = [
        (one.cluster, one.application, release, one.release, f"proven {age(one.since, now)} ago")
        for one in proven
        if one.cluster in there
    ]
    rows += [(one, "-", release, "-", "keeps it: no earlier release is proven") for one in sorted(there - known)]
    rows += [(one, "-", "-", "-", "does not carry the release") for one in sorted(set(members) - there)]
    return table(("CLUSTER", "APPLICATION", "FROM", "TO", "WHY"), rows)


# -- watching ----------------------------------------------------------------------------------------------------------


def progress_lines(before: Obj | None, after: Obj) -> Iterator[str]:
    """Yield what changed between two states of a roll-out, a line each; without ``before`` how it stands."""
    old, new = (before or {}).get("status") or {}, after.get("status") or {}
    if before is None or old.get("release") != new.get("release"):
        instead = f", in place of {old['release']}" if old.get("release") else ""
        yield f"{target_text(after)} release {new.get('release') or '-'} ({revisions_text(new)}){instead}"
        old = {}
    waves_before = {one.get("wave"): one for one in old.get("waves") or ()}
    for one in new.get("waves") or ():
        said = _wave_line(one)
        if said != _wave_line(waves_before.get(one.get("wave")) or {}):
            yield said
    clusters_before = {_key(one): one for one in old.get("clusters") or ()}
    for one in clusters_of(after):
        said = _cluster_line(one)
        if _news(one) != _news(clusters_before.get(_key(one)) or {}):
            yield said
    left = {_key(one) for one in new.get("clusters") or ()}
    for key in sorted(set(clusters_before) - left):
        yield f"  {key[0]} {key[1]} done"
    if (old.get("phase"), old.get("message")) != (new.get("phase"), new.get("message")):
        message = one_line(str(new.get("message") or ""))
        yield f"{phase_of(after)}" + (f": {message}" if message else "")


def _news(one: Obj) -> str:
    """Return what makes a line about a cluster new: of one that waits for another one not how that one is, which
    its own line says."""
    said = _cluster_line(one)
    return said.partition(" (")[0].partition(", until ")[0] if one.get("state") == "Waiting" else said


def _key(one: Obj) -> tuple[str, str]:
    return str(one.get("cluster")), _app(one)


def _wave_line(one: Obj) -> str:
    words = (("inProgress", "in progress"), ("failed", "failed"))
    said = ", ".join(f"{one[key]} {word}" for key, word in words if one.get(key))
    count = counted(int(one.get("total") or 0), "cluster")
    return f"wave {one.get('wave')}: {one.get('done') or 0} of {count} done" + (f" ({said})" if said else "")


def _cluster_line(one: Obj) -> str:
    why = one_line(str(one.get("why") or ""))
    until = f", until {one['until']}" if one.get("until") and str(one["until"]) not in why else ""
    return f"  {one.get('cluster')} {_app(one)} {one.get('state')}" + (f": {why}" if why else "") + until
