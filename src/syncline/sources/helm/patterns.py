"""Charts of Validated Patterns that Syncline renders itself: :func:`own_chart` decides, :func:`render_own` renders.

A chart is known by the digest of its templates, defaults and schema, not by its name: a fork, another version or a
patched copy is rendered by Helm, and a warning says so. Three things are ours: a known chart; a folder whose
``Chart.yaml`` has the name and version of one and nothing else; and a source without a chart whose Application has the
annotation ``syncline.dev/source``. ``sources/helm/rendering.py`` calls both functions.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from syncline.kube.schema.extensions import SOURCE
from syncline.kube.yaml import loading as yaml
from syncline.sources.archive import unpack
from syncline.sources.directory import SourcedObject, objects_of
from syncline.sources.errors import Problem, SourceError
from syncline.sources.workers.pool import shared_workers

ANNOTATION: Final = SOURCE
TASK: Final = "patterns"
_FILES: Final = ("values.yaml", "values.schema.json")
_FOLDERS: Final = ("templates/", "crds/")
_PICTURE: Final = re.compile(rb"imageURL: (data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+)")
_PLAIN_DEPENDENCY: Final = {"name", "version", "repository"}


@dataclass(frozen=True, slots=True)
class Known:
    """A chart that we render. ``digest``: of :func:`digest_of`; ``dependency``: the one that it has to have."""

    name: str
    version: str
    digest: str
    dependency: Known | None = None


_RBAC: Final = Known("vp-rbac", "0.1.2", "fa71897840ff363e31bfbe22f658452fd10ab2428b0a134387b6ae2124d557c5")
KNOWN: Final[Mapping[str, Known]] = {
    one.name: one
    for one in (
        Known("clustergroup", "0.9.55", "896c9fd35ef86909bcf53ad450fe5bc5011e5762c77773e465531f80291c4b5a", _RBAC),
        Known("acm", "0.2.8", "e86263d2fa1fd7c8d69fda2c369f9769a1625d9abdd146b214eacbd04bd26d4c"),
    )
}
_OURS: Final = ", ".join(f"{one.name} {one.version}" for one in KNOWN.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    """``chart``: the one that we render, None: Helm does; ``warning``: what people should know of it; ``by_helm``:
    Helm can render it, too; ``picture``: the chart's data URI for ConsoleLinks, empty if it is not here."""

    chart: Known | None = None
    warning: str = ""
    by_helm: bool = True
    picture: str = ""


def named_by(annotation: str) -> Known:
    """Return the chart that an annotation names. Raises :class:`SourceError` for another word."""
    found = KNOWN.get(annotation)
    if found is None:
        message = f"annotation {ANNOTATION}: {annotation!r:.80} is none of {', '.join(KNOWN)}"
        raise SourceError(Problem.INVALID, message, field=f"metadata.annotations[{ANNOTATION}]")
    return found


def own_chart(
    annotation: str,
    files: Mapping[str, bytes],
    local: Mapping[str, Mapping[str, bytes]],
    archives: Iterable[Callable[[], bytes]],
) -> Verdict:
    """Return who renders a chart.

    ``files``: its files by path below it, none for a source without a chart; ``local``: those of dependencies elsewhere
    in the repository, by name; ``archives``: read packed dependencies. Raises :class:`SourceError`.
    """
    if not files:
        return Verdict(named_by(annotation), by_helm=False) if annotation else Verdict()
    about = _about(files)
    name, version = str(about.get("name") or ""), str(about.get("version") or "")
    known = KNOWN.get(name)
    if known is None:
        here = f"the chart here is {name!r:.80}, so that annotation {ANNOTATION}: {annotation} does not count"
        return Verdict(None, here if annotation else "")
    ours = {path: content for path, content in files.items() if _counts(path)}
    if not ours and version == known.version:
        return Verdict(known, by_helm=False)
    if digest_of(files) == known.digest and _dependencies_fit(known, about, files, local, archives):
        return Verdict(known, picture=_picture(files))
    which = "its files are not those of that version" if version == known.version else f"it is {version!r:.40}"
    return Verdict(None, f"chart {name} is rendered by Helm: {which}; Syncline renders {_OURS} without Helm")


def _picture(files: Mapping[str, bytes]) -> str:
    """Return the picture that a known chart's template holds, which is not in ours."""
    found = (_PICTURE.search(content) for path, content in sorted(files.items()) if path.startswith("templates/"))
    return next((one[1].decode() for one in found if one), "")


def _about(files: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        found = yaml.load(files.get("Chart.yaml", b"{}"), file="Chart.yaml")
    except yaml.YamlError:
        return {}
    return found if isinstance(found, dict) else {}


def _counts(path: str) -> bool:
    return path in _FILES or path.startswith((*_FOLDERS, "charts/")) or path == "requirements.yaml"


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the digest of what a chart renders from: its templates, definitions, defaults and schema. Files without
    content count for nothing: Helm packs them or not, as ``.keep``."""
    digest = hashlib.sha256()
    for path in sorted(files):
        if (path in _FILES or path.startswith(_FOLDERS)) and files[path].strip():
            digest.update(f"{path}\0{hashlib.sha256(files[path]).hexdigest()}\n".encode())
    return digest.hexdigest()


def _dependencies_fit(
    known: Known,
    about: Mapping[str, Any],
    files: Mapping[str, bytes],
    local: Mapping[str, Mapping[str, bytes]],
    archives: Iterable[Callable[[], bytes]],
) -> bool:
    """Return whether a chart's dependencies are those of the known one, wherever they lie; a missing one is not."""
    declared = [one for one in about.get("dependencies") or () if isinstance(one, dict)]
    if "requirements.yaml" in files or any(one.keys() - _PLAIN_DEPENDENCY for one in declared):
        return False
    found: dict[str, Mapping[str, bytes]] = dict(local)
    packed = [content for path, content in files.items() if path.startswith("charts/") and path.endswith(".tgz")]
    for content in (*packed, *(read() for read in archives)):
        for path, inner in unpack(content, known.name).items():
            name, _, rest = path.partition("/")
            found[name] = {**found.get(name, {}), rest: inner}
    for path, content in files.items():
        if path.startswith("charts/") and not path.endswith(".tgz"):
            name, _, rest = path.removeprefix("charts/").partition("/")
            found[name] = {**found.get(name, {}), rest: content}
    wanted = {known.dependency.name: known.dependency.digest} if known.dependency else {}
    return {name: digest_of(inner) for name, inner in found.items()} == wanted


def render_own(
    chart: Known, folder: str, values: Mapping[str, Any], release: tuple[str, str, str], skip_schema: bool, limit: int
) -> list[SourcedObject]:
    """Return the objects of values, in the order of the chart's files. ``release``: its name, its
    namespace, and the picture of :class:`Verdict`.

    Raises :class:`SourceError`.
    """
    payload = {
        "chart": chart.name,
        "values": json.dumps(values),
        "name": release[0],
        "namespace": release[1],
        "picture": release[2],
        "skip_schema": skip_schema,
    }
    found = shared_workers().run(TASK, payload, label=folder or ".")
    place = posixpath.join(folder, f"{chart.name}-{chart.version}")
    return list(objects_of(place, found, limit))
