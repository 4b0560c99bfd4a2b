"""Names of container images as the kubelet parses them: :func:`image_name`.

Used by the simulated kubelet and by previews of a sync. Grammar and errors are those of the kubelet's library
(``github.com/distribution/reference``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_WORD}(?:\.{_WORD})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"({_DOMAIN})/({_PART}(?:/{_PART})*)"
    r"(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):([0-9a-fA-F]{32,}))?"
)
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}
DEFAULT_DOMAIN, OFFICIAL = "docker.io", "library"
MAX_NAME = 255
MAX_IMAGE = 4096
"""The longest name with tag and digest; longer texts are not matched against the pattern."""
INVALID = "invalid reference format"


class ImageNameError(ValueError):
    """An invalid image name; the message is that of the kubelet's library."""


@dataclass(frozen=True, slots=True)
class ImageName:
    """A parsed image name. ``repository`` is complete (``docker.io/library/nginx``); tag and digest may be empty."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        return f"{self.domain}/{self.path}"

    def __str__(self) -> str:
        """Return the name as container runtimes write it."""
        tag = self.tag or ("" if self.digest else "latest")
        return self.repository + (tag and f":{tag}") + (self.digest and f"@{self.digest}")


def image_name(image: str) -> ImageName:
    """Parse the image of a container. Raises ImageNameError."""
    if len(image) > MAX_IMAGE:
        raise ImageNameError(INVALID)
    if re.fullmatch("[a-f0-9]{64}", image):
        raise ImageNameError(f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings")
    domain, rest = _split(image)
    remote = rest.partition(":")[0]
    if remote.lower() != remote:
        raise ImageNameError(f"{INVALID}: repository name ({remote}) must be lowercase")
    found = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if found is None:
        raise ImageNameError(INVALID)
    if len(f"{domain}/{found.group(2)}") > MAX_NAME:
        raise ImageNameError(f"repository name must not be more than {MAX_NAME} characters")
    algorithm, digits = found.group(4), found.group(5)
    if algorithm and algorithm not in _DIGITS:
        raise ImageNameError("unsupported digest algorithm")
    if algorithm and len(digits) != _DIGITS[algorithm]:
        raise ImageNameError("invalid checksum digest length")
    if algorithm and digits != digits.lower():
        raise ImageNameError("invalid checksum digest format")
    return ImageName(domain, found.group(2), found.group(3) or "", f"{algorithm}:{digits}" if algorithm else "")


def _split(image: str) -> tuple[str, str]:
    """Return registry and repository; single-word names are official images."""
    first, slash, rest = image.partition("/")
    foreign = any(letter in first for letter in ".:") or first == "localhost" or first.lower() != first
    if not slash or not foreign:
        first, rest = DEFAULT_DOMAIN, image
    if first == "index.docker.io":
        first = DEFAULT_DOMAIN
    if first == DEFAULT_DOMAIN and "/" not in rest:
        rest = f"{OFFICIAL}/{rest}"
    return first, rest


def image_problem(image: str) -> str:
    """Return the kubelet's message of ``InvalidImageName``; empty for a valid name."""
    try:
        image_name(image)
    except ImageNameError as error:
        return f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {error}'
    return ""
