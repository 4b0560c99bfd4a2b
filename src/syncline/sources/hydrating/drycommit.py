"""The metadata, message and README of a hydrated commit, made from its dry commit: :class:`DryCommit`.

Input is the text of a commit as printed by git. The two default templates of Argo CD are functions here, so that
hydration needs no template engine unless the installation has its own templates. Pure. Names and order of fields: Argo
CD ``util/hydrator`` and ``docs/user-guide/source-hydrator.md``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

TRAILER = "Argocd-reference-commit-"
MAX_MESSAGE = 64 * 1024
"""Characters of a message that are examined."""
SHORT = 7
_SHA = re.compile(r"[0-9a-f]{5,40}")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class DryCommit:
    """One commit of a dry source. ``trailers``: the lines that git finds at the end of the message."""

    repo_url: str
    sha: str
    author: str = ""
    date: str = ""
    message: str = ""
    trailers: str = ""

    def with_trailers(self, trailers: str) -> DryCommit:
        return replace(self, trailers=trailers)

    @property
    def subject(self) -> str:
        return self.message.partition("\n\n")[0]

    @property
    def body(self) -> str:
        """The message without the trailers that became a reference."""
        lines = self.message.partition("\n\n")[2].splitlines()
        return "".join(f"{line}\n" for line in lines if _reference_field(line) is None)

    @property
    def references(self) -> list[dict[str, Any]]:
        """The code commit that the dry commit belongs to; at most one, by the last value of each trailer."""
        found = dict(filter(None, (_reference_field(line) for line in self.trailers.splitlines())))
        order = ("author", "date", "subject", "body", "sha", "repoUrl")
        return [{"commit": {name: found[name] for name in order if found.get(name)}}] if found else []


def read_commit(repo_url: str, sha: str, shown: str) -> DryCommit:
    """Parse the output of ``git show -s --format='%an <%ae>%n%at%n%B'``."""
    author, _, rest = shown[: MAX_MESSAGE + 1024].partition("\n")
    stamp, _, message = rest.partition("\n")
    seconds = int(stamp) if re.fullmatch(r"\d{1,11}", stamp) else 0
    date = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return DryCommit(repo_url, sha, author, date, message[:MAX_MESSAGE].strip())


def _reference_field(line: str) -> tuple[str, str] | None:
    """Return field and value of a valid ``Argocd-reference-commit-…`` trailer; None for other lines."""
    key, separator, value = line.partition(": ")
    if not separator or not key.startswith(TRAILER):
        return None
    reader = _READERS.get(key.removeprefix(TRAILER))
    if reader is None:
        return None
    field, read = reader
    found = read(value)
    return None if found is None else (field, found)


def _address(value: str) -> str | None:
    """Format ``"Name" <user@host>`` as Go does (RFC 5322); None if it is invalid."""
    name, address = parseaddr(value)
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", address):
        return None
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{address}>' if name else f"<{address}>"


def _date(value: str) -> str | None:
    if not _RFC3339.fullmatch(value):
        return None
    try:
        datetime.fromisoformat(value.upper().replace("Z", "+00:00"))
    except ValueError:
        return None
    return re.sub(r"\.\d+", "", value)


def _body(value: str) -> str | None:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def _url(value: str) -> str | None:
    try:
        urlsplit(value)
    except ValueError:
        return None
    return value


_READERS: Mapping[str, tuple[str, Callable[[str], str | None]]] = {
    "author": ("author", _address),
    "date": ("date", _date),
    "subject": ("subject", lambda value: value),
    "body": ("body", _body),
    "sha": ("sha", lambda value: value if _SHA.fullmatch(value) else None),
    "repourl": ("repoUrl", _url),
}


# -- files ------------------------------------------------------------------------------------------------------------


def commit_metadata(commit: DryCommit) -> dict[str, Any]:
    """Return ``hydrator.metadata`` for the root of a branch, also the data of message templates."""
    fields = {
        "repoURL": commit.repo_url,
        "drySha": commit.sha,
        "author": commit.author,
        "date": commit.date,
        "subject": commit.subject,
        "body": commit.body,
        "references": commit.references,
    }
    return {name: value for name, value in fields.items() if value}


def path_metadata(commit: DryCommit, commands: Sequence[str]) -> dict[str, Any]:
    """Return ``hydrator.metadata`` for one Application's folder."""
    fields: dict[str, Any] = {"repoURL": commit.repo_url, "drySha": commit.sha, "commands": list(commands)}
    return {name: value for name, value in fields.items() if value}


def metadata_text(fields: Mapping[str, Any]) -> bytes:
    return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def readme_data(commit: DryCommit, commands: Sequence[str]) -> dict[str, Any]:
    """Return the data of README templates, with Go's names. Argo CD provides only address, commit and commands."""
    named = {"RepoURL": commit.repo_url, "DrySHA": commit.sha, "Commands": list(commands), "References": []}
    return named | dict.fromkeys(("Author", "Date", "Subject", "Body"), "")


def default_readme(commit: DryCommit, commands: Sequence[str]) -> str:
    listed = "".join(f"{command}\n" for command in commands)
    return (
        "# Manifest Hydration\n\nTo hydrate the manifests in this repository, run the following commands:\n\n"
        f"```shell\ngit clone {commit.repo_url}\n# cd into the cloned directory\ngit checkout {commit.sha}\n"
        f"{listed}```\n"
    )


# -- messages ---------------------------------------------------------------------------------------------------------


def default_message(commit: DryCommit) -> str:
    body = f"\n\n{commit.body}" if commit.body else ""
    authors = [str(one["commit"].get("author") or "") for one in commit.references] + [commit.author]
    signed = "".join(f"\nCo-authored-by: {author}" for author in authors if author)
    return f"{commit.sha[:SHORT]}: {commit.subject}{body}\n{signed}\n"


def cleaned_message(text: str) -> str:
    """Clean a message as git does: no trailing blanks, single empty lines, one line feed at the end."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\0", "").split("\n")]
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip("\n") + "\n" if any(kept) else ""
