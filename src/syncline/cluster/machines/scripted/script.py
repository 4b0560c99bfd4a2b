"""Interpret containers in virtual time whose command is a small shell script, ``oc`` or ``sleep``.

``sleep 10`` takes ten virtual seconds; ``oc patch`` sends a real request as the pod's service account. With a command
that the shell does not know, the container follows its stage instead, and its log says so. Never used live: requests
are handled in process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.base.action import Work
from syncline.base.clock import Clock
from syncline.cluster.machines.containers import Container, ContainerTable, Order
from syncline.cluster.machines.logs import LogStore
from syncline.cluster.machines.processes.environment import command_line, environment_of
from syncline.cluster.machines.scripted.staged import Images, planned
from syncline.cluster.machines.scripted.stages import ANNOTATION_PREFIX, Timing, completes
from syncline.cluster.machines.shell.check import unknown_in
from syncline.cluster.machines.shell.interpreter import Run, Shell
from syncline.cluster.machines.shell.parser import parse
from syncline.cluster.machines.shell.programs import BUILTIN, oc_program
from syncline.cluster.machines.shell.syntax import AndOr, Literal, Pipeline, Script, ShellError, Simple, Word
from syncline.cluster.machines.tools.steps import Output, Session, Sleep
from syncline.kube.client import Request, Transport
from syncline.kube.objects import annotations_of, dig, namespace_of, uid_of

Identity = Callable[[str, str], Transport]
"""Returns the transport of a service account, by namespace and name."""

SHELLS = {"sh", "bash", "ash", "dash"}
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
STAGE_OVERRIDES = ("exit-code", "run-seconds", "image-pull")
KILLED = 137
NO_ACCESS = (
    "error: Missing or incomplete configuration info.  Please point to an existing, complete config file:\n"
    "the pod has no service account token"
)

_Key = tuple[str, str, int]


@dataclass(slots=True)
class _Running:
    """A paused script."""

    steps: Run
    transport: Transport
    answer: Any = None


class ScriptRuntime:
    """Implements :class:`~syncline.cluster.machines.containers.Runtime`."""

    name = "script"

    def __init__(self, table: ContainerTable, book: LogStore, timing: Timing, identity: Identity, clock: Clock) -> None:
        self._table = table
        self._book = book
        self._timing = timing
        self._identity = identity
        self._clock = clock
        self._images = Images()
        self._running: dict[_Key, _Running] = {}

    def takes(self, order: Order) -> bool:
        """Return True for containers with a command that complete, unless annotations set their behaviour."""
        said = annotations_of(order.pod)
        name = str(order.container.get("name"))
        overridden = any(
            f"{ANNOTATION_PREFIX}{key}{suffix}" in said for key in STAGE_OVERRIDES for suffix in ("", f".{name}")
        )
        return bool(order.container.get("command")) and completes(order.pod, order.container) and not overridden

    # -- the runtime -------------------------------------------------------------------------------------------------

    def start(self, order: Order, now: datetime) -> Generator[Any, Any, Container]:
        yield from ()
        uid, name = uid_of(order.pod), str(order.container["name"])
        known = self._table.find(uid, name, order.attempt)
        if known is not None:
            return known
        policy = str(order.container.get("imagePullPolicy", "IfNotPresent"))
        pull = self._images.pull(order.node, str(order.container.get("image", "")), policy)
        record = planned(order, now, self._timing, pull=pull)
        try:
            steps = self._script(order)
        except ShellError as error:
            self._note(record, f"simulated, not run: {error}", now)
            return self._table.put(record)
        account = str(dig(order.pod, "spec", "serviceAccountName", default="default"))
        transport = self._identity(namespace_of(order.pod), account)
        self._running[(uid, name, order.attempt)] = _Running(steps, transport)
        return self._table.put(replace(record, ends_at=None, wakes_at=record.started_at, runtime=self.name))

    def go_on(self, container: Container, now: datetime) -> Generator[Any, Any, Container]:
        """Run until the next sleep or the end."""
        running = self._running.get((container.pod_uid, container.name, container.attempt))
        if running is None or container.wakes_at is None or container.wakes_at > now:
            return container
        try:
            while True:
                step = running.steps.send(running.answer)
                running.answer = None
                if isinstance(step, Sleep):
                    return self._table.put(replace(container, wakes_at=now + timedelta(seconds=step.seconds)))
                if isinstance(step, Output):
                    self._book.write(container.pod_uid, container.name, container.attempt, step.text.encode(), now)
                else:
                    running.answer = yield from self._send(container, running, step)
        except StopIteration as stop:
            return self._ended(container, int(stop.value), now)
        except ShellError as error:
            self._note(container, f"simulated from here on, taken to succeed: {error}", now)
            return self._ended(container, 0, now)

    def refresh(self, order: Order, container: Container, now: datetime) -> Generator[Any, Any, Container]:
        """Do nothing: it has no files."""
        yield from ()
        return container

    def stop(self, container: Container, grace_s: float, now: datetime) -> Generator[Any, Any, Container]:
        yield from ()
        running = self._running.pop((container.pod_uid, container.name, container.attempt), None)
        if running is not None:
            running.steps.close()
        if container.stopping or container.ends_at is not None:
            return container
        self._book.close(container.pod_uid, container.name, container.attempt, now)
        return self._table.stopped(container, now + timedelta(seconds=min(container.stop_s, grace_s)), KILLED)

    def forget(self, pod_uid: str) -> None:
        for key in [key for key in self._running if key[0] == pod_uid]:
            self._running.pop(key).steps.close()
        self._book.forget(pod_uid)

    # -- pieces ------------------------------------------------------------------------------------------------------

    def _ended(self, container: Container, code: int, now: datetime) -> Container:
        self._running.pop((container.pod_uid, container.name, container.attempt), None)
        self._book.close(container.pod_uid, container.name, container.attempt, now)
        return self._table.put(replace(container, ends_at=now, exit_code=code, wakes_at=None))

    def _note(self, record: Container, text: str, now: datetime) -> None:
        self._book.write(record.pod_uid, record.name, record.attempt, f"[syncline] {text}\n".encode(), now)

    def _send(self, container: Container, running: _Running, request: Request) -> Generator[Any, Any, Any]:
        """Send as the pod's service account, not as the kubelet; so it is work, not a request of this loop."""
        return (yield Work(f"{container.name}: {request.describe()}", lambda: running.transport.send(request)))

    def _script(self, order: Order) -> Run:
        """Return the steps of the container's command; raise ShellError if it cannot be interpreted."""
        variables = environment_of(order)
        words = command_line(order.container, variables)
        program = words[0].rsplit("/", 1)[-1]
        arguments: list[str] = []
        options: set[str] = set()
        if program in SHELLS and len(words) > 2 and words[1].startswith("-") and "c" in words[1]:
            script, arguments = parse(words[2]), words[4:]
            options = set(words[1][1:]) - {"c", "l"}
        else:
            plain = Simple((), tuple(Word((Literal(word, quoted=True),)) for word in words))
            script = Script((AndOr(Pipeline((plain,))),))
        oc = oc_program(lambda name: self._session(order, name))
        programs = {**BUILTIN, "oc": oc, "kubectl": oc}
        unknown = unknown_in(script, programs)
        if unknown:
            raise ShellError(unknown)
        return Shell(programs, variables, self._clock.now, arguments, options=options).main(script)

    def _session(self, order: Order, name: str) -> Session | str:
        mounted = any(each.get("mountPath") == TOKEN_PATH for each in order.container.get("volumeMounts") or ())
        return Session(name, namespace_of(order.pod)) if mounted else NO_ACCESS
