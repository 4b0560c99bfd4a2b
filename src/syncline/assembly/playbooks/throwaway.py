"""Run one play in a throwaway root file system, and say what each task left there: a :data:`Spec` in, JSON lines out.

``sources/ansible/capturing.py`` starts it. The root is memory of bounded size, filled from an archive inside the
namespaces; ``/usr`` and the interpreter are mounted read-only. The play is root there, over ids that belong to no user
of the machine, without network, devices and system calls that reach the machine. Process 1 stays outside of the play's
reach: it forwards the play's report, notes after each result which paths differ, and compares at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import tarfile

from syncline.assembly.playbooks.scanning import Scan
from syncline.base import seccomp
from syncline.base.priority import step_back
from syncline.cluster.machines.sandbox import CANNOT, kernel, network
from syncline.cluster.machines.sandbox.kernel import O_PATH, SandboxError
from syncline.cluster.machines.sandbox.launch import attend, mapped_from_outside
from syncline.cluster.machines.sandbox.ownership import identity
from syncline.cluster.machines.sandbox.root import (
    CLONE_TREE,
    FROM_EMPTY,
    MOVE_MOUNT,
    NODEV,
    NOSUID,
    OPEN_TREE,
    PRIVATE,
    REC,
    RECURSIVE,
    bind,
    close_namespaces,
    make_devices,
    make_proc,
    mount,
    pivot,
)
from syncline.cluster.machines.sandbox.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing it takes as long as creating the root
    from typing import Any

    Spec = dict[str, Any]
    """``argv``, ``env``, ``cwd``; ``root``: an empty directory of ours; ``tree``: the descriptor of a tar archive, the
    root's content; ``binds``: [source, target], read-only; ``limits``: name of RLIMIT to number; ``whole``: limits of
    all processes together; ``tmpfs_bytes``, ``inodes``; ``network``: whether it shares this machine's; ``slot``;
    ``recorded``: the file to which the shims append; ``kept``: paths whose content before the play is wanted."""

IDS = 65536
FIRST = 0x7F000000
"""Upper end of the range that sandboxes of pods begin (``cluster/machines/sandbox/ownership.py``)."""
SLOTS = 127
BIND = 4096
AT_FDCWD = -100
SET_NAME = 15
CHUNK = 65536
MAX_LINE = 512 * 1024
MAX_RECORDED = 4 * 1024 * 1024
REPORT, ANSWER = "SYNCLINE_REPORT", "SYNCLINE_ANSWER"


def main() -> int:
    spec: Spec = json.loads(_first_line())
    os.umask(0o022)
    os.set_inheritable(spec["tree"], False)
    try:
        _enter(spec)
        init = os.fork()
        if init == 0:
            _be_init(spec)
        os.close(spec["tree"])
    except (SandboxError, OSError) as error:
        _complain(f"no root for the playbook: {error}")
        return CANNOT
    return attend(init, 0)


def _first_line() -> bytes:
    """Read one line; the pipe stays open, because its end ends the play."""
    line = b""
    while not line.endswith(b"\n") and (chunk := os.read(0, CHUNK)):
        line += chunk
    return line


def _complain(text: str) -> None:
    os.write(2, f"[syncline] {text}\n".encode())


def _enter(spec: Spec) -> None:
    """Enter new namespaces. Root mounts the system's folders before it gives up its rights, since they may lie below
    folders that only it may enter; any other user can map its own id alone, so every file belongs to root there."""
    refused = "this machine refuses user namespaces"
    spaces = kernel.NEWUSER | kernel.NEWNS | kernel.NEWPID | kernel.NEWIPC | kernel.NEWUTS | kernel.NEWCGROUP
    if not spec["network"]:
        spaces |= kernel.NEWNET
    if identity(0) is None:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(spaces, refused)
        kernel.map_ids("self", f"0 {user} 1", f"0 {group} 1")
        _stage(spec, None)
    else:
        first = FIRST + int(spec["slot"]) % SLOTS * IDS
        kernel.unshare(kernel.NEWNS, "a mount namespace")
        _stage(spec, first)
        os.setgroups([])
        mapped_from_outside(f"0 {first} {IDS}", spaces, refused)
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    kernel.hide_from_others()


def _stage(spec: Spec, owner: int | None) -> None:
    root = str(spec["root"])
    mount("", "/", "", REC | PRIVATE)
    mount("tmpfs", root, "tmpfs", NOSUID | NODEV, f"size={spec['tmpfs_bytes']},nr_inodes={spec['inodes']},mode=755")
    base = os.open(root, O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for source, target in spec["binds"]:
        bind(base, os.path.realpath(source), target)
    os.makedirs(f"{root}/dev/shm")
    os.chmod(f"{root}/dev/shm", 0o1777)
    make_devices(base, root)
    os.close(base)
    os.chdir(root)  # its path may lie below folders that only root enters
    if owner is not None:
        os.chown(root, owner, owner)
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if not os.path.ismount(os.path.join(folder, name))]
            for name in (*folders, *files):
                if not os.path.ismount(os.path.join(folder, name)):
                    os.chown(os.path.join(folder, name), owner, owner, follow_symlinks=False)


# -- process 1 -------------------------------------------------------------------------------------------------------


def _be_init(spec: Spec) -> None:
    """Fill the root, run the play, compare; does not return."""
    code = CANNOT
    try:
        kernel.die_with_parent()
        kernel.check(kernel.libc.sethostname(b"capture", 7), "host name")
        if not spec["network"]:
            network.loopback_up()
        code = _fill_and_run(spec)
    except Exception as error:  # process 1 can report only to the log
        _complain(f"no root for the playbook: {type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _fill_and_run(spec: Spec) -> int:
    _extract(spec["tree"], ".")
    base = os.open(".", O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    limits = make_proc(base, ".")
    os.close(base)
    _mount_again()
    pivot(".", read_only=False)
    close_namespaces(limits)
    local = "/var/usrlocal"
    if os.path.isdir("/usr/local") and not os.path.islink("/usr/local") and os.path.isdir(local):
        mount(local, "/usr/local", "", BIND)
    kernel.libc.prctl(SET_NAME, b"systemd", 0, 0, 0)  # by the name of process 1 facts know the manager of services
    scan = Scan()
    for path in spec["kept"]:
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            _say(event="kept", path=path, text=file.read(MAX_RECORDED))
    run = _Run(spec, scan)
    child = run.start()
    code = run.follow(child)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    _reap()
    for entry in scan.differences():
        _say(event="entry", **entry)
    _say(event="end", code=code, over=run.over)
    return 0


def _mount_again() -> None:
    """Mount the root, our directory, on itself: what was mounted with more rights than ours cannot become the root."""
    flags = CLONE_TREE | RECURSIVE | os.O_CLOEXEC
    tree = kernel.libc.syscall(OPEN_TREE, AT_FDCWD, b".", flags)
    kernel.check(tree, "the root as a mount of its own (Linux 5.12 or newer)")
    kernel.check(kernel.libc.syscall(MOVE_MOUNT, tree, b"", AT_FDCWD, b".", FROM_EMPTY), "mount the root")
    os.fchdir(tree)
    os.close(tree)


def _extract(descriptor: int, root: str) -> None:
    """Fill the root. The archive may be hostile: what it does, it does to this root, which is left afterwards."""
    with os.fdopen(descriptor, "rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
        archive.extraction_filter = lambda member, _: member  # as an attribute, because Python 3.11.3 knows no argument
        for member in archive:
            if member.isdev() or not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
                continue
            archive.extract(_as_it_is(member), root, set_attrs=not member.issym(), numeric_owner=True)


def _as_it_is(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Names stay below the root; a single id stands for all where no others are mapped."""
    if ".." in member.name.split("/"):
        raise SandboxError(f"{member.name[:200]!r}: a name of the tree that leaves it")
    member.name, member.uname, member.gname = member.name.lstrip("/"), "", ""
    if _mapped() == 1:
        member.uid = member.gid = 0
    return member


