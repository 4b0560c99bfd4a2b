"""What all hosts have in common: addresses to clone from, and labels of pull requests. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from syncline.sources.errors import Problem
from syncline.sources.providers.model import ProviderError

DEFAULT_PROTOCOL = "ssh"


def clone_url(protocol: str, urls: Mapping[str, str | None], host: str) -> str:
    """Return the address for ``cloneProtocol``, ssh if it is empty. Raises :class:`SourceError` for an unknown one."""
    wanted = protocol or DEFAULT_PROTOCOL
    if wanted not in urls:
        message = f"unknown clone protocol for {host} {protocol}"
        raise ProviderError(Problem.INVALID, message, field="cloneProtocol", fix=f"one of {', '.join(sorted(urls))}")
    return urls[wanted] or ""


def labelled(labels: Collection[str], wanted: Collection[str]) -> bool:
    """Return True if every wanted label is there (behaviour 32)."""
    return all(one in labels for one in wanted)
