"""Ways out of the sandbox of local processes: each is tried by a real pod or a real sandbox, and each is shut."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.machines.ways_out import EMPTY, PRELUDE, WAYS, WORK, Way
from tests.conftest import Figure
from tests.live import Served, served_cluster
from tests.oc import Oc

from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.base.removal import remove_tree
from syncline.base.seccomp import ABSENT, CLONE, REFUSED, UNSHARE
from syncline.cluster.machines.processes.launching import end, kill, launcher, python_inside, sandbox_problem

PROBLEM = sandbox_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
LONGEST_S = 300
WAIT = f"--timeout={LONGEST_S}s"
MARK = "xyzzy-of-the-neighbour"
SLOT = os.getpid() % 4096 * 4096 + 4000
"""Users of our own: what a neighbouring test process uses up is not counted as ours."""
NEIGHBOUR = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "neighbour"},
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "c",
                "image": "none",
                "command": ["sleep", "600"],
                "env": [{"name": "SECRET", "value": MARK}],
            }
        ],
    },
}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ours"}, "stringData": {"password": "hidden"}}


def _python() -> tuple[str, dict[str, str]]:
    """Our interpreter inside, and what it needs."""
    program, binds = python_inside()
    return program, {"LD_LIBRARY_PATH": "/opt/syncline/python/lib"} if len(binds) > 2 else {}


def _pod(way: Way, name: str, words: dict[str, str]) -> dict[str, Any]:
    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        return text

    program, env = _python()
    command = [program, "-I", "-c", filled(PRELUDE + way.python)] if way.python else ["sh", "-c", filled(way.shell)]
    container = {
        "name": "c",
        "image": "none",
        "command": command,
        "env": [{"name": key, "value": value} for key, value in env.items()] if way.python else [],
        "volumeMounts": list(way.mounts),
    }
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container], "volumes": list(way.volumes)}
    if way.before:
        first = {"name": "first", "image": "none", "command": ["sh", "-c", filled(way.before)]}
        spec["initContainers"] = [first | {"volumeMounts": [{"name": "e", "mountPath": "/work"}]}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True)
class Tried:
    """Exit code and log by the way's name; ``words`` as they were filled in."""

    found: dict[str, tuple[int, str]]
    words: dict[str, str]

    def expected(self, way: Way) -> tuple[int, str]:
        shut = way.shut
        for word, value in self.words.items():
            shut = shut.replace(f"@{word}@", value)
        return way.code, shut


def _outside(stack: ExitStack, folder: Path, served: Served) -> dict[str, str]:
    """What there would be to find."""
    listener = stack.enter_context(socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True))
    abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
    abstract.bind(f"\0syncline-test-{os.getpid()}")
    abstract.listen()
    named = stack.enter_context(socket.socket(socket.AF_UNIX))
    named.bind(str(folder / "service.sock"))
    named.listen()
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    bystander = stack.enter_context(subprocess.Popen(["sleep", "600"]))
    stack.callback(bystander.kill)
    settings = served.cluster.settings
    data = sorted(path for path in (settings.data or folder).rglob("*") if path.is_file())
    assert data, "the cluster has data that could be read"
    files = ["/etc/shadow", "/root/.bashrc", str(served.kubeconfig), str(outside / "secret"), *map(str, data)]
    sockets = [str(folder / "service.sock"), "/var/run/docker.sock", "/run/dbus/system_bus_socket"]
    addresses = _addresses()
    assert served.cluster.machines.room.commands is not None
    numbers = {**REFUSED, **ABSENT, "clone": CLONE, "unshare": UNSHARE}
    return {
        "NUMBERS": repr(numbers),
        "FILES": repr(files),
        "FILES_SHUT": "\n".join(["file ENOENT"] * len(files)),
        "SCRATCH": str(served.cluster.machines.room.commands.scratch),
        "PID": str(bystander.pid),
        "PORT": str(listener.getsockname()[1]),
        "ADDRESSES": repr(addresses),
        "ADDRESSES_SHUT": "\naddress ENETUNREACH" * len(addresses),
        "ABSTRACT": f"syncline-test-{os.getpid()}",
        "SOCKETS": repr(sockets),
        "SOCKETS_SHUT": "\n".join(["socket ENOENT"] * len(sockets)),
        "OUTSIDE": str(outside),
        "MARK": MARK,
    }


