"""Build the root directory of a sandbox: the machine's programs, read-only; the pod's mounts; memory for the rest.

Each source is opened first and mounted by its descriptor, so that no link created by another container of the pod can
change what is mounted or where.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from syncline.cluster.machines.sandbox.kernel import O_PATH, SandboxError, check, libc, open_beneath
from syncline.cluster.machines.sandbox.mirrors import Mirrors
from syncline.cluster.machines.sandbox.network import API_SOCKET
from syncline.cluster.machines.sandbox.projecting import Projection

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing it takes as long as creating the sandbox
    from typing import Any

RDONLY, NOSUID, NODEV, NOEXEC, REC, PRIVATE = 1, 2, 4, 8, 16384, 1 << 18
DETACH = 2
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
"""System call numbers on x86-64 and arm64."""
CLONE_TREE, RECURSIVE, EMPTY_PATH = 1, 0x8000, 0x1000
FROM_EMPTY, TO_EMPTY = 0x04, 0x40
INODES = 65536
"""Limit of files in memory: each costs the kernel about a kilobyte, even if empty."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
)
EMPTIED = ("/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/entitlement", "/etc/pki/consumer")
"""Folders with keys of the machine."""
WRITTEN = {
    "etc/passwd": "root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost kubernetes.default.svc kubernetes.default kubernetes\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "etc/resolv.conf": "",
}
DEVICES = ("null", "zero", "full", "random", "urandom")
WRITABLE = ("/tmp", "/run", "/var/tmp", "/dev/shm")
"""Writable folders, in one memory of bounded size."""
STILL_WRITABLE = ("/dev/shm",)
"""Those that stay writable with a read-only root, as in container runtimes."""
OWN_FOLDERS = ("", "/etc", "/opt", "/var", "/var/cache", "/var/lib", "/var/log")
"""Folders of a writable root; all others belong to this machine."""
HIDDEN_PROC = (
    "acpi",
    "asound",
    "kallsyms",
    "kcore",
    "keys",
    "key-users",
    "latency_stats",
    "scsi",
    "sched_debug",
    "timer_list",
)
READ_ONLY_PROC = ("bus", "fs", "irq", "sys", "sysrq-trigger")
"""Both as in container engines."""
LIMITED = ("mnt", "pid", "net", "ipc", "uts", "cgroup", "time")


