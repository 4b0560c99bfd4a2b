"""Write volumes of files like the kubelet's atomic writer: one folder per state, a link to the current one, and a link
per file, so that readers see a complete state.

Process 1 of a sandbox writes to memory that commands see read-only, at the start and after changes of ConfigMaps,
Secrets or the pod; the cluster sends new states through a pipe. Source of the layout: Kubernetes
``pkg/volume/util/atomic_writer.go``, of owners and modes ``pkg/volume/volume_linux.go``.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing it takes as long as creating the sandbox
    from typing import Any

DATA, DRAFT = "..data", "..data_tmp"
CHUNK = 1 << 16
MOST_BYTES = 512 * 1024 * 1024
"""Limit of one new state of all volumes; the cluster's own limit is much lower."""
GROUP_READS, GROUP_ENTERS, KEEPS_GROUP = 0o440, 0o110, 0o2000


class Projection:
    """The volumes of one sandbox; ``folders`` are their names and open folders. ``ids`` maps the pod's ids to those of
    this namespace."""

    def __init__(self, folders: dict[str, int], ids: dict[int, int], pipe: int = -1) -> None:
        self._folders, self._ids, self._pipe = folders, ids, pipe
        self._read = b""
        if pipe >= 0:
            os.set_blocking(pipe, False)

    def write(self, volumes: dict[str, Any]) -> None:
        for name, volume in volumes.items():
            if name in self._folders:
                project(self._folders[name], volume, self._ids)

    def check(self) -> None:
        """Read new states: complete lines, of which the last one applies."""
        if self._pipe < 0:
            return
        try:
            while chunk := os.read(self._pipe, CHUNK):
                self._read += chunk
                if len(self._read) > MOST_BYTES:
                    raise OSError("a state of the volumes is too large")
            os.close(self._pipe)  # the cluster sends nothing more
            self._pipe = -1
        except BlockingIOError:
            pass
        *lines, self._read = self._read.split(b"\n")
        for line in lines:
            self.write(json.loads(line))


def project(folder: int, volume: dict[str, Any], ids: dict[int, int]) -> None:
    """Replace the content of the open ``folder`` by ``volume``. ``files``: [path, base64, mode, owner]; ``group`` or
    None; ``stamp``: a unique name of the state."""
    group, stamp = volume.get("group"), str(volume["stamp"])
    owner, group_id = ids.get(0, os.geteuid()), ids.get(group if group is not None else 0, os.getegid())
    _give(folder, owner, group_id, 0o777, group is not None, enters=True)
    os.mkdir(stamp, 0o755, dir_fd=folder)
    state = _opened(stamp, folder)
    try:
        _give(state, owner, group_id, 0o755, group is not None, enters=True)
        for path, content, mode, user in volume["files"]:
            _put(state, path, content, (ids.get(user, owner), owner, group_id), mode, group is not None)
    finally:
        os.close(state)
    _show(folder, stamp, {path.split("/")[0] for path, *_ in volume["files"]}, (owner, group_id))


def _put(state: int, path: str, content: str, ids: tuple[int, int, int], mode: int, shared: bool) -> None:
    parts = path.split("/")
    if ".." in parts or "" in parts or parts[0].startswith(".."):
        raise OSError(f"{path} leads out of its volume")
    user, owner, group = ids
    here = os.dup(state)
    try:
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=here)
            below = _opened(part, here)
            os.close(here)
            here = below
            _give(here, owner, group, 0o755, shared, enters=True)
        file = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=here)
        with open(file, "wb") as stream:
            stream.write(binascii.a2b_base64(content))
            stream.flush()
            _give(file, user, group, mode, shared, enters=False)
    finally:
        os.close(here)


def _opened(name: str, folder: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _give(entry: int, owner: int, group: int, mode: int, shared: bool, *, enters: bool) -> None:
    """Set owner and mode; a group that shares the volume can always read."""
    if shared:
        mode |= GROUP_READS | (GROUP_ENTERS | KEEPS_GROUP if enters else 0)
    os.fchown(entry, owner, group)
    os.fchmod(entry, mode)


def _show(folder: int, stamp: str, names: set[str], ids: tuple[int, int]) -> None:
    """Switch to the new state atomically; then add new links and delete dangling ones."""
    try:
        old = os.readlink(DATA, dir_fd=folder)
    except FileNotFoundError:
        old = ""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(DRAFT, dir_fd=folder)
    os.symlink(stamp, DRAFT, dir_fd=folder)
    os.chown(DRAFT, *ids, dir_fd=folder, follow_symlinks=False)
    os.rename(DRAFT, DATA, src_dir_fd=folder, dst_dir_fd=folder)
    there = {name for name in os.listdir(folder) if not name.startswith("..")}
    for name in names - there:
        os.symlink(f"{DATA}/{name}", name, dir_fd=folder)
        os.chown(name, *ids, dir_fd=folder, follow_symlinks=False)
    for name in there - names:
        os.unlink(name, dir_fd=folder)
    if old and old != stamp:
        _remove(old, folder)


def _remove(name: str, folder: int) -> None:
    here = _opened(name, folder)
    try:
        with os.scandir(here) as found:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        for each, is_folder in entries:
            if is_folder:
                _remove(each, here)
            else:
                os.unlink(each, dir_fd=here)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=folder)
