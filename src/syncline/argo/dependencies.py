"""``syncline.dev/depends-on``: Applications that must be Synced and Healthy before this one is synced; pure.

The annotation lists names separated by commas, ``namespace/name`` for another namespace. A sync waits before it applies
anything. A cycle is refused at once. An Application that the project cannot see counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncline.argo.application import AppView
from syncline.argo.project import Reach
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of, namespace_of, ref_of

DEPENDS_ON = "syncline.dev/depends-on"
MAX_NAMED = 50
"""Limit of Applications in one annotation."""
MAX_APPLICATIONS = 200
"""Limit of Applications followed along the chains; longer chains are cut here."""


def depends_on(app: Obj) -> list[ObjectRef]:
    """Return the references in the annotation, in order, each once."""
    found: list[ObjectRef] = []
    for text in annotations_of(app).get(DEPENDS_ON, "").split(","):
        before, _, name = text.strip().rpartition("/")
        if name:
            found.append(ObjectRef(APPLICATION.group, APPLICATION.kind, before or namespace_of(app), name))
    return list(dict.fromkeys(found))


def dependencies(get: Callable[[ObjectRef], Obj | None], app: Obj) -> tuple[Obj | ObjectRef, ...]:
    """Return all direct and indirect dependencies of ``app``; a reference where the Application does not exist."""
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
    """Return why no sync may begin: too many dependencies, or a cycle; empty if it may."""
    count = len(depends_on(app))
    if count > MAX_NAMED:
        return f"{DEPENDS_ON}: found {count} Applications; at most {MAX_NAMED}"
    return dependency_circle(app, known)


def _shown(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}"


def dependency_circle(app: Obj, known: Iterable[Obj | ObjectRef]) -> str:
    """Return a sentence on the cycle that ``app`` is in or leads to; empty if there is none."""
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
    """Return in one sentence what the sync of ``app`` waits for; empty if all dependencies are ready. ``reach``: what
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
        if state := unready(one):
            return f"waiting for Application {namespace_of(one)}/{name_of(one)} {state}"
    return ""


def unready(app: Obj) -> str:
    """Return the state of an Application that is not Synced and Healthy, in brackets; empty: it is."""
    sync = str(dig(app, "status", "sync", "status", default="Unknown"))
    health = str(dig(app, "status", "health", "status", default="Unknown"))
    busy = ", an operation runs" if app.get("operation") else ""
    if (sync, health, busy) == ("Synced", "Healthy", "") and not _is_stale(app):
        return ""
    return f"({sync}, {health}{busy})"


def missing(ref: ObjectRef, reach: Reach) -> str:
    """Describe an Application that the project cannot see; the text does not reveal whether it exists."""
    if not reach.refuses(ref):
        return "does not exist"
    name = name_of(reach.project) if reach.project is not None else "(none)"
    return f"is none of project {name}; of others it sees only those in namespaces of its spec.destinations"


def _is_stale(app: Obj) -> bool:
    """Return whether the status was compared to another source than the spec has now."""
    compared = dig(app, "status", "sync", "comparedTo", default={})
    before = compared.get("sources") or ([compared["source"]] if compared.get("source") else [])
    return bool(before) and list(before) != list(AppView(app).sources)
