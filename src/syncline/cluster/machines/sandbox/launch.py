"""Create a sandbox and run one command in it; or, with a pipe's number as argument, run a command in an existing one.

``process.py`` and ``sources/rendering/plugin_run.py`` start it with a :data:`Spec` as one JSON line on its standard
input and keep that pipe open: when it closes, the cluster has ended, and the sandbox ends at once. A command never runs
without a sandbox: if setup fails, the exit code is 125, with a message.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import sys
import termios
import time

from syncline.base import seccomp
from syncline.base.priority import LAST, step_back
from syncline.cluster.machines.sandbox import CANNOT, kernel, network
from syncline.cluster.machines.sandbox.board import Board
from syncline.cluster.machines.sandbox.kernel import SandboxError
from syncline.cluster.machines.sandbox.ownership import WIDTH, give, identity
from syncline.cluster.machines.sandbox.projecting import Projection
from syncline.cluster.machines.sandbox.root import make_root
from syncline.cluster.machines.sandbox.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing it takes as long as creating the sandbox
    from typing import Any

CHUNK = 65536
NAMESPACES = (
    kernel.NEWUSER | kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS | kernel.NEWCGROUP
)
KEEPER = 1
"""The command's user in the sandbox's user namespace if root started us; else it is root there."""
ENDS = {signal.SIGCHLD, signal.SIGTERM}
MORE_LIKELY_OUT_OF_MEMORY = "700"

Spec = dict[str, "Any"]
"""``argv``, ``env``, ``cwd``; ``root`` (an empty directory of ours), ``hostname``; ``binds``: [source, target,
writable] and perhaps a path below the source; ``files``: volumes kept in memory, by name (a source of ``binds`` that is
no path names one; see :func:`project`); ``socket`` (path on this machine) and ``port`` (in the sandbox); ``limits``:
name of RLIMIT to number; ``whole``: limits of all its processes together (see :class:`Watch`); ``tmpfs_bytes``.
Optional: ``slot``, the number of the user that it runs as where root started us, ``give``: what shall belong to that
user ([path, and what is below it too]), ``verdict``: a descriptor that learns which limit was exceeded; ``board``: a
descriptor of the :class:`Board`, ``line`` on it, and ``together``: limits of all sandboxes. ``ids``: ``user``,
``group`` and further ``groups`` of the command, and all that its pod names, in order (``known``; 0 is the first);
``writable_root``: the root is memory that it may write; ``strict_root``: neither that nor the usual folders for
temporary files; ``updates``: a descriptor from which new states of ``files`` come."""


# -- outside ---------------------------------------------------------------------------------------------------------


def main() -> int:
    if len(sys.argv) > 1:
        wish = int(sys.argv[1])
        os.set_inheritable(wish, False)
        try:
            joined: Spec = json.loads(_first_line(wish))
            return _reach(joined) if "reach" in joined else _join(joined, wish)
        except (SandboxError, OSError) as error:
            _complain(str(error))
            return CANNOT
    spec: Spec = json.loads(_first_line(0))
    os.umask(0o022)
    verdict = spec.get("verdict")
    for given in (verdict, spec.get("board"), spec.get("updates")):
        if given is not None:
            os.set_inheritable(given, False)
    alive, ours = os.pipe()
    try:
        _enter_namespaces(spec)
        init = os.fork()
        if init == 0:
            os.close(ours)
            _be_init(spec, alive)
        if "updates" in spec:
            os.close(spec["updates"])
    except (SandboxError, OSError) as error:
        _complain(f"no sandbox: {error}")
        return CANNOT
    return _guard(init)


def _first_line(pipe: int) -> bytes:
    """Read one line; the pipe stays open, because its end ends the command."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(pipe, CHUNK)
        if not chunk:
            break
        line += chunk
    return line


def _enter_namespaces(spec: Spec) -> None:
    """Enter new namespaces; root assigns the command another user, because limits do not apply to root."""
    outside = identity(int(spec.get("slot", 0)))
    _prefer_as_victim()
    refused = "this machine refuses user namespaces"
    if outside is None:
        user, group = os.geteuid(), os.getegid()
        spec["keeper"] = 0
        kernel.unshare(NAMESPACES, refused)
        kernel.map_ids("self", f"0 {user} 1", f"0 {group} 1")
    else:
        spec["keeper"] = KEEPER
        for path, whole in spec.get("give", ()):
            give(path, outside, whole=whole)
        os.setgroups([])
        lines = f"0 {os.geteuid()} 1\n{KEEPER} {outside} {WIDTH}"
        mapped_from_outside(lines, NAMESPACES, refused)
    kernel.hide_from_others()


