"""Evaluates Jsonnet in a render worker: :func:`evaluate`.

From files and variables it returns JSON text. Imports are resolved from these files, never from the disk.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator
from typing import Any

from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import join

MAX_STACK = 500
"""As the reference implementation."""
MAX_TRACE = 8
"""Lines of a stack trace in a message."""


def candidates(folder: str, name: str, search: list[str]) -> Iterator[str]:
    """Yield the paths from the root that an import of ``name`` in ``folder`` may mean, best first (FileImporter)."""
    if name.startswith("/"):
        return
    for place in (folder, *search):
        path = join(place, name)
        if path is not None:
            yield path


def evaluate(payload: dict[str, Any]) -> list[str]:
    """Return the JSON text of each main file. Raises :class:`SourceError` with file, line and column."""
    import rjsonnet

    answered = _importer(payload["files"], payload["search"])
    variables = {name: payload[name] for name in ("ext_vars", "ext_codes", "tla_vars", "tla_codes")}
    texts: list[str] = []
    for main in payload["mains"]:
        try:
            program = f"import {_quoted(main)}"
            texts.append(
                rjsonnet.evaluate_snippet(
                    "", program, max_stack=MAX_STACK, max_trace=MAX_TRACE, import_callback=answered, **variables
                )
            )
        except RuntimeError as error:
            raise SourceError(Problem.INVALID, f"{main}: {_one_line(str(error))}", subject=main) from None
    return texts


def _importer(files: dict[str, bytes], search: list[str]) -> Callable[[str, str], tuple[str, str]]:
    start = os.getcwd()

    def answer(folder: str, name: str) -> tuple[str, str]:
        if folder == start:
            # The program that names the main file, from the root.
            return name, files[name].decode("utf-8", "replace")
        for path in candidates(folder, name, search):
            if path in files:
                return path, files[path].decode("utf-8", "replace")
        shown = posixpath.join(folder, name)
        raise RuntimeError(f"couldn't open import {name!r} ({shown}): no such file in the repository")

    return answer


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _one_line(text: str) -> str:
    """Return the error and its position without the rest of the trace."""
    lines = [line.strip() for line in text.removeprefix("import_callback error: RuntimeError: ").splitlines()]
    return " at ".join(line for line in lines[:2] if line)