def _addresses() -> list[str]:
    """Of this machine, beyond the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [one.getsockname()[0]]


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    """All pods at once."""
    folder = tmp_path_factory.mktemp("served")
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.SANDBOXED, data=folder / "data")
    with served_cluster(folder, settings) as served, ExitStack() as stack:
        oc = Oc(served.kubeconfig)
        oc("wait", "serviceaccount/default", "--for=create", WAIT)
        words = _outside(stack, folder, served)
        names = {f"way-{number}": way for number, way in enumerate(WAYS)}
        for ahead in (SECRET, NEIGHBOUR):
            oc("create", "-f", "-", stdin=json.dumps(ahead))
        oc("wait", "pod/neighbour", "--for=condition=Ready", WAIT)
        pods = [_pod(way, name, words) for name, way in names.items()]
        oc("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
        state = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
        oc("wait", *(f"pod/{name}" for name in names), state, WAIT)
        ended = {pod["metadata"]["name"]: pod for pod in json.loads(oc("get", "pods", "-o", "json"))["items"]}
        found = {}
        for name, way in names.items():
            status = ended[name]["status"]["containerStatuses"][0]["state"]["terminated"]
            log = served.cluster.machines.room.logs.log(ended[name], "c", {}, datetime.now(UTC))
            assert isinstance(log, bytes)
            found[way.name] = (status["exitCode"], log.decode().strip())
        yield Tried(found, words)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_pod_finds_no_way_out(tried: Tried, way: Way) -> None:
    assert tried.found[way.name] == tried.expected(way)


# -- what uses too much: sandboxes of their own, with low limits and no cluster

LIMITS = {
    "RLIMIT_AS": 1 << 30,
    "RLIMIT_CORE": 0,
    "RLIMIT_CPU": 4,
    "RLIMIT_FSIZE": 32 << 20,
    "RLIMIT_NOFILE": 1024,
    "RLIMIT_NPROC": 48,
}
WHOLE = {"memory_bytes": 96 << 20, "cpu_s": 120, "processes": 48, "disk_bytes": 48 << 20}
LITTLE_CPU: dict[str, Mapping[str, float]] = {
    "the processors": WHOLE | {"cpu_s": 1},
    "the processors, by children that end": WHOLE | {"cpu_s": 0.2},
}
"""For who uses nothing else: where its watcher gets little of a busy machine, another one has used more of the
processors before it is seen to have used too much of what it is here for."""


@dataclass(frozen=True)
class Ended:
    code: int
    output: str
    verdict: str
    pid: int


def sandboxed(
    folder: Path,
    command: list[str],
    whole: Mapping[str, float] | None = None,
    seconds: float = LONGEST_S,
    *,
    place: str = "/work",
    writable_root: bool = False,
) -> Ended:
    """Run it under low limits, its volume at ``place``; whatever happens, nothing of it is left afterwards."""
    root, volume = folder / "root", folder / "volume"
    root.mkdir(parents=True)
    volume.mkdir()
    verdict, theirs = os.pipe()
    program, env = _python()
    spec = {
        "argv": [program, "-I", "-c", PRELUDE.replace("@NUMBERS@", "{}") + command[1]]
        if command[0] == "python"
        else command,
        "env": {"PATH": "/usr/bin:/bin"} | env,
        "cwd": "/",
        "root": str(root),
        "hostname": "hog",
        "binds": [*python_inside()[1], (str(volume), place, True)],
        "writable_root": writable_root,
        "socket": "",
        "port": 0,
        "limits": LIMITS,
        "whole": WHOLE if whole is None else whole,
        "tmpfs_bytes": 16 << 20,
        "slot": SLOT,
        "give": [(str(volume), False)],
        "verdict": theirs,
    }
    process = launcher(spec)
    os.close(theirs)
    late = threading.Timer(seconds, kill, [process])
    late.start()
    assert process.stdout is not None
    with process.stdout:
        output = process.stdout.read().decode("utf-8", "replace")
    code = process.wait()
    late.cancel()
    remove_tree(volume)
    with os.fdopen(verdict, "rb") as pipe:
        return Ended(code, output, pipe.read().decode(), process.pid)


FORKING = """
import time
born = 0
for _ in range(1000):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        born += 1
    except BlockingIOError:
        break
