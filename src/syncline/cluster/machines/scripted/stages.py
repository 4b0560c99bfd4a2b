"""Stages of a simulated container, as data; annotations of its pod select other outcomes.

The staged runtime reads them. An annotation applies to every container of the pod, or with ``.NAME`` appended to one.
Each begins with ``syncline.dev/``; seconds count from the container's start where nothing else is said:

- ``pull-seconds``: duration of the image pull; ``start-seconds``: from the end of the pull to the start.
- ``image-pull``: ``fail`` if its image is unavailable; a list such as ``fail,fail,ok`` counts by try.
- ``startup-seconds``, ``ready-seconds``: until its startup or readiness probe succeeds (without a readiness probe:
  until it is ready); ``startup-seconds`` may be ``never``. ``ready``: ``never`` if it does not become ready.
- ``unready-seconds``, ``live-seconds``: until its readiness or liveness probe fails.
- ``post-start``: ``fail`` if its postStart hook fails.
- ``run-seconds``: how long it runs, or ``forever``; ``end-reason``: such as ``OOMKilled`` (which exits with 137).
- ``exit-code``: a list such as ``1,1,0`` counts by attempt, the last one repeats; ``end-message``: termination message.
- ``stop-seconds``: how long it takes to stop after its preStop hook.

Probes have their own delays, periods and thresholds (:mod:`syncline.cluster.machines.probes`); a preStop hook takes as
long as it sleeps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from syncline.cluster.machines.probes import Behaviour, Course, course_of
from syncline.cluster.machines.scripted.images import Default, ImageCache, known_images
from syncline.kube.objects import Obj, annotations_of, dig

T = TypeVar("T")
ANNOTATION_PREFIX = "syncline.dev/"
OOM_EXIT_CODE = 137
MAX_SECONDS = 10 * 365 * 86400.0
"""Longest stage: ten years, so that ``sleep infinity`` has an end that is never reached."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Default durations in seconds: a nearby registry, a fast container."""

    pull_s: float = 1.0
    start_s: float = 0.5
    run_s: float = 1.0
    """Run time of a container that completes, if unspecified."""
    stop_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Stage:
    """``run_s`` None: it does not end. ``reason`` and ``message`` are those of its end."""

    pull_s: float
    start_s: float
    course: Course
    run_s: float | None
    exit_code: int
    stop_s: float
    pull_error: str = ""
    reason: str = ""
    message: str = ""


def stage_of(
    pod: Obj, container: Obj, attempt: int, timing: Timing, pulls: int = 0, images: ImageCache | None = None
) -> Stage:
    """Return the stage of an attempt after this many image pulls. The pod's annotations take precedence over the
    image's data."""
    images = images or known_images(())
    image = str(container.get("image", ""))
    said = _Annotations(annotations_of(pod), str(container.get("name")))
    failing = _by_count([word.strip() for word in said.text("image-pull").split(",")], pulls) == "fail"
    reason = said.text("end-reason")
    refused = images.pull_error(image) if not said.text("image-pull") else ""
    default = images.default(image) if not container.get("command") else None
    return Stage(
        pull_s=said.seconds("pull-seconds", timing.pull_s),
        start_s=said.seconds("start-seconds", timing.start_s),
        course=course_of(container, _behaviour(said)),
        run_s=_run_seconds(pod, container, said, timing, default),
        exit_code=_exit_code(said.text("exit-code"), attempt, reason, default),
        stop_s=pre_stop_s(container) + said.seconds("stop-seconds", timing.stop_s),
        pull_error=pull_error(image) if failing else refused,
        reason=reason,
        message=said.text("end-message"),
    )


def _behaviour(said: _Annotations) -> Behaviour:
    return Behaviour(
        startup_s=None if said.text("startup-seconds") == "never" else said.seconds("startup-seconds", 0.0),
        ready_s=None if said.text("ready") == "never" else said.seconds("ready-seconds", 0.0),
        unready_s=said.instant("unready-seconds"),
        live_s=said.instant("live-seconds"),
        post_start_fails=said.text("post-start") == "fail",
    )


