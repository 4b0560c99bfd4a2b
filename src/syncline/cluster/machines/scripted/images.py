"""Data about images for simulated machines, without a registry: built-in (``images.json``) and users' own.

For an image it has whether it runs until it is stopped if its container has no command, and which tags exist. Users add
entries in the ConfigMap ``syncline-images`` of ``kube-system``, in the same format, which take precedence. Containers
of unknown images follow their pods' annotations. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from syncline.base.remember import remember
from syncline.kube.objects import Obj, name_of, namespace_of
from syncline.kube.text.glob import glob_matches
from syncline.kube.text.imagenames import ImageName, ImageNameError, image_name
from syncline.kube.yaml.loading import load

CONFIG_MAP = ("kube-system", "syncline-images")
MAX_BYTES, MAX_NAMES, MAX_PATTERN = 64 * 1024, 2000, 200
OFFICIAL = "docker.io/library/"
_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9})*)")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_FORM = (
    "give images: [{names: [NAME], runs: true, exitCode: 0, entrypoint: [PATH], programs: {PATH: NAME}}], "
    "tags: [{repository, below, words}], unpullable: [GLOB]"
)


@dataclass(frozen=True, slots=True)
class Default:
    """Behaviour of an image without a command: ``runs`` until it is stopped, or ends with ``exit_code``. ``ends_with``:
    first arguments with which it ends anyway. ``entrypoint`` and ``cmd`` are the image's; ``programs``: its programs'
    paths, with their names on a machine."""

    runs: bool
    exit_code: int = 0
    ends_with: frozenset[str] = frozenset()
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    programs: tuple[tuple[str, str], ...] = ()

    def stays(self, container: Obj) -> bool | None:
        """Return whether it runs until it is stopped, as an interactive shell does. None: unknown, since its arguments
        are the command."""
        arguments = container.get("args") or ()
        if self.runs:
            return not (arguments and str(arguments[0]) in self.ends_with)
        return None if arguments else bool(container.get("stdin") or container.get("tty"))


@dataclass(frozen=True, slots=True)
class _Tags:
    """A repository's tags: versions ``below`` one, and ``words``. A plain number always exists."""

    below: tuple[int, ...]
    words: frozenset[str]

    def has(self, tag: str) -> bool:
        first = re.split(r"[-_]", tag)[0]
        numbers = _NUMBERS.match(tag)
        if numbers is not None:
            version = tuple(int(part) for part in numbers.group(1).split("."))
            return len(version) == 1 or version < self.below
        return first in self.words or any(first.startswith(word) for word in self.words)


@dataclass(frozen=True, slots=True)
class ImageCache:
    """``problem``: why users' data is ignored."""

    defaults: Mapping[str, Default]
    tags: Mapping[str, _Tags]
    unpullable: tuple[str, ...]
    problem: str = ""

    def default(self, image: str) -> Default | None:
        """Return the entry of the repository, or of its last part, for any mirror."""
        name = _name(image)
        if name is None:
            return None
        whole, last = name.repository.removeprefix(OFFICIAL), name.path.rpartition("/")[2]
        return self.defaults.get(name.repository) or self.defaults.get(whole) or self.defaults.get(last)

    def pull_error(self, image: str) -> str:
        """Return the kubelet's error for an unavailable image, or ""."""
        name = _name(image)
        if name is None or name.digest:
            return ""
        tag = name.tag or "latest"
        tags = self.tags.get(name.repository)
        missing = tags is not None and not tags.has(tag)
        if not missing and not _fits_any(f"{name.repository}:{tag}", self.unpullable):
            return ""
        whole = f"{name.repository}:{tag}"
        return (
            f'rpc error: code = NotFound desc = failed to pull and unpack image "{whole}": '
            f'failed to resolve reference "{whole}": {whole}: not found'
        )

    def with_own(self, found: Any) -> ImageCache:
        """Put users' data first. Raises ValueError, TypeError, KeyError or AttributeError for malformed data."""
        defaults = {str(name): _default(each) for each in found.get("images") or () for name in each["names"]}
        tags = {
            str(each["repository"]): _Tags(
                tuple(int(part) for part in str(each["below"]).split(".")), frozenset(map(str, each.get("words", ())))
            )
            for each in found.get("tags") or ()
        }
        patterns = [str(each) for each in found.get("unpullable") or ()]
        if len(defaults) + len(tags) + len(patterns) > MAX_NAMES or any(len(each) > MAX_PATTERN for each in patterns):
            raise ValueError(f"more than {MAX_NAMES} entries, or a pattern of more than {MAX_PATTERN} characters")
        kept = {name: each for name, each in self.tags.items() if name not in tags}
        return ImageCache({**self.defaults, **defaults}, {**kept, **tags}, (*patterns, *self.unpullable))


@remember(1024)
def _fits_any(text: str, patterns: tuple[str, ...]) -> bool:
    return any(glob_matches(pattern, text) for pattern in patterns)


def _default(found: Any) -> Default:
    programs = tuple((str(path), str(name)) for path, name in sorted((found.get("programs") or {}).items()))
    for path, name in programs:
        if not path.startswith("/") or ".." in path.split("/") or not _PROGRAM.fullmatch(name):
            raise ValueError(f"programs: {path}: {name} is to be an absolute path and the name of a program")
    return Default(
        bool(found["runs"]),
        int(found.get("exitCode", 0)),
        frozenset(map(str, found.get("endsWith", ()))),
        tuple(map(str, found.get("entrypoint", ()))),
        tuple(map(str, found.get("cmd", ()))),
        programs,
    )


def known_images(objects: Iterable[Obj]) -> ImageCache:
    """Return the built-in images, and those of the ConfigMap if it is among ``objects``."""
    for each in objects:
        if each.get("kind") == "ConfigMap" and (namespace_of(each), name_of(each)) == CONFIG_MAP:
            return _with("\n---\n".join(str(value) for _, value in sorted((each.get("data") or {}).items())))
    return _ours()


@cache
def _ours() -> ImageCache:
    text = files("syncline.cluster.machines.scripted").joinpath("images.json").read_text(encoding="utf-8")
    return ImageCache({}, {}, ()).with_own(json.loads(text))


@lru_cache(maxsize=8)
def _with(text: str) -> ImageCache:
    ours = _ours()
    try:
        if len(text) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} characters")
        book = ours
        for part in text.split("\n---\n"):
            book = book.with_own(load(part) or {})
        return book
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = f"ConfigMap {'/'.join(CONFIG_MAP)} is left out: {type(error).__name__}: {error}; {_FORM}"
        return ImageCache(ours.defaults, ours.tags, ours.unpullable, why)


@lru_cache(maxsize=1024)
def _name(image: str) -> ImageName | None:
    try:
        return image_name(image)
    except ImageNameError:
        return None
