"""Addresses of repositories: which are allowed, and which mean the same place.

Called by ``sources/git.py`` before anything is dialled, by the credentials and by webhooks to compare. Pure.
"""

from __future__ import annotations

import re

from syncline.sources.errors import Problem, SourceError, mask_credentials

__all__ = ["check_url", "host_of", "normalize_url"]

_MAX_URL = 2048
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9_+.-]*::")
_SCP = re.compile(r"(?:[^/:@\s]+@)?(\[[0-9a-fA-F:]+\]|[^/:@\s]+):.*")


def check_url(url: str, *, allow_local: bool) -> None:
    """Refuse addresses that git would take for options, helpers or, unless allowed, files of this machine."""
    shown = mask_credentials(url)
    if not url or url.startswith("-") or len(url) > _MAX_URL or any(ord(letter) <= 32 for letter in url):
        raise _refused(shown, "is not an address of a repository", "give an https, ssh or git@host:path address")
    if _HELPER.match(url):
        raise _refused(shown, "names a transport helper, which could run programs", "give an https or ssh address")
    scheme = _SCHEME.match(url)
    if scheme is not None and scheme[1].lower() in ("http", "https", "ssh"):
        host = url[scheme.end() :].split("/", 1)[0].rpartition("@")[2]
        if not host or host.startswith("-"):
            raise _refused(shown, "has no valid host", "give an address such as https://host/path")
        return
    if scheme is not None and scheme[1].lower() != "file":
        raise _refused(shown, f"uses {scheme[1]}://", "http, https and ssh are allowed")
    scp = _SCP.fullmatch(url) if scheme is None else None
    if scp is not None:
        if scp[1].startswith("-"):
            raise _refused(shown, "has no valid host", "give an address such as git@host:path")
        return
    if not allow_local:
        raise _refused(
            shown, "is a place on this machine", "allow it with --allow-local-repos, or give a remote address"
        )


def host_of(url: str) -> str:
    """Scheme-free ``host:port`` in lower case as the address gives it, empty for a place on this machine."""
    scheme = _SCHEME.match(url)
    if scheme is not None:
        return "" if scheme[1].lower() == "file" else url[scheme.end() :].split("/", 1)[0].rpartition("@")[2].lower()
    scp = _SCP.fullmatch(url)
    return scp[1].lower() if scp is not None else ""


def _refused(url: str, what: str, fix: str) -> SourceError:
    return SourceError(Problem.REFUSED, f"repository {url} {what}", subject=url, field="spec.source.repoURL", fix=fix)


_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
_PLAIN_USER_HOST = re.compile(r"[^/:@]+@[^/:]+:.*")


def normalize_url(url: str) -> str:
    """The form under which two addresses are the same repository, empty if it is none (Argo CD NormalizeGitURL)."""
    text = url.strip().lower().removesuffix(".git")
    if _SCHEME.match(text) is None and _PLAIN_USER_HOST.fullmatch(text):
        text = "ssh://" + text.replace(":", "/", 1)
    if text.startswith(":") or _PERCENT.search(text.split("?", 1)[0]):
        return ""
    if text.startswith("ssh://"):
        return text.removeprefix("ssh://")
    return text
