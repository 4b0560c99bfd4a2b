"""``syncline record``: what happens on a cluster, as a file for replays and comparisons."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncline.assembly.ports import HttpPort
from syncline.base.clock import SystemClock
from syncline.base.entropy import Entropy
from syncline.cli.access.connection import connection_options, default_kubeconfig
from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cluster.access.users import ADMIN
from syncline.kube.text.durations import DurationError, format_duration, parse_duration
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig
from syncline.rehearsal.reality.files import writing
from syncline.rehearsal.reality.recording import Tape
from syncline.rehearsal.reality.redacting import Redaction
from syncline.rehearsal.reality.watching import recorded
from syncline.rehearsal.scenario import ScenarioError

if TYPE_CHECKING:
    from syncline.assembly.embedded.live import LiveCluster

LONGEST = timedelta(days=7)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--until-done", default="", metavar="app/NAME", help="End when a sync of this Application has ended.")
@click.option("--for", "length", default="168h", show_default=True, metavar="10m", help="End after this time.")
@connection_options
def record(file: Path, until_done: str, length: str, kubeconfig: str | None, context: str | None) -> int:
    """Record what happens on a cluster until Ctrl-C, for `syncline replay` and `syncline drift`.

    FILE gets all objects that you may list, and each version of them that a watch brings: lines of JSON, at most
    256 MiB. Values of Secrets are digests with a salt that is kept nowhere; what looks like a credential elsewhere is
    masked. Whenever the command ends, the file is a record.

    \b
    Exit codes: 0 recorded, 1 failed, 2 usage
    Example:    syncline record incident.jsonl --until-done app/shop
    """
    name = until_done.removeprefix("app/")
    try:
        limit = parse_duration(length)
    except DurationError as error:
        raise CommandFailed(f"--for {length!r}: allowed: a duration such as 90m", USAGE) from error
    if not timedelta(0) < limit <= LONGEST:
        raise CommandFailed(f"--for {length}: allowed: more than nothing, at most {format_duration(LONGEST)}", USAGE)
    access = access_of(kubeconfig, context)
    try:
        with writing(file) as write:
            tape = Tape(write, Redaction(Entropy().token().encode()))
            why = asyncio.run(_recorded(access, tape, name, limit.total_seconds()))
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else FAILED) from error
    print(f"recorded    {file}: {tape.lines} lines, {tape.size // 1024} KiB; {why}")
    return 0


@contextlib.asynccontextmanager
async def recording_beside(cluster: LiveCluster, file: Path, stop: asyncio.Event) -> AsyncIterator[None]:
    """Record a cluster of this process with the journal of its controllers, until ``stop``. Raises CommandFailed."""
    try:
        with writing(file) as write:
            tape, clock = Tape(write, Redaction(Entropy().token().encode())), SystemClock()
            tape.head(cluster.url)
            port = cluster.working.driver(ADMIN).port
            running = asyncio.create_task(recorded(port, clock, tape, stop, journal=cluster.journal))
            try:
                yield
            finally:
                stop.set()
                tape.end(clock.now(), await running)
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE) from error


def access_of(kubeconfig: str | None, context: str | None) -> ClusterAccess:
    """Raises CommandFailed."""
    try:
        return load_kubeconfig(kubeconfig or default_kubeconfig(), context)
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(f"{error}; or start a cluster: `syncline up`") from error


def stopped_by_signals() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set."""
    stop, running = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError):  # elsewhere Ctrl-C raises, and the file is whole
            running.add_signal_handler(number, stop.set)
    return stop


async def _recorded(access: ClusterAccess, tape: Tape, until: str, seconds: float) -> str:
    stop, clock, port = stopped_by_signals(), SystemClock(), HttpPort(access)
    asyncio.get_running_loop().call_later(seconds, stop.set)
    tape.head(access.server)
    try:
        why = await recorded(port, clock, tape, stop, until=until)
        tape.end(clock.now(), why)
        return why
    finally:
        await port.close()
