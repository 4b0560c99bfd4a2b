"""Runs the plays of a config on a host and keeps their journal: :func:`run_plays`, :func:`check_plays`.

The journal is written before and after everything that may not be repeated unseen, so a new agent, or the next boot,
goes on with what was begun. How a machine runs Ansible is its own matter (see ``machineconfig/ansible/order.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from syncline.base.secret import Secret
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.ansible.journal import (
    APPLIED,
    DRIFTED,
    FAILED,
    JOURNAL,
    MAX_PARTS,
    NOT_IDEMPOTENT,
    PLANNED,
    REBOOTING,
    RUNNING,
    Entry,
    Journal,
    boot_of,
    journal_file,
    plays_due,
    read_journal,
)
from syncline.machineconfig.ansible.order import Order, Player
from syncline.machineconfig.ansible.outcome import MAX_MESSAGE, Outcome, failure_text, names_of
from syncline.machineconfig.ansible.play import NONE, REBOOT_TAG, Play, content_of, plays_of


class Interrupted(UpdateError):
    """A run ended before its play did, and nothing is undone. ``journal``: as it is on the disk."""

    def __init__(self, text: str, journal: Journal) -> None:
        super().__init__(text)
        self.journal = journal


class StillRuns(Interrupted):
    """A run is under way until ``until``."""

    def __init__(self, text: str, journal: Journal, until: datetime) -> None:
        super().__init__(text, journal)
        self.until = until


class WantsReboot(Interrupted):
    """A task wants the machine rebooted before the play goes on."""


class PlayFailed(Interrupted):
    """A task failed, or a second run would change something again."""


@dataclass(frozen=True)
class Running:
    """The plays of one config on one host. ``secrets``: by name of play, variables and vault password."""

    node: str
    host: Host
    player: Player
    config: Obj = field(repr=False)
    boot_id: str
    secrets: Callable[[Play], tuple[Secret | None, Secret | None]] = lambda _play: (None, None)

    def plan(self, names: Collection[str]) -> Journal:
        """Check what the plays would change, before the node is disturbed."""
        journal = self._read()
        for play in self._plays(names):
            found = self._play(play, check=True)
            if found.error:
                raise UpdateError(f"AnsibleConfig {play.name} cannot run on {self.node}: {found.error}")
            old = journal.entries.get(play.name) or Entry(PLANNED, play.digest)
            entry = replace(old.with_outcome(PLANNED, found, self.player.now()), plan=play.digest, digest=play.digest)
            if old.open:  # what is half done stays so until it is run again
                entry = replace(old, plan=play.digest)
            journal = self._write(journal.put(play.name, entry))
        return journal

    def run(self, names: Collection[str]) -> Journal:
        """Run the plays that are due. Raises Interrupted."""
        journal = self._read()
        for play in plays_due(self._plays(names), journal):
            journal = self._run(play, journal)
        return journal

    def check(self, names: Collection[str]) -> Journal:
        """Look for drift: what would a further run change?"""
        journal = self._read()
        for play in self._plays(names):
            found, now = self._play(play, check=True), self.player.now()
            old = journal.entries[play.name]
            entry = replace(old, checked=now)
            if found.changed:
                entry = replace(old.with_outcome(DRIFTED, found, now), checked=now)
            elif not found.ok:  # in check mode tasks may fail that would not in a run: it shows no drift
                failed = f"{found.failed.text}: {found.failed.message}" if found.failed is not None else found.error
                entry = replace(entry, error=f"the last check ended early: {failed}"[:MAX_MESSAGE])
            elif old.phase == DRIFTED:
                entry = replace(old.with_outcome(APPLIED, found, now), checked=now)
            else:
                entry = replace(entry, error="")
            journal = journal.put(play.name, entry)
        return self._write(journal)

    # -- one play ------------------------------------------------------------------------------------------------------

    def _run(self, play: Play, journal: Journal) -> Journal:
        old = journal.entries.get(play.name) or Entry(RUNNING, play.digest)
        again = old.open and old.digest == play.digest
        made = old.reboots if again else ()
        asked = tuple(one for one in made if one.rpartition("@")[2] != self.boot_id)
        begun = replace(old, phase=RUNNING, digest=play.digest, reboots=asked, error="")
        passed = tuple(one.rpartition("@")[0] for one in asked)
        at = old.at if again and old.phase == RUNNING else self.player.now()
        begun = replace(begun, at=at, began=at, ended=None, failed=None, parts=_parts(old, again, bool(asked)))
        # What an attempt in this boot changed, or may have changed, still needs its reboot, whatever comes after it.
        wants, unsure = (boot if boot == self.boot_id else "" for boot in (old.wants or old.boot, old.unsure))
        begun = replace(begun, wants=wants, unsure=unsure)
        journal = self._write(journal.put(play.name, replace(begun, unsure=self.boot_id)))
        found, now = self._play(play, check=False, reboots=passed), self.player.now()
        if play.disruption != NONE and _needs_reboot(found, unsure=bool(begun.unsure)):
            begun = replace(begun, wants=self.boot_id)
        if again:  # of this run, whose earlier attempts changed the node too
            places = {task.place for task in found.changed}
            earlier = tuple(task for task in old.tasks if task.place not in places)
            found = replace(found, changed=(*earlier, *found.changed))
        if found.until is not None:
            journal = self._write(journal.put(play.name, replace(begun, until=found.until)))
            raise StillRuns(f"AnsibleConfig {play.name} runs on {self.node}", journal, found.until)
        if found.reboot is not None:
            done = replace(
                begun.with_outcome(REBOOTING, found, now),
                ended=now,
                reboots=(*begun.reboots, f"{found.reboot.place}@{self.boot_id}"),
                failed=None,
            )
            journal = self._write(journal.put(play.name, done))
            raise WantsReboot(f"AnsibleConfig {play.name}: {found.reboot.text} reboots the node", journal)
        if not found.ok:
            journal = self._write(journal.put(play.name, replace(begun.with_outcome(FAILED, found, now), ended=now)))
            raise PlayFailed(failure_text(play.name, self.node, found), journal)
        return self._verified(play, journal, begun, found, passed)

    def _verified(self, play: Play, journal: Journal, begun: Entry, first: Outcome, passed: tuple[str, ...]) -> Journal:
        """Check that a second run would change nothing, and note that the play is applied."""
        second, now = self._play(play, check=True, reboots=passed), self.player.now()
        begun = replace(begun, ended=now)
        if second.changed and second.failed is None and not second.error:
            journal = self._write(journal.put(play.name, begun.with_outcome(NOT_IDEMPOTENT, second, now)))
            text = f"AnsibleConfig {play.name}: NotIdempotent: a second run would change {names_of(second.changed)}"
            raise PlayFailed(f"{text}; give the task creates, changed_when or a module that compares", journal)
        done = begun.with_outcome(APPLIED, first, now)
        boot = begun.wants or boot_of(play, self.boot_id)
        entry = replace(done, applied=play.digest, checked=now, boot=boot, reboots=(), plan="", wants="", unsure="")
        return self._write(journal.put(play.name, entry))

    def _play(self, play: Play, *, check: bool, reboots: tuple[str, ...] = ()) -> Outcome:
        try:
            packed = content_of(self.config, play)
        except ValueError as error:
            return Outcome(error=str(error))
        variables, vault = self.secrets(play)
        return self.player.play(self.node, Order(play, packed, check, reboots, variables, vault))

    def _plays(self, names: Collection[str]) -> list[Play]:
        return [play for play in plays_of(self.config) if play.name in names]

    def _read(self) -> Journal:
        return _journal_on(self.host)

    def _write(self, journal: Journal) -> Journal:
        content = journal_file(journal)
        if not self.host.exists(JOURNAL) or self.host.read(JOURNAL) != content:
            self.host.write(JOURNAL, content, mode=0o600)
        return journal


def _parts(old: Entry, again: bool, rebooted: bool) -> tuple[tuple[datetime, datetime], ...]:
    """Return the parts of a run that is to go on after a reboot; none for another run."""
    if not again or not rebooted:
        return ()
    if old.phase != REBOOTING or old.began is None or old.ended is None:
        return old.parts
    return (*old.parts, (old.began, old.ended))[-MAX_PARTS:]


def _needs_reboot(found: Outcome, *, unsure: bool) -> bool:
    """Return whether a reboot must follow. ``unsure``: an earlier attempt may have made what this one found."""
    return any(REBOOT_TAG in task.tags for task in found.changed) or (unsure and found.may_reboot)


def forget_plays(host: Host, config: Obj) -> None:
    """Forget plays that the config does not ask for any more, unless a run of theirs did not end."""
    if not host.exists(JOURNAL):
        return
    journal = _journal_on(host)
    kept = journal.pruned(play.name for play in plays_of(config))
    if kept != journal:
        host.write(JOURNAL, journal_file(kept), mode=0o600)


def _journal_on(host: Host) -> Journal:
    try:
        return read_journal(host.read(JOURNAL) if host.exists(JOURNAL) else None)
    except HostError as error:
        raise UpdateError(str(error)) from error
