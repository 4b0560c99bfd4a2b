"""``spec.config`` of a MachineConfig: read in whatever version it is written, judged, and lifted to 3.5.

Sentences are the Machine Config Operator's, without lines and columns, which say nothing about a field of an object.
Source: reference machine-config 2.5 and 2.6, ``pkg/controller/common/helpers.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from syncline.ignition import jsontext
from syncline.ignition.parsing import INVALID_VERSION, UNKNOWN_VERSION, parse, validate
from syncline.ignition.report import Report
from syncline.ignition.upward import lift
from syncline.kube.objects import Obj

__all__ = [
    "NEWEST",
    "NEWEST_VERSION",
    "Config",
    "ConfigError",
    "invalid_config",
    "invalid_lifted",
    "lifted_config",
    "read_config",
    "refused_modes",
]

NEWEST, NEWEST_VERSION = 5, "3.5.0"
"""The version in which configurations are rendered."""
KEPT = 1024
"""Configurations whose reading is remembered; a cluster has a few hundred."""
MAX_MODE = 0o777
_SUPPORTED = "Supported spec versions: 2.2,3.0,3.1,3.2,3.3,3.4,3.5"


class ConfigError(ValueError):
    """A configuration that cannot be read; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration as written. ``minor`` of 3.y; -1 for 2.x. ``canonical`` is at its own version, ``lifted`` at
    3.5; None if it cannot be lifted, then ``unliftable`` says why. Neither may be changed."""

    minor: int
    canonical: Obj
    lifted: Obj | None
    unliftable: str = ""


def read_config(config: Any) -> Config:
    """Read ``spec.config``; None is no configuration, which is an error of its own. Raises ConfigError."""
    read = _read("" if config is None else jsontext.dump(config))
    if isinstance(read, str):
        raise ConfigError(read)
    return read


@lru_cache(maxsize=KEPT)
def _read(text: str) -> Config | str:
    raw = text.encode()
    parsed = parse(raw, newest=NEWEST, release_2_26=True)
    if parsed.config is not None:
        minor = int(parsed.config["ignition"]["version"].split(".")[1])
        return Config(minor, parsed.config, lift(parsed.config, minor, NEWEST))
    if parsed.error == INVALID_VERSION:
        return f"parsing Ignition config failed: invalid version. {_SUPPORTED}"
    if parsed.error == UNKNOWN_VERSION:
        return f"parsing Ignition config failed: unknown version. {_SUPPORTED}"
    return f"parsing Ignition config spec v3 failed with error: {parsed.error}\nReport: {_placeless(parsed.report)}"


def _placeless(report: Report) -> str:
    entries = tuple(replace(entry, line=None, column=None, excerpt="") for entry in report.entries)
    return str(Report(entries))


def lifted_config(config: Any) -> Obj:
    """``spec.config`` at 3.5, canonical. Raises ConfigError."""
    try:
        read = read_config(config)
    except ConfigError as error:
        raise ConfigError(f"failed to parse Ignition config: {error}") from error
    if read.lifted is None:
        raise ConfigError(read.unliftable)
    return read.lifted


def invalid_config(config: Any) -> str | None:
    """Why a configuration may not be rendered: its own rules, those of 3.5, and modes of files. None: it is fine."""
    try:
        read = read_config(config)
    except ConfigError as error:
        return str(error)
    return invalid_lifted(read.lifted) if read.lifted is not None and read.minor >= 0 else refused_modes(read.canonical)


def invalid_lifted(lifted: Obj) -> str | None:
    """As :func:`invalid_config`, for a canonical configuration of 3.5."""
    report = validate(lifted, NEWEST_VERSION, release_2_26=True)
    if report.fatal:
        return f"invalid ignition V3 config found: {_placeless(report)}"
    return refused_modes(lifted)


def refused_modes(config: Obj) -> str | None:
    """Files with bits above 0777 would not be what they were on every machine."""
    for file in (config.get("storage") or {}).get("files") or ():
        mode = file.get("mode")
        if mode is not None and mode % 2**32 > MAX_MODE:
            return f"invalid mode {_octal(mode)} for {file.get('path', '')}, cannot exceed {_octal(MAX_MODE)}"
    return None


def _octal(mode: int) -> str:
    """Go's ``%#o``."""
    return f"-0{-mode:o}" if mode < 0 else f"0{mode:o}"
