"""The machine-config agent as a separate process for the machine it runs on, against a Kubernetes API over HTTP.

``syncline node-agent`` starts it (:func:`serve_agent`). It works on one node only. When asked to stop it finishes the
current step and starts no other. In a rehearsal it reads the API and the machine, prints every step and changes
nothing.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from syncline.assembly.ports import HttpPort
from syncline.base.action import Action, Handler
from syncline.base.clock import Clock
from syncline.base.journal import Journal
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.executor import kube_handlers
from syncline.control.informer import Scope
from syncline.control.loop import ControlLoop
from syncline.control.manager import LiveManager
from syncline.control.plan import Patch, Plan, Requeue, Result, SetStatus
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.hosts.nodepresence import presence_controller
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_NODE
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, annotations_of, name_of, resource_version
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.machineconfig.agent.controller import NODE, agent_controller
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.handler import HOST_STEPS, HostHandler
from syncline.machineconfig.agent.host import Done, HostError
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.plan import plan_agent
from syncline.machineconfig.agent.planning.settling import QUESTIONS, answered
from syncline.machineconfig.agent.provisioning.firstboot import (
    Booted,
    FirstBootError,
    first_boot,
    first_boot_steps,
    interrupted_steps,
)
from syncline.machineconfig.agent.steps import (
    CheckDisk,
    Checked,
    EndFirstBoot,
    EndJoining,
    HostStep,
    LookAtBoot,
    Provision,
    Pulled,
    PullImages,
    RebootHost,
    SetUsers,
    StoreConfig,
    WriteFiles,
)
from syncline.machineconfig.ansible.running import StillRuns, WantsReboot
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, DONE, FAILED_STATES, LAST_DRAIN, REASON, STATE
from syncline.machineconfig.pinned.controller import pinned_images_controller
from syncline.machineconfig.pinned.plan import PinnedObserved, plan_pinned

log = logging.getLogger("syncline.assembly")

MANAGER = "machine-config-daemon"
"""Field manager, as upstream's daemon."""
WATCH_S = 2.0
"""Seconds between checks of the machine's files for drift."""
LOOK_S = 0.1
QUIET_S = 0.5
"""Seconds without a change after which the node's state is final."""
GRACE_S = 60.0
"""Seconds for the current step to finish after the signal to stop; every step is repeatable."""
SETTLED_S = 60.0
MAX_ROUNDS = 20
OWN_KINDS = (NODE, MACHINE_CONFIG_NODE.group_kind)
"""Kinds of which an agent watches its own object only: its rights and the size of a cluster allow no more."""
QUERIES = (
    ("systemctl", "is-system-running"),
    ("rpm", "-qf"),
    ("rpm", "-q"),
    ("journalctl", "-b"),
    ("systemctl", "is-enabled"),
    ("getent", "shadow"),
    ("rpm-ostree", "status"),
    ("crictl", "inspecti"),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a node: at ``rest`` with its desired config, ``failed``, or waiting for ``why``; ``missing``: the
    Node itself does not exist."""

    rest: bool
    failed: bool
    why: str
    missing: bool = False


def _own_addresses(server: str) -> tuple[str, ...]:
    """Return this machine's address on the route to the API server; sends nothing."""
    parts = urlsplit(server)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as asked:
            asked.connect(address)
            return (str(asked.getsockname()[0]),)
    except OSError:
        return ()


async def _keep_certificate(port: HttpPort, access: ClusterAccess, kubeconfig: Path, clock: Clock) -> None:
    """Renew the certificate. Starts late, since the import takes seconds on a small machine."""
    await asyncio.sleep(SETTLED_S)
    from syncline.hosts.noderenewal import keep_certificate

    await keep_certificate(port, access, kubeconfig, clock)


def _value(found: Any, otherwise: str) -> str:
    """Return the result of a step as text."""
    if isinstance(found, (Booted, Checked)):
        return found.summary
    return found if isinstance(found, str) and found else otherwise


@dataclass(slots=True)
class _Gate:
    """Counts the plans of the agent; once ``closed``, no reconcile starts."""

    passes: int = 0
    closed: bool = False


def _gated(agent: Controller[AgentObserved], gate: _Gate) -> Controller[AgentObserved]:
    """Return the agent with logging of its plans and steps, and with the gate."""
    settle_agent = agent.settle
    assert settle_agent is not None, "the agent goes on from answers"

    def logged(plan: Plan) -> Plan:
        if plan.steps or not isinstance(plan.outcome, Requeue):
            log.info("%s", plan.why)
        return plan

    def plan(observed: AgentObserved, now: datetime) -> Plan:
        gate.passes += 1
        return logged(agent.plan(observed, now))

    def settle(
        observed: AgentObserved, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[AgentObserved, Plan] | None:
        for result in results:
            if isinstance(result.action, HOST_STEPS):
                goes_on = isinstance(result.error, WantsReboot | StillRuns)
                done = _value(result.value, "done") if result.ok else f"{'' if goes_on else 'failed: '}{result.error}"
                level = logging.INFO if result.ok or goes_on else logging.ERROR
                log.log(level, "%s: %s", result.action.describe(), done)
        further = settle_agent(observed, plan, results, now)
        return None if further is None else (further[0], logged(further[1]))

    def observe(cache: Snapshot, ref: ObjectRef) -> AgentObserved | None:
        return None if gate.closed else agent.observe(cache, ref)

    return replace(agent, observe=observe, plan=plan, settle=settle)


def _rehearsed(
    agent: Controller[AgentObserved], gate: _Gate, hosts: LinuxHosts, tell: Callable[[str], None]
) -> Controller[AgentObserved]:
    """Return an agent that plans nothing and prints once what it would have planned."""
    handler = HostHandler(hosts)

    def plan(observed: AgentObserved, now: datetime) -> Plan:
        gate.passes += 1
        if gate.passes == 1:
            rehearse(observed, now, handler, tell)
        return Plan(why="rehearsed")

    return replace(_gated(agent, gate), plan=plan)


def _rehearsed_images(hosts: LinuxHosts, tell: Callable[[str], None]) -> Controller[PinnedObserved]:
    """Return a controller that prints which images it would pull and pin."""
    handler = HostHandler(hosts)

    def plan(observed: PinnedObserved, now: datetime) -> Plan:
        for _ in range(2):
            steps = [one for step in plan_pinned(observed, now).steps for one in step if isinstance(one, HOST_STEPS)]
            for step in steps:
                tell(step.describe())
                handle_now(handler, step)
            if not any(isinstance(step, PullImages) for step in steps):
                break
            observed = replace(observed, pulled=Pulled())
        return Plan(why="rehearsed")

    return replace(pinned_images_controller(hosts), plan=plan)


async def serve_agent(
    access: ClusterAccess,
    hosts: LinuxHosts,
    clock: Clock,
    stop: asyncio.Event,
    *,
    patience_s: float | None = None,
    tell: Callable[[str], None] | None = None,
    started: Callable[[], None] = lambda: None,
    register: Mapping[str, str] | None = None,
    kubeconfig: Path | None = None,
) -> Standing:
    """Run the agent until ``stop``, and return the state of the node. ``patience_s``: end when the node is at rest or
    has failed, or after so many seconds without a change. ``tell``: rehearse only, and print with this function.
    ``register``: labels of the Node to create and keep alive on machines without a kubelet. ``kubeconfig``: the file
    whose certificate is renewed. Raises HostError if another agent runs there."""
    if tell is None:
        hosts.lock()  # a rehearsal may run beside the agent
    port = HttpPort(access)
    try:
        gate, mine = _Gate(), agent_controller(hosts)
        agent = _gated(mine, gate) if tell is None else _rehearsed(mine, gate, hosts, tell)
        images = pinned_images_controller(hosts) if tell is None else _rehearsed_images(hosts, tell)
        mapper = Mapper()
        handlers: dict[type, Handler] = dict(kube_handlers(mapper, clock, MANAGER))
        handlers |= dict.fromkeys(HOST_STEPS, HostHandler(hosts))
        journal = Journal(limit=10_000)
        controllers: tuple[Controller[Any], ...] = (agent, images)
        if register is not None and tell is None:
            addresses = _own_addresses(access.server)
            controllers += (presence_controller(hosts.node, lambda: hosts.machine_facts(addresses), register),)
        own = dict.fromkeys(OWN_KINDS, Scope(fields=f"metadata.name={hosts.node}"))
        loop = ControlLoop(controllers, mapper=mapper, handlers=handlers, clock=clock, journal=journal, scopes=own)
        manager = LiveManager(loop, port, clock)
        process = _Process(manager, gate, hosts, clock, access.server)
        keeping = _keep_certificate(port, access, kubeconfig, clock) if kubeconfig is not None else None
        task = asyncio.create_task(keeping, name="node agent's certificate") if keeping is not None else None
        try:
            return await process.run(stop, started, patience_s, rehearsed=tell is not None)
        finally:
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
    finally:
        hosts.unlock()
        await port.close()


@dataclass(slots=True)
class _Process:
    manager: LiveManager
    gate: _Gate
    hosts: LinuxHosts
    clock: Clock
    server: str
    watching: bool = False

    async def run(
        self, stop: asyncio.Event, started: Callable[[], None], patience_s: float | None, *, rehearsed: bool
    ) -> Standing:
        def ready() -> None:
            self.watching = True
            started()

        tasks = [
            asyncio.create_task(self.manager.run(ready), name="node agent"),
            asyncio.create_task(self._follow(), name="node agent's machine"),
            asyncio.create_task(stop.wait(), name="node agent's end"),
        ]
        if patience_s is not None:
            tasks.append(asyncio.create_task(self._until_rest(patience_s, rehearsed), name="node agent's rest"))
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
            self.gate.closed = True
            until = self.clock.now() + timedelta(seconds=GRACE_S)
            while self._busy() and self.clock.now() < until:
                await asyncio.sleep(LOOK_S)
            return self._standing()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        """Wake the agent when something changes on the machine other than by the agent's own writes."""
        observed: tuple[object, ...] | None = None
        reported: set[str] = set()
        while True:
            for note in [each for each in self.hosts.notes() if each not in reported]:
                reported.add(note)
                log.warning("%s", note)
            if not self._busy():
                try:
                    found: tuple[object, ...] | None = self.hosts.changing()
                except HostError as error:
                    log.warning("%s", error)
                    found = None
                if found != observed:
                    for name in self.manager.loop.controllers:
                        self.manager.wake(name, self._ref)
                observed = found
            await asyncio.sleep(WATCH_S)

    async def _until_rest(self, patience_s: float, rehearsed: bool) -> None:
        moved, before = self.clock.now(), self._movement()
        while True:
            await asyncio.sleep(LOOK_S)
            now, found = self.clock.now(), self._movement()
            if found != before or self._busy():
                moved, before = now, found
                continue
            quiet = (now - moved).total_seconds()
            standing = self._standing()
            settled = rehearsed or standing.rest or standing.failed
            if quiet >= patience_s or (self.gate.passes and settled and quiet >= QUIET_S):
                return

    def _movement(self) -> tuple[object, ...]:
        node = self.manager.loop.cache.get(self._ref)
        return self.watching, self.gate.passes, resource_version(node) if node is not None else ""

    def _busy(self) -> bool:
        return bool(self.manager.loop.queue.busy())

    @property
    def _ref(self) -> ObjectRef:
        return ObjectRef(NODE.group, NODE.kind, "", self.hosts.node)

    def _standing(self) -> Standing:
        cache, name = self.manager.loop.cache, self.hosts.node
        if not self.watching:
            return Standing(False, True, f"{self.server} does not answer")
        if not cache.has_synced(MACHINE_CONFIG_NODE.group_kind):
            return Standing(False, True, f"{self.server} serves no MachineConfigNodes; install their definition")
        node = cache.get(self._ref)
        if node is None:
            why = f"the cluster has no node {name}; give its name with --node, or have it made by --register"
            return Standing(False, False, why, missing=True)
        try:
            facts = self.hosts.facts(name)
        except HostError as error:
            return Standing(False, True, str(error))
        return _standing_of(node, name_of(facts.stored) if facts is not None and facts.stored is not None else "")


def _standing_of(node: Obj, there: str) -> Standing:
    have, name = annotations_of(node), name_of(node)
    if have.get(STATE) in FAILED_STATES:
        return Standing(False, True, f"{name} is {have[STATE]}: {have.get(REASON, '')}")
    wanted = have.get(DESIRED, "")
    if wanted and have.get(STATE) == DONE and have.get(CURRENT) == wanted == there:
        return Standing(True, False, f"{name} has {wanted}")
    asked = have.get(DESIRED_DRAIN, "")
    if asked and asked != have.get(LAST_DRAIN, ""):
        return Standing(False, False, f"{name} waits for {asked}")
    return Standing(False, False, f"{name} is on the way to {wanted}" if wanted else f"no pool has a config for {name}")


# -- rehearsals -----------------------------------------------------------------------------------------------------


class ShownHost(LinuxHost):
    """A host that answers reads from the machine and prints changes instead of making them."""

    def __init__(self, *arguments: Any, tell: Callable[[str], None], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.tell = tell

    def write(
        self,
        path: str,
        content: bytes,
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
        parents: int = 0o755,
    ) -> None:
        uid, gid = owner or (0, 0)
        there = self.stat(path)
        same = there is not None and (there.kind, there.mode) == ("file", mode) and self.read(path) == content
        verb = "keep" if same else "write" if there is None else "replace"
        self.tell(f"{verb} {path} mode {mode:04o} owner {uid}:{gid}, {len(content)} bytes")

    def copy(self, source: str, target: str) -> None:
        self.tell(f"copy {source} to {target}")

    def link(self, path: str, target: str) -> None:
        self.tell(f"link {path} to {target}")

    def remove(self, path: str) -> None:
        self.tell(f"remove {path}")

    def remove_all(self, path: str) -> None:
        if self.stat(path) is not None:
            self.tell(f"remove {path} and all below")

    def make_directories(self, path: str, mode: int = 0o755) -> None:
        if not self.exists(path):
            self.tell(f"make directory {path} mode {mode:04o}")

    def run(self, command: Sequence[str]) -> Done:
        if tuple(command[:2]) in QUERIES:
            return super().run(command)
        shown = ["usermod", "-p", "…", *command[3:]] if command[0] == "usermod" else command  # hashes are secret
        self.tell("run " + " ".join(shown))
        return Done(0)


def handle_now(handler: HostHandler, step: HostStep) -> Any:
    """Execute a step on hosts whose steps run in place. Raises UpdateError and HostError."""
    steps = handler.handle(step)
    try:
        next(steps)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("its hosts work in place")


def rehearse(observed: AgentObserved, now: datetime, handler: HostHandler, tell: Callable[[str], None]) -> None:
    """Print every step from here to rest, assuming that drains end at once and services behave as reported; stops at a
    reboot, since what follows depends on the boot. ``handler`` works on a :class:`ShownHost`."""
    written = False
    for _ in range(MAX_ROUNDS):
        plan = plan_agent(observed, now)
        question = next((one for step in plan.steps for one in step if isinstance(one, QUESTIONS)), None)
        if question is not None:
            found = None if written and isinstance(question, CheckDisk) else handle_now(handler, question)
            tell(f"{question.describe()}: {_value(found, 'it is as it should be')}")
            observed = replace(answered(observed, question, found), facts=replace(observed.facts, touched=False))
            continue
        tell(plan.why)
        if not plan.steps:
            return
        for action in (one for step in plan.steps for one in step):
            tell(f"  {_shown(action)}")
            if isinstance(action, HOST_STEPS):
                try:
                    handle_now(handler, action)
                except (UpdateError, HostError) as error:
                    tell(f"    would fail: {error}")
                    return
                written = True
            observed = _after(observed, action)
            if isinstance(action, RebootHost):
                return
        if annotations_of(observed.node).get(STATE) in FAILED_STATES:
            return
        observed = replace(observed, checked=None)


def _shown(action: Action) -> str:
    if not isinstance(action, Patch):
        return action.describe()
    notes = ((action.body.get("metadata") or {}).get("annotations") or {}) if isinstance(action.body, dict) else {}
    short = {key.rpartition("/")[2]: value for key, value in notes.items()}
    message = ", ".join(f"{key}-" if value is None else f"{key}={value}" for key, value in short.items())
    return f"{action.describe()}: {message}"


def _after(observed: AgentObserved, action: Action) -> AgentObserved:
    """Return the state after an action, assuming that the drain controller finishes at once."""
    match action:
        case Patch(body=dict() as body):
            notes = (body.get("metadata") or {}).get("annotations") or {}
            have = {key: value for key, value in (annotations_of(observed.node) | notes).items() if value is not None}
            if DESIRED_DRAIN in notes:
                have[LAST_DRAIN] = have[DESIRED_DRAIN]
            return replace(
                observed, node=observed.node | {"metadata": observed.node["metadata"] | {"annotations": have}}
            )
        case SetStatus(new=new) if observed.record is not None:
            return replace(observed, record=observed.record | {"status": new})
        case StoreConfig(config=config, image=image):
            facts = replace(observed.facts, stored=config, image=image, forced=False)
            return replace(observed, current=observed.current or config, facts=facts)
        case Provision(config=config):
            facts = replace(observed.facts, stored=config, image="", forced=False)
            return replace(observed, current=observed.current or config, facts=facts)
        case WriteFiles():
            return replace(observed, facts=replace(observed.facts, forced=False))
        case EndFirstBoot():
            return replace(
                observed, facts=replace(observed.facts, joining=replace(observed.facts.joining, encapsulated=None))
            )
        case EndJoining():
            return replace(
                observed, facts=replace(observed.facts, joining=replace(observed.facts.joining, annotations=None))
            )
    return observed


# -- without a cluster ----------------------------------------------------------------------------------------------


def boot_first(hosts: LinuxHosts, tell: Callable[[str], None]) -> str | None:
    """Stage what the booted system lacks and reboot, as ``machine-config-daemon-firstboot.service`` does. ``tell``
    prints each step; returns None if nothing is left to do. Raises UpdateError, HostError and FirstBootError."""
    handler, node = HostHandler(hosts), hosts.node
    facts = hosts.facts(node)
    assert facts is not None, "it is its own node"
    joining = facts.joining
    if joining.damage:
        raise FirstBootError(joining.damage)
    if joining.reboot_from:
        steps = interrupted_steps(node, joining.reboot_from, facts.boot_id)
    elif joining.encapsulated is None:
        return None
    else:
        booted = handle_now(handler, LookAtBoot(node, "its first boot"))
        tell(f"{node} has booted {booted.summary}")
        boot = first_boot(joining.encapsulated, booted)
        if boot.changed and boot.refusal is not None:
            names = f"{name_of(boot.old)} with {name_of(boot.new)}"
            raise FirstBootError(f"can't reconcile config {names}: {boot.refusal}")
        steps = first_boot_steps(node, boot, facts.boot_id)
    for step in steps:
        tell(step.describe())
        handle_now(handler, step)
    return f"{node} reboots" if any(isinstance(step, RebootHost) for step in steps) else f"{node} needs no reboot"


def apply_config(hosts: LinuxHosts, config: Obj) -> None:
    """Write all files, units and users of ``config`` to the tree, remove those that only the previous config had, and
    store the config there. Raises UpdateError, HostError and ConfigError."""
    handler = HostHandler(hosts)
    facts = hosts.facts(hosts.node)
    assert facts is not None, "it is its own node"
    why = "it is applied by hand"
    handle_now(handler, WriteFiles(hosts.node, facts.stored, config, True, why))
    handle_now(handler, SetUsers(hosts.node, facts.stored, config, why))
    handle_now(handler, StoreConfig(hosts.node, config, why))
