"""What the commands of agents share: which agents a command means, their clusters, and running until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import click

from syncline.base.interpreter import tune_interpreter
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.terminal import start_logging
from syncline.cli.serving.eventloop import event_loop_runner
from syncline.hosts.fleet.joining import JoinError
from syncline.hosts.fleet.places import Joining, Place, PlaceError, places
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, in_cluster, load_kubeconfig

Chosen = tuple[Place, Joining]


def choosing_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add ``--hub`` and ``--name``, which choose among what was joined."""
    command = click.option("--name", default="", help="Only the cluster of this name.")(command)
    return click.option("--hub", default="", help="Only at hubs whose URL has this in it.")(command)


def chosen(home: Path, hub: str, name: str) -> list[Chosen]:
    """Return what was joined and is meant. Raises CommandFailed if that is nothing."""
    try:
        known = places(home)
    except PlaceError as error:
        raise CommandFailed(str(error)) from error
    found = [one for one in known if hub in one[1].hub and name in ("", one[1].cluster)]
    if not known:
        raise CommandFailed(
            f"nothing was joined from here ({home}); on a hub type `syncline hub token`, then here `syncline join LINE "
            "--name NAME`"
        )
    if not found:
        listed = ", ".join(f"{one.cluster} at {one.hub}" for _, one in known)
        raise CommandFailed(f"no such cluster or hub was joined from here; known: {listed}", USAGE)
    return found


def spoke_of(joining: Joining) -> ClusterAccess:
    """Return the access to the agent's own cluster. Raises CommandFailed."""
    try:
        if joining.kubeconfig:
            return load_kubeconfig(joining.kubeconfig, joining.context or None)
        return in_cluster()
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(f"the cluster {joining.cluster} itself: {error}") from error


def own_kubeconfig(given: str | None) -> str:
    """Return the absolute path of the kubeconfig of the cluster that joins; empty: that of the pod."""
    if given is None and os.environ.get("KUBERNETES_SERVICE_HOST") and not os.environ.get("KUBECONFIG"):
        return ""
    if given is None:
        listed = [part for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
        if len(listed) > 1:
            raise CommandFailed("KUBECONFIG names several files; give one with --kubeconfig", USAGE)
        from syncline.cli.access.connection import default_kubeconfig

        given = listed[0] if listed else default_kubeconfig() or str(Path.home() / ".kube" / "config")
    return str(Path(given).expanduser().resolve())


def sayer(joining: Joining, others: Sequence[Joining]) -> Callable[[str], None]:
    """Return a function that prints a line; with several agents it begins with whose it is."""
    prefix = "" if len(others) < 2 else f"{joining.cluster}@{joining.hub}: "
    return lambda text: click.echo(prefix + text)


def run_until_stopped(body: Callable[[asyncio.Event], Awaitable[int]]) -> int:
    """Run ``body`` with an event that SIGINT and SIGTERM set."""

    async def serve() -> int:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # no signal handlers here: Ctrl-C raises instead
                asyncio.get_running_loop().add_signal_handler(number, stop.set)
        return await body(stop)

    start_logging()
    tune_interpreter()
    try:
        with event_loop_runner() as runner:
            return runner.run(serve())
    except (JoinError, PlaceError) as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        if error.filename is None:
            raise
        raise CommandFailed(f"{error.filename}: {error.strerror}") from error
