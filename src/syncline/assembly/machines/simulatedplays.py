"""How Ansible fares on simulated machines: nothing is executed, each task changes the machine once.

A run takes the tasks that the playbook names, in order; a second one changes nothing. What is to go otherwise is data:
JSON in the annotation ``syncline.dev/simulated-outcome`` of the AnsibleConfig (:class:`Fate`).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import Clock, format_time, parse_time
from syncline.machineconfig.agent.host import Host
from syncline.machineconfig.ansible.content import ContentError, unpack
from syncline.machineconfig.ansible.examining import Examined, examine
from syncline.machineconfig.ansible.order import Order
from syncline.machineconfig.ansible.outcome import Outcome, Task
from syncline.machineconfig.ansible.play import REBOOT_TAG

STATE = "/var/lib/syncline/ansible/simulated.json"
"""What simulated runs did to this machine, by name of AnsibleConfig."""
MAX_KEPT = 100


@dataclass(frozen=True, slots=True)
class Fate:
    """``seconds``: how long a run takes in virtual time. ``fails``: ``node`` (empty: each), ``task`` and ``message`` of
    a failure, and how many ``times`` (absent: always). ``never``: tasks that change something in each run."""

    seconds: float = 0.0
    fails: tuple[dict[str, Any], ...] = ()
    never: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Fate:
        """Return a fate from JSON; without one, or with one that cannot be read, all goes well."""
        try:
            found = json.loads(text or "{}")
            fails = tuple(one for one in found.get("fails") or () if isinstance(one, dict))
            return cls(float(found.get("seconds") or 0), fails, tuple(map(str, found.get("never") or ())))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()


@dataclass
class SimulatedPlays:
    """A :class:`~syncline.machineconfig.ansible.order.Player` for simulated machines; reads each playbook once."""

    host: Callable[[str], Host]
    clock: Clock
    _examined: OrderedDict[tuple[str, str, str], Examined] = field(default_factory=OrderedDict)

    def now(self) -> datetime:
        return self.clock.now()

    def play(self, node: str, order: Order) -> Outcome:
        host, now = self.host(node), self.clock.now()
        play, fate = order.play, Fate.of(order.play.outcome)
        try:
            seen = self._seen(order)
        except ContentError as error:
            return Outcome(error=str(error))
        states = _states(host)
        state = states.get(play.name) or {}
        again = state.get("digest") == play.digest
        drifted = {str(each) for each in state.get("drift") or ()}
        if order.check:
            return Outcome(tuple(t for t in seen.tasks if not again or t.task in drifted or t.task in fate.never))
        if not again and fate.seconds:
            began = str(state["began"]) if state.get("beginning") == play.digest else format_time(now)
            until = parse_time(began) + timedelta(seconds=fate.seconds)
            if until > now:
                _put(host, states, play.name, {**state, "beginning": play.digest, "began": began})
                return Outcome(until=until)
        return self._run(node, host, order, seen, fate)

    def _run(self, node: str, host: Host, order: Order, seen: Examined, fate: Fate) -> Outcome:
        states, name = _states(host), order.play.name
        state = states.get(name) or {}
        done = {str(each) for each in state.get("done") or ()} if state.get("of") == order.play.digest else set()
        changed: list[Task] = []
        may_reboot = any(REBOOT_TAG in task.tags for task in seen.tasks)
        for task in seen.tasks:
            failure = _failure(fate, node, task, int(state.get("failures") or 0))
            if task.place in seen.reboots and task.place not in order.reboots:
                _put(host, states, name, {**state, "of": order.play.digest, "done": sorted(done)})
                return Outcome(tuple(changed), reboot=task, seconds=fate.seconds)
            if failure:
                failures = int(state.get("failures") or 0) + 1
                left = {**state, "of": order.play.digest, "done": sorted(done), "failures": failures}
                _put(host, states, name, {key: value for key, value in left.items() if key != "digest"})
                failed = Task(task.task, task.place, node, failure, task.tags)
                return Outcome(tuple(changed), failed=failed, seconds=fate.seconds)
            if task.place not in done and task.place not in seen.reboots:
                changed.append(task)
            done.add(task.place)
        _put(host, states, name, {"digest": order.play.digest})
        return Outcome(tuple(changed), seconds=fate.seconds, may_reboot=may_reboot)

    def _seen(self, order: Order) -> Examined:
        play = order.play
        key = (play.content, play.playbook, play.role)
        if key not in self._examined:
            self._examined[key] = examine(unpack(order.packed), play.playbook, play.role)
            while len(self._examined) > MAX_KEPT:
                self._examined.popitem(last=False)
        return self._examined[key]


def drift(host: Host, name: str, task: str) -> None:
    """Let a simulated machine drift, as if a person had undone what ``task`` did; no task: put it right again."""
    states = _states(host)
    _put(host, states, name, {**(states.get(name) or {}), "drift": [task] if task else []})


def _failure(fate: Fate, node: str, task: Task, failures: int) -> str:
    for one in fate.fails:
        mine = one.get("task") == task.task and one.get("node") in (None, "", node)
        if mine and ("times" not in one or failures < int(one["times"])):
            return str(one.get("message") or "it failed")
    return ""


def _states(host: Host) -> dict[str, dict[str, Any]]:
    found = json.loads(host.read(STATE)) if host.exists(STATE) else {}
    return found if isinstance(found, dict) else {}


def _put(host: Host, states: dict[str, dict[str, Any]], name: str, state: dict[str, Any]) -> None:
    host.write(STATE, json.dumps({**states, name: state}, sort_keys=True).encode(), mode=0o600)
