"""One run of Ansible as data, :class:`Order`, and who carries it out: :class:`Player`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from syncline.base.secret import Secret
from syncline.machineconfig.ansible.outcome import Outcome
from syncline.machineconfig.ansible.play import Play


@dataclass(frozen=True)
class Order:
    """One run. ``packed``: its content; ``check``: only say what would change; ``reboots``: places of reboot tasks that
    are done and pass; ``secrets``: further variables."""

    play: Play
    packed: bytes = field(repr=False)
    check: bool
    reboots: tuple[str, ...] = ()
    secrets: Secret | None = None
    vault: Secret | None = None


class Player(Protocol):
    def play(self, node: str, order: Order) -> Outcome:
        """Run Ansible on the machine; blocks until it ended or its time is up."""
        ...

    def now(self) -> datetime: ...
