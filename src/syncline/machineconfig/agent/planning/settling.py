"""Continues a reconcile from the results of its steps: after a comparison it plans again, a failure it undoes; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from syncline.base.action import Action as Step
from syncline.control.plan import Patch, Plan, Result, Retry, SetStatus
from syncline.kube.objects import name_of
from syncline.machineconfig.agent.files.script import Script, fail, say_degraded
from syncline.machineconfig.agent.planning.observe import AgentObserved
from syncline.machineconfig.agent.planning.plan import AgentSettings, plan_agent
from syncline.machineconfig.agent.planning.playing import interrupted
from syncline.machineconfig.agent.planning.undoing import UNDOING, undo
from syncline.machineconfig.agent.steps import (
    CheckDisk,
    CheckPlays,
    CompareInstalled,
    DropStaged,
    LookAtBoot,
    PlanPlays,
    ReadServerAuthority,
    RebootHost,
    RunPlays,
    RunService,
    SetUsers,
    StageSystem,
    StoreConfig,
    WriteAuthorities,
    WriteFiles,
)

UPSTREAM = AgentSettings()
QUESTIONS = (CheckDisk, CompareInstalled, LookAtBoot, ReadServerAuthority, PlanPlays, CheckPlays)
"""Steps whose values decide what comes next."""


def answered(observed: AgentObserved, question: Step, value: Any) -> AgentObserved:
    """Return the observed state with the value of a step of :data:`QUESTIONS`."""
    match question:
        case LookAtBoot():
            return replace(observed, booted=value)
        case ReadServerAuthority():
            return replace(observed, server=value)
        case CompareInstalled():
            return replace(observed, irreconcilable=value)
        case PlanPlays() | CheckPlays():
            looked = observed.looked or isinstance(question, CheckPlays)
            return replace(observed, facts=replace(observed.facts, plays=value), looked=looked)
    return replace(observed, checked=value)


_UNDONE = (WriteFiles, SetUsers, DropStaged, StageSystem, StoreConfig, RunService, RebootHost, RunPlays)

_UNCHANGED = (WriteAuthorities, PlanPlays, CheckPlays)
"""Steps whose failure changed nothing."""


def settle_agent(
    observed: AgentObserved, made: Plan, results: Sequence[Result], now: datetime, settings: AgentSettings = UPSTREAM
) -> tuple[AgentObserved, Plan] | None:
    """Return state and next plan from the results of the last plan; None if nothing is left to do."""
    for result in results:  # each next write is conditional on the last one
        if result.ok and isinstance(result.value, dict):
            if isinstance(result.action, SetStatus):
                observed = replace(observed, record=result.value)
            elif isinstance(result.action, Patch):
                observed = replace(observed, node=result.value)
    answers = [result for result in results if result.ok and isinstance(result.action, QUESTIONS)]
    if answers:
        for result in answers:
            observed = answered(observed, result.action, result.value)
        return observed, plan_agent(observed, now, settings)
    unwritten = next((r for r in results if not r.ok and isinstance(r.action, _UNCHANGED)), None)
    if unwritten is not None:
        return observed, fail(observed, str(unwritten.error), now)
    failed = next((r for r in results if not r.ok and isinstance(r.action, _UNDONE)), None)
    if failed is None:
        return None
    observed, then = interrupted(observed, failed, now)
    if then is not None:
        return observed, then
    if failed.action.reason == UNDOING:
        script = Script(observed, now, str(failed.error), proven=True)
        say_degraded(script, name_of(observed.node), str(failed.error))
        return observed, script.plan(Retry(str(failed.error)))
    return observed, undo(observed, [r.action for r in results if r.ok], failed, now)