print("bounded" if 4 < born <= 48 else born, flush=True)
os._exit(0)
"""
THREADS = """
import threading, time
born = 0
try:
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        born += 1
except RuntimeError:
    pass
print("bounded" if 4 < born <= 48 else born, flush=True)
os._exit(0)
"""
MANY = """
import time
for _ in range(30):
    if os.fork() == 0:
        held = bytearray(16 << 20)
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""
SHARED = """
import mmap, time
held = mmap.mmap(-1, 256 << 20)
for at in range(0, len(held), 4096):
    held[at] = 1
time.sleep(60)
"""
SYSTEM_V = """
import time
libc.shmat.restype = ctypes.c_void_p
for _ in range(8):
    one = libc.shmget(0, 32 << 20, 0o1600)
    at = libc.shmat(one, None, 0)
    ctypes.memset(at, 1, 32 << 20)
    libc.shmdt(ctypes.c_void_p(at))
time.sleep(60)
"""
ONE = """
try:
    held = bytearray(2 << 30)
    print("had")
except MemoryError:
    print("refused")
"""
DISK = "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > /work/$i; done"
UNLINKED = """
import time
held = []
for number in range(20):
    file = open("/work/x", "wb")
    os.unlink("/work/x")
    file.write(bytes(8 << 20))
    file.flush()
    held.append(file)
time.sleep(60)
"""
DEEP = """
import time
os.chdir("/work")
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
time.sleep(60)
"""
SOCKETS = """
import time
for _ in range(12):
    if os.fork() == 0:
        held = [socket.socketpair() for _ in range(500)]
        time.sleep(60)
time.sleep(60)
"""
BUSY = "for i in 1 2 3; do sh -c 'while :; do :; done' & done; wait; sleep 60"
BRIEF = "while :; do sh -c 'i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done'; done"
BOMB = """
import subprocess, time
subprocess.Popen(["bash", "-c", "bomb() { bomb | bomb & }; bomb"], stderr=subprocess.DEVNULL)
time.sleep(1)  # without a process of its own: the bomb may have taken all that there are
print("alive")
"""

HOGS = {
    "a fork bomb": (["python", BOMB], 0, "", "alive"),
    "processes without end": (["python", FORKING], 0, "", "bounded"),
    "threads without end": (["python", THREADS], 0, "", "bounded"),
    "the memory of one process": (["python", ONE], 0, "", "refused"),
    "the memory of many processes": (["python", MANY], 137, "memory", ""),
    "memory that is shared": (["python", SHARED], 137, "memory", ""),
    "memory that belongs to nobody": (["python", SYSTEM_V], 137, "memory", ""),
    "many files on the disk": (["sh", "-c", DISK], 137, "disk", ""),
    "files without a name": (["python", UNLINKED], 137, "disk", ""),
    "folders without end": (["python", DEEP], 137, "disk", ""),
    "buffers of sockets": (["python", SOCKETS], 137, "sockets", ""),
    "the processors": (["sh", "-c", BUSY], 137, "cpu", ""),
    "the processors, by children that end": (["sh", "-c", BRIEF], 137, "cpu", ""),
}
"""What is used too much: the command; exit code, which limit, and what it says if it is bounded."""


