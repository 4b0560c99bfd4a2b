"""How a simulated container fares: data, with annotations of the pod to script other outcomes.

Read by the staged runtime. An annotation counts for every container of the pod, or with ``.NAME`` appended for one:

============================= ============================================================================
``syncline.dev/pull-seconds`` how long its image is pulled ``syncline.dev/image-pull`` ``fail``: its image is
unavailable; a list such as ``fail,fail,ok`` counts by try ``syncline.dev/start-seconds`` from pulled to started
``syncline.dev/startup-seconds`` from start until it answers its startup probe; ``never`` ``syncline.dev/ready-seconds``
from start until it answers its readiness probe (is ready, where it has none) ``syncline.dev/ready`` ``never``: it does
not become ready ``syncline.dev/unready-seconds`` from start until it no longer answers its readiness probe
``syncline.dev/live-seconds`` from start until it no longer answers its liveness probe ``syncline.dev/post-start``
``fail``: its postStart hook fails ``syncline.dev/run-seconds`` how long it runs; ``forever`` ``syncline.dev/exit-code``
how it ends; a list such as ``1,1,0`` counts by attempt, the last one repeats ``syncline.dev/end-reason`` why it ended,
such as ``OOMKilled`` (which exits with 137) ``syncline.dev/end-message`` its termination message
``syncline.dev/stop-seconds`` how long it takes to stop when asked, after its preStop hook =============================
============================================================================

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

__all__ = ["ANNOTATION_PREFIX", "Timing", "completes", "is_sidecar", "stage_of"]

T = TypeVar("T")
ANNOTATION_PREFIX = "syncline.dev/"
OOM_EXIT_CODE = 137
MAX_SECONDS = 10 * 365 * 86400.0
"""Longest stage: ten years, so that ``sleep infinity`` has an end that is never reached."""


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
    """``run_s`` None: it does not end by itself. ``reason`` and ``message`` are those of its end."""

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
    """How this attempt of the container fares, after so many tries to pull its image. What the pod says goes before
    what is known of its image."""
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
    """How long its preStop hook takes: what it sleeps."""
    hook = dig(container, "lifecycle", "preStop", default={})
    asleep = dig(hook, "sleep", "seconds", default=None)
    if asleep is not None:
        return float(asleep)
    return sleep_seconds([str(word) for word in dig(hook, "exec", "command", default=[])]) or 0.0


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
    """One value a time, the last one from then on."""
    return values[min(count, len(values) - 1)]


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

    def instant(self, name: str) -> float | None:
        """Seconds from start; None where nothing is said."""
        value = self.seconds(name, -1.0)
        return value if value >= 0 else None
