"""What must hold at every step of a world of machine configs, whatever goes wrong.

:class:`Laws` is told of every write to the store and of every change of a machine, and tells the ledger of breaches.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.machineconfig.faults.disks import AUTHORITIES, BOOKS, PLAYS, PROVISIONING, differences, lost
from tests.machineconfig.faults.foretold import Foretold

from syncline.assembly.machines.simulatedplays import STATE as SIMULATED
from syncline.cluster.machines.machine import Entry
from syncline.cluster.machines.simulated import Machines, SimulatedMachine
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, name_of
from syncline.machineconfig.agent.hosts import CURRENT_CONFIG, stored_config
from syncline.machineconfig.agent.planning.notes import REBOOT_FROM, STAGED_AGAIN, WRITING
from syncline.machineconfig.ansible.journal import JOURNAL, read_journal
from syncline.machineconfig.ansible.play import plays_of
from syncline.machineconfig.drain.progress import BLOCKED, KEEP_CORDON, PROGRESS
from syncline.machineconfig.names import CURRENT, DESIRED, DESIRED_DRAIN, FAILED_STATES, LAST_DRAIN, REASON, STATE
from syncline.rehearsal.laws import CONVERGENCE, Law, Ledger
from syncline.rehearsal.seams import Step


def _numbers(status: Obj) -> tuple[int, ...]:
    """Of a pool: machines, updated, ready, unavailable, degraded."""
    return tuple(
        int(status.get(f"{key}MachineCount" if key else "machineCount") or 0)
        for key in ("", "updated", "ready", "unavailable", "degraded")
    )


def _counts(pool: Obj) -> Iterator[str]:
    total, updated, ready, down, degraded = _numbers(pool["status"])
    if not (ready <= updated <= total and down <= total and degraded <= total and ready + down <= total):
        yield f"pool {name_of(pool)} counts {total}, {updated}, {ready}, {down}, {degraded}"


def _conditions(pool: Obj) -> Iterator[str]:
    total, updated, ready, down, _ = _numbers(pool["status"])
    said: dict[str, str] = {}
    for each in pool["status"].get("conditions") or ():
        if each["type"] in said:
            yield f"pool {name_of(pool)} says {each['type']} twice"
        said[each["type"]] = each["status"]
    if said.get("Updated") == "True":
        others = [kind for kind in ("Updating", "NodeDegraded", "DrainBlocked") if said.get(kind) == "True"]
        if others or (updated, ready, down) != (total, total, 0):
            counts = f"{total}, {updated}, {ready}, {down}"
            yield f"pool {name_of(pool)} says Updated and {others} with counts {counts}"
    if said.get("NodeDegraded") == "True" and said.get("Degraded") != "True":
        yield f"pool {name_of(pool)} says NodeDegraded and not Degraded"


LAWS = (
    Law("budget", "never more nodes of a pool are down by our hand than it allows; of masters never two"),
    Law(
        "cordon",
        "no node is cordoned by us without a drain that it asked for; its record says so if it takes writes",
    ),
    Law("person", "what a person cordoned stays cordoned"),
    Law("undrained", "a machine whose update needs a drain is changed only after its drain has ended"),
    Law("resting", "a machine without an update under way is not changed"),
    Law("done", "a node that says Done has the disk, kernel and image of its config, nothing more; its disk says so"),
    Law("played", "a node that says Done has run the plays of its config to their end, and has no run open"),
    Law("originals", "no file of the machine's own is lost, and it is back where no config is"),
    Law("reboots", "a machine is rebooted once for each config that needs it, and again only after it lost its power"),
    Law("reason", "a node on which something failed says so, and why"),
    Law("referenced", "no config is deleted that a node has or is to have"),
    Law("counts", "the counts of a pool add up", _counts),
    Law("conditions", "conditions of a pool do not contradict one another", _conditions),
    Law("held", "no node of a pool that is held is given another config"),
    Law("foretold", "each node goes through what was foretold of the change, in the order that was foretold"),
    Law("timeline", "afterwards the timeline of each node has ended, with its stretches one after the other"),
    *CONVERGENCE,
)


@dataclass
class Laws:
    """``limits``: maxUnavailable by pool; ``own``: entries of every new machine."""

    machines: Machines
    limits: dict[str, int]
    own: dict[str, Entry]
    needs_drain: bool
    ledger: Ledger
    holds: Callable[[str], bool] = lambda _pool: False
    """Whether a pool is held now, and has said that it knows."""
    by_person: set[str] = field(default_factory=set)
    """Nodes that a person cordoned while they were in service."""
    cuts: Counter[str] = field(default_factory=Counter)
    """How often a machine lost its power, or was replaced."""
    most_down: Counter[str] = field(default_factory=Counter)
    mute: set[str] = field(default_factory=set)
    """Nodes whose record took no write, or was not there: as upstream, that holds no drain up."""
    untold: set[str] = field(default_factory=set)
    """Nodes on whose machine something failed, until they say so."""
    foretold: Foretold | None = None
    _arrived: dict[str, tuple[str, str]] = field(default_factory=dict)
    nodes: dict[str, Obj] = field(default_factory=dict)
    records: dict[str, Obj] = field(default_factory=dict)
    configs: dict[str, Obj] = field(default_factory=dict)
    _targeted: Counter[tuple[str, str]] = field(default_factory=Counter)
    _reboots: Counter[tuple[str, str]] = field(default_factory=Counter)
    _asked: set[tuple[str, str]] = field(default_factory=set)

    def remembered(self) -> tuple[object, ...]:
        """What of earlier states decides whether later ones break a law."""
        counts = (self.cuts, self._targeted, self._reboots)
        names = (self.by_person, self.mute, self.untold, self._asked)
        told = self.foretold.remembered() if self.foretold is not None else ()
        return (*(sorted(one.items()) for one in counts), *map(sorted, names), sorted(self._arrived.items()), told)

    # -- the store ------------------------------------------------------------------------------------------------

    def note(self, event: Any) -> None:
        resource = event.stored.key.resource.split("/")[-1]
        known = {"nodes": self.nodes, "machineconfignodes": self.records, "machineconfigs": self.configs}
        table = known.get(resource)
        name, obj, gone = event.stored.key.name, event.stored.obj, event.type == "DELETED"
        if table is not None:
            old = table.get(name)
            if gone:
                table.pop(name, None)
            else:
                table[name] = obj
            if resource == "nodes":
                self._node(name, old, None if gone else obj)
            elif resource == "machineconfigs" and gone:
                self._config_gone(name)
        elif resource == "machineconfigpools" and not gone:
            self._pool(obj)

    def _node(self, name: str, old: Obj | None, new: Obj | None) -> None:
        if new is None:
            self.by_person.discard(name)
            self._arrived.pop(name, None)
            if self.foretold is not None:
                self.foretold.gone(name)
            return
        have, before = annotations_of(new), annotations_of(old or {"metadata": {}})
        if have.get(DESIRED) and have.get(DESIRED) != before.get(DESIRED):
            self._targeted[name, have[DESIRED]] += 1
            self._given(name, have, before)
        if self.foretold is not None:
            self.foretold.node(name, have.get(DESIRED, ""), have.get(LAST_DRAIN, ""))
        self._count_down(new)
        self._cordoned(name, new, have)
        if have.get(STATE) in FAILED_STATES and not have.get(REASON):
            self.ledger.breach("reason", f"{name} is {have[STATE]} and does not say why")
        if have.get(STATE) in FAILED_STATES:
            self.untold.discard(name)
        finished = (have.get(STATE), have.get(CURRENT)) != (before.get(STATE), before.get(CURRENT))
        if self.rests(have) and finished:
            self.disk(name)
            self._finished(name, have[CURRENT])

    def _given(self, name: str, have: dict[str, str], before: dict[str, str]) -> None:
        """A node that is there already is given another config."""
        for pool in self.limits:
            mine = f"node-role.kubernetes.io/{pool}" in labels_of(self.nodes[name])
            if mine and before.get(CURRENT):
                self.ledger.checked["held"] += 1
                if self.holds(pool):
                    self.ledger.breach("held", f"{name} is given {have[DESIRED]}, and pool {pool} is held")

    def _finished(self, name: str, config: str) -> None:
        machine = self.machines.get(name)
        booted = machine.state.boot_id if machine is not None else ""
        before = self._arrived.get(name, (config, ""))
        if self.foretold is not None:
            self.foretold.finished(name, config, cut=self.cuts[name] > 0 and before[1] != booted)
        if name in self.untold:
            self.ledger.breach("reason", f"an operation on {name} failed, and {name} never said so")
        if machine is None:
            return
        self._arrived[name] = (config, booted)
        self._played(name, machine)
        if self.needs_drain and before[0] != config and before[1] == booted:
            self.ledger.breach("reboots", f"{name} is Done with {config}, which needs a reboot, and has not rebooted")

    def _played(self, name: str, machine: SimulatedMachine) -> None:
        stored, book, done = (machine.root.read(path) for path in (CURRENT_CONFIG, JOURNAL, SIMULATED))
        plays = plays_of(stored_config(stored.content)) if stored is not None else ()
        journal = read_journal(book.content if book is not None else None)
        ran = json.loads(done.content) if done is not None else {}
        for play in plays:
            self.ledger.checked["played"] += 1
            if not journal.applied(play) or (ran.get(play.name) or {}).get("digest") != play.digest:
                self.ledger.breach("played", f"{name} is Done, and {play.name} was not run to its end")

    @staticmethod
    def rests(have: dict[str, str]) -> bool:
        return have.get(STATE) == "Done" and have.get(CURRENT, "") == have.get(DESIRED) and WRITING not in have

    def _count_down(self, node: Obj) -> None:
        for pool, limit in self.limits.items():
            if f"node-role.kubernetes.io/{pool}" not in labels_of(node):
                continue
            mine = [each for each in self.nodes.values() if f"node-role.kubernetes.io/{pool}" in labels_of(each)]
            down = sorted(name_of(each) for each in mine if self._down(each))
            self.ledger.checked["budget"] += 1
            self.most_down[pool] = max(self.most_down[pool], len(down))
            if len(down) > limit:
                self.ledger.breach("budget", f"{', '.join(down)} of pool {pool} are down at once, {limit} may be")

    def _down(self, node: Obj) -> bool:
        """By our hand: targeted and not there yet, or cordoned for us."""
        have, cordoned = annotations_of(node), bool(dig(node, "spec", "unschedulable"))
        if not have.get(CURRENT):
            return False
        failed = have.get(STATE) in FAILED_STATES and not cordoned
        targeted = have.get(CURRENT) != have.get(DESIRED) and not failed
        return targeted or (cordoned and name_of(node) not in self.by_person)

    def _cordoned(self, name: str, node: Obj, have: dict[str, str]) -> None:
        cordoned = bool(dig(node, "spec", "unschedulable"))
        self.ledger.checked["cordon"] += cordoned
        if name in self.by_person:
            if not cordoned:
                self.ledger.breach("person", f"{name} was cordoned by a person and is not any more")
            return
        if not cordoned:
            return
        asked, applied = have.get(DESIRED_DRAIN, ""), have.get(LAST_DRAIN, "")
        if not asked.startswith("drain-") and asked == applied:
            self.ledger.breach("cordon", f"{name} is cordoned, and asks for {asked or 'nothing'}")
        if name not in self.records:
            self.mute.add(name)
        said = {each["type"]: each["status"] for each in dig(self.records.get(name), "status", "conditions") or ()}
        if said.get("Cordoned") != "True" and name not in self.mute:
            self.ledger.breach("cordon", f"{name} is cordoned, and its record says Cordoned={said.get('Cordoned')}")

    def _config_gone(self, config: str) -> None:
        for name, node in self.nodes.items():
            have = annotations_of(node)
            for note in (CURRENT, DESIRED, WRITING):
                if have.get(note) == config:
                    self.ledger.breach("referenced", f"{config} is deleted, and is {note} of {name}")

    def _pool(self, pool: Obj) -> None:
        if "machineCount" in (pool.get("status") or {}):
            self.ledger.judge("counts", pool)
            self.ledger.judge("conditions", pool)

    # -- machines -------------------------------------------------------------------------------------------------

    def changing(self, step: Step) -> None:
        """Before a change of a machine."""
        node = self.nodes.get(step.node)
        machine = self.machines.get(step.node)
        if node is None or machine is None:
            return
        have = annotations_of(node)
        if self.foretold is not None:
            self.foretold.changes(step, have.get(DESIRED, ""))
        joins = not have.get(CURRENT) or machine.root.read("/etc/machine-config-daemon/currentconfig") is None
        if joins or step.path.startswith((*PROVISIONING, PLAYS, f"{BOOKS}node-annotation")):
            return
        if step.path and any(path == step.path or path.startswith(f"{step.path}/") for path in AUTHORITIES):
            return
        reboots = step.text.startswith("reboot ")
        self.ledger.checked["resting"] += 1
        if not reboots and WRITING not in have:
            self.ledger.breach("resting", f"{step.node}: {step.text}, and no update is under way")
        drained = (have.get(LAST_DRAIN) or "").startswith("drain-") and bool(dig(node, "spec", "unschedulable"))
        if (self.needs_drain or reboots) and not drained:
            self.ledger.breach("undrained", f"{step.node}: {step.text}, and it is not drained: {have.get(LAST_DRAIN)}")
        if reboots:
            request = step.text.split()[1]
            if (step.node, request) not in self._asked:
                self._asked.add((step.node, request))
                self._rebooted(step.node, request.rpartition(".")[0])

    def _rebooted(self, node: str, config: str) -> None:
        self._reboots[node, config] += 1
        allowed = self._targeted[node, config] + self.cuts[node]
        if self._reboots[node, config] > max(allowed, 1):
            times = f"{self._reboots[node, config]} times for {config}, which it was given {allowed} times"
            self.ledger.breach("reboots", f"{node} is rebooted {times}, cuts of its power included")

    def changed(self, node: str) -> None:
        """After a change of a machine."""
        machine = self.machines.get(node)
        if machine is not None:
            self.ledger.checked["originals"] += 1
            for text in lost(machine, self.own):
                self.ledger.breach("originals", f"{node}: {text} is lost")

    def disk(self, name: str) -> None:
        """Now that it says Done."""
        machine = self.machines.get(name)
        config = self.configs.get(annotations_of(self.nodes[name])[CURRENT])
        if machine is None or config is None:
            return
        self.ledger.checked["done"] += 1
        for text in differences(machine, config, self.own):
            self.ledger.breach("done", f"{name} is Done with {name_of(config)}: {text}")

    def at_rest(self, struck: set[str] | None = None) -> None:
        """``struck``: kinds of the faults that there were."""
        if self.foretold is not None and struck is not None:
            self.foretold.at_rest(struck)
            self.ledger.checked["foretold"] += self.foretold.compared
        for name, node in self.nodes.items():
            if self.rests(annotations_of(node)):
                self.disk(name)

    def sources_of(self, pool: str) -> set[str]:
        """Names of the configs that a pool is to be rendered from."""
        role = "machineconfiguration.openshift.io/role"
        mine = (each for each in self.configs.values() if labels_of(each).get(role) == pool)
        return {name_of(each) for each in mine}

    def left_over(self, node: Obj, target: str) -> str:
        """Why a node is not done for good; empty: it is."""
        have = annotations_of(node)
        if not self.rests(have) or have[CURRENT] != target:
            found = f"{have.get(STATE)} with {have.get(CURRENT)}, to have {have.get(DESIRED)}: {have.get(REASON)}"
            return f"is {found}, of {target}"
        if dig(node, "spec", "unschedulable") and name_of(node) not in self.by_person:
            return "is cordoned"
        if any(taint["key"] == "UpdateInProgress" for taint in dig(node, "spec", "taints", default=[])):
            return "has the taint of updates"
        left = [note for note in (PROGRESS, BLOCKED, WRITING, REBOOT_FROM, KEEP_CORDON, STAGED_AGAIN) if have.get(note)]
        return f"keeps {', '.join(left)}" if left else ""
