"""The launcher of sandboxed commands: a program of its own, run by its path with the standard library alone.

(With the number of a pipe as its argument it joins a sandbox that there is already.)
``process.py`` starts it with a :class:`Spec` as one JSON line on its standard input and keeps that pipe open: its end
means that the cluster is gone, and everything here ends with it. Without root it makes user, mount, pid, network, IPC
and host-name namespaces: a read-only system, private ``/tmp`` and ``/run``, no network but a loopback on which one
port leads through a Unix socket to the API server. It never runs a command unsandboxed: what it cannot set up ends it
with exit code 125 and a sentence.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import sys
import termios
import threading
from pathlib import Path
from typing import Any

__all__ = ["CANNOT", "main"]

CANNOT = 125
"""Exit code of a sandbox that could not be made."""
CONNECTIONS = 64
"""Connections to the API at once from one container."""
CHUNK = 65536

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""From statvfs flags to mount flags: what the source of a bind mount has must be kept in a user namespace."""
DETACH = 2
SET_DEATH_SIGNAL, SET_NO_NEW_PRIVILEGES, DROP_FROM_BOUNDING_SET = 1, 38, 24
LAST_CAPABILITY = 40
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
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
DEVICES = ("null", "zero", "full", "random", "urandom")
WRITTEN = {
    "/etc/passwd": "root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "/etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost kubernetes.default.svc kubernetes.default kubernetes\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/resolv.conf": "",
}

Spec = dict[str, Any]
"""``argv``, ``env``, ``cwd``; ``root`` (an empty directory of ours), ``hostname``; ``binds``: [source, target,
writable]; ``socket`` (path on this machine) and ``port`` (in the sandbox); ``limits``: name of RLIMIT to number;
``tmpfs_bytes``."""

_libc = ctypes.CDLL(None, use_errno=True)


class SandboxError(Exception):
    """The sandbox cannot be made; the message says at which step."""


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise SandboxError(f"{what}: {os.strerror(code)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    encoded = (source.encode(), target.encode(), kind.encode() or None)
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() or None), f"mount {source or kind} on {target}")


# -- namespaces ------------------------------------------------------------------------------------------------------


def _enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    flags = NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS
    _check(_libc.unshare(flags), "this machine refuses user namespaces")
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
    try:
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    except OSError as error:
        raise SandboxError(f"user namespace: {error.strerror}") from error


