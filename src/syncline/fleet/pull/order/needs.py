"""``syncline.dev/depends-on`` across clusters: which Applications must be done before one gets a release.

``APP``, ``CLUSTER/APP``, ``appset/SET``, ``appset/SET/STEP``, and ``NAMESPACE/APP`` as everywhere. What the project may
not see counts as absent, and the text does not say which of both it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from syncline.argo.clusters import HERE
from syncline.argo.dependencies import DEPENDS_ON, MAX_APPLICATIONS, MAX_NAMED, missing, unready
from syncline.argo.project import Reach
from syncline.control.cache import Snapshot
from syncline.fleet.pull import names
from syncline.fleet.pull.observe import APPS, PROJECTS
from syncline.fleet.pull.order.evidence import judge
from syncline.fleet.pull.order.groups import BY_GROUP, ROLLOUTS, group_of, key_of, needs_of
from syncline.fleet.pull.order.model import Target
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, name_of, namespace_of, ref_of

OF_SET: Final = "appset"
Members = Callable[[Snapshot, ObjectRef, list[Obj]], tuple[Target, ...]]


class Needs:
    """Judges dependencies during one pass. ``members``: the targets of a group, without their dependencies."""

    def __init__(self, cache: Snapshot, control_namespace: str, members: Members) -> None:
        self._cache, self._control, self._members = cache, control_namespace, members
        self._groups: dict[ObjectRef, tuple[Target, ...]] = {}

    def members(self, ref: ObjectRef, apps: list[Obj] | None = None) -> tuple[Target, ...]:
        """Return the targets of a group."""
        if ref not in self._groups:
            found = self._cache.indexed(BY_GROUP, key_of(ref)) if apps is None else apps
            self._groups[ref] = self._members(self._cache, ref, [one for one in found if not is_terminating(one)])
        return self._groups[ref]

    def of(self, app: Obj) -> str:
        """Return what an Application waits for; empty: all that it depends on is done."""
        named = needs_of(app)
        if len(named) > MAX_NAMED:
            return f"{DEPENDS_ON}: found {len(named)} names; at most {MAX_NAMED}"
        if circle := self._circle(app):
            return circle
        reach = self._reach(app)
        return next((why for one in named if (why := self._waits(app, one, reach))), "")

    def _reach(self, app: Obj) -> Reach:
        name = str(dig(app, "spec", "project") or "default")
        project = self._cache.get(ObjectRef(*PROJECTS, self._control, name))
        return Reach(project).of_applications(HERE, namespace_of(app), self._control)

    def _waits(self, app: Obj, text: str, reach: Reach) -> str:
        parts = text.split("/")
        if parts[0] == OF_SET and len(parts) in (2, 3):
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
        if len(parts) == 3 and not parts[2].lstrip("-").isdigit():
            return f"{DEPENDS_ON}: {text[:80]!r} ends with {parts[2][:40]!r}; allowed is the number of a step or wave"
        seen = [
            one
            for one in self.members(ObjectRef(*ROLLOUTS, namespace_of(app), parts[1]))
            if reach.sees_application(one.app, ref_of(one.app))
            and (len(parts) == 2 or one.wave == int(parts[2]))
            and name_of(one.app) != name_of(app)
        ]
        if not seen:
            return f"waiting for {text}: no Applications of it exist that project may see"
        for one in seen:
            if not one.aside and (why := _not_proved(one)):
                return f"waiting for {text}: {one.name} on cluster {one.cluster.name}: {why}"
        return ""

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
        group = group_of(app)
        found = next((one for one in self.members(group) if one.name == name_of(app)), None)
        if found is None:
            return "it is being deleted"
        return found.aside or _not_proved(found)

    def _circle(self, app: Obj) -> str:
        """Return a sentence on the circle that an Application is in; waves count, as each waits for those before."""
        path: list[str] = []
        done: set[ObjectRef] = set()

        def walk(one: Obj) -> bool:
            ref = ref_of(one)
            if ref == ref_of(app) and path:
                path.append(name_of(one))
                return True
            if ref in done or len(done) >= MAX_APPLICATIONS:
                return False
            done.add(ref)
            path.append(name_of(one))
            if any(walk(following) for following in self._followed(one)):
                return True
            path.pop()
            return False

        if not walk(app):
            return ""
        return f"{DEPENDS_ON} goes in a circle: {' -> '.join(path)}; take one of them out"

    def _followed(self, app: Obj) -> Iterable[Obj]:
        for text in needs_of(app)[:MAX_NAMED]:
            parts = text.split("/")
            if parts[0] == OF_SET and len(parts) in (2, 3):
                group = ObjectRef(*ROLLOUTS, namespace_of(app), parts[1])
                for one in self.members(group):
                    if len(parts) == 2 or str(one.wave) == parts[2]:
                        yield one.app
            else:
                yield from self._named(app, text)
        if names.is_carried(app):
            mine = self.members(group_of(app))
            wave = next((one.wave for one in mine if one.name == name_of(app)), 0)
            yield from (one.app for one in mine if one.wave < wave and one.depends)


def _not_proved(one: Target) -> str:
    """Return why a target is not done; empty: it carries what it should, and has proved it, or is well where no order
    of its own asks for a proof."""
    if one.cannot:
        return one.cannot
    if not one.wanted or one.carried != one.wanted:
        return "its cluster does not have its newest release yet"
    judged = judge(one.facts, one.facts.release or "", None, one.pins.commits)
    if judged.failed:
        return judged.failed
    if one.proven and one.proven[0].release == one.wanted:
        return ""
    if one.ordered:
        return judged.why or "it has not been healthy for long enough"
    return "" if judged.holds else judged.why
