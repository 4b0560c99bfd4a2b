"""Rotation of log files, as the API server's ``--audit-log-max…``."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_SIZE_MB = 100


@dataclass(frozen=True, slots=True)
class Rotation:
    """0 means: files of 100 MB (``size_mb``), and no deletion by number or age."""

    size_mb: int = 0
    backups: int = 0
    age_days: int = 0

    @property
    def size(self) -> int:
        return (self.size_mb or DEFAULT_SIZE_MB) * 1024 * 1024


KEEP_ALL = Rotation()
