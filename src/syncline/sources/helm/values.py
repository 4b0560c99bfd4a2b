"""Computes the values of a chart: files, inline values and parameters, in Helm's order.

Called by ``sources/helm/rendering.py`` with the options of an Application and the contents of the files. Rules: Helm
``pkg/cli/values`` and Argo CD ``util/helm`` (reference argocd-app 5.3). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from syncline.kube.text.glob import glob_match
from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.strvals import SetError, set_text, set_with, typed
from syncline.sources.lookup import join

FIELD = "spec.source.helm"

LARGE = 10**6
"""From here on the engine in process prints whole numbers of parameters with an exponent."""

_GLOB = re.compile(r"[*?\[]")
"""Braces are alternatives of a pattern, and make none."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def has_scheme(name: str) -> bool:
    """Return True if a values file is named by a URL."""
    return _SCHEME.match(name) is not None


def file_at(folder: str, name: str, field: str, refs: Collection[str] = (), schemes: Collection[str] = ()) -> str:
    """Return the path of a values file or file parameter from the root. Raises :class:`SourceError`.

    ``$ref/path`` is returned unchanged if ``refs`` has the name, a URL if ``schemes`` has its scheme.
    """
    if has_scheme(name):
        scheme = name.partition("://")[0].lower()
        if scheme in schemes and scheme in ("http", "https"):
            return name
        raise SourceError(
            Problem.REFUSED,
            f"{field}: the URL scheme '{scheme}' is not allowed",
            field=field,
            fix="commit the file to the repository, or allow the scheme in helm.valuesFileSchemes of argocd-cm",
        )
    ref, _, rest = name.partition("/")
    if ref.startswith("$") and ref[1:] not in refs:
        known = ", ".join(sorted(f"${one}" for one in refs))
        message = f'source referenced "{ref}", which is not one of the available sources ({known})'
        raise SourceError(Problem.INVALID, message, field=field)
    path = join("", rest) if ref.startswith("$") else join(folder, name)
    if path is None:
        raise SourceError(
            Problem.REFUSED,
            f"file '{name}' resolved to outside repository root",
            field=field,
            fix="name a file of the same repository",
        )
    return f"{ref}/{path}" if ref.startswith("$") else path


def values_paths(
    folder: str,
    names: Sequence[str],
    *,
    ignore_missing: bool,
    exists: Callable[[str], bool],
    listing: Callable[[], list[str]],
    refs: Collection[str] = (),
    schemes: Collection[str] = (),
) -> list[str]:
    """Return the values files from the root, in the order of application. Raises :class:`SourceError`.

    A file that is named explicitly keeps its position even if a pattern matches it, too.
    """
    field = f"{FIELD}.valueFiles"
    places = [(name, file_at(folder, name, field, refs, schemes)) for name in names if name]
    named = {path for _, path in places if has_scheme(path) or not _GLOB.search(path)}
    found: list[str] = []
    for name, path in places:
        if path in named:
            if path in found:
                continue
            if exists(path):
                found.append(path)
            elif not ignore_missing:
                raise _missing(name, path, field)
            continue
        matches = [one for one in listing() if _globbed(path, one)]
        if not matches and not ignore_missing:
            raise SourceError(Problem.INVALID, f'values file glob "{name}" matched no files', field=field)
        found += [one for one in matches if one not in named and one not in found]
    return found


def _globbed(pattern: str, path: str) -> bool:
    if pattern.startswith("$") != path.startswith("$"):
        return False
    return any(glob_match(one, path, separators="/") for one in (pattern, pattern.replace("**/", "")))


def _missing(name: str, path: str, field: str) -> SourceError:
    return SourceError(
        Problem.INVALID,
        f"values file '{name}' is not in the repository ({path})",
        subject=path,
        field=field,
        fix="commit it, or set ignoreMissingValueFiles",
    )


def read_values(content: str | bytes, name: str) -> dict[str, Any]:
    """The first document of a values file. Raises :class:`SourceError`."""
    loaded = yaml.load_all(content, file=name, by_lines=False)
    if loaded.report.errors:
        error = loaded.report.errors[0]
        raise SourceError(Problem.INVALID, f"failed to parse {name}: {error}", subject=name, position=error.position)
    value = next((document.value for document in loaded.documents), None)
    if value is not None and not isinstance(value, dict):
        raise SourceError(Problem.INVALID, f"{name}: values are a mapping", subject=name)
    return value or {}


def merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return ``base`` overridden by ``more``: mappings are merged, everything else is replaced."""
    made = dict(base)
    for key, value in more.items():
        there = made.get(key)
        made[key] = merged(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return made


def parameters_into(
    values: dict[str, Any],
    parameters: Sequence[tuple[str, str, bool]],
    files: Sequence[tuple[str, str]],
) -> list[str]:
    """Apply parameters (name, value, force text), then files (name, content), to ``values`` in place.

    Returns warnings. Raises :class:`SourceError`.
    """
    large: list[str] = []
    last = {(name, force): value for name, value, force in parameters}
    for (name, force), value in sorted(last.items(), key=lambda entry: entry[0][1]):
        with_value = f"{name}={escaped(value)}"

        def read(text: str, name: str = name) -> Any:
            made = typed(text)
            if isinstance(made, int) and abs(made) >= LARGE:
                large.append(name)
            return made

        try:
            if force:
                set_text(values, with_value)
            else:
                set_with(values, with_value, read)
        except SetError as error:
            raise _unreadable(name, "--set-string" if force else "--set", error, "parameters") from None
    for name, content in files:
        try:
            set_with(values, f"{name}=file", lambda _, content=content: content)  # type: ignore[misc]
        except SetError as error:
            raise _unreadable(name, "--set-file", error, "fileParameters") from None
    return [
        f"helm parameter {name}: a number this large is printed with an exponent; set forceString" for name in large
    ]


def _unreadable(name: str, flag: str, error: SetError, field: str) -> SourceError:
    message = f"helm parameter {name!r}: failed parsing {flag} data: {error}"
    return SourceError(Problem.INVALID, message, field=f"{FIELD}.{field}")


_COMMA = re.compile(r"(?<!\\),")


def escaped(value: str) -> str:
    """Escape commas in a value, unless it is a list in braces."""
    return value if value.startswith("{") and value.endswith("}") else _COMMA.sub(r"\\,", value)
