"""Playbooks as sources of Applications: :class:`PlaybookRenderer`.

An Application annotated ``syncline.dev/source: ansible`` stands for the MachineConfig that the ``playbook.yml`` of its
folder leaves, where ``ansible.enable`` of ``argocd-cm`` is ``"true"``. ``capture.yaml`` beside it may name pool,
config, installed packages and variables. The playbook sees its repository, no network and no password.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from syncline.base.places import Limits
from syncline.base.scratch import scratch, work_folder
from syncline.kube.text.names import dns_subdomain
from syncline.kube.yaml import loading as yaml
from syncline.sources.ansible.capturing import Wish, capture
from syncline.sources.ansible.launching import Play
from syncline.sources.ansible.rooting import RootLimits, RootRunner, Wanted
from syncline.sources.directory import Manifests, read_output
from syncline.sources.errors import Problem, SourceError
from syncline.sources.remote.turns import Turns, away
from syncline.sources.rendering.source_type import SourceType
from syncline.sources.tree import EXECUTABLE_MODE, Entry, Tree, with_modes
from syncline.sources.workers.scratch import write_below

PLAYBOOK, SETTINGS = "playbook.yml", "capture.yaml"
MAX_SETTINGS = 64 * 1024
RENDER_LIMITS = RootLimits(wall_s=300.0, cpu_s=120, memory_bytes=1024**3, tmpfs_bytes=256 * 1024**2, processes=128)


class CaptureSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``capture.yaml``."""

    pool: str = "worker"
    name: str = ""
    firstBoot: bool = False
    installed: tuple[str, ...] = ()
    variables: dict[str, Any] = {}


class PlaybookSource(Protocol):
    """The property of a source that captures read."""

    @property
    def ansible(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class PlaybookRenderer:
    """Captures the playbook of a folder."""

    runner: RootRunner
    source_name: str = "ansible"
    """The value of the annotation."""
    _turns: Turns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_turns", Turns("a capture", Limits(2, {"project": 1})))

    @property
    def source_type(self) -> SourceType:
        return SourceType.PLUGIN

    def reads(self, tree: Tree, spec: PlaybookSource) -> tuple[Entry, ...]:
        """Return the whole repository with its modes: a playbook may read any file. Raises :class:`SourceError`."""
        if not spec.ansible:
            message = "annotation syncline.dev/source: ansible: playbooks are not captured here"
            fix = 'the administrator allows it by ansible.enable: "true" in argocd-cm'
            raise SourceError(Problem.REFUSED, message, fix=fix)
        return with_modes(tree.whole().entries)

    def options(self, spec: PlaybookSource) -> object:
        return self.source_name

    def render(self, tree: Tree, spec: PlaybookSource, entries: tuple[Entry, ...]) -> Manifests:
        """Raises :class:`SourceError` with the first refusals if something cannot be captured."""
        settings = _settings(tree)
        play = Play("", inventory=f"[{settings.pool}]\nlocalhost\n", variables=settings.variables)
        with away(), self._turns.turn(), scratch(work_folder()) as folder:
            whole = tree.whole()
            _check(tree, whole.entries, self.runner.limits)
            contents = whole.read([each for each in whole.entries if each.is_file])
            runs = [each.path for each in entries if each.mode == EXECUTABLE_MODE]
            write_below(folder, ((path, content) for path, content in contents.items()), executable=runs)
            wanted = Wanted(folder, f"{tree.path}/{PLAYBOOK}".lstrip("/"), play, installed=settings.installed)
            found = capture(self.runner, wanted, Wish(settings.pool, name=settings.name, first_boot=settings.firstBoot))
        if found.refusals:
            problem = Problem.EXHAUSTED if found.run.report.ended else Problem.INVALID
            more = f" (and {len(found.refusals) - 3} more)" if len(found.refusals) > 3 else ""
            raise SourceError(problem, "; ".join(map(str, found.refusals[:3])) + more, subject=PLAYBOOK)
        return Manifests(tuple(read_output(tree.path or ".", found.text, 1)), tuple(found.notes))


def _check(tree: Tree, entries: tuple[Entry, ...], limits: RootLimits) -> None:
    if PLAYBOOK not in {each.path for each in tree.entries}:
        message = f"{tree.path or '.'}: annotation syncline.dev/source: ansible, and no {PLAYBOOK} in the folder"
        raise SourceError(Problem.PATH_MISSING, message, fix=f"name the playbook {PLAYBOOK}")
    if len(entries) > limits.files or sum(each.size for each in entries) > limits.play_bytes:
        message = f"a captured playbook's repository has at most {limits.files} files and {limits.play_bytes} bytes"
        raise SourceError(Problem.TOO_LARGE, message)


def _settings(tree: Tree) -> CaptureSettings:
    entry = next((each for each in tree.entries if each.path == SETTINGS and each.is_file), None)
    if entry is None:
        return CaptureSettings()
    if entry.size > MAX_SETTINGS:
        raise SourceError(Problem.TOO_LARGE, f"{SETTINGS} has more than {MAX_SETTINGS} bytes", subject=SETTINGS)
    try:
        value = yaml.load(tree.read([entry])[SETTINGS], file=SETTINGS)
        found = msgspec.convert(value or {}, CaptureSettings)
    except (yaml.YamlError, msgspec.ValidationError) as error:
        known = ", ".join(each.name for each in msgspec.structs.fields(CaptureSettings))
        raise SourceError(Problem.INVALID, f"{SETTINGS}: {error}", subject=SETTINGS, fix=f"it knows {known}") from None
    for each, text in (("pool", found.pool), ("name", found.name or "x")):
        if problems := dns_subdomain(text):
            raise SourceError(Problem.INVALID, f"{SETTINGS}: {each} {text!r}: {problems[0]}", subject=SETTINGS)
    return found
