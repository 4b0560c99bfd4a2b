"""Compute the seats of each priority level: shares of the server's, then lending and borrowing.

``fairness.control`` calls it when levels change and every ten seconds. Pure. Source: apiserver
``pkg/util/flowcontrol/apf_controller.go`` (``finishQueueSetReconfigsLocked``, ``updateBorrowingLocked``) and
``conc_alloc.go``, whose equation is solved here by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig

BORROWING_PERIOD_S = 10.0
SMOOTHING = 0.977
"""Decay per period: an old demand halves in five minutes (``seatDemandSmoothingCoefficient``)."""
LEAST_TARGET = 0.001
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Bounds:
    """A level's nominal seats, its minimum (the rest is lent), and its maximum."""

    nominal: int
    least: int
    most: int
    exempt: bool = False

    @property
    def first(self) -> int:
        """Initial seats, before any demand is known: half of the lendable ones are lent."""
        return self.nominal - (self.nominal - self.least) // 2


@dataclass(frozen=True, slots=True)
class Demand:
    """Seats that a level could have used in the last period: maximum, mean and deviation."""

    highest: float = 0.0
    mean: float = 0.0
    deviation: float = 0.0


@dataclass(frozen=True, slots=True)
class Seats:
    """A level's bounds, its last demand, and that demand smoothed."""

    bounds: Bounds
    demand: Demand
    smooth: float

    @property
    def floor(self) -> int:
        """The level's minimum for its current demand."""
        wanted = int(self.demand.highest)
        kept = wanted if self.bounds.exempt else min(self.bounds.nominal, wanted)
        return max(self.bounds.least, kept)


def bounds_of(levels: Mapping[str, Obj], server_seats: int) -> dict[str, Bounds]:
    """Return the bounds of all levels by name. Shares are rounded up, so their sum may exceed the server's seats."""
    commons = {
        name: spec.get("exempt" if spec.get("type") == "Exempt" else "limited") or {} for name, spec in levels.items()
    }
    shares = {name: float(_number(common, "nominalConcurrencyShares", 0)) for name, common in commons.items()}
    total = sum(shares.values())
    found = {}
    for name, common in commons.items():
        nominal = math.ceil(server_seats * shares[name] / total) if total else 0
        borrowing = dig(common, "borrowingLimitPercent")
        more = _rounded(nominal * borrowing / 100) if isinstance(borrowing, int) else server_seats
        lent = _rounded(nominal * _number(common, "lendablePercent", 0) / 100)
        found[name] = Bounds(nominal, nominal - lent, nominal + more, exempt=levels[name].get("type") == "Exempt")
    return found


def smoothed(before: float, demand: Demand) -> float:
    """Return the smoothed demand: it rises at once and falls slowly (``seatDemandStats.update``)."""
    envelope = min(demand.highest, demand.mean + demand.deviation)
    return max(envelope, SMOOTHING * before + (1 - SMOOTHING) * envelope)


def borrowed(levels: Mapping[str, Seats]) -> dict[str, int]:
    """Return each level's seats for the next period: proportional to demand, within its bounds."""
    total = sum(each.bounds.nominal for each in levels.values())
    exempt = {name: each.floor for name, each in levels.items() if each.bounds.exempt}
    limited = {name: each for name, each in levels.items() if not each.bounds.exempt}
    remaining = total - sum(exempt.values())
    least = sum(each.bounds.least for each in limited.values())
    floors = sum(each.floor for each in limited.values())
    if remaining <= least:
        return exempt | {name: each.bounds.least for name, each in limited.items()}
    if remaining <= floors:
        part = (remaining - least) / (floors - least)
        return exempt | {
            name: each.bounds.least + _rounded((each.floor - each.bounds.least) * part)
            for name, each in limited.items()
        }
    wishes = [
        (max(float(each.floor), each.smooth), float(each.floor), float(each.bounds.most)) for each in limited.values()
    ]
    return exempt | {
        name: _rounded(seats) for name, seats in zip(limited, allocation(float(total), wishes), strict=True)
    }


def allocation(total: float, wishes: Sequence[tuple[float, float, float]]) -> list[float]:
    """Divide ``total`` among (target, least, most) so that each gets the same multiple of its target, within its
    bounds.

    If the bounds leave no choice, every share equals a bound.
    """

    def given(multiple: float) -> list[float]:
        return [max(least, min(most, multiple * max(target, LEAST_TARGET))) for target, least, most in wishes]

    low, high = 0.0, max((most / max(target, LEAST_TARGET) for target, _, most in wishes), default=0.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if sum(given(middle)) < total:
            low = middle
        else:
            high = middle
    return given(high)


def _number(common: Obj, field: str, default: int) -> int:
    value = common.get(field)
    return value if isinstance(value, int) else default


def _rounded(value: float) -> int:
    """Round halves away from zero, as Go does."""
    return math.floor(value + 0.5)
