"""The program of a container that runs as a process: its command, or its image's if installed.

Images are not pulled. A program in an image's data (:mod:`syncline.cluster.machines.scripted.images`) is the machine's
program of that name, shown at its path in the image.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syncline.cluster.machines.scripted.images import ImageCache
from syncline.cluster.machines.scripted.stages import ANNOTATION_PREFIX, completes
from syncline.kube.objects import Obj, annotations_of

RUN = f"{ANNOTATION_PREFIX}run"
Find = Callable[[str], str]
"""Returns the path of a local program that containers may see, or ""."""


@dataclass(frozen=True, slots=True)
class Program:
    """``words``: the command, unexpanded. ``shown``: paths in the image, with the machine's path for each."""

    words: tuple[str, ...]
    shown: tuple[tuple[str, str], ...] = ()

    def on_machine(self, word: str) -> str:
        """Return a program's path on the machine, for use without mounts."""
        return dict(self.shown).get(word, word)


def program_of(container: Obj, images: ImageCache, find: Find) -> Program | None:
    """Return the command, or the image's entrypoint if its program is installed; None if the program is unknown."""
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
    """DECISION: containers with a known program, in pods that do not always restart or have ``run: process``."""
    if not completes(pod, container) and annotations_of(pod).get(RUN) != "process":
        return False
    return program_of(container, images, find) is not None


def simulated_note(container: Obj) -> str:
    """Return the log text of a simulated container: why it is no process, and how to make it one."""
    if not container.get("command"):
        return "[syncline] simulated: it has no command, and images are not pulled, so nothing runs here\n"
    return f"[syncline] simulated: its pod is always restarted; the annotation {RUN}: process runs its command\n"
