"""Captures a playbook: runs it twice in throwaway roots and says what it means for a pool: :func:`capture`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from syncline.kube.objects import Obj
from syncline.sources.ansible.judging import Captured, Refusal, judge
from syncline.sources.ansible.observing import Run
from syncline.sources.ansible.producing import Output, is_empty, produce
from syncline.sources.ansible.reporting import TaskResult
from syncline.sources.ansible.rooting import RootRunner, Wanted


@dataclass(frozen=True, slots=True)
class Wish:
    """For which pool, in which form."""

    pool: str
    output: Output = Output.MACHINE_CONFIG
    name: str = ""
    first_boot: bool = False

    @property
    def config_name(self) -> str:
        return self.name or f"99-{self.pool}-ansible"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``text`` and ``objects`` are empty if something is refused."""

    text: str
    objects: tuple[Obj, ...]
    captured: Captured
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]
    run: Run


def capture(runner: RootRunner, wanted: Wanted, wish: Wish) -> Outcome:
    """Capture a playbook. Raises :class:`~syncline.sources.errors.SourceError` if it cannot be run at all."""
    first = runner.run(wanted)
    second = runner.run(wanted) if first.report.succeeded else None
    judged = judge(first, second)
    produced = produce(judged.captured, wish.output, pool=wish.pool, name=wish.config_name, first_boot=wish.first_boot)
    unfit = [replace(each, task=_origin(first, each.subject)) for each in produced.refusals]
    refusals = (*judged.refusals, *unfit)
    notes = (*judged.notes, *(_edited(first, judged.captured) if wanted.tree is None else ()))
    if is_empty(judged.captured) and not refusals:
        notes = (*notes, "the playbook changes nothing on a machine of this tree")
    if refusals:
        return Outcome("", (), judged.captured, refusals, notes, first)
    return Outcome(produced.text, produced.objects, judged.captured, (), notes, first)


_WHOLE = frozenset({"copy", "template", "assemble"})
"""Modules that write whole files, whatever was there."""


def _edited(run: Run, captured: Captured) -> Iterator[str]:
    """A file of the OS of which a task changes lines has here the lines of the minimal tree."""
    paths = {each.path for each in captured.files}
    for each in run.entries:
        task = run.touched.get(each.path)
        whole = task is None or task.module.rpartition(".")[2] in _WHOLE
        if each.path in paths and each.was.kind == "file" and task and not whole:
            yield f"{each.path} is edited ({task.where}) as the minimal tree has it; --tree gives the pool's own"


def _origin(run: Run, subject: str) -> TaskResult | None:
    """The task that brought an account (its file is the subject), or a package or kernel argument."""
    found = (each.task for each in run.records if subject in (each.get("package"), each.get("add")))
    return run.touched.get(subject) or next(found, None)
