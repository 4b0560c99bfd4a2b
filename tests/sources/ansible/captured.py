"""Builders for what was observed of a captured run."""

from __future__ import annotations

from typing import Any

from syncline.sources.ansible.observing import Entry, Form, Record, Run
from syncline.sources.ansible.reporting import PlayReport, State, TaskResult

KEPT = {
    "/etc/passwd": "root:x:0:0::/root:/bin/bash\ncore:x:1000:1000::/home/core:/bin/bash\n",
    "/etc/group": "root:x:0:\nwheel:x:10:core\ncore:x:1000:\n",
    "/etc/shadow": "root:*:1::::::\ncore:*:1::::::\n",
}
ABSENT = Form("")


def task(name: str = "Write", line: int = 4, **fields: Any) -> TaskResult:
    return TaskResult(fields.pop("state", State.CHANGED), name, f"site.yml:{line}", "copy", "localhost", **fields)


def file(path: str, content: str | bytes = "x\n", mode: int = 0o644, **fields: Any) -> Entry:
    data = content.encode() if isinstance(content, str) else content
    owners = {"user": fields.pop("user", 0), "group": fields.pop("group", 0)}
    return Entry(path, Form("file", mode, **owners), fields.pop("was", ABSENT), content=data, size=len(data), **fields)


def folder(path: str, mode: int = 0o755) -> Entry:
    return Entry(path, Form("dir", mode), ABSENT)


def link(path: str, target: str) -> Entry:
    return Entry(path, Form("link"), ABSENT, target=target)


def gone(path: str, kind: str = "file") -> Entry:
    return Entry(path, Form("gone"), Form(kind))


def record(kind: str, of: TaskResult | None = None, **fields: Any) -> Record:
    return Record(kind, tuple(sorted(fields.items())), of or task())


def run(*entries: Entry, records: tuple[Record, ...] = (), by: TaskResult | None = None, **report: Any) -> Run:
    results = report.pop("results", (by or task(),))
    found = PlayReport(results, report.pop("exit_code", 0), **report)
    return Run(found, entries, {each.path: by or task() for each in entries}, records, KEPT)
