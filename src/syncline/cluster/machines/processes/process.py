"""Run a container's command as a local process in live time, by default in a sandbox.

The kubelet starts and stops containers by actions; ``wake`` reports their end. Images are not pulled: commands are
those of this machine, ``oc`` is ours, and so is ``kubectl`` if the machine has none. All processes end with the
cluster, even if it is killed: the launcher reads its standard input, which closes then.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from syncline.base.action import Purpose, Work
from syncline.base.clock import Clock
from syncline.base.removal import remove_tree
from syncline.base.scratch import Scratch, memory_folder
from syncline.base.secret import Secret
from syncline.cluster.machines.containers import Container, ContainerTable, Order
from syncline.cluster.machines.logs import LINE_COST, LogStore, Throttle
from syncline.cluster.machines.probes import Course, Probe
from syncline.cluster.machines.processes import mounts as mounting
from syncline.cluster.machines.processes.accounts import Accounts, AccountsError, accounts_of
from syncline.cluster.machines.processes.environment import environment_of, expanded
from syncline.cluster.machines.processes.gateway import Gateway
from syncline.cluster.machines.processes.launching import (
    OURS,
    ask_port,
    end,
    installed,
    join,
    kill,
    launcher,
    package_root,
    python_inside,
    read_verdict,
    run_inside,
)
from syncline.cluster.machines.processes.prober import (
    Answer,
    Ask,
    Prober,
    Tally,
    asker,
    course_at_start,
    course_failed,
    course_with,
    run_hook,
)
from syncline.cluster.machines.processes.servicetokens import issued_tokens
from syncline.cluster.machines.processes.surroundings import (
    SysctlError,
    hosts_file,
    master_address,
    resolver_file,
    sysctls_of,
)
from syncline.cluster.machines.processes.volumes import TokenWish, Volume, VolumeError, shown_of, volumes_of
from syncline.cluster.machines.sandbox import CANNOT, CONNECTIONS
from syncline.cluster.machines.sandbox.board import FIGURES, LINES, Board
from syncline.cluster.machines.sandbox.ownership import identity
from syncline.cluster.machines.scripted.images import known_images
from syncline.cluster.machines.scripted.programs import RUN, program_of, runs_as_process
from syncline.cluster.machines.sessions import CommandSession
from syncline.cluster.verbs.exchange import ExecWish
from syncline.kube.client import Session
from syncline.kube.errors import BadRequest, TooManyRequests
from syncline.kube.objects import ObjectRef, dig, name_of, namespace_of, ref_of, uid_of

log = logging.getLogger("syncline.machines")

TOOL_MODULE = "syncline.cluster.machines.tools"
TOOLS = f"{OURS}/bin"
READ_BYTES = 65536
LAST_WORDS, LAST_WORDS_BYTES = "/dev/termination-log", 4096
"""Default path of the termination message, and its size limit."""
POD_WORDS_BYTES = 12 * 1024
"""Limit of the messages of all containers of a pod."""
FALLBACK_BYTES, FALLBACK_LINES = 2048, 80
"""Size of the log's end that replaces a missing message, if the container requests it."""
WRITE_S = 1.0
"""Interval of the check whether a blocked reader still runs."""
LEAST_GRACE_S = 2.0
"""Minimum grace after a preStop hook that has used up its time."""
END_S = 2.0
"""Time limit for the kernel to end a sandbox, which usually takes milliseconds."""
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
MAX_SESSIONS = 32
"""Concurrent commands in containers (``kubectl exec``): each needs threads and a process."""
SLOT_BLOCKS, SLOTS_EACH = 4096, 4096
"""Ranges of pods' users: clusters of one machine rarely share one, and sharing is harmless."""
START_FAILED = 128
"""The kubelet's exit code of a container that could not be started."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """``host`` and ``port`` of the API server, which uses TLS. Limits named ``process…`` are per process, others per
    container with all its processes."""

    host: str
    port: int
    ca_pem: str
    sandboxed: bool = True
    time_limit_s: float = 3600.0
    """A container that runs longer is killed, since a stuck hook must end."""
    process_address_bytes: int = 8 * 1024**3
    """Limit of address space, of which most programs use little; ``memory_bytes`` limits the memory in use."""
    process_cpu_s: int = 600
    process_file_bytes: int = 256 * 1024**2
    memory_bytes: int = 2 * 1024**3
    cpu_s: int = 1800
    processes: int = 512
    """Threads included."""
    tmpfs_bytes: int = 256 * 1024**2
    disk_bytes: int = 1024**3
    """In all its writable volumes."""
    open_files: int = 16_384
    all_processes: int = 2048
    """Limit for all containers together, like the following ones."""
    all_memory_bytes: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    all_open_files: int = 65_536
    folder: Path | None = None
    """Folder of the cluster's data for files with credentials, if no sandbox can hold them in memory."""

    def limits(self) -> dict[str, int]:
        """Limits per process, enforced by the kernel."""
        return {
            "RLIMIT_AS": self.process_address_bytes,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": self.process_cpu_s,
            "RLIMIT_FSIZE": self.process_file_bytes,
            "RLIMIT_NOFILE": 1024,
            "RLIMIT_NPROC": self.processes,
        }

    def whole(self) -> dict[str, int]:
        """Limits of the whole sandbox, plus the threads of our forwarder."""
        return {
            "memory_bytes": self.memory_bytes,
            "cpu_s": self.cpu_s,
            "processes": self.processes + 3 * CONNECTIONS,
            "disk_bytes": self.disk_bytes,
            "open_files": self.open_files,
        }

    def together(self) -> dict[str, int]:
        """Limits of all sandboxes together: the one that uses most ends first."""
        figures = (self.all_processes, self.all_memory_bytes, self.all_open_files)
        return dict(zip(FIGURES, figures, strict=True))


