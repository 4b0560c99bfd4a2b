"""How a command fails: one line for people, one exit code for scripts."""

from __future__ import annotations

__all__ = ["BLOCKED", "FAILED", "UNSAFE", "USAGE", "CommandFailed"]

FAILED, USAGE, BLOCKED, UNSAFE = 1, 2, 3, 4


class CommandFailed(Exception):
    """``str`` of it is the line to print."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code