@pytest.mark.parametrize("name", HOGS)
def test_nothing_is_used_without_a_bound(tmp_path: Path, name: str) -> None:
    command, code, verdict, said = HOGS[name]
    ended = sandboxed(tmp_path, command, LITTLE_CPU.get(name))
    assert (ended.code, ended.verdict.partition(":")[0]) == (code, verdict), ended.output[-500:]
    assert said in ended.output


def test_processes_are_counted_even_where_the_kernel_does_not(tmp_path: Path) -> None:
    """Root's processes are bounded by no limit of the kernel: the sandbox counts them itself."""
    limits = dict(LIMITS)
    try:
        LIMITS["RLIMIT_NPROC"] = 400
        ended = sandboxed(tmp_path, ["python", MANY.replace("range(30)", "range(300)").replace("16 << 20", "1")])
    finally:
        LIMITS.update(limits)
    assert (ended.code, ended.verdict.partition(":")[0]) == (137, "processes")


DAEMONS = """
import subprocess, time
for _ in range(3):
    beating = "trap '' TERM HUP; (while :; do echo beat >> /work/@NAME@; sleep 0.01; done) &"
    subprocess.Popen(["setsid", "sh", "-c", beating], env={"PATH": "/usr/bin:/bin", "NAME": "@NAME@"})
while not os.path.exists("/work/@NAME@"):
    time.sleep(0.01)
print("left", flush=True)
os._exit(0)
"""


def test_no_daemon_outlives_its_container(tmp_path: Path) -> None:
    name = f"daemon-of-{os.getpid()}"
    ended = sandboxed(tmp_path, ["python", DAEMONS.replace("@NAME@", name)])
    assert (ended.code, ended.output) == (0, "left\n")
    assert _processes_with(name) == []


def _processes_with(word: str) -> list[str]:
    """Command lines and variables on this machine that hold ``word``, beyond our own."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            try:
                text = (entry / name).read_bytes()
            except OSError:
                continue
            if word.encode() in text:
                found.append(text.decode("utf-8", "replace"))
    return found


RACING = """
os.symlink("@OUTSIDE@", "/work/b")
AT_CWD, EXCHANGE = -100, 2
while libc.renameat2(AT_CWD, b"/work/a", AT_CWD, b"/work/b", EXCHANGE) == 0:
    pass
print("no exchange:", errno.errorcode[ctypes.get_errno()])
"""
"""``/work/a`` is at every instant there: the folder or the link. A disk may let one of them stand for a second."""
MOST_LOOKS = 2000


def test_a_link_that_comes_and_goes_leads_no_mount_astray(tmp_path: Path) -> None:
    """CVE-2021-25741: a folder of a volume becomes a link between the check and the mount."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    volume = tmp_path / "racing"
    (volume / "a").mkdir(parents=True)
    (volume / "a" / "mine").write_text("mine")
    program, env = _python()
    base = {
        "cwd": "/",
        "hostname": "race",
        "socket": "",
        "port": 0,
        "limits": {},
        "tmpfs_bytes": 1 << 20,
        "slot": SLOT + 1,
    }
    base |= {"env": {"PATH": "/usr/bin:/bin"} | env, "whole": {"cpu_s": 60}}
    (tmp_path / "r").mkdir()
    code = PRELUDE.replace("@NUMBERS@", "{}") + RACING.replace("@OUTSIDE@", str(outside))
    racer = base | {"argv": [program, "-I", "-c", code], "root": str(tmp_path / "r")}
    racer |= {"binds": [*python_inside()[1], (str(volume), "/work", True)], "give": [(str(volume), True)]}

    def both(seen: Sequence[str]) -> bool:
        return any("mine" in text for text in seen) and any("leads out of the volume" in text for text in seen)

    race = launcher(racer)
    try:

        def look(number: int) -> str:
            root = tmp_path / f"look-{number}"
            root.mkdir()
            binds = [
                (str(volume), "/seen", False, "a"),
                (str(volume), "/work", True),
                (str(tmp_path), "/work/a/in", False),
            ]
            spec = base | {"argv": ["ls", "/seen"], "root": str(root), "binds": binds[: 1 + 2 * (number % 2)]}
            one = launcher(spec)
            assert one.stdout is not None and one.stdin is not None
            with one.stdout, one.stdin:
                return one.stdout.read().decode()

        seen: list[str] = []
        with ThreadPoolExecutor(2) as pool:
            while len(seen) < MOST_LOOKS and not (len(seen) >= 60 and both(seen)):
                seen += pool.map(look, range(len(seen), len(seen) + 20))
    finally:
        end(race)
        race.wait()
        assert race.stdout is not None
        said = race.stdout.read()
        race.stdout.close()
    assert said == b"", "the racer raced until it was ended"
    assert both(seen), f"the race was run against mounts that were made and such that were refused: {seen[:4]}"
    assert not any("secret" in text for text in seen)
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]


