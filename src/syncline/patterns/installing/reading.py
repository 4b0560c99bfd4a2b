"""What is read of the repository of a pattern, by the actions of ``control/fetching.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from syncline.control import fetching
from syncline.control.fetching import Fetch, FetchStore
from syncline.patterns.installing.checkout import Checkout

MAX_KEPT: Final = 50
"""Checkouts that are kept."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted(fetching.Wanted):
    """A revision of a repository, and the files of it that are read, with every values file at their places."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found(fetching.Found):
    """The files of a pattern."""

    checkout: Checkout = field(default_factory=Checkout, repr=False)


class ReadCheckout(Fetch[Wanted]):
    """Read the files of a pattern."""


class CheckoutReader(Protocol):
    """Reads repositories; blocking. Never raises for what a repository or its host does."""

    def checkout(self, wanted: Wanted, now: datetime) -> Found: ...


class CheckoutStore(FetchStore[Wanted, Found]):
    """The checkouts of one process."""

    def __init__(self) -> None:
        super().__init__(MAX_KEPT)