def mapped_from_outside(lines: str, namespaces: int, refused: str, proc: int | None = None) -> None:
    """Map ids through a child in the parent namespace, since a process in a new user namespace may map only itself.
    ``proc`` is an open ``/proc`` that shows this process if its own does not."""
    here = str(os.getpid()) if proc is None else os.readlink("self", dir_fd=proc)
    begin, tell = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        code = CANNOT
        try:
            os.close(tell)
            if os.read(begin, 1):
                kernel.map_ids(here, lines, lines, proc, further_groups=True)
                code = 0
        except SandboxError as error:
            _complain(f"no sandbox: {error}")
        finally:
            os._exit(code)
    os.close(begin)
    kernel.unshare(namespaces, refused)
    os.write(tell, b"m")
    os.close(tell)
    if os.waitstatus_to_exitcode(os.waitpid(mapper, 0)[1]) != 0:
        raise SandboxError("users of the sandbox cannot be distinguished from those of this machine")


def _prefer_as_victim() -> None:
    """Let the kernel end sandboxes first when the machine runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(MORE_LIKELY_OUT_OF_MEMORY)
    except OSError:
        pass


def _guard(init: int) -> int:
    """End the sandbox when the cluster ends, forward SIGTERM, return the exit code. Our end is the sandbox's end: the
    kernel reports the end of an init after that of all its processes."""
    signal.signal(signal.SIGTERM, lambda *_: _kill(init, signal.SIGTERM))
    return attend(init, 0)


def attend(process: int, wish: int) -> int:
    """Return the exit code of a child; kill it when the pipe ``wish`` closes first."""
    watched = [wish, os.pidfd_open(process)]  # no threads here: this process has left its process namespace
    while watched[-1] not in (ready := select.select(watched, [], [])[0]):
        if wish in ready and not os.read(wish, CHUNK):
            _kill(process, signal.SIGKILL)
            watched.remove(wish)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code if code >= 0 else 128 - code


def _kill(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


# -- process 1 -------------------------------------------------------------------------------------------------------


def _be_init(spec: Spec, alive: int) -> None:
    """Set up the sandbox, start the forwarder and the command, end with the command. Does not return."""
    code = CANNOT
    try:
        kernel.die_with_parent()
        if select.select([alive], [], [], 0)[0]:
            return  # the guard has ended already
        code = _set_up_and_watch(spec)
    except Exception as error:  # process 1 can report only to the log
        _complain(f"no sandbox: {error}")
    finally:
        os._exit(code)


def _set_up_and_watch(spec: Spec) -> int:
    name = str(spec["hostname"]).encode()[:63]
    kernel.check(kernel.libc.sethostname(name, len(name)), "host name")
    network.loopback_up()
    _set_parameters(spec.get("sysctls", {}))
    proc = os.open("/proc", kernel.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    _load_nothing_more()
    projection = make_root(spec)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    if spec.get("socket"):
        listeners = [network.listen(str(host), int(port)) for host, port in spec["listen"]]
        if os.fork() == 0:
            os.close(proc)
            _be_forwarder(spec, listeners)
        for each in listeners:
            each.close()
    folders = [*(target for _, target, writable, *_ in spec["binds"] if writable)]
    board = Board(spec["board"]) if "board" in spec else None
    watch = Watch(spec.get("whole", {}), folders, board, spec.get("line", 0), spec.get("together"))
    child = os.fork()
    if child == 0:
        _become(spec, proc)
    os.close(proc)
    _detach_output(keep=2)
    return _wait_and_watch(child, watch, projection, spec.get("verdict"))


def _set_parameters(wanted: dict[str, str]) -> None:
    """Set kernel parameters of this sandbox. Those with the wanted value are skipped, as they may be read-only."""
    for name, value in wanted.items():
        path = f"/proc/sys/{name.replace('.', '/')}"
        try:
            with open(path) as file:
                known = file.read().split()
            if known != value.split():
                with open(path, "w") as file:
                    file.write(value)
        except OSError as error:
            raise SandboxError(f"kernel parameter {name} = {value}: {error.strerror}") from error


def _load_nothing_more() -> None:
    """Disable imports by path: from here on, paths are the sandbox's, where commands can write modules."""
    sys.meta_path[:] = [each for each in sys.meta_path if getattr(each, "__name__", "") != "PathFinder"]


