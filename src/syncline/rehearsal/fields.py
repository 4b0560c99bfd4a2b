"""Values of a file that people write, each with its path: :class:`Field` names it in every error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.rehearsal.scenario import ScenarioError


@dataclass(frozen=True, slots=True)
class Field:
    """A value of the file and its path."""

    file: Path
    where: str
    value: Any

    def __getitem__(self, key: str) -> Field:
        return Field(self.file, f"{self.where}.{key}".lstrip("."), self._of(dict, "a mapping").get(key))

    def wrong(self, found: str, allowed: str) -> ScenarioError:
        return ScenarioError(f"{self.file}: {self.where or 'the file'}: found {found}; allowed: {allowed}")

    def _of(self, kind: type, allowed: str) -> Any:
        if self.value is not None and not isinstance(self.value, kind):
            raise self.wrong(repr(self.value), allowed)
        return kind() if self.value is None else self.value

    def known(self, *allowed: str) -> Field:
        """Return self after checking that it is a mapping with only these keys."""
        unknown = sorted(str(key) for key in self.map() if key not in allowed)
        if unknown:
            raise self.wrong(f"the key {unknown[0]!r}", ", ".join(allowed))
        return self

    def map(self) -> Obj:
        found: Obj = self._of(dict, "a mapping")
        return found

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple((str(key), str(value)) for key, value in self.map().items())

    def each(self) -> tuple[Field, ...]:
        return tuple(Field(self.file, f"{self.where}[{i}]", one) for i, one in enumerate(self._of(list, "a list")))

    def flag(self) -> bool:
        return bool(self._of(bool, "true or false"))

    def text(self, otherwise: str = "") -> str:
        return str(self.value or otherwise)

    def needed(self, key: str, allowed: str) -> str:
        if not self[key].value:
            raise self.wrong(f"no {key}", allowed)
        return self[key].text()

    def texts(self) -> tuple[str, ...]:
        for one in self.each():
            if not isinstance(one.value, str):
                raise self.wrong(repr(one.value), "texts")
        return tuple(self._of(list, "a list"))

    def target(self) -> str:
        report = self.value
        if not isinstance(report, str) or report.count("/") not in (1, 2) or not all(report.split("/")):
            raise self.wrong(repr(report), "KIND/NAME or KIND/NAMESPACE/NAME")
        return report

    def duration(self, otherwise: timedelta) -> timedelta:
        if self.value is None:
            return otherwise
        try:
            found = parse_duration(str(self.value))
        except DurationError as error:
            raise self.wrong(repr(self.value), "a duration such as 90m or 2h") from error
        if found <= timedelta(0):
            raise self.wrong(repr(self.value), "a duration longer than nothing")
        return found
