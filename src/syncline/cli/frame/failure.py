"""How a command fails: one line for people, one exit code for scripts."""

from __future__ import annotations

__all__ = ["ARGOCD", "BLOCKED", "FAILED", "GENERAL", "UNSAFE", "USAGE", "CommandFailed", "exit_code"]

FAILED, USAGE, BLOCKED, UNSAFE = 1, 2, 3, 4
GENERAL = 20
"""argocd's code of any error; there 1 says that something differs, or that a sync did not succeed."""
LIKE_ARGOCD = ("app", "appset", "proj", "repo", "repocreds", "cluster", "admin")
"""Groups that end with argocd's codes."""
ARGOCD = (*LIKE_ARGOCD, "cert", "completion", "context", "gpg", "login", "logout", "version")
"""What argocd has too."""


class CommandFailed(Exception):
    """``str`` of it is the line to print. ``code`` None: an error as any other."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def exit_code(error: CommandFailed, group: str) -> int:
    """``group``: the first word of the command line. Where scripts know argocd's codes, a time-out is an error too."""
    if group in LIKE_ARGOCD and error.code in (None, BLOCKED):
        return GENERAL
    return FAILED if error.code is None else error.code
