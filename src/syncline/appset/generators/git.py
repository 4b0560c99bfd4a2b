"""The ``git`` generator: rows of directories, or of the contents of files.

Which paths there are is an answer; patterns for directories are matched here (``path.Match``: ``*`` stops at ``/``,
there is no ``**``), those for files where the files are read (``globs.py``).
"""

from __future__ import annotations

import posixpath

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.questions import Answer, DirectoriesQuestion, FilesQuestion, GitFiles, GitPaths
from syncline.appset.rendering.goforms import GoError, flattened, shown, yaml_objects
from syncline.appset.rendering.slug import normalize
from syncline.kube.gotemplate.values import Strings
from syncline.kube.text.glob import GlobError, path_match
from syncline.sources.git.signatures import CHECK

MAX_FILE = 2 * 1024 * 1024
"""Characters of a file of parameters."""


def rows_of_git(element: Element, context: Context) -> Rows:
    """Return rows of ``directories`` if there are any, else of ``files``, sorted by path."""
    project = _project(context)
    if element.items("directories"):
        rows = _directories(element, context, project)
    elif element.items("files"):
        rows = _files(element, context, project)
    else:
        raise GenerationError("ApplicationSet is empty")
    return rows


def _project(context: Context) -> str:
    """Return the project whose credentials may be used: none for a templated one. It must exist."""
    project = context.project
    if "{{" in project:
        return ""
    if project not in context.facts.projects:
        why = context.facts.unread.get(f"AppProject/{project}")
        missing = f'appprojects.argoproj.io "{project}" not found'
        raise GenerationError(f"error getting project {project}: {why or missing}")
    return project


def interval(element: Element, context: Context) -> float:
    return element.seconds("requeueAfterSeconds", context.facts.requeue_s)


# --- directories --------------------------------------------------------------------------------------------------


def _directories(element: Element, context: Context, project: str) -> Rows:
    question = DirectoriesQuestion(
        element.text("repoURL"),
        element.text("revision"),
        project,
        signed=bool(project),
        trusted=context.trusted,
    )
    answer = context.ask(question, interval(element, context))
    if not isinstance(answer.value, GitPaths):
        raise _failed(f"error getting directories from repo: {_why(answer, 'error retrieving Git Directories: ')}")
    rules = [(one.text("path"), one.flag("exclude")) for one in element.elements("directories")]
    seen = answer.value.paths if context.facts.hidden else [path for path in answer.value.paths if not _hides(path)]
    chosen = [path for path in seen if _is_wanted(path, rules)]
    try:
        return [_directory_row(path, element, context) for path in chosen]
    except GenerationError as error:
        raise _failed(f"error generating params from apps: failed to append templated values: {error}") from None


def _hides(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _is_wanted(path: str, rules: list[tuple[str, bool]]) -> bool:
    """An exclusion always wins; a pattern with a syntax error matches nothing."""
    matching = {excluded for pattern, excluded in rules if _matches(pattern, path)}
    return matching == {False}


def _matches(pattern: str, path: str) -> bool:
    try:
        return path_match(pattern, path)
    except GlobError:
        return False


def _directory_row(path: str, element: Element, context: Context) -> Row:
    row: Row = {}
    _put_path(row, path, {}, element.text("pathParamPrefix"), go=context.go)
    context.add_values(row, element)
    return row


def _put_path(row: Row, path: str, names: dict[str, str], prefix: str, *, go: bool) -> None:
    """Put the parameters of a path: nested for Go templates, else as ``path``, ``path.basename``, ``path[0]``."""
    base = _base(path)
    named = {"basename": base, "basenameNormalized": normalize(base), **names}
    segments = path.split("/")
    if go:
        nested = {"path": path, **named, "segments": Strings(segments)}
        row.update({prefix: {"path": nested}} if prefix else {"path": nested})
        return
    key = f"{prefix}.path" if prefix else "path"
    row[key] = path
    row.update({f"{key}.{name}": text for name, text in named.items()})
    row.update({f"{key}[{index}]": segment for index, segment in enumerate(segments) if segment})


def _base(path: str) -> str:
    """Go's ``path.Base``."""
    return posixpath.basename(path.rstrip("/")) or ("/" if path else ".")


# --- files --------------------------------------------------------------------------------------------------------


def _files(element: Element, context: Context, project: str) -> Rows:
    rules = [(one.text("path"), one.flag("exclude")) for one in element.elements("files")]
    question = FilesQuestion(
        element.text("repoURL"),
        element.text("revision"),
        project,
        tuple(path for path, excluded in rules if not excluded),
        tuple(path for path, excluded in rules if excluded),
        context.facts.doublestar,
        signed=bool(project),
        trusted=context.trusted,
    )
    answer = context.ask(question, interval(element, context))
    if not isinstance(answer.value, GitFiles):
        raise _failed(f"error retrieving Git files: {_why(answer)}")
    rows: Rows = []
    for path in sorted(answer.value.texts):
        try:
            rows += _file_rows(path, answer.value.texts[path], element, context)
        except GenerationError as error:
            where = f"unable to process file '{path}' from repository '{question.repo_url}'"
            raise _failed(f"{where}: {error}") from None
    return rows


def _file_rows(path: str, text: str, element: Element, context: Context) -> Rows:
    if len(text) > MAX_FILE:
        raise GenerationError(f"unable to parse file: it has {len(text)} characters, at most {MAX_FILE} are read")
    return [_file_row(path, found, element, context) for found in _objects(text)]


def _objects(text: str) -> Rows:
    """Return the object of a file, or each of its list; an empty file is one empty object."""
    try:
        return yaml_objects(text)
    except GoError as error:
        raise GenerationError(f"unable to parse file: {error}") from None


def _file_row(path: str, found: Row, element: Element, context: Context) -> Row:
    row = dict(found) if context.go else {key: shown(value) for key, value in flattened(found).items()}
    name = _base(path)
    names = {"filename": name, "filenameNormalized": normalize(name)}
    _put_path(row, posixpath.dirname(path) or ".", names, element.text("pathParamPrefix"), go=context.go)
    try:
        context.add_values(row, element)
    except GenerationError as error:
        raise GenerationError(f"failed to append templated values: {error}") from None
    return row


def _failed(why: str) -> GenerationError:
    return GenerationError(f"error generating params from git: {why}")


def _why(answer: Answer, doing: str = "") -> str:
    """Say what failed; of a signature in the words in which argocd's repository server answers its controller."""
    why = answer.error or "the answer is of another kind"
    return f"{doing}rpc error: code = Unknown desc = {why}" if why.startswith(CHECK) else why