def _mapped() -> int:
    with open("/proc/self/uid_map") as file:
        return int(file.read().split()[2])


def _say(**event: object) -> None:
    line = json.dumps(event).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


class _Run:
    """One play, followed until it ends."""

    def __init__(self, spec: Spec, scan: Scan) -> None:
        self._spec, self._scan = spec, scan
        self._report, self._wish = os.pipe()
        self._given, self._answer = os.pipe()
        self._recorded = str(spec["recorded"])
        self._read = 0
        self.over = ""

    def start(self) -> int:
        child = os.fork()
        if child == 0:
            self._become()
        os.close(self._wish)
        os.close(self._given)
        return child

    def _become(self) -> None:
        try:
            os.setsid()
            step_back(int(self._spec["niceness"]))
            null = os.open("/dev/null", os.O_RDWR)
            for stream in (0, 1):
                os.dup2(null, stream)
            for each in (self._wish, self._given):
                os.set_inheritable(each, True)
            for name, limit in self._spec["limits"].items():
                resource.setrlimit(getattr(resource, name), (limit, limit))
            kernel.libc.prctl(kernel.SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            seccomp.restrict()
            os.chdir(self._spec["cwd"])
            env = self._spec["env"] | {REPORT: str(self._wish), ANSWER: str(self._given)}
            os.execve(self._spec["argv"][0], self._spec["argv"], env)
        except Exception as error:  # no caller can handle it
            _complain(f"{self._spec['argv'][0]}: {error}")
        finally:
            os._exit(126)

    def follow(self, child: int) -> int:
        """Return the exit code. Each result is forwarded with the paths that differ since the one before."""
        watch = Watch(self._spec["whole"], [], priority=int(self._spec["niceness"]))
        gone, line = os.pidfd_open(child), b""
        open_ends = [self._report, gone]
        while True:
            ready = select.select(open_ends, [], [], watch.pause_s)[0]
            if self._report in ready:
                chunk = os.read(self._report, CHUNK)
                line = self._forward(line + chunk)
                if chunk:
                    continue
                open_ends = [gone]
            if gone in ready:
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                self._touched()
                return code
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.over = self.over or watch.check(ended.ru_utime + ended.ru_stime)
            if self.over or len(line) > MAX_LINE:
                self.over = self.over or "output: a line that is too long"
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            _reap_orphans(child)

    def _forward(self, read: bytes) -> bytes:
        *lines, rest = read.split(b"\n")
        for each in lines:
            _say(event="report", line=each.decode("utf-8", "replace"))
            if b'"event": "result"' in each[:40]:
                self._touched()
                with contextlib.suppress(OSError):
                    os.write(self._answer, b"\n")
        return rest

    def _touched(self) -> None:
        """Say which paths differ since the last time, and what the shims recorded since."""
        _say(event="touched", paths=self._scan.touched())
        with contextlib.suppress(OSError), open(self._recorded, "rb") as file:
            file.seek(self._read)
            read = file.read(MAX_RECORDED - self._read)
            whole = read[: read.rfind(b"\n") + 1]
            self._read += len(whole)
            for each in whole.splitlines():
                _say(event="recorded", line=each.decode("utf-8", "replace"))


def _reap_orphans(child: int) -> None:
    """Reap what the play left; its own end is waited for where its code is read."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == child:
            return
        os.waitpid(found.si_pid, 0)
