"""Reads faults that strike at a time: :func:`mishap`, and a file of faults: :func:`faults_of`. Errors name the path,
what was found and what is allowed."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from syncline.kube.yaml.loading import YamlError, load
from syncline.rehearsal.disturbing import MAX_FAULTS, SCENARIO, read_faults
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.fields import Field
from syncline.rehearsal.mishaps import PROCESSES, Kind, Mishap, Timed
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.expectations import moment

MAX_TIMES, MAX_TARGET = 100, 300
MAX_TAKES, MAX_BY = timedelta(days=1), timedelta(days=365)
KEYS = {
    Kind.SLOW_PULL: ("takes",),
    Kind.HOOK_FAILS: ("times",),
    Kind.HOOK_HANGS: ("times",),
    Kind.FAILED_BOOT: ("times",),
    Kind.CLOCK: ("by",),
}
"""What a kind needs besides its target and ``for``."""
SPACED = (Kind.HOOK_FAILS, Kind.HOOK_HANGS, Kind.WEBHOOK_DOWN)
_KEYED = re.compile(r"^(faults|when):", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PATTERN = re.compile(r"[-a-z0-9.*?]{1,253}")


def faults_of(text: str, file: str) -> tuple[Schedule | None, tuple[Timed, ...]]:
    """Return what a file of faults names: one line with a schedule; or YAML with such a line as ``faults``, and with
    ``when``, a list of faults that last as scenarios have them: ``{at: 5m, fault: …}``. Raises ScenarioError."""
    if not _KEYED.search(text):
        return read_faults(text, file), ()
    try:
        found = Field(Path(file), "", load(text.encode(), file=file)).known("faults", "when")
        entries = found["when"].each()
        if len(entries) > MAX_FAULTS:
            raise found["when"].wrong(f"{len(entries)} faults", f"at most {MAX_FAULTS}")
        return schedule(found["faults"]), tuple(map(_timed, entries))
    except (YamlError, ScenarioError) as error:
        raise ScenarioError(str(error), usage=True) from error


def schedule(at: Field) -> Schedule | None:
    """Return the schedule of a field, whose scenario may be left out; None: there is none. Raises ScenarioError."""
    if at.value is None:
        return None
    text = at.text()
    return read_faults(text if ";" in text else f"{SCENARIO}; {text}", f"{at.file}: {at.where}")


def _timed(one: Field) -> Timed:
    struck, lasts = mishap(one.known("at", "fault")["fault"])
    return Timed(struck, moment(one["at"]) if one["at"].value is not None else timedelta(0), lasts)


def mishap(at: Field) -> tuple[Mishap, timedelta | None]:
    """Return the fault and how long it lasts; None: to the end. Raises ScenarioError."""
    kinds = [str(kind) for kind in Kind if str(kind) in at.map()]
    if len(kinds) != 1:
        raise at.wrong(", ".join(map(str, at.map())) or "nothing", f"one of {', '.join(Kind)}")
    kind = Kind(kinds[0])
    at.known(str(kind), "for", *KEYS.get(kind, ()))
    times = at["times"].value if at["times"].value is not None else 1
    if type(times) is not int or not 1 <= times <= MAX_TIMES:
        raise at["times"].wrong(repr(times), f"a number from 1 to {MAX_TIMES}")
    if kind is Kind.CLOCK:
        return Mishap(kind, _target(kind, at[str(kind)]), _by(at["by"])), _lasts(at["for"])
    takes = at["takes"].duration(timedelta(minutes=10))
    if takes > MAX_TAKES:
        raise at["takes"].wrong(repr(at["takes"].value), "at most 24h")
    return Mishap(kind, _target(kind, at[str(kind)]), takes.total_seconds(), times), _lasts(at["for"])


def _lasts(at: Field) -> timedelta | None:
    return None if at.value is None else at.duration(timedelta(0))


def _by(at: Field) -> float:
    """Return the seconds by which a clock is off, negative for one that is late."""
    text = at.text()
    seconds = Field(at.file, at.where, text.removeprefix("-")).duration(timedelta(0)).total_seconds()
    if not 0 < seconds <= MAX_BY.total_seconds():
        raise at.wrong(repr(at.value), "a duration up to 8760h, such as 1h, or -1h for a clock that is late")
    return -seconds if text.startswith("-") else seconds


def _target(kind: Kind, at: Field) -> str:
    text = at.text()
    if not isinstance(at.value, str) or len(text) > MAX_TARGET:
        raise at.wrong(repr(at.value), f"a text of at most {MAX_TARGET} characters")
    if kind is Kind.SLOW_PULL:
        return text
    if kind is Kind.CLOCK and text not in PROCESSES:
        raise at.wrong(repr(text), " or ".join(PROCESSES))
    if kind not in SPACED:
        if not _NAME.fullmatch(text):
            raise at.wrong(repr(text), "the name of a node" + (", gitops or machine-config" * (kind is Kind.PARTITION)))
        return text
    parts = text.split("/")
    allowed = _NAME if kind is Kind.WEBHOOK_DOWN else _PATTERN
    if len(parts) != 2 or not all(allowed.fullmatch(part) for part in parts):
        what = "Service" if kind is Kind.WEBHOOK_DOWN else "Job; its name may be a pattern such as shop/migrate-*"
        raise at.wrong(repr(text), f"NAMESPACE/NAME of a {what}")
    return text
