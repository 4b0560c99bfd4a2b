"""The steps of a command: requests, output, waiting.

Commands are generators of steps; a live driver sends requests over HTTPS and sleeps, a virtual one sends them in
process and advances virtual time. So a command makes the same requests in both.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import ResourceInfo, split_api_version

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Output:
    """Text for the standard output or error."""

    text: str
    error: bool = False


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


Step: TypeAlias = Request | Output | Sleep
Steps: TypeAlias = Generator[Step, Any, T]


class CommandError(Exception):
    """Ends the command with this message on the standard error and exit code 1."""


@dataclass(slots=True)
class Session:
    """One run of the tool. ``read`` returns the bytes of a file (``-`` is the standard input); it raises OSError."""

    program: str = "oc"
    namespace: str = "default"
    read: Callable[[str], bytes] = lambda name: _no_files(name)
    environ: Mapping[str, str] = field(default_factory=dict)
    mapper: Mapper | None = None

    def kinds(self) -> Generator[Request, Response, Mapper]:
        """Return the server's resources, requested once."""
        if self.mapper is None:
            self.mapper = Mapper((yield from discover()))
        return self.mapper

    def resource(self, name: str) -> Generator[Request, Response, ResourceInfo]:
        """Return the resource of a name such as ``po``, ``deployment.apps``, ``deployments.v1.apps``."""
        mapper = yield from self.kinds()
        found = mapper.by_name(name) or _versioned(mapper, name)
        if found is None:
            raise CommandError(f'error: the server doesn\'t have a resource type "{name}"')
        return found

    def resources(self, names: str) -> Generator[Request, Response, list[ResourceInfo]]:
        """Return several resources of names with commas."""
        found = []
        for name in names.split(","):
            found.append((yield from self.resource(name)))
        return found

    def of_kind(self, api_version: str, kind: str) -> Generator[Request, Response, ResourceInfo]:
        """Return the resource of a manifest."""
        mapper = yield from self.kinds()
        group, version = split_api_version(api_version)
        for info in mapper.versions():
            if (info.group, info.version, info.kind) == (group, version, kind):
                return info
        raise CommandError(
            f'error: resource mapping not found: no matches for kind "{kind}" in version "{api_version}"\n'
            "ensure CRDs are installed first"
        )


def _no_files(name: str) -> bytes:
    raise FileNotFoundError(2, "No such file or directory", name)


def _versioned(mapper: Mapper, name: str) -> ResourceInfo | None:
    plural, _, rest = name.lower().partition(".")
    version, _, group = rest.partition(".")
    for info in mapper.versions():
        if version == info.version and group == info.group and plural in (info.plural, info.singular):
            return info
    return None


def refusal_text(error: ApiError) -> str:
    """Return an error in kubectl's words."""
    if error.code == 422 and error.details.get("kind"):
        kind, name = error.details["kind"], error.details.get("name", "")
        causes = [
            f"{each['field']}: {each['message']}" if each.get("field") else each["message"] for each in error.causes
        ]
        if len(causes) > 1:
            listed = "".join(f"\n* {cause}" for cause in causes)
            return f'The {kind} "{name}" is invalid: {listed}'
        if causes:
            return f'The {kind} "{name}" is invalid: {causes[0]}'
    if error.reason in ("", "Unknown"):
        return f"Error from server: {error.message}"
    return f"Error from server ({error.reason}): {error.message}"