def pre_stop_s(container: Obj) -> float:
    """Return the duration of its preStop hook, the seconds that it sleeps."""
    hook = dig(container, "lifecycle", "preStop", default={})
    asleep = dig(hook, "sleep", "seconds", default=None)
    if asleep is not None:
        return float(asleep)
    return sleep_seconds([str(word) for word in dig(hook, "exec", "command", default=[])]) or 0.0


def pull_error(image: str) -> str:
    """Return containerd's error for a missing image."""
    return (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
        f"{image}: not found (asked for by {ANNOTATION_PREFIX}image-pull)"
    )


def completes(pod: Obj, container: Obj) -> bool:
    """Return whether it should end: init containers, and those of pods that do not always restart."""
    if any(each.get("name") == container.get("name") for each in dig(pod, "spec", "initContainers", default=[])):
        return not is_sidecar(container)
    return bool(dig(pod, "spec", "restartPolicy", default="Always") != "Always")


def is_sidecar(container: Obj) -> bool:
    """Return True for an init container with restartPolicy Always."""
    return container.get("restartPolicy") == "Always"


def _run_seconds(pod: Obj, container: Obj, said: _Annotations, timing: Timing, default: Default | None) -> float | None:
    text = said.text("run-seconds")
    if text == "forever":
        return None
    if text:
        return said.seconds("run-seconds", timing.run_s)
    slept = sleep_seconds([*container.get("command", ()), *container.get("args", ())])
    stays = default.stays(container) if default is not None and slept is None else None
    if stays is not None:
        return None if stays else timing.run_s
    if not completes(pod, container):
        return None
    return timing.run_s if slept is None else slept


def _exit_code(text: str, attempt: int, reason: str, default: Default | None) -> int:
    codes = [int(part) for part in re.findall(r"\d+", text)]
    if not codes:
        return OOM_EXIT_CODE if reason == "OOMKilled" else default.exit_code if default is not None else 0
    return _by_count(codes, attempt) % 256


def _by_count(values: list[T], count: int) -> T:
    """Return the value at ``at``; the last one repeats."""
    return values[min(count, len(values) - 1)]


_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"(?:^|[;&|\s])sleep\s+((?:(?:\d+(?:\.\d+)?[smhd]?|infinity)(?=[\s;&|)]|$)\s*)+)")


def sleep_seconds(words: list[str]) -> float | None:
    """Return the seconds of ``sleep`` in a command line or a shell's text; None without ``sleep``."""
    if not words:
        return None
    found = _SLEEP.findall(" ".join(words))
    return min(sum(duration_s(word) for group in found for word in group.split()), MAX_SECONDS) if found else None


def duration_s(word: str) -> float:
    """Parse an argument of ``sleep`` as coreutils do; raise ValueError."""
    if word in ("infinity", "inf"):
        return MAX_SECONDS
    unit = word[-1:] if word[-1:] in "smhd" else ""
    return min(float(word.removesuffix(unit)) * _UNITS[unit], MAX_SECONDS)


class _Annotations:
    """A pod's annotations for one of its containers."""

    def __init__(self, annotations: dict[str, str], container: str) -> None:
        self._annotations = annotations
        self._container = container

    def text(self, name: str) -> str:
        general = self._annotations.get(ANNOTATION_PREFIX + name, "")
        return self._annotations.get(f"{ANNOTATION_PREFIX}{name}.{self._container}", general)

    def seconds(self, name: str, default: float) -> float:
        """Return a number; the default if it is missing or malformed."""
        try:
            value = duration_s(self.text(name) or "-")
        except ValueError:
            return default
        return value if value >= 0 else default

    def instant(self, name: str) -> float | None:
        """Return seconds from start; None if unspecified."""
        value = self.seconds(name, -1.0)
        return value if value >= 0 else None
