"""``syncline.dev/depends-on`` across clusters: which Applications must be done before one gets a release.

``APP``, ``CLUSTER/APP``, ``appset/SET``, ``appset/SET/STEP``, and ``NAMESPACE/APP`` as everywhere. What the project may
not see counts as absent, and the text does not say which of both it is. In one pass each group is read once, and each
dependency is judged once for all Applications of a project that have it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from syncline.argo.clusters import HERE
from syncline.argo.dependencies import DEPENDS_ON, MAX_NAMED, missing, unready
from syncline.argo.project import Reach
from syncline.control.cache import Snapshot
from syncline.fleet.pull import names
from syncline.fleet.pull.observe import APPS, PROJECTS
from syncline.fleet.pull.order.annotations import wave_in
from syncline.fleet.pull.order.circles import Circles
from syncline.fleet.pull.order.evidence import judge
from syncline.fleet.pull.order.groups import BY_GROUP, OF_APPSET, ROLLOUTS, group_of, key_of, needs_of
from syncline.fleet.pull.order.model import Target
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, name_of, namespace_of, ref_of

Members = Callable[[Snapshot, ObjectRef, list[Obj]], tuple[Target, ...]]
MAX_SHOWN: Final = 10
"""Applications of a circle that a sentence names."""


@dataclass(frozen=True, slots=True)
class _Step:
    """The Applications of a group with ``wave`` (None: all), or with ``below`` those of smaller waves that depend on
    something."""

    group: ObjectRef
    wave: int | None
    below: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """The Applications of a step before the place ``at``, or from it on: so those beside one of it are two runs."""

    step: _Step
    at: int
    onwards: bool


_Node = ObjectRef | _Step | _Run


@dataclass(frozen=True)
class _Group:
    """The targets of a group. ``skipped``: clusters that people pass over in its present release; ``proves``: until
    when Applications have to stay healthy."""

    targets: tuple[Target, ...]
    skipped: frozenset[str] = frozenset()
    proves: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[str, Target]:
        return {one.name: one for one in self.targets}

    @cached_property
    def by_wave(self) -> Mapping[int | None, tuple[Target, ...]]:
        """The targets of each wave, and of all under None."""
        found: dict[int | None, list[Target]] = {}
        for one in self.targets:
            found.setdefault(one.wave, []).append(one)
        return {None: self.targets} | {wave: tuple(mine) for wave, mine in found.items()}

    @cached_property
    def places(self) -> Mapping[tuple[int | None, str], int]:
        """The place of each target among those of its wave, and among all."""
        return {(wave, one.name): at for wave, mine in self.by_wave.items() for at, one in enumerate(mine)}

    @cached_property
    def waves(self) -> list[int]:
        return sorted(wave for wave in self.by_wave if wave is not None)


@dataclass(frozen=True, slots=True)
class _Judged:
    """A step as one project sees it: the names that it sees, and the first two that are not done, with why. Two,
    because an Application does not wait for itself."""

    seen: frozenset[str]
    left: tuple[tuple[str, str], ...]


class Needs:
    """Judges dependencies during one pass. ``members``: the targets of a group, without their dependencies."""

    def __init__(self, cache: Snapshot, control_namespace: str, members: Members) -> None:
        self._cache, self._control, self._members = cache, control_namespace, members
        self._groups: dict[ObjectRef, _Group] = {}
        self._reaches: dict[tuple[str, str], Reach] = {}
        self._judged: dict[tuple[_Step, int], _Judged] = {}
        self._circles = Circles[_Node](self._following)

    def members(self, ref: ObjectRef, apps: list[Obj] | None = None) -> tuple[Target, ...]:
        """Return the targets of a group."""
        return self._group(ref, apps).targets

    def of(self, app: Obj) -> str:
        """Return what an Application waits for; empty: all that it depends on is done."""
        named = needs_of(app)
        if len(named) > MAX_NAMED:
            return f"{DEPENDS_ON}: found {len(named)} names; at most {MAX_NAMED}"
        reach = self._reach(app)
        if circle := self._circle(app, reach):
            return circle
        return next((why for one in named if (why := self._waits(app, one, reach))), "")

    def _group(self, ref: ObjectRef, apps: list[Obj] | None = None) -> _Group:
        if ref not in self._groups:
            found = self._cache.indexed(BY_GROUP, key_of(ref)) if apps is None else apps
            targets = self._members(self._cache, ref, [one for one in found if not is_terminating(one)])
            rollout = self._cache.get(ref) or {}
            release = dig(rollout, "status", "release")
            skipped = (one for one in dig(rollout, "spec", "skip") or () if release and one.get("release") == release)
            listed = dig(rollout, "status", "clusters") or ()
            proves = {
                str(one.get("application")): str(one["until"])
                for one in listed
                if one.get("state") == "Proving" and one.get("until")
            }
            self._groups[ref] = _Group(targets, frozenset(str(one.get("cluster")) for one in skipped), proves)
        return self._groups[ref]

    def _reach(self, app: Obj) -> Reach:
        key = str(dig(app, "spec", "project") or "default"), namespace_of(app)
        if key not in self._reaches:
            project = self._cache.get(ObjectRef(*PROJECTS, self._control, key[0]))
            self._reaches[key] = Reach(project).of_applications(HERE, key[1], self._control)
        return self._reaches[key]

    def _waits(self, app: Obj, text: str, reach: Reach) -> str:
        parts = text.split("/")
        if parts[0] == OF_APPSET and len(parts) in (2, 3):
            return self._waits_for_set(app, text, parts, reach)
        if len(parts) > 2 or not all(parts):
            return f"{DEPENDS_ON}: cannot read {text[:80]!r}; allowed are APP, CLUSTER/APP, appset/SET, appset/SET/STEP"
        refs = [ref_of(one) for one in self._named(app, text)]
        asked = ObjectRef(*APPS, parts[0] if len(parts) == 2 else namespace_of(app), parts[-1])
        for ref in refs or [asked]:
            found = self._cache.get(ref)
            if found is None or not reach.sees_application(found, ref):
                return f"waiting for Application {text}, which {missing(ref, reach)}"
            if why := self._not_done(found):
                return f"waiting for Application {text}: {why}"
        return ""

    def _waits_for_set(self, app: Obj, text: str, parts: list[str], reach: Reach) -> str:
        step = _step_of(app, parts)
        if step is None:
            return f"{DEPENDS_ON}: {text[:80]!r} ends with {parts[2][:40]!r}; allowed is the number of a step or wave"
        judged = self._judge(step, reach)
        own = name_of(app) if step.group == group_of(app) else ""
        if not judged.seen - {own}:
            return f"waiting for {text}, of which the project sees no Application"
        return next((f"waiting for {text}: {why}" for name, why in judged.left if name != own), "")

    def _judge(self, step: _Step, reach: Reach) -> _Judged:
        """Judge a step for a project. Nothing waits for the clusters that people skip, or that do not count."""
        key = step, id(reach)
        if key not in self._judged:
            group = self._group(step.group)
            seen = [one for one in self._of_step(step) if reach.sees_application(one.app, ref_of(one.app))]
            left: list[tuple[str, str]] = []
            for one in seen:
                if len(left) == 2:
                    break
                if not one.aside and one.cluster.name not in group.skipped and (why := _not_proved(one, group)):
                    left.append((one.name, f"{one.name} on cluster {one.cluster.name}: {why}"))
            self._judged[key] = _Judged(frozenset(one.name for one in seen), tuple(left))
        return self._judged[key]

    def _of_step(self, step: _Step) -> tuple[Target, ...]:
        return self._group(step.group).by_wave.get(step.wave, ())

    def _named(self, app: Obj, text: str) -> list[Obj]:
        """Return the Applications that a name stands for: the one that a cluster pulls, and the one of a namespace."""
        before, _, name = text.rpartition("/")
        here = self._cache.get(ObjectRef(*APPS, namespace_of(app), name))
        if not before:
            return [here] if here is not None else []
        pulled = here is not None and annotations_of(here).get(names.CLUSTER) == before
        there = self._cache.get(ObjectRef(*APPS, before, name))
        return [one for one in (here if pulled else None, there) if one is not None]

    def _not_done(self, app: Obj) -> str:
        if not names.is_carried(app):
            return unready(app)
        group = self._group(group_of(app))
        found = group.by_name.get(name_of(app))
        if found is None:
            return "it is being deleted"
        why = found.aside or _not_proved(found, group)
        return f"{why}; people skip its cluster in this release" if why and found.cluster.name in group.skipped else why

    def _circle(self, app: Obj, reach: Reach) -> str:
        """Return a sentence on the circle that an Application is in; waves count, as each waits for those before.
        Applications that its project may not see are not named."""
        refs = [one for one in self._circles.of(ref_of(app)) if isinstance(one, ObjectRef)]
        if not refs:
            return ""
        shown = [self._shown(one, reach) for one in refs[:MAX_SHOWN]]
        more = ["…"] if len(refs) > MAX_SHOWN else []
        return f"{DEPENDS_ON} goes in a circle: {' -> '.join([*shown, *more, shown[0]])}; take one of them out"

    def _shown(self, ref: ObjectRef, reach: Reach) -> str:
        found = self._cache.get(ref)
        return ref.name if found is not None and reach.sees_application(found, ref) else "another Application"

    def _following(self, node: _Node) -> Iterable[_Node]:
        if isinstance(node, _Step):
            yield from self._in_step(node)
            return
        if isinstance(node, _Run):
            yield from self._in_run(node)
            return
        app = self._cache.get(node)
        if app is None:
            return
        for text in needs_of(app)[:MAX_NAMED]:
            parts = text.split("/")
            if parts[0] == OF_APPSET and len(parts) in (2, 3):
                if (step := _step_of(app, parts)) is not None:
                    yield from self._beside(step, app)
            else:
                yield from map(ref_of, self._named(app, text))
        if names.is_carried(app):
            group = group_of(app)
            mine = self._group(group).by_name.get(name_of(app))
            if mine is not None:
                yield _Step(group, mine.wave, below=True)

    def _beside(self, step: _Step, app: Obj) -> Iterable[_Node]:
        """Return the Applications of a step; without the one that asks, if it is of them."""
        own = step.group == group_of(app)
        at = self._group(step.group).places.get((step.wave, name_of(app))) if own else None
        return (step,) if at is None else (_Run(step, at, onwards=False), _Run(step, at + 1, onwards=True))

    def _in_step(self, step: _Step) -> Iterable[_Node]:
        if not step.below:
            yield from (ref_of(one.app) for one in self._of_step(step))
            return
        group = self._group(step.group)
        before = bisect_left(group.waves, step.wave) if step.wave is not None else 0
        if before:
            wave = group.waves[before - 1]
            yield from (ref_of(one.app) for one in group.by_wave[wave] if one.depends)
            yield _Step(step.group, wave, below=True)

    def _in_run(self, run: _Run) -> Iterable[_Node]:
        mine = self._of_step(run.step)
        at, following = (run.at, run.at + 1) if run.onwards else (run.at - 1, run.at - 1)
        if 0 <= at < len(mine):
            yield ref_of(mine[at].app)
            yield _Run(run.step, following, run.onwards)


def _step_of(app: Obj, parts: list[str]) -> _Step | None:
    """Return what ``appset/SET`` or ``appset/SET/STEP`` stands for; None: the last part is no number."""
    group = ObjectRef(*ROLLOUTS, namespace_of(app), parts[1])
    if len(parts) == 2:
        return _Step(group, None)
    number = wave_in(parts[2])
    return None if number is None else _Step(group, number)


def _not_proved(one: Target, group: _Group) -> str:
    """Return why a target is not done; empty: it carries what it should, and has proved it, or is well where no order
    of its own asks for a proof."""
    if one.cannot or one.unwritten:
        return one.cannot or one.unwritten
    if not one.wanted or one.carried != one.wanted:
        return "its cluster does not have its newest release yet"
    judged = judge(one.facts, one.facts.release or "", None, one.pins.commits)
    if judged.failed:
        return judged.failed
    if one.proven and one.proven[0].release == one.wanted:
        return ""
    if one.ordered:
        until = group.proves.get(one.name)
        return judged.why or (f"it has to stay healthy until {until}" if until else "it has not proved its release yet")
    return "" if judged.holds else judged.why
