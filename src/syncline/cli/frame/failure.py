"""Failures of commands: one line for users, one exit code for scripts."""

from __future__ import annotations

FAILED, USAGE, BLOCKED, UNSAFE = 1, 2, 3, 4
GENERAL = 20
"""argocd's exit code of any error; its code 1 means differences or a failed sync."""
LIKE_ARGOCD = ("app", "appset", "proj", "repo", "repocreds", "cluster", "admin")
"""Groups that use argocd's exit codes."""
ARGOCD = (*LIKE_ARGOCD, "cert", "completion", "context", "gpg", "login", "logout", "version")
"""Groups that argocd has too."""


class CommandFailed(Exception):
    """A failed command; ``str`` of it is the line to print. ``code`` None: the general error code."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def exit_code(error: CommandFailed, group: str) -> int:
    """Return the exit code; ``group``: the first word. In argocd's groups a time-out is a general error."""
    if group in LIKE_ARGOCD and error.code in (None, BLOCKED):
        return GENERAL
    return FAILED if error.code is None else error.code