def _be_forwarder(spec: Spec, listeners: list[Any]) -> None:
    try:
        _lose_rights(int(spec["keeper"]))
        step_back(LAST)
        _detach_output()
        network.forward(listeners)
    finally:
        os._exit(CANNOT)


def _detach_output(keep: int = -1) -> None:
    """Close the log's pipe in the forwarder."""
    null = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        if stream != keep:
            os.dup2(null, stream)
    os.close(null)


def _wait_and_watch(child: int, watch: Watch, projection: Projection, verdict: int | None) -> int:
    """Wait for the command, reap orphans; return its exit code, or 128 + n after signal n."""
    over = ""
    while True:
        got = signal.sigtimedwait(ENDS, watch.pause_s)
        if got is not None and got.si_signo == signal.SIGTERM:
            _kill(child, signal.SIGTERM)
        code = _reaped(child)
        if code is not None:
            return code
        projection.check()
        if not over:
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            over = watch.check(ended.ru_utime + ended.ru_stime)
            if over:
                _complain(f"ended, it used too much {over}")
                if verdict is not None:
                    os.write(verdict, over.encode())
        if over:
            _kill(-1, signal.SIGKILL)


def _reaped(child: int) -> int | None:
    """Reap ended processes; return the exit code of ``child`` if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code


# -- the command -----------------------------------------------------------------------------------------------------


def _become(spec: Spec, proc: int | None) -> None:
    """Become the command. ``proc`` is a ``/proc`` that shows this process; None: the namespace is already entered."""
    code = 126
    try:
        os.setsid()
        step_back(LAST)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
        if not spec.get("stdin"):
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        if spec.get("tty"):
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)
        for name, limit in spec["limits"].items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            value = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (value, value))
        _take_identity(spec, proc)
        if "alive" in spec and select.select([spec["alive"]], [], [], 0)[0]:
            return  # the caller has ended meanwhile
        try:
            os.chdir(str(spec["cwd"]))
        except OSError as error:
            raise SandboxError(f"workingDir {spec['cwd']}: {error.strerror}; the image is not there") from error
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(each, signal.SIG_DFL)
        _execute(spec["argv"], spec["env"])
    except FileNotFoundError:
        code = 127
        _complain(f"{spec['argv'][0]}: no such file; images are not pulled, commands are this machine's")
    except Exception as error:  # no caller can handle it
        _complain(str(error))
    finally:
        os._exit(code)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """As ``os.execvpe``, which imports a module that cannot be found here."""
    program, refused = argv[0], False
    folders = [""] if "/" in program else env.get("PATH", os.defpath).split(":")
    for folder in folders:
        try:
            os.execve(os.path.join(folder, program), argv, env)
        except PermissionError:
            refused = True
        except (FileNotFoundError, NotADirectoryError):
            pass
    raise PermissionError(f"{program}: permission denied") if refused else FileNotFoundError(program)


ALONE = {"user": 0, "group": 0, "groups": [], "known": [0]}
"""Identity of a command that specifies none."""


def _take_identity(spec: Spec, proc: int | None) -> None:
    """Take the pod's identity, in a nested user namespace without rights over the sandbox. If root started us, each
    user and group of the pod has a separate id; else all share one."""
    keeper, ids = int(spec["keeper"]), spec.get("ids", ALONE)
    user, group = int(ids["user"]), int(ids["group"])
    if "space" in spec:
        kernel.enter_namespace(spec["space"], "user")
    elif keeper:
        lines = "\n".join(f"{number} {keeper + place} 1" for place, number in enumerate(ids["known"]))
        mapped_from_outside(lines, kernel.NEWUSER, "a user namespace for the command", proc)
    else:
        kernel.unshare(kernel.NEWUSER, "a user namespace for the command")
        kernel.hide_from_others(False)  # otherwise its own id maps belong to root
        kernel.map_ids("self", f"{user} 0 1", f"{group} 0 1", proc)
    if proc is not None:
        os.close(proc)
    if keeper:
        os.setgroups(ids["groups"])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    _drop_rights()


def _lose_rights(keeper: int) -> None:
    """Become the sandbox's user, without any rights."""
    if keeper:
        os.setresgid(keeper, keeper, keeper)
        os.setresuid(keeper, keeper, keeper)
    _drop_rights()