def make_root(spec: dict[str, Any]) -> Projection:
    """Build the root below ``spec["root"]`` and make it the root of this process, which is alone in its namespaces.
    Returns the writer of its volumes of files."""
    root, keeper = str(spec["root"]), int(spec.get("keeper", 0))
    mount("", "/", "", REC | PRIVATE)
    options = f"size={int(spec['tmpfs_bytes'])},nr_inodes={INODES},mode=755"
    mount("tmpfs", root, "tmpfs", NOSUID | NODEV, options)
    base = os.open(root, O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    _make_system(base, root, spec.get("etc", {}))
    writable = bool(spec.get("writable_root"))
    for path in WRITABLE:
        os.makedirs(root + path, exist_ok=True)
        os.chmod(root + path, 0o1777)
        if writable or path in STILL_WRITABLE or not spec.get("strict_root"):
            bind(base, root + path, path, writable=True)
    os.symlink("/run", f"{root}/var/run")
    if writable:
        for path in OWN_FOLDERS:
            os.makedirs(root + path, exist_ok=True)
        for path in (*OWN_FOLDERS, *WRITABLE, *(f"/{each}" for each in WRITTEN)):
            os.chown(root + path, keeper, keeper)
    make_devices(base, root)
    limits = make_proc(base, root)
    kept, projection = _keep_files(root, spec, keeper)
    mirrors = Mirrors(base, f"{kept}/.mirrors", _show_read_only)
    for source, target, may_write, *below in spec["binds"]:
        place = source if source.startswith("/") else f"{kept}/{source}"
        narrow = below[0] if below else ""
        bind(base, place, target, writable=may_write, below=narrow, keeper=keeper, mirrors=mirrors)
    check(libc.umount2(kept.encode(), DETACH), "hide the files of volumes that are not mounted")
    os.rmdir(kept)
    if writable:
        _make_folder(base, str(spec["cwd"]), keeper)
    if spec.get("socket"):
        bind(base, spec["socket"], API_SOCKET, writable=True)
    os.close(base)
    pivot(root, read_only=not writable)
    close_namespaces(limits)
    return projection


def _make_system(base: int, root: str, etc: dict[str, str]) -> None:
    """Bind the machine's programs and the permitted settings; ``etc``: the pod's own files."""
    for path in SYSTEM:
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        elif os.path.isdir(path):
            bind(base, path, path)
    for path in ETC:
        if os.path.exists(path):
            bind(base, os.path.realpath(path), path)
    for path in EMPTIED:
        if os.path.isdir(root + path):
            mount("tmpfs", root + path, "tmpfs", RDONLY | NOSUID | NODEV, "size=4096,mode=755")
    for path, text in (WRITTEN | {f"etc/{name}": text for name, text in etc.items()}).items():
        _write(f"{root}/{path}", text)


def _make_folder(base: int, path: str, keeper: int) -> None:
    """Create a missing working directory, as runtimes do; if that fails, the command reports it."""
    try:
        known = open_beneath(base, path.lstrip("/") or ".", O_PATH, in_root=True)
    except FileNotFoundError:
        try:
            known = _place(base, path, folder=True)
        except SandboxError:
            return
        os.chown(f"/proc/self/fd/{known}", keeper, keeper)
    except OSError:
        return
    os.close(known)


def _keep_files(root: str, spec: dict[str, Any], keeper: int) -> tuple[str, Projection]:
    """Write the volumes' files to memory that ends with the sandbox. Returns their path and their writer."""
    most, volumes = int(spec["tmpfs_bytes"]), spec.get("files", {})
    kept = f"{root}/.volumes"
    os.mkdir(kept, 0o700)
    mount("tmpfs", kept, "tmpfs", NOSUID | NODEV, f"size={3 * most},nr_inodes={3 * INODES},mode=700")
    os.mkdir(f"{kept}/.mirrors", 0o700)
    folders = {}
    for name in volumes:
        if "/" in name or name.startswith("."):
            raise SandboxError(f'volume "{name}" cannot be a folder')
        os.mkdir(f"{kept}/{name}", 0o755)
        folders[name] = os.open(f"{kept}/{name}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    known = spec.get("ids", {}).get("known", [0])
    ids = {number: keeper + place if keeper else keeper for place, number in enumerate(known)}
    projection = Projection(folders, ids, int(spec.get("updates", -1)))
    projection.write(volumes)
    return kept, projection


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    encoded = (source.encode(), os.fsencode(target), kind.encode() or None)
    made = libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None)
    check(made, f"mount {source or kind} on {target}")


def bind(
    base: int,
    source: str,
    target: str,
    *,
    writable: bool = False,
    below: str = "",
    keeper: int = 0,
    mirrors: Mirrors | None = None,
) -> None:
    """Bind ``source`` (or the path ``below`` it, created if it is writable) at ``target`` of the new root. New folders
    belong to ``keeper``; ``mirrors`` create mount points that the machine lacks."""
    found = os.open(source, O_PATH | os.O_CLOEXEC)
    try:
        if below:
            found = _replaced(found, _below(found, below, make=writable, keeper=keeper))
        place = _place(base, target, folder=stat.S_ISDIR(os.fstat(found).st_mode), mirrors=mirrors)
        _show(found, place, target, writable=writable)
        os.close(place)
    finally:
        os.close(found)


def _show(found: int, place: int, target: str, *, writable: bool) -> None:
    tree = libc.syscall(OPEN_TREE, found, b"", CLONE_TREE | os.O_CLOEXEC | EMPTY_PATH | RECURSIVE)
    check(tree, f"{target}: a mount by its descriptor (Linux 5.12 or newer)")
    _restrict_mount(tree, NOSUID | NODEV | (0 if writable else RDONLY), target)
    moved = libc.syscall(MOVE_MOUNT, tree, b"", place, b"", FROM_EMPTY | TO_EMPTY)
    check(moved, f"mount on {target}")
    os.close(tree)


def _show_read_only(found: int, place: int) -> None:
    _show(found, place, "a folder of this machine", writable=False)


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new


def _restrict_mount(tree: int, attributes: int, what: str, path: bytes = b"") -> None:
    """Restrict all mounts of a tree, or the one at ``path``."""
    flags = 0 if path else RECURSIVE | EMPTY_PATH
    wish = struct.pack("=QQQQ", attributes, 0, 0, 0)
    check(libc.syscall(MOUNT_SETATTR, tree, path, flags, wish, len(wish)), f"{what}: restrict a mount")


def _below(volume: int, path: str, *, make: bool, keeper: int) -> int:
    """Open a subPath; it may contain links, but none that leads out of its volume."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    here = os.dup(volume)
    for depth, part in enumerate(parts, 1):
        try:
            opened = open_beneath(volume, "/".join(parts[:depth]), O_PATH)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP):
                raise SandboxError(f"subPath {path} leads out of the volume") from error
            if error.errno != errno.ENOENT or not make:
                raise SandboxError(f"subPath {path}: {error.strerror}") from error
            above = os.fstat(here)
            os.mkdir(part, 0o777, dir_fd=here)
            opened = open_beneath(here, part, O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY)
            os.chown(f"/proc/self/fd/{opened}", keeper, above.st_gid)
            os.chmod(f"/proc/self/fd/{opened}", above.st_mode & 0o7777)
        here = _replaced(here, opened)
    return here


def _place(base: int, target: str, *, folder: bool, mirrors: Mirrors | None = None) -> int:
    """Open ``target`` in the new root, creating it if needed; links resolve as inside."""
    parts = os.path.normpath("/" + target.lstrip("/")).strip("/").split("/")
    here = os.dup(base)
    try:
        for depth, part in enumerate(parts, 1):
            path, last = "/".join(parts[:depth]), depth == len(parts)
            try:
                opened = open_beneath(base, path, O_PATH, in_root=True)
            except FileNotFoundError:
                if not _make(here, part, folder=folder or not last):
                    if mirrors is None:
                        raise
                    mirrors.add("/".join(parts[: depth - 1]) or ".", part, folder=folder or not last)
                    here = _replaced(
                        here, open_beneath(base, "/".join(parts[: depth - 1]) or ".", O_PATH, in_root=True)
                    )
                opened = open_beneath(here, part, O_PATH | os.O_NOFOLLOW)
            here = _replaced(here, opened)
    except OSError as error:
        os.close(here)
        what = "lies in a read-only part of the sandbox" if error.errno == errno.EROFS else "leads nowhere"
        raise SandboxError(f"{target} {what} ({error.strerror})") from error
    return here


def _make(here: int, name: str, *, folder: bool) -> bool:
    """Create an entry; return False if the folder is the machine's and read-only."""
    try:
        if folder:
            os.mkdir(name, 0o755, dir_fd=here)
        else:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=here))
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return False
    return True


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.write(file, text.encode())
    os.close(file)


