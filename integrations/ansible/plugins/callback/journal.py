# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: journal
type: aggregate
short_description: Writes a play's progress as a journal
description:
  - Appends one line of JSON for each beginning and result, in the form of Syncline's journals. So a play can be read
    beside the journal of a cluster or of a rehearsal.
  - Keys of a line are C(when) (UTC, microseconds), C(who) (C(ansible)), C(subject), C(what) and C(why).
  - The subject is C(/Node//NAME) for a node of the inventory P(syncline.syncline.cluster#inventory), and
    C(cluster.open-cluster-management.io/ManagedCluster//NAME) for a cluster of it, else C(host/NAME); of a play
    C(play/NAME).
  - Of a task with C(no_log) only name and outcome are written. Arguments and results of modules never are.
  - The file is bounded. When O(max_entries) or O(max_bytes) are reached, a last line says so.
version_added: 0.1.0
author: The Syncline authors (@syncline)
requirements:
  - enable it in configuration, C(callbacks_enabled = syncline.syncline.journal)
options:
  path:
    description: The file; made with mode 0600, and appended to.
    type: path
    default: ansible-journal.jsonl
    env:
      - name: SYNCLINE_JOURNAL
    ini:
      - section: callback_syncline_journal
        key: path
  max_entries:
    description: Lines of one run.
    type: int
    default: 200000
    env:
      - name: SYNCLINE_JOURNAL_MAX_ENTRIES
    ini:
      - section: callback_syncline_journal
        key: max_entries
  max_bytes:
    description: Bytes of one run.
    type: int
    default: 67108864
    env:
      - name: SYNCLINE_JOURNAL_MAX_BYTES
    ini:
      - section: callback_syncline_journal
        key: max_bytes
"""

import json
import os
from datetime import datetime, timezone

from ansible.plugins.callback import CallbackBase

MAX_TEXT = 2000
"""Characters of a message."""
SUBJECTS = {"node": "/Node//%s", "cluster": "cluster.open-cluster-management.io/ManagedCluster//%s"}
HIDDEN = "hidden by no_log"
FULL = "max_entries or max_bytes is reached"


class CallbackModule(CallbackBase):
    """Writes lines as results come; a file that cannot be written ends the journal, not the play."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "syncline.syncline.journal"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, display=None, options=None):
        super().__init__(display=display, options=options)
        self._file = None
        self._left = self._room = 0
        self._play = ""

    def v2_playbook_on_start(self, playbook):
        """Open the journal."""
        self._left, self._room = self.get_option("max_entries"), self.get_option("max_bytes")
        path = self.get_option("path")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            self._file = os.fdopen(handle, "w", encoding="utf-8", buffering=1)
        except OSError as error:
            self._end(f"the journal {path} cannot be written: {error.strerror}")

    def v2_playbook_on_play_start(self, play):
        """Write the beginning of a play."""
        self._play = "play/%s" % (play.get_name().strip() or "unnamed")
        self._write(self._play, "play began", "check mode" if play.check_mode else "")

    def v2_runner_on_ok(self, result):
        """Write a result that is no failure."""
        self._result(result, "changed" if result.result.get("changed") else "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        """Write a failure."""
        self._result(result, "failed, ignored" if ignore_errors else "failed", with_message=True)

    def v2_runner_on_skipped(self, result):
        """Write a task that did not run."""
        self._result(result, "skipped")

    def v2_runner_on_unreachable(self, result):
        """Write a host that is not reached."""
        self._result(result, "unreachable", with_message=True)

    def v2_runner_retry(self, result):
        """Write an attempt that is repeated."""
        self._result(result, "retried")

    def v2_playbook_on_stats(self, stats):
        """Write one line for each host, and close the journal."""
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            text = ", ".join(f"{counts[key]} {key}" for key in sorted(counts) if counts[key])
            bad = counts["failures"] or counts["unreachable"]
            self._write(f"host/{host}", "play failed" if bad else "play ended", text)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _result(self, result, outcome, with_message=False):
        found, task = result.result, result.task
        name = task.get_name().strip()
        hidden = task.no_log or found.get("_ansible_no_log") or found.get("censored")
        message = HIDDEN if hidden else str(found.get("msg") or "") if with_message else ""
        self._write(self._subject(result.host), f"{task.action} {outcome}", f"{name}: {message}" if message else name)

    def _subject(self, host):
        kind = host.vars.get("syncline_kind")
        return SUBJECTS.get(kind, "host/%s") % host.name

    def _write(self, subject, what, why=""):
        if self._file is None:
            return
        when = datetime.now(timezone.utc).isoformat(timespec="microseconds")[:26] + "Z"
        entry = {"when": when, "who": "ansible", "subject": subject, "what": what, "why": why[:MAX_TEXT]}
        line = json.dumps(entry, ensure_ascii=False) + "\n"
        self._left -= 1
        self._room -= len(line.encode("utf-8", "replace"))
        try:
            if self._left < 0 or self._room < 0:
                entry |= {"subject": self._play, "what": "journal full", "why": FULL}
                self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
                self._end(f"the journal is full: {FULL}")
                return
            self._file.write(line)
        except OSError as error:
            self._end(f"the journal cannot be written: {error.strerror}")

    def _end(self, why):
        """Close the journal before the play ends."""
        self._display.warning(f"syncline.syncline.journal: {why}")
        self._file = None
