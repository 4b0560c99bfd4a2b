"""Compares the disk of a machine with its configuration; changes nothing.

Used at boot, before an update, and to detect drift. :func:`drift_of` reports the first difference, files before units.
A configuration is compared in the version in which it is written. Source: Machine Config Operator
``on_disk_validation.go``, reference machine-config 4.6, 4.7.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.agent.files.writing import CORE_OS, DEFAULT_MODE, NULL, SYSTEMD
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.agent.planning.changes import kernel_type
from syncline.machineconfig.agent.staging.deployments import Deployment
from syncline.machineconfig.agent.staging.kernel import missing_arguments
from syncline.machineconfig.configs.extensions import package_sets
from syncline.machineconfig.configs.parsing import ConfigError, written_config

_ELSEWHERE = (
    "/etc/kubernetes/kubelet-ca.crt",
    "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
    "/etc/mco/internal-registry-pull-secret.json",
)
"""Files that are written outside configurations, so that a difference is no drift."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The first difference. ``kind``: ``file``, ``unit``, or empty if the configuration cannot be read."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Why a boot did not reach its config. ``of_system``: image, kernel or packages differ; they may be staged
    again."""

    text: str
    of_system: bool = False


class _Different(Exception):
    pass


def drift_of(host: Host, config: Obj) -> Drift | None:
    """Return the first difference between the disk and a MachineConfig, or None."""
    try:
        is_old, wanted = written_config(dig(config, "spec", "config"))
    except ConfigError as error:
        return Drift(f"failed to parse Ignition for validation: {error}")
    try:
        _check_files(host, wanted, is_old)
    except (_Different, HostError) as error:
        return Drift(str(error), "file")
    try:
        _check_units(host, wanted, is_old)
    except (_Different, HostError) as error:
        return Drift(str(error), "unit")
    return None


def _check_files(host: Host, config: Obj, is_old: bool) -> None:
    files = list((config.get("storage") or {}).get("files") or ())
    seen: set[str] = set()
    for file in reversed(files) if is_old else files:
        path = str(file.get("path", ""))
        if (not is_old and path in _ELSEWHERE) or (is_old and path in seen):
            continue
        seen.add(path)
        if file.get("append"):
            raise _Different("found an append section when checking files. Append is not supported")
        contents = file.get("contents") or {}
        source = contents.get("source")
        try:
            data = decode_file_contents(source or "" if is_old else source, contents.get("compression"))
        except PayloadError as error:
            raise _Different(f"couldn't decode file {quoted(path)}: {error}") from error
        mode = file.get("mode")
        _check(host, path, data, DEFAULT_MODE if mode is None else int(mode))


def _check_units(host: Host, config: Obj, is_old: bool) -> None:
    for unit in (config.get("systemd") or {}).get("units") or ():
        name = str(unit.get("name", ""))
        for dropin in unit.get("dropins") or ():
            path, text = f"{SYSTEMD}/{name}.d/{dropin.get('name', '')}", str(dropin.get("contents") or "")
            if text or is_old or host.exists(path):
                _check(host, path, text.encode(), DEFAULT_MODE)
        contents = str(unit.get("contents") or "")
        if not contents:
            continue
        path = f"{SYSTEMD}/{name}"
        if unit.get("mask"):
            _check_masked(host, path)
            continue
        _check(host, path, contents.encode(), DEFAULT_MODE)
        if not is_old:
            _check_enabled(host, name, unit.get("enabled"))


def _check_masked(host: Host, path: str) -> None:
    found = host.stat(path)
    if found is None:
        problem = f"lstat {_first_missing(host, path)}: no such file or directory"
        raise _Different(f"state validation: error while evaluation symlink for path {quoted(path)}: {problem}")
    real = posixpath.normpath(posixpath.join(posixpath.dirname(path), found.target)) if found.target else path
    if real != NULL:
        text = (
            f"state validation: invalid unit masked setting. path: {quoted(path)}; expected: {NULL}; received: {real}"
        )
        raise _Different(text)


def _first_missing(host: Host, path: str) -> str:
    above = posixpath.dirname(path)
    return _first_missing(host, above) if above != "/" and host.stat(above) is None else path


def _check_enabled(host: Host, name: str, wanted: bool | None) -> None:
    """Check whether a unit is enabled. A disabled unit that should be enabled passes, as upstream."""
    if wanted is None:
        return
    state = host.run(["systemctl", "is-enabled", name])
    said = state.output.strip() if state.ok else ""
    if not wanted and said in ("enabled", "enabled-runtime"):
        raise _Different(f"unit {quoted(name)} expected enabled=false, but systemd reports {quoted(said)}")


def _check(host: Host, path: str, wanted: bytes, mode: int) -> None:
    try:
        found = host.stat(path)
    except HostError as error:
        raise _Different(f"could not stat file {quoted(path)}: {error}") from error
    if found is None:
        raise _Different(f"could not stat file {quoted(path)}: lstat {path}: no such file or directory")
    if (found.kind, found.mode) != ("file", mode):
        message = f"expected: {_mode(mode)}; received: {_mode(found.mode, found.kind)}"
        raise _Different(f"mode mismatch for file: {quoted(path)}; {message}")
    if host.read(path) != wanted:
        raise _Different(f"content mismatch for file {quoted(path)}")


_GO_KIND = {"file": 0, "dir": 1 << 31, "symlink": 1 << 27}
_GO_LETTERS = "dalTLDpSugct?"
"""Letters of the bits of Go's ``FileMode`` from the highest down."""


