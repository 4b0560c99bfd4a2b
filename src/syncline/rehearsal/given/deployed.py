"""Which files of a repository an Application deploys, as far as they tell without being rendered; pure. Entry points:
:func:`files_of`, :func:`roots_of`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, dirname, join, normpath

from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.text.glob import GlobError, glob_match
from syncline.kube.yaml.loading import YamlError, load_all
from syncline.rehearsal.given.files import YAML, Files

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHARTS = ("templates", "crds", "charts")
"""Folders of a chart whose files may become manifests."""
LISTED = ("resources", "bases", "components", "crds", "generators", "transformers")
"""Fields of a kustomization that name files and folders with objects."""

_CHARTS = re.compile(rb"^helm(Charts|ChartInflationGenerator):", re.MULTILINE)


def is_below(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(f"{folder}/")


def files_of(files: Files, app: Obj, source: Obj) -> frozenset[str]:
    """Return the files that a source of an Application, or of the template of a set, brings objects from, or may: those
    that its kustomization lists, those of its chart's templates, or those of its folder. A path with a template in it
    stands for the folders that the set's generators list."""
    folder = normpath(str(source.get("path") or "."))
    if "{{" in folder:
        return frozenset().union(*(_of_folder(files, one, source) for one in _generated(files, app)))
    return _of_folder(files, folder, source)


def _generated(files: Files, app: Obj) -> Iterator[str]:
    """Yield the folders that the Git generators of a set list."""
    listed = [
        one
        for generator in dig(app, "spec", "generators") or ()
        for one in dig(generator, "git", "directories") or ()
        if isinstance(one, dict)
    ]
    wanted = [str(one.get("path")) for one in listed if not one.get("exclude")]
    folders = {parent for path in files.content for parent in _parents(path)}
    for folder in sorted(folders):
        if any(_matches(pattern, folder) for pattern in wanted):
            yield folder


def _parents(path: str) -> Iterator[str]:
    while path := dirname(path):
        yield path


def _matches(pattern: str, folder: str) -> bool:
    try:
        return glob_match(pattern, folder, separators="/")
    except GlobError:
        return False


def _of_folder(files: Files, folder: str, source: Obj) -> frozenset[str]:
    if any(normpath(join(folder, name)) in files.content for name in KUSTOMIZATIONS):
        return frozenset(_listed(files, folder))
    mine = [path for path in files.content if is_below(path, folder)]
    if normpath(join(folder, "Chart.yaml")) in files.content:
        return frozenset(path for path in mine if any(is_below(path, normpath(join(folder, one))) for one in CHARTS))
    options = source.get("directory") or {}
    return frozenset(path for path in mine if path.endswith(YAML) and _is_chosen(path, folder, options))


def _is_chosen(path: str, folder: str, options: Obj) -> bool:
    below = path if folder == "." else path.removeprefix(f"{folder}/")
    if "/" in below and not options.get("recurse"):
        return False
    include, exclude = str(options.get("include") or ""), str(options.get("exclude") or "")
    try:
        return not (exclude and glob_match(exclude, below)) and (not include or glob_match(include, below))
    except GlobError:
        return True  # the renderer refuses it, and says why


def _listed(files: Files, folder: str) -> set[str]:
    """Return what the kustomization of a folder lists, and those below it."""
    found: set[str] = set()
    left, seen = [normpath(folder)], set()
    while left:
        at = left.pop()
        file = next((one for name in KUSTOMIZATIONS if (one := normpath(join(at, name))) in files.content), "")
        if at in seen or not file:
            continue
        seen.add(at)
        found.add(file)
        for one in _entries(files, file):
            path = normpath(join(at, one))
            if path in files.content:
                found.add(path)
            else:
                left.append(path)
    return found


def _entries(files: Files, file: str) -> Iterator[str]:
    try:
        documents = load_all(files.content[file], file=file).documents
    except YamlError:
        return
    for document in documents:
        for field in LISTED:
            listed = dig(document.value, field) if isinstance(document.value, dict) else None
            yield from (one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, str))


def uses_charts(files: Files) -> bool:
    """Return whether a kustomization inflates charts, which Kustomize does only if it is permitted to."""
    known = (data for path, data in files.content.items() if basename(path) in KUSTOMIZATIONS)
    return any(_CHARTS.search(data) for data in known)


def bindings(files: Files) -> dict[str, str]:
    """Return when volumes of a storage class are bound, by name, as far as a manifest or a patch of one says it."""
    found = ((obj, str(obj.get("volumeBindingMode") or "")) for _, obj in files.objects())
    return {name_of(obj): mode for obj, mode in found if obj.get("kind") == "StorageClass" and mode}


def roots_of(deployers: Sequence[tuple[str, frozenset[str]]]) -> frozenset[int]:
    """Return which Applications a person creates so that all are there: by number, of the file that each is in and the
    files that it deploys. One that deploys itself is created by a person first; of those that deploy one another the
    one in the highest folder."""
    makers: Mapping[int, list[int]] = {
        number: [other for other, (_, mine) in enumerate(deployers) if other != number and file in mine]
        for number, (file, _) in enumerate(deployers)
    }
    roots = {number for number, found in makers.items() if not found}
    there: set[int] = set()
    _reach(there, roots, makers)
    for number in sorted(makers, key=lambda one: (deployers[one][0].count("/"), dirname(deployers[one][0]), one)):
        if number not in there:
            roots.add(number)
            _reach(there, {number}, makers)
    return frozenset(roots)


def _reach(there: set[int], new: set[int], makers: Mapping[int, list[int]]) -> None:
    """Add to ``there`` the new ones and all that they bring, directly or not."""
    while new:
        there |= new
        new = {number for number, found in makers.items() if number not in there and there.intersection(found)}
