"""Parses ``spec.config`` of a MachineConfig in any version, validates it, and converts it to 3.5.

Messages are the Machine Config Operator's, without line and column, which mean nothing in a field of an object. Source:
reference machine-config 2.5 and 2.6, ``pkg/controller/common/helpers.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from syncline.ignition import jsontext
from syncline.ignition.parsing import validate
from syncline.ignition.report import Report
from syncline.ignition.spec2.checking import check as check_spec2
from syncline.ignition.spec2.tables import spec2
from syncline.ignition.versions.converting import (
    CURRENT,
    ConversionError,
    parse_and_convert,
    parse_supported,
    refused_modes,
)
from syncline.kube.objects import Obj

NEWEST, NEWEST_VERSION = CURRENT, f"3.{CURRENT}.0"
"""The version in which configurations are rendered."""
KEPT = 1024
"""Maximum number of cached configurations; a cluster has a few hundred."""


class ConfigError(ValueError):
    """The configuration cannot be parsed; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A parsed config. ``lifted``: canonical at 3.5, None on an ``error``; ``invalid``: why not to render it."""

    lifted: Obj | None
    error: str
    invalid: str | None


def lifted_config(config: Any) -> Obj:
    """Return ``spec.config`` at 3.5, canonical; do not modify it. None raises an error of its own. Raises
    ConfigError."""
    read = _read(_text(config))
    if read.lifted is None:
        raise ConfigError(read.error)
    return read.lifted


def written_config(config: Any) -> tuple[bool, Obj]:
    """Return whether ``spec.config`` is 2.x, and the config as written (3.x converted to 3.5); do not modify it. Raises
    ConfigError."""
    return _written(_text(config))


@lru_cache(maxsize=KEPT)
def _written(text: str) -> tuple[bool, Obj]:
    try:
        version, found = parse_supported(text.encode())
    except ConversionError as problem:
        raise ConfigError(_placeless(problem)) from problem
    return version != NEWEST_VERSION, found


def invalid_config(config: Any) -> str | None:
    """Return why a config must not be rendered (its version's rules, those of 3.5, file modes), or None."""
    return _read(_text(config)).invalid


def _text(config: Any) -> str:
    return "" if config is None else jsontext.dump(config)


@lru_cache(maxsize=KEPT)
def _read(text: str) -> _Read:
    raw = text.encode()
    try:
        lifted: Obj | None = parse_and_convert(raw)
        error = ""
    except ConversionError as problem:
        lifted, error = None, _placeless(problem)
    return _Read(lifted, error, _judged(raw, lifted))


def forget() -> None:
    """Clear the cache; for benchmarks."""
    _read.cache_clear()
    _written.cache_clear()


def _judged(raw: bytes, lifted: Obj | None) -> str | None:
    try:
        version, config = parse_supported(raw)
    except ConversionError as problem:
        return _placeless(problem)
    if version == NEWEST_VERSION:
        return invalid_lifted(config if lifted is None else lifted)
    report = check_spec2(spec2(2), config)
    if report.fatal:
        return f"invalid ignition V2 config found: {_without_places(report)}"
    return refused_modes(config)


def invalid_lifted(lifted: Obj) -> str | None:
    """Return the same as :func:`invalid_config` for a canonical configuration of 3.5."""
    report = validate(lifted, NEWEST_VERSION, release_2_26=True)
    if report.fatal:
        return f"invalid ignition V3 config found: {_without_places(report)}"
    return refused_modes(lifted)


def _placeless(problem: ConversionError) -> str:
    sentence, reported, _ = str(problem).partition("\nReport: ")
    return f"{sentence}{reported}{_without_places(problem.report)}" if reported else sentence


def _without_places(report: Report) -> str:
    entries = tuple(replace(entry, line=None, column=None, excerpt="") for entry in report.entries)
    return str(Report(entries))