def make_devices(base: int, root: str) -> None:
    for name in DEVICES:
        found = os.open(f"/dev/{name}", O_PATH | os.O_CLOEXEC)
        place = _place(base, f"/dev/{name}", folder=False)
        tree = libc.syscall(OPEN_TREE, found, b"", CLONE_TREE | os.O_CLOEXEC | EMPTY_PATH)
        check(tree, f"/dev/{name}: a mount by its descriptor (Linux 5.12 or newer)")
        _restrict_mount(tree, NOSUID | NOEXEC, f"/dev/{name}")
        check(libc.syscall(MOVE_MOUNT, tree, b"", place, b"", FROM_EMPTY | TO_EMPTY), f"mount on /dev/{name}")
        for each in (found, place, tree):
            os.close(each)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/pts")
    try:
        mount("devpts", f"{root}/dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")
        os.symlink("pts/ptmx", f"{root}/dev/ptmx")
    except SandboxError:
        pass  # no separate terminals


def make_proc(base: int, root: str) -> int:
    """Mount ``/proc`` of the sandbox's processes. A machine that hides parts of ``/proc`` allows none: then return -1.
    Otherwise return a descriptor for writing the limits of namespaces."""
    os.mkdir(f"{root}/proc")
    try:
        mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | NOEXEC)
    except SandboxError:
        return -1
    limits = os.open(f"{root}/proc/sys/user", O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in HIDDEN_PROC:
        path = f"{root}/proc/{name}"
        if os.path.isdir(path):
            mount("tmpfs", path, "tmpfs", RDONLY | NOSUID | NODEV, "size=4096,mode=755")
        elif os.path.exists(path):
            bind(base, f"{root}/dev/null", f"/proc/{name}")
    for name in READ_ONLY_PROC:
        if os.path.exists(f"{root}/proc/{name}"):
            bind(base, f"{root}/proc/{name}", f"/proc/{name}")
    return limits


def close_namespaces(limits: int) -> None:
    """Allow one more user namespace, which is about to be created, and no other namespaces."""
    if limits < 0:
        return
    for name, most in (("user", b"1"), *((name, b"0") for name in LIMITED)):
        try:
            file = os.open(f"max_{name}_namespaces", os.O_WRONLY | os.O_CLOEXEC, dir_fd=limits)
        except OSError:
            continue  # not supported by this kernel
        try:
            os.write(file, most)
        finally:
            os.close(file)
    os.close(limits)


def pivot(root: str, *, read_only: bool) -> None:
    old = root + "/.old"
    os.mkdir(old)
    os.chdir(root)
    check(libc.pivot_root(b".", b".old"), "pivot_root")
    os.chdir("/")
    check(libc.umount2(b"/.old", DETACH), "leave the old root")
    os.rmdir("/.old")
    _restrict_mount(-100, (RDONLY if read_only else 0) | NOSUID | NODEV, "/", b"/")
