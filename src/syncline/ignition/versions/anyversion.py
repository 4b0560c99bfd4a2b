"""A configuration of whatever version as another: for people at a command line, who name a file and a version.

Joins the ways of the other modules: 1 and 2.x are translated to 3.1 as coreos/ign-converter does it, newer versions are
reached by lifting, older ones by what the config server does. Upstream has no way down from 3.6 or to 3.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from syncline.ignition.golang import Version, parse_version
from syncline.ignition.parsing import UNKNOWN_VERSION, minor_of, parse
from syncline.ignition.schema import NEWEST, version_text
from syncline.ignition.spec2.parsing import parse2
from syncline.ignition.spec2.translating import TranslationError, translate
from syncline.ignition.versions.converting import CURRENT, ConversionError
from syncline.ignition.versions.downward import DowngradeError, lower, lower_to_2_2
from syncline.ignition.versions.upward import lift

Value: TypeAlias = "dict[str, Any]"

_KNOWN = ("2.2.0", *(version_text(minor) for minor in range(NEWEST + 1)))


@dataclass(frozen=True, slots=True)
class Known:
    """A canonical configuration of 3.``minor``, and the warnings about its text, ended by newlines."""

    minor: int
    config: Value
    warnings: str


def read_any(raw: bytes, filesystems: dict[str, str] | None = None) -> Known:
    """Specification 1, 2.0 to 2.4 (as 3.1) or 3.0 to the newest (as it is). ``filesystems``: where the named
    filesystems of 2.x are mounted. Raises :class:`~syncline.ignition.versions.converting.ConversionError` with the
    report."""
    config, report, error = parse(raw)
    if config is not None:
        version = parse_version(config["ignition"]["version"])
        minor = None if version is None else minor_of(version)
        assert minor is not None
        return Known(minor, config, str(report))
    if error != UNKNOWN_VERSION:
        raise ConversionError(f"{report}{error}")
    old = parse2(raw)
    if old.config is None:
        raise ConversionError(f"{old.text}\n{old.error}" if old.text else str(old.error))
    try:
        translated = translate(old.config, 4, filesystems)
    except TranslationError as problem:
        raise ConversionError(str(problem)) from None
    said = f"{old.text}\n" if old.text else ""
    return Known(1, translated, said + "".join(f"warning: {loss}\n" for loss in _lost_from_2(old.config)))


def _lost_from_2(config: Value) -> Iterator[str]:
    """What the translation leaves out, although upstream only says that it is deprecated."""
    for user in config.get("passwd", {}).get("users", ()):
        if user.get("create") is not None:
            yield f"user {user.get('name', '')}: what its create object says is lost; say it of the user itself"
    for filesystem in config.get("storage", {}).get("filesystems", ()):
        if (filesystem.get("mount") or {}).get("create") is not None:
            name = filesystem.get("name", "")
            yield f"filesystem {name}: what its create object says is lost; say it of the mount itself"


def known_version(text: str) -> Version:
    """``3.4.0``, also written ``3.4``; raises ValueError for a version that nothing can be brought to."""
    version = parse_version(text if text.count(".") > 1 else f"{text}.0")
    if version == Version(3, NEWEST, 0):
        version = parse_version(version_text(NEWEST))
    if version is None or str(version) not in _KNOWN:
        raise ValueError(f"there is no version {text!r} to convert to; give one of {', '.join(_KNOWN)}")
    return version


def losses(known: Known, target: Version) -> list[str]:
    """What is lost on the way to ``target`` without being refused, as upstream loses it."""
    storage = known.config.get("storage", {})
    volumes, lowest = storage.get("luks", ()), 2 if target.major == 2 else target.minor
    lost: list[str] = []
    servers = [tang for luks in volumes for tang in (luks.get("clevis") or {}).get("tang", ())]
    if any(tang.get("advertisement") for tang in servers) and (known.minor == 4 < lowest or lowest < 5 == known.minor):
        lost.append("the advertisement of tang servers")
    if lowest < 5 <= known.minor and any("cex" in luks for luks in volumes):
        lost.append("the cex section of LUKS volumes")
    if known.minor < 6 <= lowest:
        nodes = (*storage.get("files", ()), *storage.get("directories", ()))
        lost += [f"the special mode bits of {node['path']}" for node in nodes if node.get("mode", 0) & 0o7000]
    if target.major == 2:
        empty = (file for file in storage.get("files", ()) if not file.get("append"))
        paths = [file["path"] for file in empty if file.get("contents", {}).get("source") is None]
        lost += [f"the file {path}, which has no contents" for path in paths]
    return lost


def bring(known: Known, target: Version) -> Value:
    """The configuration as ``target`` (see :func:`known_version`). Raises
    :class:`~syncline.ignition.versions.converting.ConversionError` if the older version cannot say something."""
    try:
        if target.major == 2:
            return lower_to_2_2(_at(known, 2))
        return _at(known, target.minor)
    except DowngradeError as problem:
        raise ConversionError(str(problem)) from None


def _at(known: Known, minor: int) -> Value:
    if minor >= known.minor:
        return lift(known.config, known.minor, minor)
    if known.minor > CURRENT or minor < 1:
        raise ConversionError(f"there is no way from {version_text(known.minor)} down to {version_text(minor)}")
    return lower(known.config, known.minor, minor)