def _drop_privileges() -> None:
    for capability in range(LAST_CAPABILITY + 1):
        _libc.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)
    _check(_libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no new privileges")
    header = struct.pack("=Ii", 0x20080522, 0)
    _check(_libc.capset(header, struct.pack("=IIIIII", 0, 0, 0, 0, 0, 0)), "drop capabilities")


# -- the root directory ----------------------------------------------------------------------------------------------


def _make_root(spec: Spec) -> None:
    root = str(spec["root"])
    _mount("", "/", "", REC | PRIVATE)
    size = int(spec["tmpfs_bytes"])
    _mount("tmpfs", root, "tmpfs", NOSUID | NODEV, f"size={size},mode=755")
    for path in SYSTEM:
        _system_path(root, path)
    for path in ETC:
        if os.path.exists(path):
            _bind(root, os.path.realpath(path), path, writable=False)
    for path, text in WRITTEN.items():
        _parent(root + path)
        Path(root + path).write_text(text)
    for name in ("/tmp", "/run", "/dev", "/proc", "/var/tmp"):
        os.makedirs(root + name, exist_ok=True)
    for name in ("/tmp", "/run", "/var/tmp"):
        _mount("tmpfs", root + name, "tmpfs", NOSUID | NODEV, f"size={size},mode=1777")
    os.symlink("/run", root + "/var/run")
    _make_devices(root, size)
    for source, target, writable in spec["binds"]:
        _bind(root, source, _resolved(root, target), writable=writable)
    if spec.get("socket"):
        _bind(root, spec["socket"], "/run/syncline/api.sock", writable=True)
    with contextlib.suppress(SandboxError):  # a machine that hides parts of /proc allows no new one
        _mount("proc", root + "/proc", "proc", NOSUID | NODEV | NOEXEC)
    _pivot(root)


def _resolved(root: str, target: str) -> str:
    """``/var/run`` is a link to ``/run`` in the sandbox; a bind mount needs the place itself, without any ``..``."""
    plain = os.path.normpath("/" + target.lstrip("/"))
    return "/run" + plain[len("/var/run") :] if (plain + "/").startswith("/var/run/") else plain


def _system_path(root: str, path: str) -> None:
    if os.path.islink(path):
        os.symlink(os.readlink(path), root + path)
    elif os.path.isdir(path):
        _bind(root, path, path, writable=False)


def _parent(path: str) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise SandboxError(f"{path} lies in a read-only part of the sandbox ({error.strerror})") from error


def _bind(root: str, source: str, target: str, *, writable: bool) -> None:
    place = root + target
    if not (os.path.realpath(place) + "/").startswith(os.path.realpath(root) + "/"):
        # A link that an earlier container left in a volume still points into this machine before pivot_root.
        raise SandboxError(f"{target} leads out of the sandbox")
    _parent(place)
    try:
        if os.path.isdir(source):
            os.makedirs(place, exist_ok=True)
        elif not os.path.exists(place):
            Path(place).touch()
    except OSError as error:
        raise SandboxError(f"{target} lies in a read-only part of the sandbox ({error.strerror})") from error
    before = {number for number, _ in _mounts()}
    _mount(source, place, "", BIND | REC)
    for mounted in [point for number, point in _mounts() if number not in before]:
        kept = sum(flag for have, flag in KEPT_FLAGS.items() if os.statvfs(mounted).f_flag & have)
        access = 0 if writable else RDONLY
        _mount("", mounted, "", BIND | REMOUNT | NOSUID | NODEV | kept | access)


def _mounts() -> list[tuple[str, str]]:
    """Number and place of every mount: a bind mount brings those below its source with it."""
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [(fields[0], re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])) for fields in lines]


def _make_devices(root: str, size: int) -> None:
    for name in DEVICES:
        place = f"{root}/dev/{name}"
        Path(place).touch()
        _mount(f"/dev/{name}", place, "", BIND)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/shm")
    _mount("tmpfs", f"{root}/dev/shm", "tmpfs", NOSUID | NODEV, f"size={size},mode=1777")


def _pivot(root: str) -> None:
    old = root + "/.old"
    os.mkdir(old)
    os.chdir(root)
    _check(_libc.pivot_root(b".", b".old"), "pivot_root")
    os.chdir("/")
    _check(_libc.umount2(b"/.old", DETACH), "leave the old root")
    os.rmdir("/.old")
    _mount("", "/", "", BIND | REMOUNT | RDONLY | NOSUID | NODEV)


# -- the network -----------------------------------------------------------------------------------------------------


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, SIOCGIFFLAGS, request + bytes(16))[:18])[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP) + bytes(16))


def _forward(listener: socket.socket) -> None:
    """From the port in the sandbox to the API's Unix socket, until this process is ended with its namespace."""
    free = threading.BoundedSemaphore(CONNECTIONS)
    while True:
        client, _ = listener.accept()
        free.acquire()
        threading.Thread(target=_serve, args=(client, free), daemon=True).start()


def _serve(client: socket.socket, free: threading.BoundedSemaphore) -> None:
    with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
        server.connect("/run/syncline/api.sock")
        pump(client, server)
    free.release()


def pump(left: socket.socket, right: socket.socket) -> None:
    """Carry bytes both ways until both sides have ended."""
    other = {left: right, right: left}
    while other:
        ready, _, _ = select.select(list(other), [], [])
        for side in ready:
            data = side.recv(CHUNK)
            if data:
                other[side].sendall(data)
                continue
            with contextlib.suppress(OSError):
                other[side].shutdown(socket.SHUT_WR)
            del other[side]


# -- processes -------------------------------------------------------------------------------------------------------