Wake = Callable[[str, ObjectRef], None]
_Key = tuple[str, str, int]


@dataclass(slots=True)
class _Running:
    """A launcher and its container. ``timers`` kill it when its time is over."""

    process: subprocess.Popen[bytes]
    ref: ObjectRef
    container: dict[str, Any]
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The launcher's input; empty without a sandbox."""
    containers: int = 1
    """Number of containers in the pod."""
    line: int = -1
    """Its line on the board of resource usage."""
    verdict: int = -1
    """Descriptor on which the sandbox reports an exceeded limit."""
    updates: int = -1
    """Descriptor to which new states of its volumes are written."""
    tokens: Mapping[TokenWish, Secret] = field(default_factory=dict)
    timers: list[threading.Timer] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        if self.spec:
            end(self.process)
        else:
            kill(self.process)


class ProcessRuntime:
    """Implements :class:`~syncline.cluster.machines.containers.Runtime`. :meth:`close` ends everything."""

    name = "process"

    def __init__(
        self, table: ContainerTable, book: LogStore, clock: Clock, settings: ProcessSettings, wake: Wake
    ) -> None:
        self._table = table
        self._book = book
        self._clock = clock
        self._settings = settings
        self._wake = wake
        self._running: dict[_Key, _Running] = {}
        self._starting: set[_Key] = set()
        self._sessions: set[CommandSession] = set()
        self._slots: dict[str, int] = {}
        """If root runs this process: a number per existing pod, from which its users derive."""
        self._closed = False
        self._states = 0
        self._lock = threading.Lock()
        self._lines = set(range(LINES))
        """Free lines of the board."""
        self._board_file = Board.made() if settings.sandboxed else -1
        self._board = Board(self._board_file) if settings.sandboxed else None
        credentials = None if settings.sandboxed else settings.folder or memory_folder(programs=True)
        self._held = Scratch(credentials)
        self.scratch = self._held.path
        """The pods' writable volumes; files with Secrets only without a sandbox."""
        self._in_memory = Scratch(memory_folder(programs=True)) if settings.sandboxed else self._held
        """The pods' in-memory volumes, if the machine has a memory file system."""
        self._gateway = Gateway(self.scratch / "api.sock", settings.host, settings.port) if settings.sandboxed else None

    @staticmethod
    def takes(order: Order) -> bool:
        """Return True for containers with a known program that complete, or that request this runtime."""
        return runs_as_process(order.pod, order.container, known_images(order.objects), installed)

    # -- the runtime -------------------------------------------------------------------------------------------------

    def start(self, order: Order, now: Any) -> Generator[Any, Any, Container]:
        uid, name = uid_of(order.pod), str(order.container["name"])
        key = (uid, name, order.attempt)
        with self._lock:
            known = self._table.find(*key)
            if known is not None or key in self._starting:
                return known or Container(uid, name, order.attempt, order.boot_id, now, runtime=self.name)
            self._starting.add(key)
        try:
            tokens = yield from issued_tokens(order.pod)
            label = f"start {name} of {name_of(order.pod)}"
            run, namespace = partial(self._launch, order, tokens, key), namespace_of(order.pod)
            record = yield Work(label, run, Purpose.MACHINES, project=namespace)
        finally:
            self._starting.discard(key)
        assert isinstance(record, Container), "starting gives a record"
        return record

    def go_on(self, container: Container, now: Any) -> Generator[Any, Any, Container]:
        yield from ()
        return container

    def stop(self, container: Container, grace_s: float, now: Any) -> Generator[Any, Any, Container]:
        """Send SIGTERM, and SIGKILL after the grace period; ``wake`` reports the end."""
        yield from ()
        with self._lock:
            running = self._running.get((container.pod_uid, container.name, container.attempt))
            known = self._table.find(container.pod_uid, container.name, container.attempt) or container
            if running is None or known.ends_at is not None:
                return known if known.ends_at is not None else self._table.stopped(known, now, 137)
            hook = dig(running.container, "lifecycle", "preStop")
            if known.stopping:
                self._after(running, grace_s)
            elif hook and running.spec:
                threading.Thread(target=self._stop_after, args=(running, hook, grace_s), daemon=True).start()
            else:
                self._terminate(running, grace_s)
            return self._table.put(replace(known, stopping=True))

    def _terminate(self, running: _Running, grace_s: float) -> None:
        with contextlib.suppress(ProcessLookupError):
            running.process.send_signal(signal.SIGTERM)
        self._after(running, grace_s)

    def _stop_after(self, running: _Running, hook: dict[str, Any], grace_s: float) -> None:
        """In a separate thread: run the preStop hook within the grace period, then terminate."""
        began = time.monotonic()
        answer = run_hook(_asker(running), hook, grace_s, running.ended)
        if not answer.ok:
            log.warning("preStop hook of %s of %s: %s", running.container["name"], running.ref.name, answer.message)
        self._terminate(running, max(grace_s - (time.monotonic() - began), LEAST_GRACE_S))

    def _post_start(self, key: _Key, running: _Running, hook: dict[str, Any]) -> None:
        """In a separate thread: run the postStart hook, and kill the container if it fails."""
        answer = run_hook(_asker(running), hook, self._settings.time_limit_s, running.ended)
        if not answer.ok:
            self._become(key, running, course_failed)

    def refresh(self, order: Order, container: Container, now: Any) -> Generator[Any, Any, Container]:
        """Update the volumes of a running container after changes of ConfigMaps, Secrets or the pod."""
        with self._lock:
            running = self._running.get((container.pod_uid, container.name, container.attempt))
        if running is not None and running.updates >= 0:
            label = f"refresh volumes of {container.name} of {name_of(order.pod)}"
            run = partial(self._send_files, order, running)
            yield Work(label, run, Purpose.MACHINES, project=namespace_of(order.pod))
        known = self._table.find(container.pod_uid, container.name, container.attempt) or container
        return self._table.put(replace(known, shown=shown_of(order.pod, order.objects)))

    def _send_files(self, order: Order, running: _Running) -> None:
        """In a worker thread: send the files. On errors the old ones stay, and the cluster's log has the reason."""
        accounts = accounts_of(order.pod, order.container)
        volumes = volumes_of(order, running.tokens, accounts.sole, accounts.shared)
        try:
            files = mounting.files(volumes, accounts, self._settings.tmpfs_bytes, self._stamp())
            left = memoryview(json.dumps(files).encode() + b"\n")
            while left and not running.ended.is_set():
                _, ready, _ = select.select([], [running.updates], [], WRITE_S)
                if ready:
                    left = left[os.write(running.updates, left) :]
        except (OSError, VolumeError) as error:
            log.warning("volumes of %s are not refreshed: %s", name_of(order.pod), error)

    def _stamp(self) -> str:
        """Return a unique name for a state of volumes, in the kubelet's format."""
        self._states += 1
        return f"..{self._clock.now():%Y_%m_%d_%H_%M_%S}.{self._states:010d}"

    def forget(self, pod_uid: str) -> None:
        with self._lock:
            gone = [running for key, running in self._running.items() if key[0] == pod_uid]
        for running in gone:
            running.end()
        self._wait_for(gone)
        with self._lock:
            self._slots.pop(pod_uid, None)
        self._book.forget(pod_uid)
        remove_tree(self.scratch / pod_uid)
        remove_tree(self._in_memory.path / pod_uid)

    def close(self) -> None:
        """End all processes without grace; called when the cluster stops."""
        with self._lock:
            self._closed = True
            left, sessions = list(self._running.values()), list(self._sessions)
        for session in sessions:
            session.close()
        for running in left:
            for timer in running.timers:
                timer.cancel()
            running.end()
        if self._gateway is not None:
            self._gateway.close()
        self._wait_for(left)
        self._held.close()
        self._in_memory.close()

    @staticmethod
    def _wait_for(ended: list[_Running]) -> None:
        """Wait until the processes have ended, before their files are removed."""
        for running in ended:
            try:
                running.process.wait(END_S)
            except subprocess.TimeoutExpired:
                kill(running.process)

    # -- commands inside ---------------------------------------------------------------------------------------------

    def exec(self, pod: dict[str, Any], container: str, wish: ExecWish) -> Callable[[], Session]:
        """Prepare another command in the sandbox of a running container. Raises BadRequest."""
        with self._lock:
            found = [running for key, running in sorted(self._running.items()) if key[:2] == (uid_of(pod), container)]
        if not found:
            raise BadRequest(
                f'container "{container}" of pod {name_of(pod)} is no process now: simulated containers and those '
                f"that have ended run nothing; the annotation {RUN}: process makes a container with a command one"
            )
        if not found[-1].spec:
            raise BadRequest("exec needs the sandbox: start the cluster with --run-commands=sandboxed")
        return lambda: self._begin(found[-1], wish)

    def _begin(self, running: _Running, wish: ExecWish) -> Session:
        with self._lock:
            if len(self._sessions) >= MAX_SESSIONS:
                raise TooManyRequests(f"{MAX_SESSIONS} commands run inside containers already; end one of them")
            session = join(running.process, running.spec, wish, self._sessions.discard)
            self._sessions.add(session)
        return session

    # -- starting ----------------------------------------------------------------------------------------------------

    def _launch(self, order: Order, tokens: Mapping[TokenWish, Secret], key: _Key) -> Container:
        """In a worker thread: write the files, start the process, and its reader threads."""
        now, shown = self._clock.now(), shown_of(order.pod, order.objects)
        record = Container(*key, order.boot_id, now, started_at=now, runtime=self.name, shown=shown)
        if self._settings.sandboxed:
            record = replace(record, course=course_at_start(order.container))
        try:
            running = self._spawn(order, tokens)
        except (OSError, VolumeError, AccountsError, SysctlError) as error:
            self._book.write(*key, f"[syncline] {error}\n".encode(), now)
            self._book.close(*key, now)
            failed = replace(record, ends_at=now, exit_code=START_FAILED, reason="StartError", message=str(error))
            return self._table.put(failed)
        with self._lock:
            self._running[key] = running
            self._table.put(record)
            self._after(running, self._settings.time_limit_s)
            if self._closed:
                running.end()
        threading.Thread(target=self._attend, args=(key, running), name=f"container {key[1]}", daemon=True).start()
        if running.spec:
            hook = dig(order.container, "lifecycle", "postStart")
            if hook:
                threading.Thread(target=self._post_start, args=(key, running, hook), daemon=True).start()
            Prober(order.container, _asker(running), partial(self._noted, key, running), running.ended).start()
        return record

    def _noted(self, key: _Key, running: _Running, probe: Probe, tally: Tally, answer: Answer) -> None:
        """In a prober's thread: update the course after a result."""
        self._become(key, running, lambda was, at_s: course_with(was, running.container, probe, tally, answer, at_s))

    def _become(self, key: _Key, running: _Running, after: Callable[[Course, float], Course]) -> None:
        with self._lock:
            record = self._table.find(*key)
            if record is None or record.started_at is None or record.ends_at is not None or record.stopping:
                return
            course = after(record.course, (self._clock.now() - record.started_at).total_seconds())
            if course == record.course:
                return
            self._table.put(replace(record, course=course))
        self._wake("kubelet", running.ref)

    def _spawn(self, order: Order, tokens: Mapping[TokenWish, Secret]) -> _Running:
        here = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self._settings.port)}
        variables = environment_of(order, here if self._gateway is None else None)
        program = program_of(order.container, known_images(order.objects), installed)
        assert program is not None, "only containers whose program is known are taken"
        argv = [expanded(word, variables) for word in program.words]
        place = self.scratch / uid_of(order.pod)
        tools = self._write_tools(place)
        if self._gateway is None:
            volumes = volumes_of(order, tokens)
            self._write_volumes(place, volumes)
            argv[0] = program.on_machine(argv[0])
            bare = self._spawn_bare(order, argv, variables, place, volumes)
            return _Running(bare, ref_of(order.pod), order.container, containers=_containers(order.pod))
        accounts = accounts_of(order.pod, order.container)
        volumes = volumes_of(order, tokens, accounts.sole, accounts.shared)
        slot = self._slot(uid_of(order.pod))
        places = {each.name: self._place(order, each, accounts, slot) for each in volumes.values() if each.writable}
        variables["PATH"] = f"{TOOLS}:{variables['PATH']}"
        variables["HOME"] = "/tmp"
        root = place / f"root-{order.container['name']}"
        root.mkdir(exist_ok=True)
        said = _last_words(place, order.container)
        said.write_bytes(b"")
        said.chmod(0o666)  # writable for any user of the command
        strict = bool(dig(order.container, "securityContext", "readOnlyRootFilesystem", default=False))
        mounts = mounting.mounts(order, places, volumes, variables)
        api = master_address(each for each in order.objects if each.get("kind") == "Service")
        line = self._take_line()
        last_words = (str(said), str(order.container.get("terminationMessagePath") or LAST_WORDS), True)
        spec = {
            "argv": argv,
            "env": variables,
            "cwd": str(order.container.get("workingDir") or "/"),
            "root": str(root),
            "hostname": variables["HOSTNAME"],
            "etc": {"hosts": hosts_file(order.pod, order.pod_ip, api[0]), "resolv.conf": resolver_file(order.pod)},
            "binds": [
                *python_inside()[1],
                (str(tools), TOOLS, False),
                *((found, path, False) for path, found in program.shown),
                *mounts,
                last_words,
            ],
            "sysctls": sysctls_of(order.pod),
            "files": mounting.files(volumes, accounts, self._settings.tmpfs_bytes, self._stamp()),
            "ids": accounts.to_json(),
            "writable_root": not strict,
            "strict_root": strict,
            "board": self._board_file,
            "line": line,
            "together": self._settings.together(),
            "socket": str(self._gateway.path),
            "listen": [("127.0.0.1", self._settings.port), api],
            "limits": self._settings.limits(),
            "whole": self._settings.whole() | {"folders": mounting.bounds(order, volumes)},
            "tmpfs_bytes": self._settings.tmpfs_bytes,
            "slot": slot,
            "give": [(str(said), False)],
        }
        return self._launched(order, spec, tokens)

    def _launched(self, order: Order, spec: dict[str, Any], tokens: Mapping[TokenWish, Secret]) -> _Running:
        """Start the launcher, with two pipes that only it and process 1 of the sandbox have."""
        verdict, theirs = os.pipe()
        news, updates = os.pipe()
        try:
            process = launcher(spec | {"verdict": theirs, "updates": news})
        except BaseException:
            os.close(verdict)
            os.close(updates)
            self._free_line(spec["line"])
            raise
        finally:
            os.close(theirs)
            os.close(news)
        os.set_blocking(updates, False)
        del spec["files"]
        return _Running(
            process,
            ref_of(order.pod),
            order.container,
            spec,
            _containers(order.pod),
            spec["line"],
            verdict,
            updates,
            tokens,
        )

    def _place(self, order: Order, volume: Volume, accounts: Accounts, slot: int) -> Path:
        """Return the folder of an emptyDir, created once, for all users of the pod or for the volumes' group."""
        top = self._in_memory.path if volume.memory else self.scratch
        folder = top / uid_of(order.pod) / "volumes" / volume.name
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            if folder.exists():
                return folder
            folder.mkdir(mode=0o700)
            first = identity(slot)
            if first is not None:
                group = 0 if accounts.shared is None else accounts.known.index(accounts.shared)
                os.chown(folder, first, first + group)
            folder.chmod(0o777 if accounts.shared is None else 0o2777)
        return folder

    def _take_line(self) -> int:
        with self._lock:
            if not self._lines:
                raise OSError(f"{LINES} containers run as processes already; more are started when one has ended")
            return self._lines.pop()

    def _free_line(self, line: int) -> None:
        if self._board is not None and line >= 0:
            self._board.write(line)
            with self._lock:
                self._lines.add(line)

    def _slot(self, pod_uid: str) -> int:
        """Return the pod's slot: its containers share files, so they share users."""
        with self._lock:
            if pod_uid not in self._slots:
                taken = set(self._slots.values())
                self._slots[pod_uid] = next(slot for slot in range(len(taken) + 1) if slot not in taken)
            return os.getpid() % SLOT_BLOCKS * SLOTS_EACH + self._slots[pod_uid] % SLOTS_EACH

    def _spawn_bare(
        self, order: Order, argv: list[str], variables: dict[str, str], place: Path, volumes: Mapping[str, Volume]
    ) -> subprocess.Popen[bytes]:
        """Start a process without a sandbox, and thus without mounts: it reaches the cluster by kubeconfig."""
        variables["PATH"] = f"{place / 'tools'}:{os.environ.get('PATH', variables['PATH'])}"
        variables["HOME"] = str(place)
        variables["KUBECONFIG"] = self._write_kubeconfig(place, order, volumes)
        return subprocess.Popen(
            argv,
            env=variables,
            cwd=order.container.get("workingDir") or place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _write_volumes(self, place: Path, volumes: Mapping[str, Volume]) -> None:
        """Write the pod's volumes, shared by its containers; credentials are not readable by other users."""
        for volume in volumes.values():
            folder = place / "volumes" / volume.name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path, content in volume.files.items():
                target = (folder / path).resolve()
                if not target.is_relative_to(folder.resolve()):
                    raise VolumeError(f'volume "{volume.name}": {path} leads out of the volume')
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(content)
                target.chmod(volume.mode_of(path))

    def _write_tools(self, place: Path) -> Path:
        """Write ``oc``, and ``kubectl`` if the machine has none."""
        folder = place / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # in the sandbox, commands run as another user, whatever our umask is
        python, environment = sys.executable, f"PYTHONPATH={package_root()}"
        if self._settings.sandboxed:
            python = python_inside()[0]
            environment = f"PYTHONPATH={OURS}/source:{OURS}/packages LD_LIBRARY_PATH={OURS}/python/lib"
        names = ["oc"] if shutil.which("kubectl") else ["oc", "kubectl"]
        for name in names:
            script = folder / name
            text = f'#!/bin/sh\n{environment} SYNCLINE_PROGRAM={name} exec {python} -m {TOOL_MODULE} "$@"\n'
            script.write_text(text)
            script.chmod(0o755)
        return folder

    def _write_kubeconfig(self, place: Path, order: Order, volumes: Mapping[str, Volume]) -> str:
        files = next((volume.files for volume in volumes.values() if {"token", "ca.crt"} <= volume.files.keys()), {})
        cluster = {
            "server": f"https://127.0.0.1:{self._settings.port}",
            "certificate-authority-data": mounting.encoded(self._settings.ca_pem.encode()),
        }
        context = {"cluster": "local", "user": "pod", "namespace": namespace_of(order.pod)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"token": files.get("token", b"").decode()}}],
            "contexts": [{"name": "pod", "context": context}],
            "current-context": "pod",
        }
        target = place / "kubeconfig"
        target.unlink(missing_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(config, file)
        return str(target)

    def _message(self, key: _Key, container: dict[str, Any], code: int, containers: int) -> str:
        """Return the termination message: the end of the container's file, or of its log if it requests that. All
        containers of a pod share a limit."""
        try:
            with _last_words(self.scratch / key[0], container).open("rb") as file:
                file.seek(max(file.seek(0, os.SEEK_END) - LAST_WORDS_BYTES, 0))
                said = file.read(LAST_WORDS_BYTES)
        except OSError:
            said = b""
        if not said and code != 0 and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            lines = self._book.lines(*key)[-FALLBACK_LINES:]
            said = b"".join(line.text for line in lines)[-FALLBACK_BYTES:]
        return said[: POD_WORDS_BYTES // containers].decode("utf-8", "replace")

    # -- while it runs -----------------------------------------------------------------------------------------------

    def _after(self, running: _Running, seconds: float) -> None:
        timer = threading.Timer(seconds, running.end)
        timer.daemon = True
        timer.start()
        running.timers.append(timer)

    def _attend(self, key: _Key, running: _Running) -> None:
        """In a separate thread: copy output to the log, then record the end and wake the kubelet."""
        output = running.process.stdout
        assert output is not None, "the output is a pipe"
        throttle = Throttle()
        while chunk := os.read(output.fileno(), READ_BYTES):
            self._book.write(*key, chunk, self._clock.now())
            wait_s = throttle.wait_s(len(chunk) + LINE_COST * chunk.count(b"\n"), time.monotonic())
            if wait_s > 0:
                running.ended.wait(wait_s)
        code = running.process.wait()
        running.ended.set()
        self._free_line(running.line)
        output.close()
        if running.updates >= 0:
            os.close(running.updates)
        for timer in running.timers:
            timer.cancel()
        now = self._clock.now()
        self._book.close(*key, now)
        over, running.verdict = read_verdict(running.verdict), -1
        with self._lock:
            self._running.pop(key, None)
            record = self._table.find(*key)
            if record is not None:
                code = code if code >= 0 else 128 - code
                reason = "StartError" if code == CANNOT else "OOMKilled" if over.startswith("memory") else ""
                message = self._message(key, running.container, code, running.containers)
                message = message or (over and f"ended by its sandbox, it used too much {over}")
                self._table.put(replace(record, ends_at=now, exit_code=code, reason=reason, message=message))
        if running.process.stdin is not None:
            with contextlib.suppress(OSError):
                running.process.stdin.close()
        self._wake("kubelet", running.ref)


def _asker(running: _Running) -> Ask:
    inside = partial(run_inside, running.process, running.spec)
    return asker(inside, partial(ask_port, running.process, running.spec), running.container)


def _containers(pod: dict[str, Any]) -> int:
    return sum(len(dig(pod, "spec", part, default=())) for part in CONTAINERS)


def _last_words(place: Path, container: dict[str, Any]) -> Path:
    return place / f"message-{container['name']}"
