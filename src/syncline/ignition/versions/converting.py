"""Between versions as the Machine Config Operator goes: every configuration to 3.5.0, and from there to what an older
client reads.

Up: 2.x is read as 2.2 (newer 2.x is refused), cleaned of duplicates from the end, translated to 3.0 and lifted. Down:
3.5 → 3.4 → 3.3 → 3.2 → 3.1 or 2.2; a step refuses what the older version cannot say. Sentences are upstream's. Source:
openshift/machine-config-operator ``pkg/controller/common/helpers.go``, ``ignition_converter.go``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from syncline.ignition.checking import check
from syncline.ignition.golang import parse_version
from syncline.ignition.parsing import INVALID, INVALID_VERSION, UNKNOWN_VERSION, Parsed, minor_of, parse
from syncline.ignition.payload import decode_payload
from syncline.ignition.report import Report
from syncline.ignition.rules import Spec
from syncline.ignition.spec2.checking import check as check2
from syncline.ignition.spec2.lifting import lift as lift2
from syncline.ignition.spec2.parsing import parse2
from syncline.ignition.spec2.tables import spec2
from syncline.ignition.spec2.translating import TranslationError, report_lines, translate
from syncline.ignition.versions.downward import DowngradeError, lower, lower_to_2_2
from syncline.ignition.versions.upward import lift

Value: TypeAlias = "dict[str, Any]"

CURRENT = 5
"""Everything is kept as 3.5.0 (Machine Config Operator 4.22)."""
MAX_MODE = 0o777
_SUPPORTED = "Supported spec versions: 2.2,3.0,3.1,3.2,3.3,3.4,3.5"


class ConversionError(ValueError):
    """Upstream's sentence; ``report`` holds the entries behind it."""

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report or Report()


def parse_supported(raw: bytes) -> tuple[str, Value]:
    """A configuration of a supported version (2.0 to 2.2, 3.0 to 3.5) and which language it is in now: ``("3.5.0",
    config)`` or ``("2.2.0", config)``. Raises :class:`ConversionError`."""
    config, report, error = _parse3(raw)
    if config is not None:
        return f"3.{CURRENT}.0", config
    if error == INVALID_VERSION:
        raise ConversionError(f"parsing Ignition config failed: invalid version. {_SUPPORTED}")
    if error != UNKNOWN_VERSION:
        raise ConversionError(f"parsing Ignition config spec v3 failed with error: {error}\nReport: {report}", report)
    old = parse2(raw, 2)
    if old.config is not None:
        return "2.2.0", old.config
    if old.error == UNKNOWN_VERSION:
        raise ConversionError(f"parsing Ignition config failed: unknown version. {_SUPPORTED}")
    raise ConversionError(f"parsing Ignition spec v2 failed with error: {old.error}\nReport: {old.text}", old.report)


def _parse3(raw: bytes) -> Parsed:
    parsed = parse(raw, newest=CURRENT, release_2_26=True)
    if parsed.config is None:
        return parsed
    version = parse_version(parsed.config["ignition"]["version"])
    minor = None if version is None else minor_of(version)
    assert minor is not None
    return Parsed(lift(parsed.config, minor, CURRENT), parsed.report, None)


def parse_and_convert(raw: bytes) -> Value:
    """Any supported configuration as a canonical one of 3.5.0. Raises :class:`ConversionError`."""
    try:
        version, config = parse_supported(raw)
    except ConversionError as problem:
        raise ConversionError(f"failed to parse Ignition config: {problem}", problem.report) from None
    if version != "2.2.0":
        return config
    cleaned = without_duplicates(config)
    try:
        return lift(translate(lift2(cleaned, 2, 3), 3), 0, CURRENT)
    except TranslationError as problem:
        message = "failed to convert Ignition config spec v2 to v3: unable to convert Ignition spec v2 config to v3: "
        raise ConversionError(f"{message}{problem}") from None


def parse_payload(raw: bytes) -> Value:
    """The same for bytes that may be gzipped or in base64; raises :class:`ConversionError` or
    :class:`~syncline.ignition.payload.PayloadError`."""
    return parse_and_convert(decode_payload(raw))


def convert_raw_to(raw: bytes, version: str) -> Value:
    """The text of a configuration as ``version``, as the config server does it; raises :class:`ConversionError`. What
    was written in 2.x cannot be served so: the server reads it as 2.2 and then knows 3.x only."""
    current, config = parse_supported(raw)
    if current == "2.2.0":
        raise ConversionError(f"parsing Ignition config failed with error: {UNKNOWN_VERSION}\nReport: ")
    report = check(Spec(CURRENT, release_2_26=True), config)
    if report.fatal:
        raise ConversionError(f"parsing Ignition config failed with error: {INVALID}\nReport: {report}", report)
    return convert_to(config, version)