def _init(spec: Spec) -> int:
    """Process 1 of the sandbox: sets it up, starts the forwarder and the command, and ends with the command."""
    _check(_libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "death signal")
    name = str(spec["hostname"]).encode()[:63]
    _check(_libc.sethostname(name, len(name)), "host name")
    _loopback_up()
    _make_root(spec)
    if spec.get("socket"):
        listener = socket.create_server(("127.0.0.1", int(spec["port"])), backlog=CONNECTIONS)
        if os.fork() == 0:
            _drop_privileges()
            _detach_output()
            _forward(listener)
        listener.close()
    child = os.fork()
    if child == 0:
        _run(spec)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    return _wait_for(child)


def _detach_output() -> None:
    """The forwarder must not hold the log's pipe open."""
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _run(spec: Spec) -> None:
    """Become the command."""
    code = 126
    try:
        os.setsid()
        if not spec.get("stdin"):
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        if spec.get("tty"):
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)
        for name, limit in spec["limits"].items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (value, value))
        _drop_privileges()
        _enter(str(spec["cwd"]))
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(each, signal.SIG_DFL)
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except FileNotFoundError:
        code = 127
        _complain(f"{spec['argv'][0]}: no such file; images are not pulled, commands are this machine's")
    except (OSError, ValueError, SandboxError) as error:
        _complain(str(error))
    finally:
        os._exit(code)


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise SandboxError(f"workingDir {folder}: {error.strerror}; the image is not there") from error


def _wait_for(child: int) -> int:
    """Reap orphans too; the exit code of the command, 128 + n where a signal ended it."""
    while True:
        try:
            pid, status = os.wait()
        except InterruptedError:
            continue
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _complain(text: str) -> None:
    sys.stderr.write(f"[syncline] {text}\n")
    sys.stderr.flush()


def _guard(child: int) -> int:
    """Outside: end the sandbox when the cluster is gone, pass on SIGTERM, tell the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))

    watched = [0, os.pidfd_open(child)]  # no threads here: this process has left its process namespace
    while watched[-1] not in (ready := select.select(watched, [], [])[0]):
        if 0 in ready and not os.read(0, CHUNK):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            watched.remove(0)
    return _wait_for(child)


def _join(spec: Spec) -> int:
    """Run one more command in the sandbox whose launcher is ``spec["launcher"]``, with the streams as they are.

    Only once the sandbox has begun to run something: before that it still sees this machine.
    """
    inits = _children(int(spec["launcher"]))
    if not inits or not _children(inits[0]):
        raise SandboxError("the container is not running")
    spaces = [os.open(f"/proc/{inits[0]}/ns/{name}", os.O_RDONLY) for name in JOINED]
    for name, space in zip(JOINED, spaces):
        _check(_libc.setns(space, 0), f"enter the {name} namespace")
        os.close(space)
    os.chdir("/")
    child = os.fork()
    if child == 0:
        _libc.prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        _run(spec)
    return _wait_for(child)


JOINED = ("user", "mnt", "net", "ipc", "uts", "pid")
"""The user namespace first: it gives the right to enter the others."""


def _children(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
            if len(fields) > 1 and int(fields[1]) == parent:
                found.append(int(entry.name))
    return sorted(found)


def main() -> int:
    if len(sys.argv) > 1:
        with os.fdopen(int(sys.argv[1])) as pipe:
            joined: Spec = json.loads(pipe.read())
        try:
            return _join(joined)
        except (SandboxError, OSError) as error:
            _complain(str(error))
            return CANNOT
    spec: Spec = json.loads(_first_line())
    try:
        _enter_namespaces()
        ready = os.fork()
        if ready == 0:
            code = CANNOT
            try:
                code = _init(spec)
            except (SandboxError, OSError) as error:
                _complain(f"no sandbox: {error}")
            finally:
                os._exit(code)
    except SandboxError as error:
        _complain(f"no sandbox: {error}")
        return CANNOT
    return _guard(ready)


def _first_line() -> bytes:
    """Byte by byte: what follows on the pipe is not ours to buffer."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1 if not line else CHUNK)
        if not chunk:
            break
        line += chunk
    return line


if __name__ == "__main__":
    sys.exit(main())
