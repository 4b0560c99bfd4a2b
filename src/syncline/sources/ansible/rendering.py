"""Playbooks as sources of Applications: :class:`PlaybookRenderer`.

An Application annotated ``syncline.dev/source: ansible`` stands for the MachineConfig that the ``playbook.yml`` of its
folder leaves, where ``ansible.enable`` of ``argocd-cm`` is ``"true"``. ``capture.yaml`` beside it may name pool,
config, installed packages and variables. The playbook sees its repository, no network and no password.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from syncline.base.places import Limits
from syncline.base.scratch import scratch, work_folder
from syncline.kube.text.names import dns_subdomain
from syncline.kube.yaml import loading as yaml
from syncline.sources.ansible.capturing import Wish, capture
from syncline.sources.ansible.collecting import Fetching, collect
from syncline.sources.ansible.launching import Play
from syncline.sources.ansible.requirements import MAX_BYTES as MAX_REQUIREMENTS_BYTES
from syncline.sources.ansible.requirements import requirements
from syncline.sources.ansible.rooting import PLAY, RootLimits, RootRunner, Wanted
from syncline.sources.directory import Manifests, read_output
from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join
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
    requirements: str = ""


class ProjectFetching(Fetching, Protocol):
    """What may be read elsewhere for one project."""

    @property
    def viewer(self) -> str: ...


class PlaybookSource(Protocol):
    """The properties of a source that captures read."""

    @property
    def ansible(self) -> bool: ...

    @property
    def remote(self) -> ProjectFetching | None: ...


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
        whole = tree.whole()
        # What was fetched for one project is not kept for another; the pins are in the files.
        place = _place_of_requirements(tree, _settings(tree)) if spec.remote is not None else ""
        remote = place and any(each.is_remote for each in requirements(_read_whole(whole, place), place))
        viewed = (Entry("//requirements", "", spec.remote.viewer, 0),) if remote and spec.remote is not None else ()
        return *viewed, *with_modes(whole.entries)

    def options(self, spec: PlaybookSource) -> object:
        return self.source_name

    def render(self, tree: Tree, spec: PlaybookSource, entries: tuple[Entry, ...]) -> Manifests:
        """Raises :class:`SourceError` with the first refusals if something cannot be captured."""
        settings = _settings(tree)
        play = Play("", inventory=f"[{settings.pool}]\nlocalhost\n", variables=settings.variables)
        with away(), self._turns.turn(), scratch(work_folder()) as folder:
            whole = tree.whole()
            _check(tree, whole.entries, self.runner.limits)
            project, pinned = folder / "project", folder / "pinned"
            project.mkdir(mode=0o755)
            pinned.mkdir(mode=0o755)
            _write(whole, project)
            if place := _place_of_requirements(tree, settings):
                named = requirements(_read_whole(whole, place), place)
                found = collect(named, pinned, project, PLAY, spec.remote)
                play = replace(play, collections=found.collections, roles=found.roles)
            wanted = Wanted(project, f"{tree.path}/{PLAYBOOK}".lstrip("/"), play, installed=settings.installed)
            left = capture(self.runner, wanted, Wish(settings.pool, name=settings.name, first_boot=settings.firstBoot))
        if left.refusals:
            problem = Problem.EXHAUSTED if left.run.report.ended else Problem.INVALID
            more = f" (and {len(left.refusals) - 3} more)" if len(left.refusals) > 3 else ""
            raise SourceError(problem, "; ".join(map(str, left.refusals[:3])) + more, subject=PLAYBOOK)
        return Manifests(tuple(read_output(tree.path or ".", left.text, 1)), tuple(left.notes))


def _write(whole: Tree, folder: Path) -> None:
    """Write the files of a repository; its links lead nowhere but within the root in which the play sees them."""
    contents = whole.read([each for each in whole.entries if each.is_file or each.is_symlink])
    links = {each.path: contents.pop(each.path).decode("utf-8", "replace") for each in whole.entries if each.is_symlink}
    runs = [each.path for each in whole.entries if each.mode == EXECUTABLE_MODE]
    write_below(folder, contents.items(), executable=runs, links=links)


def _place_of_requirements(tree: Tree, settings: CaptureSettings) -> str:
    """The file of the repository that names collections and roles, by its path from the root; empty: none does."""
    if not settings.requirements:
        return ""
    place = join(tree.path, settings.requirements)
    if place is None:
        message = f"{SETTINGS}: requirements {settings.requirements!r} leaves the repository"
        raise SourceError(Problem.REFUSED, message, subject=SETTINGS)
    return place


def _read_whole(whole: Tree, path: str) -> bytes:
    entry = next((each for each in whole.entries if each.path == path and each.is_file), None)
    if entry is None or entry.size > MAX_REQUIREMENTS_BYTES:
        most = f"at most {MAX_REQUIREMENTS_BYTES} bytes"
        message = f"{SETTINGS}: requirements {path!r} is no file of the repository with {most}"
        raise SourceError(Problem.INVALID, message, subject=SETTINGS)
    return whole.read([entry])[path]


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