def refusal(raw: bytes) -> str | None:
    """Why a machine config with this configuration may not be rendered; None if it may. Beside the verdict on the text
    itself: the verdict on what becomes of it, and files whose mode exceeds 0777."""
    try:
        version, config = parse_supported(raw)
    except ConversionError as problem:
        return str(problem)
    if version == "2.2.0":
        report = check2(spec2(2), config)
        if report.fatal:
            return f"invalid ignition V2 config found: {report_lines(report.entries)}"
    else:
        report = check(Spec(CURRENT, release_2_26=True), config)
        if report.fatal:
            return f"invalid ignition V3 config found: {report}"
    return refused_modes(config)


def refused_modes(config: Value) -> str | None:
    """Files with bits above 0777 would not be what they were on every machine."""
    for file in (config.get("storage") or {}).get("files") or ():
        mode = file.get("mode")
        if mode is not None and mode % 2**32 > MAX_MODE:
            return f"invalid mode {_octal(mode)} for {file.get('path', '')}, cannot exceed {_octal(MAX_MODE)}"
    return None


def _octal(mode: int) -> str:
    """Go's ``%#o``."""
    return f"-0{-mode:o}" if mode < 0 else f"0{mode:o}"


def convert_to(config: Value, version: str) -> Value:
    """A canonical configuration of 3.5.0 as ``version`` (``2.2.0``, ``3.1.0`` to ``3.5.0``), to serve an older client.
    Raises :class:`ConversionError`."""
    parsed = parse_version(version)
    if parsed is not None and str(parsed) in _SERVED:
        try:
            if parsed.major == 2:
                return lower_to_2_2(lower(config, CURRENT, 2))
            return lower(config, CURRENT, parsed.minor)
        except DowngradeError as problem:
            raise ConversionError(str(problem)) from None
    raise ConversionError(
        f"conversion for source version 3.{CURRENT}.0 to target version {version} is not supported the requested "
        "conversion is not supported"
    )


_SERVED = ("2.2.0", *(f"3.{minor}.0" for minor in range(1, CURRENT + 1)))


# -- duplicates ------------------------------------------------------------------------------------------------------


def without_duplicates(config: Value) -> Value:
    """A 2.x configuration with each file, unit and user once, read from the end: the last definition wins, so the order
    of files and units is reversed. Dropins of earlier units join the later ones, keys of earlier users the last user's.
    Raises :class:`ConversionError` for users beside ``core``."""
    cleaned = dict(config)
    storage, systemd, passwd = (dict(config.get(name, {})) for name in ("storage", "systemd", "passwd"))
    if storage.get("files"):
        storage["files"] = _last_of_each_path(storage["files"])
        cleaned["storage"] = storage
    if systemd.get("units"):
        systemd["units"] = _units_once(systemd["units"])
        cleaned["systemd"] = systemd
    if passwd.get("users"):
        passwd["users"] = [_one_user(passwd["users"])]
        cleaned["passwd"] = passwd
    return cleaned


def _last_of_each_path(files: list[Value]) -> list[Value]:
    kept: dict[str, Value] = {}
    for file in reversed(files):
        kept.setdefault(file.get("path", ""), file)
    return list(kept.values())


def _units_once(units: list[Value]) -> list[Value]:
    kept: dict[str, Value] = {}
    for unit in reversed(units):
        name = unit.get("name", "")
        if name not in kept:
            kept[name] = dict(unit)
            continue
        dropins = list(kept[name].get("dropins", ()))
        known = {dropin.get("name", "") for dropin in dropins}
        for dropin in unit.get("dropins", ()):
            if dropin.get("name", "") not in known:
                known.add(dropin.get("name", ""))
                dropins.append(dropin)
        if dropins:
            kept[name]["dropins"] = dropins
    return list(kept.values())


def _one_user(users: list[Value]) -> Value:
    keys: dict[str, None] = {}
    for user in reversed(users):
        name = user.get("name", "")
        if name != "core":
            raise ConversionError(f"unexpected user with name: {name}. Only core user is supported")
        keys |= dict.fromkeys(user.get("sshAuthorizedKeys", ()))
    return {**users[-1], "sshAuthorizedKeys": list(keys)} if keys else users[-1]
