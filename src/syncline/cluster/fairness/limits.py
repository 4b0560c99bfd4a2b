"""How many seats each priority level has: shares of the server's, then what is lent and borrowed.

Called by ``fairness.control`` when levels change and every ten seconds. Pure. Source: apiserver
``pkg/util/flowcontrol/apf_controller.go`` (``finishQueueSetReconfigsLocked``, ``updateBorrowingLocked``) and
``conc_alloc.go``, whose problem is solved here by halving.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig

__all__ = ["BORROWING_PERIOD_S", "Bounds", "Demand", "Seats", "allocation", "borrowed", "bounds_of", "smoothed"]

BORROWING_PERIOD_S = 10.0
SMOOTHING = 0.977
"""Half of an old demand is forgotten in five minutes (``seatDemandSmoothingCoefficient``)."""
LEAST_TARGET = 0.001
HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seats that a level has nominally, keeps at least (the rest is lent), and may hold at most."""

    nominal: int
    least: int
    most: int
    exempt: bool = False

    @property
    def first(self) -> int:
        """Before any demand was seen: half of what can be lent is lent."""
        return self.nominal - (self.nominal - self.least) // 2


@dataclass(frozen=True, slots=True)
class Demand:
    """Seats that a level could have used in the last period: most, mean and deviation."""

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
        """What it is not brought below now."""
        wanted = int(self.demand.highest)
        kept = wanted if self.bounds.exempt else min(self.bounds.nominal, wanted)
        return max(self.bounds.least, kept)


def bounds_of(levels: Mapping[str, Obj], server_seats: int) -> dict[str, Bounds]:
    """From the specs of all levels, by name. Shares are rounded up, so their sum may exceed the server's seats."""
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
    """Rises at once, falls slowly (``seatDemandStats.update``)."""
    envelope = min(demand.highest, demand.mean + demand.deviation)
    return max(envelope, SMOOTHING * before + (1 - SMOOTHING) * envelope)


def borrowed(levels: Mapping[str, Seats]) -> dict[str, int]:
    """The seats of each level until the next time: demand is served in proportion, within everybody's bounds."""
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
    """Divide ``total`` among (target, least, most) so that each gets one multiple of its target, within its bounds.

    Where the bounds leave no room, everybody is at a bound.
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
    """Halves away from zero, as Go rounds."""
    return math.floor(value + 0.5)
