"""The phases of a sync."""

from __future__ import annotations

from enum import StrEnum


class SyncPhase(StrEnum):
    """Phases in their order."""

    PRE_SYNC = "PreSync"
    SYNC = "Sync"
    POST_SYNC = "PostSync"
    SYNC_FAIL = "SyncFail"


def is_after(phase: SyncPhase, wave: int, of_phase: SyncPhase, of_wave: int) -> bool:
    """Return whether a wave comes after another one; those of SyncFail come after none."""
    order = list(SyncPhase)
    return phase is not SyncPhase.SYNC_FAIL and (order.index(phase), wave) > (order.index(of_phase), of_wave)
