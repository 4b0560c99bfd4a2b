"""Runs Ansible on this machine for its agent: :class:`LinuxPlays`.

Content is unpacked to a private folder and run by ``sources/ansible/launching.py``. A ``reboot`` task does nothing
here: with a local connection it fails, our callback plugin ends the play at it, and the agent reboots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from syncline.base.clock import Clock
from syncline.base.scratch import scratch
from syncline.machineconfig.ansible.content import ContentError, Files, unpack
from syncline.machineconfig.ansible.order import Order
from syncline.machineconfig.ansible.outcome import Outcome, Task
from syncline.machineconfig.ansible.play import REBOOT_TAG
from syncline.sources.ansible.launching import Play as Launch
from syncline.sources.ansible.launching import PlayLimits, run_play
from syncline.sources.ansible.reporting import PlayReport, State, TaskResult
from syncline.sources.errors import SourceError

PYTHONS: Final = ("/usr/bin/python3", "/usr/libexec/platform-python")
"""Interpreters of modules: the system's own, since modules for packages need its libraries."""
OF_ROLE: Final = "syncline-role.yml"
REBOOTS: Final = ("reboot", "ansible.builtin.reboot", "ansible.legacy.reboot")
MASK: Final = "***"
MIN_MASKED: Final = 4
"""Characters of a secret that is masked in messages; shorter ones would mask words."""
_GROUP: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class LinuxPlays:
    """A :class:`~syncline.machineconfig.ansible.order.Player`. ``runs``: the system runs, and is not a directory."""

    root: Path
    runs: bool
    clock: Clock

    def now(self) -> datetime:
        return self.clock.now()

    def play(self, node: str, order: Order) -> Outcome:
        """Run the playbook; blocks."""
        if not self.runs:
            return Outcome(error=f"{self.root} is a directory: Ansible runs on the system that it configures")
        try:
            files = unpack(order.packed)
            with scratch() as folder:
                write_files(files, folder)
                report = run_play(launch_of(node, order, folder), limits=_limits(order), cwd=str(folder))
        except (ContentError, SourceError) as error:
            return Outcome(error=str(error))
        except OSError as error:
            return Outcome(error=f"its content cannot be unpacked: {error.strerror}")
        return outcome_of(report, _values(order))


def write_files(files: Files, folder: Path) -> None:
    """Write the content of a play to a private folder."""
    for path, file in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(0o700 if file.executable else 0o600)


def launch_of(node: str, order: Order, folder: Path) -> Launch:
    """Return the run of an order whose content is in ``folder``."""
    play = order.play
    variables = dict(play.variables or {})
    if order.secrets is not None:
        variables |= json.loads(order.secrets.reveal())
    playbook = folder / (play.playbook or OF_ROLE)
    if play.role:
        playbook.write_text(json.dumps([{"hosts": "all", "roles": [play.role]}]), encoding="utf-8")
    # In a check each reboot passes: only a run asks for one.
    passes = ["*"] if order.check else [f"{folder}/{place}" for place in order.reboots]
    return Launch(
        str(playbook),
        inventory=_inventory(node, play.groups),
        check=order.check,
        tags=play.tags,
        skip_tags=play.skip_tags,
        variables=variables,
        vault_password=order.vault.reveal() if order.vault is not None else "",
        collections=(f"{folder}/collections",),
        roles=(f"{folder}/roles",),
        interpreter=next((each for each in PYTHONS if Path(each).exists()), ""),
        environment={"SYNCLINE_REBOOTED": json.dumps(passes)},
    )


def outcome_of(report: PlayReport, secrets: Iterable[str] = ()) -> Outcome:
    """Return what a report says; ``secrets`` are masked in it."""
    changed = tuple(_task(one, secrets) for one in report.changed)
    reached = any(REBOOT_TAG in one.tags and one.state is not State.SKIPPED for one in report.results)
    return replace(_outcome(report, changed, secrets), may_reboot=reached)


def _outcome(report: PlayReport, changed: tuple[Task, ...], secrets: Iterable[str]) -> Outcome:
    last = report.results[-1] if report.results else None
    if last is not None and last.module in REBOOTS and last.failed and not report.succeeded:
        waiting = _waiting_handlers(report)
        if waiting:
            text = f"handlers wait for the end of the play ({', '.join(waiting)}), and a reboot would lose them"
            failed = Task(last.name, last.position, last.host, f"{text}; put meta: flush_handlers before it")
            return Outcome(changed, failed=failed)
        return Outcome(changed, reboot=_task(last, secrets))
    if report.succeeded:
        nothing = not report.results and report.unmatched
        return Outcome(changed, error="hosts of no play match this node: write hosts: all" if nothing else "")
    if report.ended or not report.failed:
        return Outcome(changed, error=_masked(report.why, secrets))
    return Outcome(changed, failed=_task(report.failed[-1], secrets))


def _waiting_handlers(report: PlayReport) -> list[str]:
    asked = {name for one in report.changed for name in one.notifies}
    return sorted(asked - {one.name.rpartition(" : ")[2] for one in report.results if one.handler})


def _task(one: TaskResult, secrets: Iterable[str]) -> Task:
    message = "its output is hidden by no_log" if one.censored and one.failed else _masked(one.message, secrets)
    return Task(_masked(one.name, secrets), one.position, one.host, message, one.tags)


def _masked(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text


def _values(order: Order) -> list[str]:
    """Return the secrets of an order, the longest first."""
    found = [order.vault.reveal()] if order.vault is not None else []
    if order.secrets is not None:
        found += [str(value) for value in json.loads(order.secrets.reveal()).values()]
    found += [value.strip() for value in found]
    return sorted({value for value in found if len(value) >= MIN_MASKED}, key=len, reverse=True)


def _inventory(node: str, groups: Iterable[str]) -> str:
    return f"{node}\n" + "".join(f"[{_GROUP.sub('_', name)}]\n{node}\n" for name in groups)


def _limits(order: Order) -> PlayLimits:
    return PlayLimits(wall_s=order.play.timeout_s, cpu_s=max(int(order.play.timeout_s), 1))
