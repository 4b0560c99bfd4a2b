"""Writes files and units of a configuration to a host, and removes them with the original files restored.

Called by the update. Before the first write to a path, the operating system's file is copied (``orig``), or a stamp
records that there is none (``noorig``). Every step can be repeated after a crash. Source: Machine Config Operator
``file_writers.go`` and ``update.go``, reference machine-config 4.5.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from syncline.ignition.payload import PayloadError, decode_file_contents
from syncline.kube.objects import Obj
from syncline.kube.schema.fieldcauses import quoted
from syncline.machineconfig.agent.host import Host, HostError

SYSTEMD = "/etc/systemd/system"
KEPT, STAMPS = "/etc/machine-config-daemon/orig", "/etc/machine-config-daemon/noorig"
DEFAULT_MODE = 0o644
NULL = "/dev/null"
CORE_OS = ("rhcos", "fcos", "scos")
KUBELET_CA = "/etc/kubernetes/kubelet-ca.crt"
_CERTIFICATES = (
    "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
    KUBELET_CA,
    "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
)
_REGISTRY_CERTIFICATES = "/etc/docker/certs.d"
_OLD_LINKS = (
    f"{SYSTEMD}/network-online.target.requires/node-valid-hostname.service",
    f"{SYSTEMD}/network-online.target.wants/ovs-configuration.service",
)
"""Leftovers of old releases, which are always removed."""


class UpdateError(OSError):
    """A step of an update failed; the message is upstream's. Earlier steps are not undone."""


def run_checked(host: Host, *command: str) -> None:
    """Run a command. Raises UpdateError if it fails."""
    done = host.run(command)
    if not done.ok:
        line = " ".join(command)
        raise UpdateError(f"error running {line}: {done.output}: exit status {done.code}")


def kept_path(path: str) -> str:
    """Return the path of the copy of the operating system's file."""
    return f"{KEPT}{path}.mcdorig"


def stamp_path(path: str) -> str:
    return f"{STAMPS}{path}.mcdnoorig"


def mode_of(file: Obj) -> int:
    given = file.get("mode")
    return DEFAULT_MODE if given is None else int(given) & 0o777


def owner_of(host: Host, file: Obj) -> tuple[int, int]:
    """Return uid and gid, from numbers or names, default root. Raises UpdateError."""
    user, group = file.get("user") or {}, file.get("group") or {}
    uid, gid = user.get("id"), group.get("id")
    if uid is None:
        uid = 0
        if user.get("name"):
            found = host.user_id(user["name"])
            if found is None:
                raise UpdateError(f"failed to retrieve UserID for username: {user['name']}")
            uid = found
    if gid is None:
        gid = 0
        if group.get("name"):
            found = host.group_id(group["name"])
            if found is None:
                raise UpdateError(f"failed to retrieve GroupID for group: {group['name']}")
            gid = found
    return int(uid), int(gid)


def update_files(
    host: Host,
    old: Obj,
    new: Obj,
    units: Sequence[Obj],
    *,
    forced: bool = False,
    skip_certificate: bool = False,
    sparing: bool = False,
) -> None:
    """Write all files of ``new`` and ``units`` (all of its units if ``forced``), then remove what only ``old`` had.
    ``sparing``: ``old`` may not have been written completely. Both are Ignition configs at 3.5. Raises UpdateError."""
    try:
        write_files(host, (new.get("storage") or {}).get("files") or (), skip_certificate=skip_certificate)
        write_units(host, _units(new) if forced else units)
        _delete_stale(host, old, new, sparing)
    except HostError as error:
        raise UpdateError(str(error)) from error


def _units(config: Obj) -> list[Obj]:
    return list((config.get("systemd") or {}).get("units") or ())


# -- files --------------------------------------------------------------------------------------------------------


def write_files(host: Host, files: Iterable[Obj], *, skip_certificate: bool = False) -> None:
    """Write files. Raises UpdateError and HostError."""
    for file in files:
        path = str(file.get("path", ""))
        if skip_certificate and path == KUBELET_CA:
            continue
        if file.get("append"):
            raise UpdateError("found an append section when writing files. Append is not supported")
        contents = file.get("contents") or {}
        try:
            data = decode_file_contents(contents.get("source"), contents.get("compression"))
        except PayloadError as error:
            raise UpdateError(f"could not decode file {quoted(path)}: {error}") from error
        try:
            owner = owner_of(host, file)
        except UpdateError as error:
            raise UpdateError(f"failed to retrieve file ownership for file {quoted(path)}: {error}") from error
        keep_original(host, path, path, data)
        host.write(path, data, mode=mode_of(file), owner=owner)


