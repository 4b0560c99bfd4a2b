"""How a simulated container fares: data, with annotations of the pod to script other outcomes.

Read by the staged runtime. An annotation counts for every container of the pod, or with ``.NAME`` appended for one:

=============================  ============================================================================
``syncline.dev/pull-seconds``    how long its image is pulled
``syncline.dev/image-pull``      ``fail``: its image cannot be had
``syncline.dev/start-seconds``   from pulled to started
``syncline.dev/ready-seconds``   from started to ready
``syncline.dev/ready``           ``never``: it does not become ready
``syncline.dev/run-seconds``     how long it runs; ``forever``
``syncline.dev/exit-code``       how it ends; a list such as ``1,1,0`` counts by attempt, the last one repeats
``syncline.dev/stop-seconds``    how long it takes to stop when asked
=============================  ============================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from syncline.kube.objects import Obj, annotations_of, dig

__all__ = [
    "ANNOTATION_PREFIX",
    "MAX_SECONDS",
    "Stage",
    "Timing",
    "completes",
    "is_sidecar",
    "sleep_seconds",
    "stage_of",
]

ANNOTATION_PREFIX = "syncline.dev/"
MAX_SECONDS = 10 * 365 * 86400.0
"""Longest stage: ten years, so that ``sleep infinity`` has an end that nobody meets."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Usual durations in seconds: an image from a near registry, a container without ado."""

    pull_s: float = 1.0
    start_s: float = 0.5
    run_s: float = 1.0
    """A container that is to end and says nothing about when."""
    stop_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Stage:
    """``run_s`` None: it does not end by itself; ``ready_s`` None: it never becomes ready."""

    pull_s: float
    start_s: float
    ready_s: float | None
    run_s: float | None
    exit_code: int
    stop_s: float
    pull_error: str = ""


def stage_of(pod: Obj, container: Obj, attempt: int, timing: Timing) -> Stage:
    """How this attempt of the container fares."""
    said = _Annotations(annotations_of(pod), str(container.get("name")))
    failing = said.text("image-pull") == "fail"
    return Stage(
        pull_s=said.seconds("pull-seconds", timing.pull_s),
        start_s=said.seconds("start-seconds", timing.start_s),
        ready_s=None if said.text("ready") == "never" else said.seconds("ready-seconds", probe_delay_s(container)),
        run_s=_run_seconds(pod, container, said, timing),
        exit_code=_exit_code(said.text("exit-code"), attempt),
        stop_s=said.seconds("stop-seconds", timing.stop_s),
        pull_error=pull_error(str(container.get("image", ""))) if failing else "",
    )


def pull_error(image: str) -> str:
    """What containerd says of an image that is not there."""
    return (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
        f"{image}: not found (asked for by {ANNOTATION_PREFIX}image-pull)"
    )


def completes(pod: Obj, container: Obj) -> bool:
    """Is it expected to end by itself: init containers, and those of pods that are not always restarted."""
    if any(each.get("name") == container.get("name") for each in dig(pod, "spec", "initContainers", default=[])):
        return not is_sidecar(container)
    return bool(dig(pod, "spec", "restartPolicy", default="Always") != "Always")


def is_sidecar(container: Obj) -> bool:
    """An init container that stays (restartPolicy Always)."""
    return container.get("restartPolicy") == "Always"


def probe_delay_s(container: Obj) -> float:
    """How long probes keep a container from being ready, if every probe succeeds at its first try."""
    delay = 0.0
    for probe in ("startupProbe", "readinessProbe"):
        if container.get(probe):
            delay += float(dig(container, probe, "initialDelaySeconds", default=0))
    return delay


def _run_seconds(pod: Obj, container: Obj, said: _Annotations, timing: Timing) -> float | None:
    text = said.text("run-seconds")
    if text == "forever":
        return None
    if text:
        return said.seconds("run-seconds", timing.run_s)
    if not completes(pod, container):
        return None
    slept = sleep_seconds([*container.get("command", ()), *container.get("args", ())])
    return timing.run_s if slept is None else slept


def _exit_code(text: str, attempt: int) -> int:
    codes = [int(part) for part in re.findall(r"\d+", text)]
    return codes[min(attempt, len(codes) - 1)] % 256 if codes else 0


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"(?:^|[;&|\s])sleep\s+((?:(?:\d+(?:\.\d+)?[smhd]?|infinity)(?=[\s;&|)]|$)\s*)+)")


def sleep_seconds(words: list[str]) -> float | None:
    """How long a command line sleeps: ``sleep 5``, or a shell's text in which it occurs. None: it does not."""
    if not words:
        return None
    found = _SLEEP.findall(" ".join(words))
    return min(sum(duration_s(word) for group in found for word in group.split()), MAX_SECONDS) if found else None


def duration_s(word: str) -> float:
    """One argument of ``sleep``, as coreutils read it; raises ValueError."""
    if word in ("infinity", "inf"):
        return MAX_SECONDS
    unit = word[-1:] if word[-1:] in "smhd" else ""
    return min(float(word.removesuffix(unit)) * _UNITS[unit], MAX_SECONDS)


class _Annotations:
    """What a pod says about one of its containers."""

    def __init__(self, annotations: dict[str, str], container: str) -> None:
        self._annotations = annotations
        self._container = container

    def text(self, name: str) -> str:
        general = self._annotations.get(ANNOTATION_PREFIX + name, "")
        return self._annotations.get(f"{ANNOTATION_PREFIX}{name}.{self._container}", general)

    def seconds(self, name: str, default: float) -> float:
        """A number that cannot be read counts as not said."""
        try:
            value = duration_s(self.text(name) or "-")
        except ValueError:
            return default
        return value if value >= 0 else default