def test_ways_out_are_counted(tried: Tried, figure: Figure) -> None:
    shut = sum(tried.found[way.name] == tried.expected(way) for way in WAYS)
    beyond = len(HOGS) + 3
    figure("ways out of a sandbox", f"tried by pods: {len(WAYS)}, shut: {shut}; by sandboxes with low limits: {beyond}")
    assert shut == len(WAYS)


def test_a_pod_that_takes_too_much_is_told_so(tmp_path: Path) -> None:
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.SANDBOXED)
    with served_cluster(tmp_path, settings) as served:
        commands = served.cluster.machines.room.commands
        assert commands is not None
        commands._settings = replace(commands._settings, memory_bytes=64 << 20, disk_bytes=16 << 20)
        oc = Oc(served.kubeconfig)
        oc("wait", "serviceaccount/default", "--for=create", WAIT)
        ways = {
            "memory": Way("", "", python="held = bytearray(256 << 20)\nimport time\ntime.sleep(60)"),
            "disk": Way("", "", shell=DISK, volumes=EMPTY, mounts=WORK),
        }
        pods = [_pod(way, name, {"NUMBERS": "{}"}) for name, way in ways.items()]
        oc("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
        state = "--for=jsonpath={.status.containerStatuses[0].state.terminated}"
        oc("wait", "pod/memory", "pod/disk", state, WAIT)
        found = {}
        for name in ways:
            pod = json.loads(oc("get", "pod", name, "-o", "json"))
            ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
            found[name] = (ended["exitCode"], ended["reason"], ended["message"].split(":")[0])
        assert found["memory"] == (137, "OOMKilled", "ended by its sandbox, it used too much memory")
        assert found["disk"] == (137, "Error", "ended by its sandbox, it used too much disk")


MOVED = """
import time
os.rename("/above", "/elsewhere")
for number in range(40):
    with open(f"/elsewhere/work/{number}", "wb") as file:
        file.write(os.urandom(2 << 20))
time.sleep(60)
"""


def test_a_volume_is_bounded_though_the_folder_above_it_is_moved(tmp_path: Path) -> None:
    """The root is the command's own memory, and so are folders that were made for mounts."""
    ended = sandboxed(tmp_path, ["python", MOVED], place="/above/work", writable_root=True)
    assert ended.verdict.startswith("disk: more than 48 MiB"), ended


PLANTED = """
import sys
from syncline.cluster.machines.sandbox.launch import _load_nothing_more
sys.path.insert(0, sys.argv[1])
_load_nothing_more()
try:
    import planted
except ImportError:
    print("shut")
"""


def test_process_1_loads_no_module_that_a_command_could_have_written(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("print('open')")
    done = subprocess.run([sys.executable, "-c", PLANTED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["shut"]
