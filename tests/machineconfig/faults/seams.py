"""Where faults get into a machine: each change of it is a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from syncline.assembly.machines.simulatedhosts import SimulatedHost, SimulatedHosts
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.host import Done
from syncline.machineconfig.agent.hosts import HostFacts
from syncline.machineconfig.ansible.order import Order
from syncline.machineconfig.ansible.outcome import Outcome
from syncline.rehearsal.seams import Steps

QUERIES = (
    ("rpm", "-qf"),
    ("rpm", "-q"),
    ("rpm-ostree", "status"),
    ("systemctl", "is-enabled"),
    ("getent", "shadow"),
)


class FaultyHost:
    """A simulated machine whose changes are steps."""

    def __init__(self, inner: SimulatedHost, steps: Steps) -> None:
        self._inner, self._steps = inner, steps
        self.node = inner.machine.name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def os(self) -> str:
        return self._inner.os

    def changes(self, text: str, path: str, do: Callable[[], Any]) -> Any:
        if not self._steps.counting:
            return do()
        step = self._steps.next(self.node, self.node, text, on_host=True, path=path)
        if self._steps.world.before(step) is not None:
            return None
        done = do()
        self._steps.world.after(step)
        return done

    def write(self, path: str, content: bytes, **how: Any) -> None:
        self.changes(f"write {path}", path, lambda: self._inner.write(path, content, **how))

    def copy(self, source: str, target: str) -> None:
        self.changes(f"copy {source} to {target}", target, lambda: self._inner.copy(source, target))

    def link(self, path: str, target: str) -> None:
        self.changes(f"link {path}", path, lambda: self._inner.link(path, target))

    def remove(self, path: str) -> None:
        self.changes(f"remove {path}", path, lambda: self._inner.remove(path))

    def remove_all(self, path: str) -> None:
        self.changes(f"remove all of {path}", path, lambda: self._inner.remove_all(path))

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        self.changes(f"make {path}", "", lambda: self._inner.make_directories(path, mode))

    def run(self, command: Sequence[str]) -> Done:
        if tuple(command[:2]) in QUERIES:
            return self._inner.run(command)
        done: Done = self.changes(f"run {' '.join(command)}", "", lambda: self._inner.run(command))
        return done


class FaultyPlayer:
    """Runs of Ansible are steps; checks change nothing."""

    def __init__(self, hosts: FaultyHosts) -> None:
        self._hosts = hosts

    def now(self) -> datetime:
        return self._hosts.inner.player.now()

    def play(self, node: str, order: Order) -> Outcome:
        inner = self._hosts.inner.player
        if order.check:
            return inner.play(node, order)
        done = self._hosts.host(node).changes(f"play {order.play.name}", "", lambda: inner.play(node, order))
        return done if done is not None else Outcome(error="it could not be started")


class FaultyHosts:
    """The machine of one node, as its agent has it."""

    in_place = True

    def __init__(self, inner: SimulatedHosts, node: str, steps: Steps) -> None:
        self._inner, self._steps, self.node = inner, steps, node
        self.inner, self.player = inner, FaultyPlayer(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def facts(self, node: str) -> HostFacts | None:
        return self._inner.facts(node) if node == self.node else None

    def host(self, node: str) -> FaultyHost:
        return FaultyHost(self._inner.host(node), self._steps)

    def provision(self, node: str, config: Obj) -> None:
        self.host(node).changes("provision", "", lambda: self._inner.provision(node, config))

    def store(self, node: str, config: Obj, image: str = "") -> None:
        text = f"store {config['metadata']['name']}"
        self.host(node).changes(text, "", lambda: self._inner.store(node, config, image))

    def compared(self, node: str, *, booted: bool = False) -> None:
        self._inner.compared(node, booted=booted)

    def differs(self, node: str) -> None:
        self._inner.differs(node)

    def booted_image(self, node: str) -> str:
        return self._inner.booted_image(node)

    def command_line(self, node: str) -> str:
        return self._inner.command_line(node)

    def finalize_failure(self, node: str) -> str:
        return self._inner.finalize_failure(node)

    def reboot(self, node: str, request: str) -> None:
        self.host(node).changes(f"reboot {request}", "", lambda: self._inner.reboot(node, request))
