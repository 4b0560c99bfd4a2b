"""What a container runs where commands are processes: its own command, or its image's, whose programs are installed.

Images are not pulled. What their data (:mod:`syncline.cluster.machines.scripted.images`) names as a program of theirs
is the machine's program of that name, shown at the path that it has in the image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncline.cluster.machines.scripted.images import ImageCache
from syncline.cluster.machines.scripted.stages import ANNOTATION_PREFIX, completes
from syncline.kube.objects import Obj, annotations_of

__all__ = ["RUN", "program_of", "runs_as_process", "simulated_note"]

RUN = f"{ANNOTATION_PREFIX}run"
Find = Callable[[str], str]
"""The path of a program of this machine that containers may see; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Program:
    """``words``: as the container says them, nothing filled in. ``shown``: paths of the image with what the machine
    has for each."""

    words: tuple[str, ...]
    shown: tuple[tuple[str, str], ...] = ()

    def on_machine(self, word: str) -> str:
        """How a program is called where nothing can be shown at another path."""
        return dict(self.shown).get(word, word)


def program_of(container: Obj, images: ImageCache, find: Find) -> Program | None:
    """The command, or the entrypoint of the image where its program is installed. None: what would run is not known."""
    default = images.default(str(container.get("image", "")))
    paths = default.programs if default is not None else ()
    shown = tuple((path, found) for path, name in paths if (found := find(name)))
    given = tuple(map(str, container.get("args") or ()))
    command = tuple(map(str, container.get("command") or ()))
    if command:
        return Program(command + given, shown)
    if default is None or not default.entrypoint or default.entrypoint[0] not in dict(shown):
        return None
    return Program(default.entrypoint + (given or default.cmd), shown)


def runs_as_process(pod: Obj, container: Obj, images: ImageCache, find: Find) -> bool:
    """DECISION: containers whose program is known, of pods that are not always restarted or annotated
    ``run: process``."""
    if not completes(pod, container) and annotations_of(pod).get(RUN) != "process":
        return False
    return program_of(container, images, find) is not None


def simulated_note(container: Obj) -> str:
    """What the log of a container says that is no process, and what would make it one."""
    if not container.get("command"):
        return "[syncline] simulated: it has no command, and images are not pulled, so nothing runs here\n"
    return f"[syncline] simulated: its pod is always restarted; the annotation {RUN}: process runs its command\n"
