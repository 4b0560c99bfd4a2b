"""``syncline pattern plan``: the waves of a cluster group and what holds each of them, without a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from syncline.apply.annotations import HookType
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.pattern.values import rendered, values_options
from syncline.gitops.gates.checks import CSV_SUCCEEDED
from syncline.gitops.gates.placing import GATE, SUBSCRIPTION, WAIT
from syncline.gitops.gates.sequence import SEQUENCE_JOB, SUFFIX, awaited_by, is_default, is_job
from syncline.gitops.sync.conditions import WAIT_FOR
from syncline.gitops.sync.facts import Facts
from syncline.kube.objects import Obj

MAX_NAMED: Final = 4
"""Objects of a wave that are named one by one; of kinds with more the number is given."""
ORDER: Final = (HookType.PRE_SYNC, HookType.SYNC, HookType.POST_SYNC, HookType.SYNC_FAIL)


@click.command("plan")
@values_options
@click.option("--sequence-job", type=click.Choice([WAIT]), default=None, help="As the annotation of the Application.")
@output_option("json", "yaml")
def plan_group(
    files: tuple[Path, ...],
    given: tuple[str, ...],
    texts: tuple[str, ...],
    sequence_job: str | None,
    output: str | None,
) -> int:
    """Print the waves of a cluster group in the order of a sync, and what each of them is held by.

    \b
    Example:  syncline pattern plan -f values-global.yaml -f values-hub.yaml
    """
    objects = rendered(files, given, texts)
    waves = waves_of(objects, asked=sequence_job or "")
    if not waves:
        raise CommandFailed("the values give no objects")
    if output:
        print_documents(waves, output)
        return 0
    rows = [
        (one["phase"], str(one["wave"]), text, hold)
        for one in waves
        for text, hold in _lines(one["objects"], [*one["before"], *one["after"]])
    ]
    print(table(("PHASE", "WAVE", "OBJECTS", "HELD BY"), _without_repetition(rows)).replace("<none>", "      "))
    return 0


def waves_of(objects: Iterable[Obj], *, asked: str) -> list[dict[str, Any]]:
    """Return the waves: phase, number, ``objects`` as texts, what they wait for (``before``), and what holds the next
    ones (``after``). ``asked``: :data:`SEQUENCE_JOB` of the Application."""
    found: dict[tuple[int, int], list[Facts]] = {}
    every = [Facts.of(one) for one in objects]
    for one in every:
        for kind in one.hook_types if one.is_hook else (HookType.SYNC,):
            if kind in ORDER:
                found.setdefault((ORDER.index(kind), one.wave), []).append(one)
    subscriptions = [one for one in every if one.gvk.group_kind == SUBSCRIPTION]
    last = max(found, default=(0, 0))
    return [
        {
            "phase": str(ORDER[phase]),
            "wave": wave,
            "objects": _named(one for one in here if not _is_wait(one, subscriptions, asked)),
            "before": [_before(one) for one in here if WAIT_FOR in one.annotations],
            "after": [
                text
                for one in here
                if ((phase, wave) != last or one.is_hook) and (text := _held_by(one, subscriptions, asked))
            ],
        }
        for (phase, wave), here in sorted(found.items(), key=lambda entry: entry[0])
    ]


def _before(one: Facts) -> str:
    return f"{one.ref.name} first waits for {one.annotations[WAIT_FOR]}"


def _is_wait(one: Facts, subscriptions: Sequence[Facts], asked: str) -> bool:
    mine = (each for each in subscriptions if f"{each.ref.name}{SUFFIX}" == one.ref.name)
    wanted = WAIT in (asked, *(each.annotations.get(SEQUENCE_JOB) for each in mine))
    return wanted and is_job(one.obj) and one.is_hook and is_default(one.obj)


def _held_by(one: Facts, subscriptions: Sequence[Facts], asked: str) -> str:
    if one.gvk.group_kind == SUBSCRIPTION:
        gate = one.annotations.get(GATE, CSV_SUCCEEDED)
        return f"gate {gate}: operator {one.ref.name} works" if gate == CSV_SUCCEEDED else ""
    if not one.is_hook:
        return ""
    awaited = awaited_by(one.obj) if is_job(one.obj) else None
    if awaited is not None and _is_wait(one, subscriptions, asked):
        return f"a wait without a pod: {awaited} is there, at most an hour ({one.ref.name})"
    text = f"{one.gvk.kind} {one.ref.name} ends"
    return f"{text}: it looks for {awaited} in a loop without an end" if awaited is not None else text


def _named(here: Iterable[Facts]) -> list[str]:
    listed = [(one.gvk.kind, one.ref.name) for one in here]
    counts = Counter(kind for kind, _ in listed)
    made: dict[str, None] = {}
    for kind, name in listed:
        made[f"{kind} {name}" if counts[kind] <= MAX_NAMED else f"{counts[kind]} of {kind}"] = None
    return list(made)


def _lines(objects: Sequence[str], holds: Sequence[str]) -> list[tuple[str, str]]:
    count = max(len(objects), len(holds), 1)
    padded = [[*texts, *[""] * (count - len(texts))] for texts in (objects, holds)]
    return list(zip(*padded, strict=True))


def _without_repetition(rows: Sequence[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    made: list[tuple[str, str, str, str]] = []
    before = ("", "")
    for phase, wave, text, hold in rows:
        same = (phase, wave) == before
        made.append((" " if same else phase, " " if same else wave, text or " ", hold or " "))
        before = (phase, wave)
    return made