def _mode(mode: int, kind: str = "file") -> str:
    """Return a file mode as Go's ``%v/%d/%#o`` prints it."""
    number = mode | _GO_KIND[kind]
    special = "".join(letter for at, letter in enumerate(_GO_LETTERS) if number >> (31 - at) & 1)
    bits = "".join(letter if mode >> (8 - at) & 1 else "-" for at, letter in enumerate("rwxrwxrwx"))
    return f"{special or '-'}{bits}/{number}/0{number:o}"


def boot_difference(
    host: Host,
    config: Obj,
    *,
    booted_image: str,
    running: str,
    image: str = "",
    finalize_failure: str = "",
    booted: Deployment | None = None,
) -> Difference | None:
    """Return why a machine has not booted into its target, or None if it has. ``image``: the image of image mode, which
    replaces the configuration's; ``finalize_failure``: the error of an earlier change of the system. ``booted``:
    compare also kernel and extension packages with it, unless image mode provides them."""
    wanted = image or str(dig(config, "spec", "osImageURL") or "")
    layered = booted is not None and not image
    difference = None
    if host.os in CORE_OS:
        if wanted != booted_image:
            difference = f"expected target osImageURL {quoted(wanted)}, have {quoted(booted_image)}"
        else:
            difference = missing_arguments(dig(config, "spec", "kernelArguments"), running)
        if difference is None and booted is not None and layered and booted.kernel_type != kernel_type(config):
            difference = f"expected kernelType {quoted(kernel_type(config))}, have {quoted(booted.kernel_type)}"
    of_system = difference is not None
    if difference is None:
        drift = drift_of(host, config)
        difference = drift.text if drift is not None else None
    root = f"; possible root cause: {finalize_failure}" if finalize_failure else ""
    if difference is not None:
        message = f"unexpected on-disk state validating against {image or name_of(config)}: {difference}"
        return Difference(message + root, of_system)
    missing = _missing_packages(host, config) if layered and host.os in CORE_OS else None
    return Difference(f"extension package verification failed: {missing}{root}", True) if missing else None


def _missing_packages(host: Host, config: Obj) -> str | None:
    """Return missing packages. Any package set that an extension ever had counts; unknown extensions are ignored."""
    if not host.has_program("rpm"):
        return None
    for name in dig(config, "spec", "extensions") or ():
        sets = package_sets(str(name)) or []
        absent: list[list[str]] = []
        for packages in sets:
            missing = []
            for package in packages:
                found = host.run(["rpm", "-q", package])
                if found.code not in (0, 1):
                    said = found.output.strip()
                    return f'failed to query RPM database for package "{package}": exit status {found.code}: {said}'
                missing += [] if found.ok else [package]
            absent.append(missing)
        if absent and all(absent):
            tried = " ".join(f"[{' '.join(each)}]" for each in absent)
            return (
                f'extension "{name}" verification failed: no valid package set is fully installed. Tried '
                f"{len(sets)} package set(s), missing packages per set: [{tried}]"
            )
    return None


def watched_paths(host: Host, config: Obj) -> tuple[list[str], list[str]]:
    """Return existing managed paths and their folders, both sorted. Raises ConfigError."""
    try:
        _, wanted = written_config(dig(config, "spec", "config"))
    except ConfigError as error:
        raise ConfigError(f"could not get dirs from ignition config: {error}") from error
    paths = {path for path in _managed(wanted) if _is_there(host, path)}
    return sorted(paths), sorted({posixpath.dirname(path) for path in paths})


def managed_paths(config: Obj) -> list[str]:
    """Return all paths that a MachineConfig manages, existing or not; empty if it cannot be read."""
    try:
        return sorted(set(_managed(written_config(dig(config, "spec", "config"))[1])))
    except ConfigError:
        return []


def _is_there(host: Host, path: str) -> bool:
    try:
        return host.exists(path)
    except HostError:
        return False


def _managed(config: Obj) -> Iterable[str]:
    for file in (config.get("storage") or {}).get("files") or ():
        yield str(file.get("path", ""))
    for unit in (config.get("systemd") or {}).get("units") or ():
        name = str(unit.get("name", ""))
        yield f"{SYSTEMD}/{name}"
        for dropin in unit.get("dropins") or ():
            yield f"{SYSTEMD}/{name}.d/{dropin.get('name', '')}"
