"""What is read of the repositories that AnsibleConfigs name, by the actions of ``control/fetching.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from syncline.control import fetching
from syncline.control.fetching import Fetch, FetchStore
from syncline.machineconfig.ansible.content import Files

MAX_KEPT: Final = 100
"""Playbooks that are kept; of a few hundred kilobytes, and eight megabytes at most."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted(fetching.Wanted):
    """A folder of a repository at a revision. ``collections``: names of those that are read, of all that are there."""

    path: str
    collections: tuple[str, ...] = ()

    def __str__(self) -> str:
        return fetching.Wanted.__str__(self) + (f":{self.path}" if self.path else "")


@dataclass(frozen=True, slots=True)
class Found(fetching.Found):
    """The files of a playbook's folder."""

    files: Files = field(default_factory=dict, repr=False)


class ReadPlaybook(Fetch[Wanted]):
    """Read the files of an AnsibleConfig."""


class PlaybookReader(Protocol):
    """Reads repositories; blocking. Never raises for what a repository or its host does."""

    def playbook(self, wanted: Wanted, now: datetime) -> Found: ...


class PlaybookStore(FetchStore[Wanted, Found]):
    """The playbooks of one process."""

    def __init__(self) -> None:
        super().__init__(MAX_KEPT)
