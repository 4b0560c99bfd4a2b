"""A cluster with machines, the machine-config controllers and an agent for each node, each a process that can die."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.machineconfig.faults.foretold import Foretold
from tests.machineconfig.faults.laws import LAWS, Laws
from tests.machineconfig.faults.schedule import KINDS
from tests.machineconfig.faults.seams import FaultyHosts
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.room import APIS, EVENTS, HOLDS, NODES, POOLS, PoolWorld

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.assembly.machines.impact import forecaster
from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.assembly.roles import loop_of
from syncline.base.action import Handler
from syncline.cluster.machines.machine import Entry, Power, Unit
from syncline.control.executor import kube_handlers, run_in_place
from syncline.control.loop import ControlLoop
from syncline.hosts.nodeagent import MANAGER
from syncline.kube.client import Response
from syncline.kube.kinds.holds import holds_of, noted_holds
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig
from syncline.machineconfig.agent.controller import AGENT, agent_controller
from syncline.machineconfig.agent.handler import HOST_STEPS, HostHandler
from syncline.machineconfig.agent.host import HostError
from syncline.machineconfig.impact.forecast import Change
from syncline.machineconfig.nodes.timeline import Outcome, timeline_of
from syncline.rehearsal.faults import Fault
from syncline.rehearsal.injecting import Death, Injector
from syncline.rehearsal.laws import Ledger
from syncline.rehearsal.seams import SkewedClock, Step

CONTROLLERS = "controllers"
CONFIGS = f"{APIS}/machineconfigs"
BUDGETS = "/apis/policy/v1/namespaces/openshift-ingress/poddisruptionbudgets"
PERSON_S = 900.0
LOOK_AGAIN_S = 60.0


class FaultWorld(PoolWorld):
    """``limits``: maxUnavailable by pool; ``own``: entries that every machine is born with."""

    def __init__(
        self, limits: dict[str, int], own: dict[str, Entry], *, needs_drain: bool, kept: int | None = 20
    ) -> None:
        self._kept = kept
        self._seeded: dict[str, Any] = {}
        self._roles: dict[str, tuple[str, ...]] = {}
        self._seeding = False
        self._powers: dict[str, Power] = {}
        super().__init__({}, renders=True, machines=True)
        self.driver.actors.remove(self.gitops_actor)
        self.driver.add(self.injector.agenda)
        registry = self.machines.room.machines
        self.ledger = Ledger(LAWS, self.injector.where)
        self.laws = Laws(registry, limits, own, needs_drain, self.ledger, self._holds)
        self.core.store.subscribe(self.laws.note)
        SimulatedHosts(registry, self.clock).follow(self._machine_changed)

    def size(self) -> int:
        return len(self.laws.nodes)

    # -- processes ------------------------------------------------------------------------------------------------

    def start_room(self, wrap: Any = None) -> None:
        self.injector = Injector(self, self, KINDS)
        self.start(CONTROLLERS)

    def start(self, who: str) -> None:
        self.injector.start(who)

    def live(self, seconds: float) -> None:
        self.injector.live(seconds)

    def loop(self, who: str, clock: SkewedClock) -> ControlLoop | None:
        if who == CONTROLLERS:
            settings = MachineConfigSettings(self.settings.control_namespace, kept=self._kept)
            return loop_of(machineconfig_role(settings), clock, self.journal, strict=True)
        return self._agent(who, clock) if who in self._roles else None

    def _agent(self, node: str, clock: SkewedClock) -> ControlLoop:
        hosts = FaultyHosts(SimulatedHosts(self.machines.room.machines, self.clock), node, self.injector.steps)
        mapper = Mapper()
        handlers: dict[type, Handler] = dict(kube_handlers(mapper, clock, MANAGER))
        handlers |= dict.fromkeys(HOST_STEPS, HostHandler(hosts))
        return ControlLoop(
            (agent_controller(hosts),),
            mapper=mapper,
            handlers=handlers,
            clock=clock,
            journal=self.journal,
            strict=True,
        )

    # -- machines -------------------------------------------------------------------------------------------------

    def join(self, name: str, *roles: str) -> None:
        self._roles[name] = roles
        self.add_node(name, *roles, born="")
        self.start(name)

    def _machine_changed(self, name: str) -> None:
        machine = self.machines.room.machines.get(name)
        if self._seeding:
            return
        if machine is not None and self._seeded.get(name) is not machine:
            self._seeded[name], self._seeding = machine, True
            for path, entry in self.laws.own.items():
                if path.startswith("/"):
                    machine.root.write(path, entry)
                else:
                    machine.set_unit(Unit(path, enabled=True, active=True))
            self._seeding = False
        self.laws.changed(name)
        if machine is not None and machine.state.power is not self._powers.get(name):
            self._powers[name] = machine.state.power
            if machine.state.power is Power.BOOTING and name in self.injector.processes:
                self.start(name)  # its agent went down with it
        process = self.injector.processes.get(name)
        if process is not None:
            process.loop.wake(AGENT, ObjectRef("", "Node", "", name))

    # -- faults ---------------------------------------------------------------------------------------------------

    def noticed(self, step: Step) -> None:
        if step.on_host:
            self.laws.changing(step)

    def refused(self, step: Step) -> None:
        """Also of a node's record."""
        self.laws.mute |= {name for name in self._roles if f"/machineconfignodes/{name}/" in step.text}

    def struck_before(self, fault: Fault, step: Step) -> Response | None:
        match fault.kind:
            case "no-reboot":
                return Response(200)
            case "host-error":
                if len(self.injector.fired) == 1 and not self.injector.faults:  # one that dies meanwhile says nothing
                    self.laws.untold.add(step.node)
                raise HostError("write", step.path or step.text, "input/output error")
            case "power-before":
                self._cut(step, self.injector.heals_s(fault))
        return None

    def struck_after(self, fault: Fault, step: Step) -> None:
        lasts = self.injector.heals_s(fault)
        match fault.kind:
            case "power" | "node-lost":
                self._cut(step, lasts)
            case "deleted":
                self._delete(step, lasts)
            case kind if kind.startswith("clock"):
                for hold in holds_of(self.get(HOLDS)["items"]):
                    if hold.expires:
                        self._await_expiry(LOOK_AGAIN_S, hold.expires)
            case kind:
                self._person(kind, step, lasts)

    def _node(self, step: Step) -> str:
        return step.node if step.node in self._roles else min(self._roles)

    def _cut(self, step: Step, seconds: float) -> None:
        """What is in memory is gone: the agent, too."""
        name = self._node(step)
        machine = self.machines.room.machines.get(name)
        if machine is None:
            return
        self.laws.cuts[name] += 1
        machine.fail(self.clock.now())

        def on() -> None:
            if self.machines.room.machines.get(name) is machine:
                machine.power_on(self.clock.now())

        self.injector.agenda.after(seconds, on)
        if step.who == name:
            raise Death(name)
        if name in self.injector.processes:
            self.start(name)

    def _delete(self, step: Step, seconds: float) -> None:
        name = self._node(step)
        if name not in self.laws.nodes:
            return
        self.laws.cuts[name] += 1
        self.send("DELETE", f"{NODES}/{name}")

        def join() -> None:
            if name in self.laws.nodes:
                self.send("DELETE", f"{NODES}/{name}")  # its machine was booting, and made it anew
            self.machines.room.machines.remove(name)
            self.join(name, *self._roles[name])

        self.injector.agenda.after(seconds, join)

    # -- people ---------------------------------------------------------------------------------------------------

    @property
    def role(self) -> str:
        return next(iter(self.laws.limits))

    def _person(self, kind: str, step: Step, lasts: float) -> None:
        match kind:
            case "pause":
                self.pause(True)
                self.injector.agenda.after(lasts, lambda: self.pause(False))
            case "hold":
                self.hold(f"fault-{len(self.injector.fired)}", minutes=lasts / 60, pool=self.role)
                self._await_expiry(lasts, self.clock.now() + timedelta(seconds=lasts))
            case "new-config" if "99-late" not in self.laws.configs:
                self.send("POST", CONFIGS, machine_config("99-late", files(("/etc/late", "late")), role=self.role))
            case "no-config" if "50-base" in self.laws.configs:
                self.send("DELETE", f"{CONFIGS}/50-base")
            case "blocked":
                self._budget({"minAvailable": None, "maxUnavailable": 0})
                self.injector.agenda.after(lasts, lambda: self._budget({"minAvailable": 1, "maxUnavailable": None}))
            case "cordon":
                self._cordon(self._node(step))

    def _await_expiry(self, seconds: float, expires: datetime) -> None:
        """A Hold ends by itself, by the clock of the controllers: one that is a day behind keeps it for a day."""

        def look() -> None:
            if self.injector.clocks[CONTROLLERS].now() < expires:
                self._await_expiry(LOOK_AGAIN_S, expires)

        self.injector.agenda.after(seconds, look)

    def _holds(self, pool: str) -> bool:
        """By the true time; who has a clock of its own judges by that."""
        if any(clock.off_s for clock in self.injector.clocks.values()):
            return False
        known = noted_holds(self.get(f"{POOLS}/{pool}"))
        found = holds_of(self.get(HOLDS)["items"]) if known else []
        return any(one.name in known and one.expires and self.clock.now() < one.expires for one in found)

    def pause(self, paused: bool) -> None:
        self.merge(f"{POOLS}/{self.role}", {"spec": {"paused": paused}})

    def replace_config(self, config: Obj) -> None:
        """As ``kubectl replace`` does, if it is still there."""
        path = f"{CONFIGS}/50-base"
        if "50-base" in self.laws.configs:
            self.send("PUT", path, config | {"metadata": self.get(path)["metadata"]})

    def _budget(self, spec: Obj) -> None:
        if self.send("GET", BUDGETS)["items"]:
            self.merge(f"{BUDGETS}/router-default", {"spec": spec})

    def _cordon(self, first: str) -> None:
        """A node that nobody has cordoned; its person lifts it as soon as it is not being updated."""
        free = [name for name, node in self.laws.nodes.items() if not dig(node, "spec", "unschedulable")]
        if not free:
            return
        name = first if first in free else min(free)
        self.laws.by_person.add(name)
        self.merge(f"{NODES}/{name}", {"spec": {"unschedulable": True}})

        def lift() -> None:
            node = self.laws.nodes.get(name)
            if node is None or name not in self.laws.by_person:
                return
            if not self.laws.rests(annotations_of(node)):
                self.injector.agenda.after(PERSON_S, lift)
                return
            self.laws.by_person.discard(name)
            self.merge(f"{NODES}/{name}", {"spec": {"unschedulable": None}})

        self.injector.agenda.after(PERSON_S, lift)

    # -- the end --------------------------------------------------------------------------------------------------

    def foretell(self, change: Change) -> None:
        """What is told of the change before it is made has to come true."""
        look = run_in_place(snapshot_of_cluster({}), self.admin).cache
        impact = forecaster(look).forecast(change, self.clock.now())
        told = next(one for one in impact.pools if one.name == self.role)
        self.laws.foretold = Foretold(told, lambda text: self.ledger.breach("foretold", text))

    def at_rest(self) -> None:
        """Everything is done."""
        self.laws.at_rest({fault.kind for fault, _ in self.injector.fired})
        events = self.get(EVENTS)["items"]
        told = timeline_of(self.get(f"{POOLS}/{self.role}"), list(self.laws.nodes.values()), events, self.clock.now())
        for node in told.nodes:
            self.ledger.checked["timeline"] += 1
            times = [time for span in node.spans for time in (span.since, span.until)]
            if node.outcome is not Outcome.DONE or None in times or times != sorted(times, key=str):
                self.ledger.breach("timeline", f"{node.node} is {node.outcome}: {'; '.join(map(str, node.spans))}")

    def unfinished(self) -> str:
        """What keeps the world from being done; empty: nothing."""
        if self.injector.agenda.last is not None:
            return "a fault is still to heal"
        for name in self.laws.limits:
            pool = self.get(f"{POOLS}/{name}")
            target = str(dig(pool, "spec", "configuration", "name"))
            said = {each["type"]: each["status"] for each in pool["status"]["conditions"]}
            sources = {each["name"] for each in dig(pool, "spec", "configuration", "source", default=[])}
            missing = self.laws.sources_of(name) ^ sources
            if missing:
                return f"pool {name} is not rendered from {', '.join(sorted(missing))}"
            if not self.updated(target, name) or said.get("Degraded") != "False" or said.get("Updating") != "False":
                return f"pool {name} says {said}"
            if noted_holds(pool):
                return f"pool {name} says that it is held"
        for name, node in self.laws.nodes.items():
            why = self.laws.left_over(node, str(dig(self.get(f"{POOLS}/{self.role}"), "spec", "configuration", "name")))
            if why:
                return f"{name}: {why}"
        if set(self._roles) - set(self.laws.nodes):
            return "a node is missing"
        return ""
