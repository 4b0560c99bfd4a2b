"""A sync as it runs: what changed since the last look, one line each; on a terminal a tree that redraws itself.

Fed with the Application's successive states; knows nothing of requests. Lines in a pipe look like argocd's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

from syncline.cli.appview import resource_rows
from syncline.kube.objects import Obj, dig

__all__ = ["LineProgress", "Progress", "TreeProgress", "progress_for"]

MARKS = {"Succeeded": "✔", "Synced": "✔", "Healthy": "✔", "Running": "…", "Progressing": "…", "Failed": "✘"}


class LineProgress:
    """One line per change; safe for pipes and logs."""

    def __init__(self, write: Callable[[str], None] = print) -> None:
        self._write = write
        self._seen: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._message = ("", "")
        header = ("TIMESTAMP", "GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE")
        self._write(self._format(header))

    @staticmethod
    def _format(cells: tuple[str, ...]) -> str:
        widths = (26, 12, 14, 12, 32, 10, 12, 9, 0)
        return "".join(cell.ljust(width) + " " for cell, width in zip(cells, widths)).rstrip()

    def update(self, app: Obj, now: datetime) -> None:
        stamp = now.astimezone().isoformat(timespec="seconds")
        for row in resource_rows(app):
            key, rest = row[:4] + row[6:7], row
            if self._seen.get(key) != rest:
                self._seen[key] = rest
                self._write(self._format((stamp, *row)))
        message = str(dig(app, "status", "operationState", "message", default=""))
        phase = str(dig(app, "status", "operationState", "phase", default=""))
        if message and (phase, message) != self._message:
            self._message = (phase, message)
            self._write(f"{stamp} {phase}: {message}")

    def close(self) -> None:
        """Nothing to put back."""


class TreeProgress:
    """Phases and waves as a tree that is drawn again in place."""

    def __init__(self, waves: Callable[[Obj], dict[tuple[str, ...], int]] | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=False), refresh_per_second=8, transient=False)
        self._live.start()

    def update(self, app: Obj, now: datetime) -> None:
        self._live.update(self._tree(app), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def _tree(self, app: Obj) -> Any:
        from rich.markup import escape
        from rich.tree import Tree

        state = dig(app, "status", "operationState", default={})
        name = dig(app, "metadata", "name", default="")
        top = Tree(
            f"[bold]{escape(name)}[/bold]  {state.get('phase') or 'requested'}: {escape(state.get('message') or '')}"
        )
        rows = dig(state, "syncResult", "resources", default=[])
        health = {
            (r.get("group") or "", r.get("kind"), r.get("name")): dig(r, "health", "status", default="")
            for r in dig(app, "status", "resources", default=[])
        }
        for phase in ("PreSync", "Sync", "PostSync", "SyncFail"):
            mine = [row for row in rows if row.get("syncPhase") == phase]
            branch = top.add(f"[bold]{phase}[/bold]") if mine else None
            for row in mine:
                verdict = self._verdict(row, health)
                mark = MARKS.get(verdict, "·")
                text = escape(f"{row.get('kind')}/{row.get('name')}  {verdict}  {row.get('message') or ''}")
                assert branch is not None
                branch.add(f"{mark} {text}")
        return top

    @staticmethod
    def _verdict(row: Obj, health: dict[tuple[Any, ...], str]) -> str:
        if row.get("hookType"):
            return str(row.get("hookPhase") or row.get("status") or "")
        known = health.get((row.get("group") or "", row.get("kind"), row.get("name")))
        if row.get("status") in ("SyncFailed", "Pruned", "PruneSkipped"):
            return str(row["status"])
        return known or str(row.get("status") or "")


Progress = LineProgress | TreeProgress


def progress_for(terminal: bool | None = None) -> Progress:
    """A tree on a terminal, lines in a pipe."""
    return TreeProgress() if (sys.stdout.isatty() if terminal is None else terminal) else LineProgress()
