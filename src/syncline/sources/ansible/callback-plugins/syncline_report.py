# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright 2026 The Syncline authors
#
# This one file is licensed under the GNU General Public License, version 3 or any later version, because ansible-core,
# which has that licence, loads it. Syncline never imports it: it copies it to a private folder, from where
# ansible-playbook, a process of its own, loads it (see NOTICE).
"""Write what a play does as JSON lines to the descriptor that SYNCLINE_REPORT names, one line per event.

With SYNCLINE_REBOOTED, a JSON list of positions, "reboot" tasks there pass without doing anything ("*": all of them),
and the play ends at any other one that would reboot.

With SYNCLINE_ANSWER, a second descriptor, each result waits for one byte from it: the reader looks at the files that
the task left before the next task begins. If the reader is gone, the play ends: it never runs unobserved.
"""

from __future__ import annotations

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: syncline_report
    type: stdout
    short_description: JSON lines for Syncline
    description: One line per task that begins and per result.
"""

MOST_MESSAGE, MOST_DIFF, MOST_ITEMS = 4000, 24000, 50
GONE, REBOOT = 97, 98
REBOOTS = ("reboot", "ansible.builtin.reboot", "ansible.legacy.reboot")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "syncline_report"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._out = int(os.environ["SYNCLINE_REPORT"])
        self._answer = int(os.environ.get("SYNCLINE_ANSWER", "-1"))
        for descriptor in (self._out, self._answer):
            if descriptor >= 0:
                os.set_inheritable(descriptor, False)
        self._rebooted = json.loads(os.environ.get("SYNCLINE_REBOOTED", "null"))
        self._begun = {}
        self._handlers = set()

    def _write(self, **event):
        line = json.dumps(event, default=str).encode("ascii", "replace") + b"\n"
        try:
            while line:
                line = line[os.write(self._out, line) :]
            if event["event"] == "result" and self._answer >= 0 and not os.read(self._answer, 1):
                os._exit(GONE)
        except OSError:
            os._exit(GONE)

    # -- what begins ---------------------------------------------------------------------------------------------

    def v2_playbook_on_play_start(self, play):
        self._write(event="play", name=_short(play.get_name()), position=_position(play))

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._start(task)

    def v2_playbook_on_handler_task_start(self, task):
        self._handlers.add(task._uuid)
        self._start(task)

    def _start(self, task):
        passes = self._rebooted is not None and ("*" in self._rebooted or _position(task) in self._rebooted)
        if passes and task.action in REBOOTS:
            task.action, task.args = "ansible.builtin.debug", {"msg": "the machine has rebooted"}
        self._begun[task._uuid] = (time.time(), time.monotonic())
        self._write(event="start", name=_short(task.get_name()), position=_position(task), module=task.action)

    # -- what came of it -----------------------------------------------------------------------------------------

    def v2_runner_on_ok(self, result):
        self._result(result, "changed" if result.result.get("changed") else "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._result(result, "failed", ignored=bool(ignore_errors))

    def v2_runner_on_skipped(self, result):
        self._result(result, "skipped")

    def v2_runner_on_unreachable(self, result):
        self._result(result, "unreachable", ignored=bool(result.task.ignore_unreachable))

    def _result(self, result, state, ignored=False):
        task, found = result.task, result.result
        wall, began = self._begun.get(task._uuid, (time.time(), time.monotonic()))
        hidden = bool(found.get("_ansible_no_log") or "censored" in found)
        self._write(
            event="result",
            state=state,
            ignored=ignored,
            name=_short(result.task_name),
            position=_position(task),
            module=str(task.action),
            role=str(task._role or ""),
            host=result.host.get_name(),
            delegated=_short(task.delegate_to),
            handler=task._uuid in self._handlers,
            tags=[_short(each) for each in list(task.tags)[:MOST_ITEMS]],
            notifies=[_short(each) for each in (task.notify or ())[:MOST_ITEMS]],
            asynchronous=bool(task.async_val),
            censored=hidden,
            message="" if hidden else self._message(found),
            diff="" if hidden else self._difference(found),
            items=len(found.get("results") or ()),
            started=wall,
            seconds=round(time.monotonic() - began, 3),
        )
        if self._rebooted is not None and task.action in REBOOTS and state == "failed":
            os._exit(REBOOT)  # no rescue runs, and nothing of the play goes on before the reboot

    def _message(self, found):
        """The module's message; of a command that failed what it printed; of a loop those of its items."""
        parts = [found.get(name) for name in ("msg", "reason", "skip_reason", "false_condition", "module_stderr")]
        if found.get("rc"):
            parts += [f"exit code {found['rc']}", found.get("stderr"), found.get("stdout")]
        for item in (found.get("results") or ())[:MOST_ITEMS]:
            if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
                parts.append(f"item {item.get('_ansible_item_label', item.get('item'))}: {item.get('msg', '')}")
        return _short("; ".join(dict.fromkeys(str(part).strip() for part in parts if part)), MOST_MESSAGE)

    def _difference(self, found):
        texts = []
        for each in [found, *(found.get("results") or ())[:MOST_ITEMS]]:
            if isinstance(each, dict) and each.get("diff") and not each.get("_ansible_no_log"):
                texts.append(self._get_diff(each["diff"]))
        return _short("".join(texts), MOST_DIFF)

    def v2_runner_retry(self, result):
        pass

    def v2_playbook_on_stats(self, stats):
        hosts = {name: stats.summarize(name) for name in sorted(stats.processed)}
        self._write(event="stats", hosts=dict(list(hosts.items())[:MOST_ITEMS]))

    def v2_playbook_on_no_hosts_matched(self):
        self._write(event="nohosts")


def _position(task):
    return task.get_path() or ""


def _short(value, most=500):
    text = "" if value is None else str(value)
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