def keep_original(host: Host, source: str, path: str, data: bytes) -> None:
    """Copy the operating system's file at ``path`` from ``source``, or stamp that there is none; only once. ``data``:
    the content to be written there."""
    if host.keeps_all and _is_kept(host, path):
        return  # the present file is ours, and mostly equal to the new one
    if not (host.exists(path) and _is_shipped(host, path, data)):
        if host.exists(stamp_path(path)):
            return
        if _is_kept(host, path):
            host.remove(kept_path(path))  # the copy was made by mistake
        host.write(stamp_path(path), b"")
        return
    kept = host.stat(kept_path(path))
    if kept is None:
        host.copy(source, kept_path(path))


def _is_kept(host: Host, path: str) -> bool:
    """Return whether a copy exists. Upstream follows links and so loses a copied link whose target is missing."""
    return host.stat(kept_path(path)) is not None if host.keeps_all else host.exists(kept_path(path))


def _is_shipped(host: Host, path: str, data: bytes = b"") -> bool:
    """Return whether the system owns the file: a package does, or (below /etc) /usr has its default. On systems without
    rpm every file before our first write counts, since install scripts create files that no package owns."""
    if host.keeps_all:
        return not host.exists(stamp_path(path)) and not _holds(host, path, data)
    if not host.has_program("rpm"):
        return False
    if host.run(["rpm", "-qf", path]).ok:
        return True
    return path.startswith("/etc") and host.exists(f"/usr{path}")


def _holds(host: Host, path: str, data: bytes) -> bool:
    """Return whether the file already has the content, as written by the image or by Ignition."""
    try:
        return bool(data) and host.read(path) == data
    except HostError:
        return False


# -- units --------------------------------------------------------------------------------------------------------


def write_units(host: Host, units: Iterable[Obj]) -> None:
    """Write unit files and dropins, then enable and disable units in bulk. Raises UpdateError and HostError."""
    known = host.unit_files()
    enabled: list[str] = []
    disabled: list[str] = []
    for unit in units:
        name = str(unit.get("name", ""))
        try:
            _write_unit(host, unit, name)
        except (UpdateError, HostError) as error:
            raise UpdateError(f"daemon could not write systemd unit: {error}") from error
        wanted = unit.get("enabled")
        if wanted is None:
            # A unit without settings keeps the system's default; a preset may fail.
            host.run(["systemctl", "preset", name])
        elif unit.get("contents") or name in known:
            (enabled if wanted else disabled).append(name)
    for verb, names, wrong in (("enable", enabled, "enabling units"), ("disable", disabled, "disabling unit")):
        if names:
            done = host.run(["systemctl", verb, *names])
            if not done.ok:
                raise UpdateError(f"error {wrong}: {done.output}")


def _write_unit(host: Host, unit: Obj, name: str) -> None:
    for dropin in unit.get("dropins") or ():
        _write_dropin(host, f"{SYSTEMD}/{name}.d/{dropin.get('name', '')}", str(dropin.get("contents") or ""), dropin)
    path = f"{SYSTEMD}/{name}"
    if unit.get("mask"):
        if host.keeps_all:
            keep_original(host, path, path, b"")
        host.remove_all(path)
        try:
            host.link(path, NULL)
        except HostError as error:
            raise UpdateError(f"failed to symlink unit {quoted(name)} to {NULL}: {error}") from error
        return
    contents = str(unit.get("contents") or "")
    if not contents:
        if unit.get("mask") is False:
            host.remove_all(path)  # an earlier mask
        return
    _keep_shipped_unit(host, path, contents)
    state = host.run(["systemctl", "is-enabled", name])
    if state.ok and state.output.strip() == "enabled":
        # Its [Install] section may change, so it is enabled again afterwards.
        done = host.run(["systemctl", "disable", name])
        if not done.ok:
            raise UpdateError(f"disabling {name} failed: exit status {done.code} (output: {done.output})")
    _write(host, path, contents, f"failed to write systemd unit {quoted(name)}")


def _write_dropin(host: Host, path: str, contents: str, dropin: Obj) -> None:
    if not contents:
        if host.exists(path):
            host.remove(path)
        return
    _keep_shipped_unit(host, path, contents)
    _write(host, path, contents, f"failed to write systemd unit dropin {quoted(dropin.get('name', ''))}")


def _write(host: Host, path: str, contents: str, wrong: str) -> None:
    folder = posixpath.dirname(path)
    try:
        host.make_directories(folder)
    except HostError as error:
        raise UpdateError(f"{wrong}: failed to create directory {quoted(folder)}: {error}") from error
    try:
        host.write(path, contents.encode())
    except HostError as error:
        raise UpdateError(f"{wrong}: {error}") from error


