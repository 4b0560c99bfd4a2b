"""``syncline drift``: an operation beside the rehearsal of its plan."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import click

from syncline.assembly.ports import HttpPort
from syncline.base.clock import SystemClock
from syncline.base.entropy import Entropy
from syncline.base.scratch import scratch
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.rehearse.record import access_of, stopped_by_signals
from syncline.cli.rehearse.replay import DIFFERS
from syncline.cli.rehearse.repositories import folders_of
from syncline.cli.views.rehearsal.reality import describe_drift, drift_to_obj
from syncline.kube import client
from syncline.kube.kinds.holds import make_hold
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import name_of
from syncline.rehearsal.given.durations import Duration
from syncline.rehearsal.given.world import read_world
from syncline.rehearsal.reality.drifting import Drift, Plan, drift_of, plan_of, planned_acts
from syncline.rehearsal.reality.files import read_recording
from syncline.rehearsal.reality.recording import Recording, Tape, recording_of
from syncline.rehearsal.reality.redacting import Redaction
from syncline.rehearsal.reality.replaying import waits_at
from syncline.rehearsal.reality.watching import recorded
from syncline.rehearsal.scenario import ScenarioError

LOOK_S = 5.0
"""Seconds between two comparisons of an operation that goes on."""
HELD_FOR = timedelta(hours=1)
OWNER, MANAGER = "syncline-drift", "syncline-drift"


@click.command()
@click.argument("source", metavar="FILE|app/NAME")
@click.option("--repository", "repositories", multiple=True, metavar="URL=FOLDER", help="A clone with the commits.")
@click.option("--world", type=click.Path(path_type=Path), default=None, help="A file with the durations to plan with.")
@click.option("--hold", is_flag=True, help="app/NAME: hold its pools for an hour when it leaves the range.")
@output_option("json", "yaml")
@connection_options
def drift(
    source: str,
    repositories: tuple[str, ...],
    world: Path | None,
    hold: bool,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Compare an operation with the rehearsal of its plan: order, lengths, ends of waves, hooks, drains, reboots.

    FILE is a record of `syncline record`. With app/NAME the next sync of this Application, or the one that runs, is
    watched until it ends or leaves the range. The plan is rehearsed from the state before it, with durations that were
    measured there, and with half and twice of them.

    \b
    Exit codes: 0 as planned, 1 it left the range, 2 usage
    Examples:   syncline drift incident.jsonl
                syncline drift app/shop --repository https://git.example.com/shop.git=../shop --hold
    """
    durations = None
    try:
        places = folders_of(repositories)
        durations = read_world(world).durations if world is not None else None
        with scratch() as place:
            if source.startswith("app/"):
                live = _Live(source.removeprefix("app/"), places, place, durations)
                recording, found = live.followed(kubeconfig, context)
            else:
                recording = read_recording(Path(source))
                found = drift_of(plan_of(recording, places, place / "plan", durations), recording)
            waits = waits_at(recording.last, place / "now") if found.outside else ()
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else FAILED) from error
    if output:
        print_documents(drift_to_obj(found), output)
    else:
        print(describe_drift(found, source, waits))
    if found.outside and hold:
        hold_pools(found, kubeconfig, context)
    return DIFFERS if found.outside else 0


def hold_pools(found: Drift, kubeconfig: str | None, context: str | None) -> None:
    """Keep the pools of the operation from beginning more updates. Raises CommandFailed."""
    if not found.pools:
        raise CommandFailed("--hold: the operation updates no pool; `syncline app terminate-op` ends its sync")
    with Connection(kubeconfig, context) as link:
        until = link.now() + HELD_FOR
        made = make_hold(f"drift-{'-'.join(found.pools)}"[:63], found.pools, OWNER, found.outside[0].said[:200], until)
        info = link.resource(HOLD)
        answer = link.send(client.create(info, made, field_manager=MANAGER))
        if answer.status == 409:
            body = {"spec": made["spec"]}
            link.ask(client.patch(info, "", name_of(made), client.PatchType.MERGE, body, field_manager=MANAGER))
        else:
            link.check(answer)
    names = ", ".join(found.pools)
    click.echo(f"held        {names} until {until:%H:%M} UTC; `syncline pool resume {names} --owner {OWNER}` ends it")


@dataclass
class _Live:
    """An operation under way. The plan is rehearsed again when something new is asked for."""

    name: str
    places: Mapping[str, Path]
    scratch: Path
    durations: Mapping[str, Duration] | None
    lines: list[str] = field(default_factory=list)
    plan: Plan | None = None
    plans: int = 0

    def followed(self, kubeconfig: str | None, context: str | None) -> tuple[Recording, Drift]:
        """Return when the sync has ended, or has left the range. Raises CommandFailed, ScenarioError."""
        access = access_of(kubeconfig, context)
        return asyncio.run(self._followed(HttpPort(access), access.server))

    async def _followed(self, port: HttpPort, server: str) -> tuple[Recording, Drift]:
        stop, clock = stopped_by_signals(), SystemClock()
        tape = Tape(self.lines.append, Redaction(Entropy().token().encode()))
        tape.head(server)
        try:
            watching = asyncio.create_task(recorded(port, clock, tape, stop, until=self.name))
            while not watching.done():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(watching), LOOK_S)
                if not tape.begun or watching.done():
                    continue
                _, found = await asyncio.to_thread(self._compared)
                if found.outside:
                    stop.set()
            watching.result()
            return await asyncio.to_thread(self._compared)
        finally:
            await port.close()

    def _compared(self) -> tuple[Recording, Drift]:
        recording = recording_of([line.encode() for line in [*self.lines]], f"app/{self.name}")
        if self.plan is None or self.plan.acts != planned_acts(recording):
            self.plans += 1
            place = self.scratch / f"plan-{self.plans}"
            self.plan = plan_of(recording, self.places, place, self.durations)
        return recording, drift_of(self.plan, recording)
