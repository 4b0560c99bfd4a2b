"""Rehearses a commit, the range of its end, and its cures: :func:`rehearse` is what ``syncline rehearse`` calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from syncline.rehearsal.answer.answer import Answer, Cure, Explored, Outcome
from syncline.rehearsal.answer.judging import answer_of
from syncline.rehearsal.answer.laws import BUILT_IN, RecordLaw
from syncline.rehearsal.answer.ownlaws import own_laws
from syncline.rehearsal.cures.editing import diff_of, edited
from syncline.rehearsal.cures.proposing import Proposal, Situation, proposals
from syncline.rehearsal.exploring import Bounds, explored
from syncline.rehearsal.given.durations import fixed
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import GivenWorld, parse_world
from syncline.rehearsal.playing import Asked, play
from syncline.rehearsal.record import Record
from syncline.rehearsal.scenario import ScenarioError


@dataclass(frozen=True)
class Settings:
    """``cures``: propose and prove edits; ``ranged``: rehearse with the least and the longest durations, too."""

    without: tuple[str, ...] = ()
    """Names of laws that are switched off."""
    cures: bool = True
    ranged: bool = True
    explore: Bounds | None = None
    """Rehearse under schedules of faults, too; None: do not."""
    more: tuple[RecordLaw, ...] = ()
    """Laws beside those of the repository."""
    report: Callable[[str], None] = lambda _text: None
    """Called with a sentence before each rehearsal, for people who wait."""


@dataclass
class Rehearsal:
    """Rehearsals of one question, in folders of their own below ``scratch``."""

    settings: Settings
    scratch: Path
    played: int = 0

    def answer(self, asked: Asked) -> Answer:
        """Return the whole answer. Raises ScenarioError."""
        # What is written wrongly is refused before anything is rehearsed.
        laws_of(asked.files, self.settings.without, self.settings.more)
        self.settings.report(f"rehearsing {asked.name}")
        found, record = self._one(asked)
        if self.settings.explore is not None and found.outcome is Outcome.SAFE:
            self.settings.report("rehearsing with faults")
            found = _worst(found, explored(asked, found.outcome, self._one, self.settings.explore))
        if found.outcome is Outcome.SAFE and self.settings.ranged:
            found = replace(self._ranged(asked, found), explored=found.explored)
        if found.outcome is not Outcome.SAFE and self.settings.cures and found.explored is None:
            found = self._cured(asked, found, record)
        return found

    def _one(self, asked: Asked) -> tuple[Answer, Record]:
        self.played += 1
        record = play(asked, self.scratch / f"rehearsal-{self.played}-{os.getpid()}")
        found = answer_of(
            record,
            name=asked.name,
            seed=asked.seed,
            durations=tuple(asked.world.durations.values()),
            assumed=(*asked.world.assumed, *asked.applications.assumed),
            laws=laws_of(asked.files, self.settings.without, self.settings.more),
        )
        faults = [str(each) for each in (asked.schedule, *asked.mishaps) if each is not None]
        if faults:
            found = replace(found, schedule="; ".join(faults))
        return found, record

    def _ranged(self, asked: Asked, found: Answer) -> Answer:
        """Return the answer with its range; if it is not safe at one end of the range, that is the answer."""
        ends: list[float | None] = []
        for name in ("least", "longest"):
            self.settings.report(f"rehearsing with the {name} durations")
            durations = {
                key: fixed(each, each.least_s if name == "least" else each.most_s)
                for key, each in asked.world.durations.items()
            }
            other, _ = self._one(replace(asked, world=replace(asked.world, durations=durations)))
            if other.outcome is not Outcome.SAFE:
                said = f"with the {name} durations: {other.headline}"
                return replace(other, headline=said, durations=found.durations)
            ends.append(other.done_s)
        return replace(found, quickest_s=ends[0], slowest_s=ends[1])

    def _cured(self, asked: Asked, found: Answer, record: Record) -> Answer:
        cures: list[Cure] = []
        for proposal in proposals(Situation(asked, record, found)):
            self.settings.report(f"rehearsing a cure: {proposal.text}")
            cure = self._proved(asked, proposal)
            if cure is not None:
                cures.append(cure)
        cures.sort(key=lambda cure: (not cure.proved, len(cure.outages)))
        best = next((cure for cure in cures if cure.proved), None)
        advice = f"{best.text} ({best.file})" if best is not None else found.advice
        return replace(found, cures=tuple(cures), advice=advice)

    def _proved(self, asked: Asked, proposal: Proposal) -> Cure | None:
        """Rehearse the edited repository or world; None if the edit cannot be made or changes nothing."""
        try:
            changed, diff = applied(asked, proposal)
            if not diff:
                return None
            found, _ = self._one(changed)
        except (ScenarioError, ValueError):
            return None
        file = ", ".join(dict.fromkeys(edit.file for edit in proposal.edits))
        return Cure(proposal.text, file, diff, found.outcome, found.headline, found.done_s, found.outages)


def _worst(found: Answer, explored: Explored) -> Answer:
    """Return the answer with what an exploration found; the first schedule that breaks something is the verdict."""
    if not explored.broken:
        return replace(found, explored=explored)
    first = explored.broken[0]
    said = f"with the faults `{first.schedule}`: {first.headline}"
    return replace(found, outcome=first.outcome, headline=said, explored=explored)


def rehearse(asked: Asked, scratch: Path, settings: Settings) -> Answer:
    """Return what would happen. Equal questions return equal answers. Raises ScenarioError."""
    return Rehearsal(settings, scratch).answer(asked)


def applied(asked: Asked, proposal: Proposal) -> tuple[Asked, str]:
    """Return the question with the proposal's edits, and their diff. Raises ValueError, ScenarioError."""
    files = asked.world.objects.changed({asked.world.name: asked.world.text}) if proposal.world else asked.files
    before = files
    for edit in proposal.edits:
        files = files.changed({edit.file: edited(files.text(edit.file), edit)})
    names = dict.fromkeys(edit.file for edit in proposal.edits)
    diff = "".join(diff_of(name, before.text(name), files.text(name)) for name in names)
    if not proposal.world:
        return replace(asked, files=files), diff
    return replace(asked, world=_world(asked.world, files)), diff


def _world(world: GivenWorld, files: Files) -> GivenWorld:
    objects = Files({path: data for path, data in files.content.items() if path != world.name})
    place = (world.folder or Path()) / world.name
    found = parse_world(files.text(world.name), place, objects)
    return replace(world, text=found.text, groups=found.groups, objects=objects)


def laws_of(files: Files, without: Sequence[str], more: Sequence[RecordLaw] = ()) -> tuple[RecordLaw, ...]:
    """Return the built-in laws, those of the repository and ``more``, without those of these names. Raises
    ScenarioError (usage) for an unknown one, and for two laws of one name."""
    laws = (*BUILT_IN, *own_laws(files), *more)
    known = [law.name for law in laws]
    for number, name in enumerate(known):
        if name in known[:number]:
            raise ScenarioError(f"law {name}: found twice; allowed: a name that no other law has", usage=True)
    for name in without:
        if name not in known:
            raise ScenarioError(f"--without-law {name}: there is no such law; allowed: {', '.join(known)}", usage=True)
    return tuple(law for law in laws if law.name not in without)
