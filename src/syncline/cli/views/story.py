"""Formats the steps of a scenario, and removes from the text what differs between runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from syncline.base.cause import Cause
from syncline.base.clock import parse_time
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.frame.output import table
from syncline.cli.views.cause import describe_cause
from syncline.explain.naming import NamingError
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.paths import value_at
from syncline.rehearsal.scenario import ScenarioError, View
from syncline.rehearsal.simulation import NotReached, StepResult
from syncline.rehearsal.stage import Stage, said_at

AGE = "Age"
COUNTED = (
    (re.compile(r"\brendered-([a-z]+)-[0-9a-f]{32}\b"), r"rendered-{0}-<{1}>"),
    (re.compile(r"\b([a-z][a-z0-9-]*)-[bcdf-hj-np-tv-xz24-9]{8,10}-[bcdf-hj-np-tv-xz24-9]{5}\b"), "{0}-<pod {1}>"),
)
"""Names with a generated ending; they are numbered in order of appearance."""


@contextmanager
def failing() -> Iterator[None]:
    """Convert errors of a scenario into failures of the command."""
    try:
        yield
    except NotReached as error:
        raise CommandFailed(f"{error}\n{reasons(error.causes, error.now)}", BLOCKED) from error
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else None) from error
    except NamingError as error:
        raise CommandFailed(str(error), USAGE) from error


def reasons(causes: Mapping[str, Cause], now: datetime) -> str:
    """Return the causes of Applications, by name."""
    return "\n".join(f"{name}: {describe_cause(cause, now).strip()}" for name, cause in causes.items())


def explained(stage: Stage, target: str) -> str:
    """Return the output of ``syncline explain``."""
    return describe_cause(stage.cause(target), stage.clock.now())


def transcript(stage: Stage, simulated: StepResult) -> str:
    """Return the text of a step: results of the sync, the Applications, the objects that the story shows, Events, and
    explanations."""
    step, took = simulated.step, simulated.took_s
    story = stage.story
    apps = stage.applications()
    lines = [f"# {step.say}", ""]
    if took is not None:
        lines += [f"took {format_seconds(took)} on the cluster's clock", ""]
    if story.syncs(step):
        state = dig(apps[story.waited_for()[0]], "status", "operationState", default={})
        lines += [f"{state.get('phase')}: {state.get('message')}", ""]
        headers = ("PHASE", "KIND", "NAME", "STATUS", "HOOK", "MESSAGE")
        lines += [table(headers, [_result(row) for row in _results(state)]), ""]
    lines += [table(("APPLICATION", "SYNC", "HEALTH"), [_application(apps[name]) for name in story.waited_for()])]
    for snapshot in story.views:
        lines += ["", f"{snapshot.path.rpartition('/')[2]}:", _looked(stage, snapshot)]
    news = stage.news()
    if news:
        rows = [_event(event, simulated.began) for event in news]
        lines += ["", "events:", table(("AT", "OBJECT", "REASON", "MESSAGE"), rows)]
    for target in step.explain:
        lines += ["", f"$ syncline explain {target}", explained(stage, target)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def _application(app: Obj) -> tuple[str, str, str]:
    return name_of(app), dig(app, "status", "sync", "status"), dig(app, "status", "health", "status")


def _results(state: Obj) -> list[Obj]:
    found: list[Obj] = dig(state, "syncResult", "resources", default=[])
    return found


def _result(row: Obj) -> tuple[str, ...]:
    keys = ("syncPhase", "kind", "name", "status", "hookPhase", "message")
    shown = [str(row.get(key) or "") for key in keys]
    if not row.get("hookType"):
        shown[4] = ""
    return tuple(shown)


def _looked(stage: Stage, snapshot: View) -> str:
    if snapshot.columns:
        paths = [path for _, path in snapshot.columns]
        headers = ("NAME", *(name.upper() for name, _ in snapshot.columns))
        found = sorted(stage.items(snapshot.path), key=lambda obj: (obj["metadata"]["creationTimestamp"], name_of(obj)))
        return table(headers, [(name_of(obj), *(_text(value_at(obj, path)) for path in paths)) for obj in found])
    shown = stage.table(snapshot.path)
    columns = [
        (place, str(column["name"]).upper())
        for place, column in enumerate(shown["columnDefinitions"])
        if column["name"] != AGE and not column.get("priority")
    ]
    cells = [[_text(row["cells"][place]) for place, _ in columns] for row in shown["rows"] or ()]
    return table([name for _, name in columns], cells)


def _text(found: Any) -> str:
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return "" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


def _event(event: Obj, began: datetime) -> tuple[str, ...]:
    """Return the cells of an Event: time since the start of the step, object, reason and message."""
    about = event.get("involvedObject") or {}
    at = int((parse_time(said_at(event)) - began).total_seconds())
    count = int(event.get("count") or 1)
    again = f" (x{count})" if count > 1 else ""
    return (
        f"+{format_seconds(max(at, 0))}",
        f"{about.get('kind')}/{about.get('name')}",
        f"{event['reason']}{again}",
        str(event.get("message") or "").replace("\n", " "),
    )


def masked(text: str, commits: list[str]) -> str:
    """Return a transcript without what differs between runs: commits, times, generated endings, the copy's path."""
    for number, commit in enumerate(commits, 1):
        text = text.replace(commit, f"<commit {number}>")
        for length in (12, 7):
            text = text.replace(commit[:length], f"<commit-{number}>")
    text = re.sub(r"(?<=sync-)(\d{10}|[0-9a-f]{8}-\d{10})\b", "<time>", text)
    for pattern, shown in COUNTED:
        text = _numbered(text, pattern, shown)
    return "\n".join(re.sub(r"(?<=\S)  +", "  ", line).rstrip() for line in text.splitlines()) + "\n"


def _numbered(text: str, pattern: re.Pattern[str], shown: str) -> str:
    numbers: dict[str, int] = {}
    count: dict[str, int] = {}
    for match in pattern.finditer(text):
        if match[0] not in numbers:
            count[match[1]] = numbers[match[0]] = count.get(match[1], 0) + 1
    return pattern.sub(lambda match: shown.format(match[1], numbers[match[0]]), text)
