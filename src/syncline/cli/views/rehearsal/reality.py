"""Texts of replays and comparisons with what really happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from syncline.base.cause import Cause
from syncline.cli.frame.output import table
from syncline.cli.views.rehearsal.text import offset
from syncline.explain.wording import subject_text
from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.answer.waits import chain_of
from syncline.rehearsal.reality.drifting import Drift, Line, span
from syncline.rehearsal.reality.replaying import Replayed

MAX_SHOWN, MAX_ROWS = 20, 60


def describe_replay(found: Replayed, name: str) -> str:
    """Return the verdict in the first line, then what came from outside, then where each object goes otherwise."""
    steps = sum(map(len, found.recorded.values()))
    lines = [
        f"SAME     {name}: all {steps} steps of {len(found.recorded)} objects are as recorded"
        if not found.differences
        else f"DIFFERS  {name}: at {offset(found.differences[0].at_s)} {found.differences[0]}"
    ]
    began = found.record.began
    lines += ["", "FROM OUTSIDE" if found.acts else "FROM OUTSIDE  nothing"]
    lines += [f"  {offset((act.at - began).total_seconds())}  {act}" for act in found.acts[:MAX_SHOWN]]
    if len(found.acts) > MAX_SHOWN:
        lines.append(f"  and {len(found.acts) - MAX_SHOWN} more")
    if found.differences:
        lines += ["", "GOES OTHERWISE  recorded, then as it is played now"]
    for each in found.differences[:MAX_SHOWN]:
        lines.append(f"  {offset(each.at_s)}  {each.subject}")
        lines.append(f"    recorded  {each.first or 'nothing more'}")
        lines.append(f"    now       {each.second or 'nothing more'}")
        lines += [f"    why       {each.why}"] if each.why else []
    if len(found.differences) > MAX_SHOWN:
        lines.append(f"  and {len(found.differences) - MAX_SHOWN} more")
    lines += ["", "ASSUMED", *(f"  {note}" for note in found.notes)] if found.notes else []
    return "\n".join(lines)


def replay_to_obj(found: Replayed) -> dict[str, Any]:
    """Return the value of ``-o json``."""
    return {
        "same": not found.differences,
        "acts": [{"atS": (act.at - found.record.began).total_seconds(), "what": str(act)} for act in found.acts],
        "differences": [asdict(each) for each in found.differences],
        "notes": list(found.notes),
    }


# -- drift -------------------------------------------------------------------------------------------------------------


def describe_drift(found: Drift, name: str, waits: Sequence[Cause] = ()) -> str:
    """Return the verdict in the first line, then each wait as planned and as it was, then what is waited for now."""
    outside = found.outside
    lines = [f"LEFT     {name}: {outside[0].said}" if outside else f"ON PLAN  {name}: {_counted(found)}", ""]
    rows = [
        [line.row, str(line.doing), "" if line.planned is None else span(line.planned), _was(line), str(line.verdict)]
        for line in found.lines[:MAX_ROWS]
    ]
    lines += [table(("WHAT", "DOES", "PLANNED", "WAS", "IS"), rows)] if rows else []
    if len(found.lines) > MAX_ROWS:
        lines.append(f"{len(found.lines) - MAX_ROWS} more are not shown; -o json has all")
    if waits:
        lines += ["", "WAITS NOW"]
    for cause in waits[:MAX_SHOWN]:
        lines += [f"  {subject_text(cause.subject)} {cause.state}", *(f"    {link}" for link in chain_of(cause)[1:])]
    lines += ["", "PLANNED WITH", f"  {', '.join(map(str, found.durations.values()))}"]
    return "\n".join(lines)


def _counted(found: Drift) -> str:
    begun = sum(line.live is not None for line in found.lines)
    return f"{begun} of {len(found.lines)} planned waits have begun, each in its order and range"


def _was(line: Line) -> str:
    if line.live is None:
        return ""
    length = "" if line.live.ends_s is None else format_seconds(round(line.live.ends_s - line.live.began_s))
    return f"{offset(line.live.began_s)}, {length or 'lasts'}"


def drift_to_obj(found: Drift) -> dict[str, Any]:
    """Return the value of ``-o json``."""
    return {"onPlan": not found.outside, "lines": [asdict(line) for line in found.lines]}
