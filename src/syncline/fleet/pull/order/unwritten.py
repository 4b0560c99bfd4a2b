"""Applications that the controller of their set has not written yet; pure. :func:`unwritten`.

It writes the Applications of a set one after the other and may die, or be refused, in between. A cluster of a later
wave would then get the new release before one of an earlier wave whose Application still says the old one. What the
template says in plain text is compared with each Application; what is made of rows is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from syncline.argo.application import REFRESH
from syncline.kube.objects import Obj, dig, name_of

Path = tuple[str | int, ...]
_NOT_UPDATED: Final = ("create-only", "create-delete")
_OTHERS_WRITE: Final = frozenset({("spec", "destination"), ("spec", "syncPolicy"), ("metadata", "name")})
"""Parts that a controller other than that of the set writes, too."""
_MOST_NESTED: Final = 8
_DEEPEST: Final = 50


def unwritten(owner: Obj, apps: Iterable[Obj], policy: str = "") -> Mapping[str, str]:
    """Return why Applications of a set are not as its template says, by name. Empty unless others already are: a set
    whose controller does nothing holds back nothing. ``policy``: what the controller may do with all Applications."""
    if _differs_for_good(owner, policy):
        return {}
    template = dig(owner, "spec", "template") or {}
    wanted = list(_literals(template))
    found = {name_of(app): next((path for path, value in wanted if dig(app, *path) != value), None) for app in apps}
    if all(found.values()):
        return {}
    text = f"the controller of ApplicationSet {name_of(owner)} has not written"
    return {name: f"{text} {_shown(path)} of its template yet" for name, path in found.items() if path}


def _differs_for_good(owner: Obj, policy: str) -> bool:
    """Return whether Applications may rightly be other than the template."""
    spec = owner.get("spec") or {}
    asked = dig(spec, "syncPolicy", "applicationsSync")
    if asked in _NOT_UPDATED or policy in _NOT_UPDATED:
        return True
    patched = bool(spec.get("templatePatch") or spec.get("ignoreApplicationDifferences"))
    return patched or _overridden(spec.get("generators"), _MOST_NESTED)


def _overridden(generators: Any, depth: int) -> bool:
    """Return whether a generator has a template of its own."""
    for element in generators if isinstance(generators, list) and depth else ():
        for fields in element.values() if isinstance(element, dict) else ():
            if not isinstance(fields, dict):
                continue
            own = next(_leaves(fields.get("template"), ()), None)
            if own is not None or _overridden(fields.get("generators"), depth - 1):
                return True
    return False


def _literals(template: Obj) -> Iterator[tuple[Path, Any]]:
    """Yield what a template says without a row: the path in the Application, and the value."""
    parts = {key: dig(template, "metadata", key) for key in ("labels", "annotations")}
    for path, value in _leaves({"metadata": parts, "spec": dig(template, "spec")}, ()):
        if path[:2] in _OTHERS_WRITE or path[-1] == REFRESH:
            continue
        if not any(isinstance(one, str) and "{{" in one for one in (*path, value)):
            yield path, value


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the values of a tree that say something: not those that are as good as absent."""
    if len(path) > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, (*path, str(key)))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _leaves(one, (*path, number))
    elif value:
        yield path, value


def _shown(path: Path) -> str:
    return ".".join(map(str, path))[:200]