def _keep_shipped_unit(host: Host, path: str, contents: str) -> None:
    if host.keeps_all:
        keep_original(host, path, path, contents.encode())
    elif host.os in CORE_OS and host.exists(f"/usr{path}"):
        keep_original(host, f"/usr{path}", path, contents.encode())


# -- what is not wanted any more ----------------------------------------------------------------------------------


def _delete_stale(host: Host, old: Obj, new: Obj, sparing: bool) -> None:
    dropins, paths = _unit_paths(new)
    _delete_stale_files(host, old, new, dropins, sparing)
    for unit in _units(old):
        name = str(unit.get("name", ""))
        for dropin in unit.get("dropins") or ():
            path = f"{SYSTEMD}/{name}.d/{dropin.get('name', '')}"
            if path not in dropins:
                _take_back(host, path, str(dropin.get("contents") or ""), sparing)
        if f"{SYSTEMD}/{name}" not in paths:
            _take_back_unit(host, name, str(unit.get("contents") or ""), sparing)
    for link in _OLD_LINKS:
        if host.stat(link) is not None:
            host.remove(link)


def _delete_stale_files(host: Host, old: Obj, new: Obj, dropins: set[str], sparing: bool) -> None:
    wanted = {str(file.get("path", "")) for file in (new.get("storage") or {}).get("files") or ()}
    for file in (old.get("storage") or {}).get("files") or ():
        path = str(file.get("path", ""))
        if path in wanted or path in _CERTIFICATES or _REGISTRY_CERTIFICATES in posixpath.dirname(path):
            continue
        if sparing and _is_directory(host, path):
            continue
        if host.exists(stamp_path(path)):
            host.remove(stamp_path(path))
        elif _is_kept(host, path):
            if host.keeps_all or _is_shipped(host, path):
                _restore(host, path)
                continue
            host.remove(kept_path(path))
        elif (sparing or _is_shipped(host, path)) and _is_not_ours(host, path, _written(file)):
            continue
        if path not in dropins:
            _delete(host, path)


def _take_back_unit(host: Host, name: str, contents: str, sparing: bool) -> None:
    """Remove a unit; links of an enabled unit go first. The unit may be missing."""
    if not (host.keeps_all and contents):
        host.run(["systemctl", "preset", name])
        _take_back(host, f"{SYSTEMD}/{name}", contents, sparing)
        return
    # Without a preset the unit would be enabled, and links of a removed unit would stay.
    host.run(["systemctl", "disable", name])
    _take_back(host, f"{SYSTEMD}/{name}", contents, sparing)
    if name in host.unit_files():
        host.run(["systemctl", "preset", name])


def _unit_paths(config: Obj) -> tuple[set[str], set[str]]:
    """Return the paths of dropins and those of units."""
    units = _units(config)
    dropins = {
        f"{SYSTEMD}/{unit.get('name', '')}.d/{one.get('name', '')}"
        for unit in units
        for one in unit.get("dropins") or ()
    }
    return dropins, {f"{SYSTEMD}/{unit.get('name', '')}" for unit in units}


def _take_back(host: Host, path: str, contents: str, sparing: bool) -> None:
    """Restore the original file if a copy exists, else delete the file. ``contents``: what was written there."""
    if sparing and _is_directory(host, path):
        return
    if host.exists(stamp_path(path)):
        host.remove(stamp_path(path))
    elif _is_kept(host, path):
        _restore(host, path)
        return
    elif (sparing or host.keeps_all or host.exists(f"/usr{path}")) and _is_not_ours(host, path, contents.encode()):
        return
    _delete(host, path)


def _is_directory(host: Host, path: str) -> bool:
    """Return whether a directory blocks the path, so that the file was never written; remove its stamp."""
    there = host.stat(path)
    if there is None or there.kind != "dir":
        return False
    if host.exists(stamp_path(path)):
        host.remove(stamp_path(path))
    return True


def _written(file: Obj) -> bytes | None:
    contents = file.get("contents") or {}
    try:
        return decode_file_contents(contents.get("source"), contents.get("compression"))
    except PayloadError:
        return None


def _is_not_ours(host: Host, path: str, written: bytes | None) -> bool:
    """Return whether a file without copy or stamp differs from what was written: an interrupted reconcile restored it,
    or a failed one never wrote it. Deleting it would lose data of the system or a user."""
    try:
        found = host.read(path)
        return found != written or (host.exists(f"/usr{path}") and host.read(f"/usr{path}") == found)
    except HostError:
        return False


def _restore(host: Host, path: str) -> None:
    host.copy(kept_path(path), path)
    host.remove(kept_path(path))


def _delete(host: Host, path: str) -> None:
    try:
        if host.stat(path) is not None:
            host.remove(path)
    except HostError as error:
        raise UpdateError(f"unable to delete {path}: {error}") from error
