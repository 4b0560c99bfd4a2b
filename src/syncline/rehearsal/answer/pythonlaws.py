"""Laws in Python, from a file of the person who rehearses: :func:`python_laws`.

``docs/testing-repositories.md`` shows one. The file is run as it is, with the rights of that
person. So it is named on the command line, and never found in a repository: what arrives by a commit may only have laws
in CEL (``ownlaws.py``).
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from syncline.rehearsal.answer.laws import Finding, RecordLaw
from syncline.rehearsal.record import Record
from syncline.rehearsal.scenario import ScenarioError

MAX_LAWS, MAX_FOUND = 100, 1_000
"""Laws of a file; findings of one law that are looked at."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@runtime_checkable
class PythonLaw(Protocol):
    """What the list ``LAWS`` of the file has. ``demand``: what must hold; ``reason``: why it does."""

    @property
    def name(self) -> str: ...

    @property
    def demand(self) -> str: ...

    @property
    def reason(self) -> str: ...

    def check(self, record: Record) -> Iterable[tuple[datetime, str]]:
        """Yield what breaks the law: when, and a sentence. The record is only read."""
        ...


def python_laws(file: Path, repository: Path) -> tuple[RecordLaw, ...]:
    """Run a file and return its laws. Raises ScenarioError (usage) for one in the tested ``repository``, and for what
    is no law."""
    place = file.resolve()
    if place.is_relative_to(repository.resolve()):
        said = f"--laws {file}: lies in the repository that it judges, so that a commit could run code here"
        raise ScenarioError(f"{said}; allowed: a file of yours elsewhere (those of a repository are CEL)", usage=True)
    if not place.is_file():
        raise ScenarioError(f"--laws {file}: there is no such file", usage=True)
    try:
        found = runpy.run_path(str(place)).get("LAWS")
    except Exception as error:
        raise ScenarioError(f"--laws {file}: {type(error).__name__}: {error}", usage=True) from error
    if not isinstance(found, list | tuple) or len(found) > MAX_LAWS:
        raise ScenarioError(f"--laws {file}: allowed: a list LAWS of at most {MAX_LAWS} laws", usage=True)
    return tuple(_law(file, number, one) for number, one in enumerate(found))


def _law(file: Path, number: int, one: Any) -> RecordLaw:
    if not isinstance(one, PythonLaw) or not callable(one.check) or not _NAME.fullmatch(str(one.name)):
        allowed = "an object with name (lower case letters, digits and -), demand, reason and check(record)"
        raise ScenarioError(f"--laws {file}: LAWS[{number}]: found {one!r}; allowed: {allowed}", usage=True)
    return RecordLaw(one.name, str(one.demand), str(one.reason), _guarded(one))


def _guarded(law: PythonLaw) -> Callable[[Record], Iterator[Finding]]:
    """Return its check; one that raises has broken its law."""

    def check(record: Record) -> Iterator[Finding]:
        try:
            for number, (at, text) in enumerate(law.check(record)):
                if number >= MAX_FOUND:
                    return
                yield Finding(at, str(text))
        except Exception as error:
            yield Finding(record.ended, f"cannot be judged: {type(error).__name__}: {error}")

    return check
