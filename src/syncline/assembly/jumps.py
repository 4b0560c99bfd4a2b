"""Emits an Event when the machine's clock was set, as deadlines and time stamps look odd afterwards."""

from __future__ import annotations

import asyncio

from syncline.base.clock import Clock, Jump, SystemClock
from syncline.control.events import publish
from syncline.control.manager import Port, drive
from syncline.control.plan import Emit
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj

CLOCK_JUMPED = "ClockJumped"
COMPONENT = "syncline-application-controller"
LOOK_S = 5.0


def jump_event(jump: Jump, namespace: str, who: str = "") -> Emit:
    """Return an Event on the control namespace; ``who`` identifies the replica."""
    about: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return Emit(about, CLOCK_JUMPED, f"{who}: {jump}" if who else str(jump), COMPONENT, warning=True)


async def tell_jumps(clock: Clock, port: Port, namespace: str, who: str = "") -> None:
    """Report jumps until cancelled. Events that the API rejects are retried at the next check."""
    if not isinstance(clock, SystemClock):
        return
    report = 0
    while True:
        await asyncio.sleep(LOOK_S)
        now = clock.now()
        for jump in clock.jumps(report):
            try:
                await drive(publish(jump_event(jump, namespace, who), now), port)
            except ApiError:
                break
            report = jump.number
