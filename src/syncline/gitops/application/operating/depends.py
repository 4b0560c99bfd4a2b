"""``syncline.dev/depends-on``: Applications that must be Synced and Healthy before this one is synced; pure.

The annotation lists names by comma, ``namespace/name`` where they live elsewhere. A sync waits before anything is
applied; a circle is refused at once, as it would wait for ever. What the project may not see counts as not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncline.argo.application import AppView
from syncline.argo.project import Reach
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of, namespace_of, ref_of

__all__ = [
    "DEPENDS_ON",
    "dependencies",
    "dependency_problem",
    "depends_on",
    "missing",
    "not_ready",
]

DEPENDS_ON = "syncline.dev/depends-on"
MAX_NAMED = 50
"""Applications that one annotation may name."""
MAX_APPLICATIONS = 200
"""Applications examined along the chains; longer ones are judged by their beginning."""


def depends_on(app: Obj) -> list[ObjectRef]:
    """In the order of the annotation, each once."""
    found: list[ObjectRef] = []
    for text in annotations_of(app).get(DEPENDS_ON, "").split(","):
        before, _, name = text.strip().rpartition("/")
        if name:
            found.append(ObjectRef(APPLICATION.group, APPLICATION.kind, before or namespace_of(app), name))
    return list(dict.fromkeys(found))


def dependencies(get: Callable[[ObjectRef], Obj | None], app: Obj) -> tuple[Obj | ObjectRef, ...]:
    """Everything that ``app`` depends on, directly and indirectly; a reference where there is no such Application."""
    seen: dict[ObjectRef, Obj | ObjectRef] = {}
    waiting = depends_on(app)
    while waiting and len(seen) < MAX_APPLICATIONS:
        ref = waiting.pop(0)
        if ref in seen:
            continue
        found = get(ref)
        seen[ref] = ref if found is None else found
        waiting += depends_on(found) if found is not None else []
    return tuple(seen.values())


def dependency_problem(app: Obj, known: Iterable[Obj | ObjectRef]) -> str:
    """Why no sync may begin: too many are named, or they go in a circle."""
    count = len(depends_on(app))
    if count > MAX_NAMED:
        return f"{DEPENDS_ON}: found {count} Applications; at most {MAX_NAMED}"
    return dependency_circle(app, known)


def _shown(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}"


def dependency_circle(app: Obj, known: Iterable[Obj | ObjectRef]) -> str:
    """The circle that ``app`` is part of or leads to, as a sentence; empty where there is none."""
    by_ref = {ref_of(one): one for one in known if not isinstance(one, ObjectRef)} | {ref_of(app): app}

    def walk(ref: ObjectRef, path: tuple[ObjectRef, ...]) -> tuple[ObjectRef, ...]:
        if ref in path:
            return (*path[path.index(ref) :], ref)
        if ref not in by_ref or ref in done:
            return ()
        for following in depends_on(by_ref[ref]):
            found = walk(following, (*path, ref))
            if found:
                return found
        done.add(ref)
        return ()

    done: set[ObjectRef] = set()
    circle = walk(ref_of(app), ())
    if not circle:
        return ""
    return f"{DEPENDS_ON} goes in a circle: {' -> '.join(map(_shown, circle))}; take one of them out"


def not_ready(app: Obj, known: Iterable[Obj | ObjectRef], reach: Reach) -> str:
    """What the sync of ``app`` waits for, in one sentence; empty where everything before it is ready. ``reach``: what
    its project sees among Applications."""
    if dependency_problem(app, known):
        return ""
    direct = set(depends_on(app))
    for one in known:
        if isinstance(one, ObjectRef):
            if one in direct:
                return f"waiting for Application {_shown(one)}, which {missing(one, reach)}"
            continue
        if ref_of(one) not in direct:
            continue
        sync = str(dig(one, "status", "sync", "status", default="Unknown"))
        health = str(dig(one, "status", "health", "status", default="Unknown"))
        busy = ", an operation runs" if one.get("operation") else ""
        if (sync, health, busy) != ("Synced", "Healthy", "") or _is_stale(one):
            return f"waiting for Application {namespace_of(one)}/{name_of(one)} ({sync}, {health}{busy})"
    return ""


def missing(ref: ObjectRef, reach: Reach) -> str:
    """Of an Application that is not seen: the same whether it exists or not."""
    if not reach.refuses(ref):
        return "does not exist"
    name = name_of(reach.project) if reach.project is not None else "(none)"
    return f"is none of project {name}; of others it sees only those in namespaces of its spec.destinations"


def _is_stale(app: Obj) -> bool:
    """Its verdict is about another source than its spec names now."""
    compared = dig(app, "status", "sync", "comparedTo", default={})
    before = compared.get("sources") or ([compared["source"]] if compared.get("source") else [])
    return bool(before) and list(before) != list(AppView(app).sources)
