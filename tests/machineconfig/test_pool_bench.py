"""The pool of ``python -m bench pool``, small: what the figures are made of does happen."""

from __future__ import annotations

from datetime import timedelta

from bench.pool import Moved, Pods, PoolOfMachines


def test_a_pool_with_pods_and_budgets_is_rolled_by_evictions_and_has_all_its_pods_again() -> None:
    pool = PoolOfMachines(12, "25%")
    pool.run(Pods(2, 12, down=1))
    moved = Moved(pool)
    took = pool.roll("motd")
    assert moved.evicted >= 24, "each pod leaves the machine that it was on"
    assert moved.refused > 0, "three machines at once, and one pod of each app at a time"
    pool.world.driver.until(pool.all_ready, limit_s=600)
    assert took < timedelta(minutes=30)