def _drop_rights() -> None:
    kernel.drop_privileges()
    kernel.hide_from_others()
    kernel.die_with_parent()  # a change of user clears it
    seccomp.restrict()


def _complain(text: str) -> None:
    os.write(2, f"[syncline] {text}\n".encode())


# -- one more command ------------------------------------------------------------------------------------------------

JOINED = ("mnt", "net", "ipc", "uts", "cgroup", "pid")


def _join(spec: Spec, wish: int) -> int:
    """Run a command in the sandbox of launcher ``spec["launcher"]`` with the current streams, until the pipe ``wish``
    closes. The command is our child, which must be reaped here: until then, the kernel does not end its sandbox.

    The namespaces are those of the sandbox's command, which exists once the sandbox is complete.
    """
    os.umask(0o022)
    spaces = _spaces_of(int(spec["launcher"]))
    kernel.hide_from_others()
    if identity(int(spec.get("slot", 0))) is not None:
        os.setgroups([])
        spec["keeper"] = KEEPER
    else:
        spec["keeper"] = 0
    _load_nothing_more()
    for name in ("owner", *JOINED):
        kernel.enter_namespace(spaces[name], name)
    os.chdir("/")
    alive, ours = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _become(spec | {"space": spaces["user"], "alive": alive}, None)
    for space in spaces.values():
        os.close(space)
    return attend(child, wish)


def _reach(spec: Spec) -> int:
    """Probe a port of the sandbox of launcher ``spec["launcher"]``, from its network but otherwise outside, without
    rights. The result is one line on the output."""
    from syncline.cluster.machines.sandbox.reach import reach

    if spec["reach"].get("tls"):
        import ssl  # noqa: F401 - later there is no right to load it

    spaces = _spaces_of(int(spec["launcher"]))
    keeper = KEEPER if identity(int(spec.get("slot", 0))) is not None else 0
    if keeper:
        os.setgroups([])
    for name in ("owner", "net"):
        kernel.enter_namespace(spaces[name], name)
    for space in spaces.values():
        os.close(space)
    _lose_rights(keeper)
    os.write(1, reach(spec["reach"]).encode())
    return 0


def _spaces_of(launcher: int) -> dict[str, int]:
    """Return the namespaces of a launcher's sandbox; wait while it is being created."""
    for _ in range(int(STARTING_S / LOOK_S)):
        inits = _children(launcher)
        spaces = _spaces(inits[0]) if inits else None
        if spaces is not None:
            return spaces
        if not os.path.exists(f"/proc/{launcher}/fd"):
            break
        time.sleep(LOOK_S)
    raise SandboxError("the container is not running")


STARTING_S, LOOK_S = 60.0, 0.02


def _spaces(init: int) -> dict[str, int] | None:
    """Return the namespaces of a command of ``init``: its user namespace is not the owner of its mounts."""
    for process in _children(init):
        found: dict[str, int] = {}
        try:
            for name in ("user", *JOINED):
                found[name] = os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            found["owner"] = kernel.owner_of_namespace(found["mnt"])
            if _is_mapped(process) and os.fstat(found["owner"]).st_ino != os.fstat(found["user"]).st_ino:
                return found
        except (OSError, SandboxError):
            pass
        for space in found.values():
            os.close(space)
    return None


def _is_mapped(process: int) -> bool:
    """Return whether the process's user ids are mapped."""
    with open(f"/proc/{process}/uid_map") as file:
        return bool(file.read(1))


def _children(parent: int) -> list[int]:
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            return sorted(int(word) for word in file.read().split())
    except OSError:
        pass  # the kernel lacks that file, or the process has ended
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if len(fields) > 1 and int(fields[1]) == parent:
            found.append(int(name))
    return sorted(found)
