"""Reads from rpm-ostree which system a machine has booted and which is staged for the next boot.

Used before and after staging and after each boot. Source: ``rpm-ostree status --json``, and the library by which the
Machine Config Operator reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from syncline.kube.objects import Obj
from syncline.machineconfig.agent.host import Host
from syncline.machineconfig.configs.extensions import unsupported_packages

KERNEL = "kernel"
OTHER_KERNELS = {"kernel-rt-": "realtime", "kernel-64k-": "64k-pages"}
"""``kernelType`` by prefix of its packages."""
_REFERENCE = re.compile(
    r"ostree-(?:unverified-registry:|remote-registry:[^:]+:"
    r"|(?:unverified-image|image-signed|remote-image:[^:]+):(?:docker://|registry:))"
)
"""Prefix of an image in an ostree container reference."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment. ``packages``: layered on ``image``; ``removals``: packages removed from the image; ``foreign``:
    packages that a user installed from files. ``version``: of the system."""

    image: str = ""
    packages: tuple[str, ...] = ()
    removals: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    version: str = ""

    @property
    def unsupported(self) -> int:
        """Return how many added or removed packages belong to no extension."""
        return len(unsupported_packages((*self.packages, *self.foreign, *self.removals)))

    @property
    def removed_kernels(self) -> tuple[str, ...]:
        return tuple(one for one in self.removals if one == KERNEL or one.startswith(f"{KERNEL}-"))

    @property
    def added_kernels(self) -> tuple[str, ...]:
        return tuple(one for one in self.packages if one.startswith(tuple(OTHER_KERNELS)))

    @property
    def kernel_type(self) -> str:
        """The kernel type as in a MachineConfig. It counts only if another kernel is added and the image's own is
        removed."""
        if not (self.removed_kernels and self.added_kernels):
            return "default"
        return next(kind for begin, kind in OTHER_KERNELS.items() if self.added_kernels[0].startswith(begin))


@dataclass(frozen=True, slots=True)
class Deployments:
    """The deployments of a machine. ``staged``: None if nothing is staged for the next boot."""

    booted: Deployment
    staged: Deployment | None = None


def has_deployed(host: Host) -> Deployments | None:
    """Return the deployments; None on a machine that does not run or has no rpm-ostree."""
    done = host.run(["rpm-ostree", "status", "--json"])
    return deployments_of(done.output) if done.ok else None


def deployments_of(status: str) -> Deployments | None:
    """Return the deployments in a status; None if it is invalid or has no booted deployment."""
    try:
        found: Any = json.loads(status)
    except (ValueError, RecursionError):
        return None
    listed = found.get("deployments") if isinstance(found, dict) else None
    each = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    booted = next((one for one in each if one.get("booted")), None)
    staged = next((one for one in each if one.get("staged")), None)
    return None if booted is None else Deployments(_read(booted), None if staged is None else _read(staged))


def _read(one: Obj) -> Deployment:
    image = _REFERENCE.sub("", str(one.get("container-image-reference") or ""), count=1)
    origin = _words(one.get("custom-origin"))
    return Deployment(
        image=image or (origin[0].removeprefix("pivot://") if origin else ""),
        packages=_words(one.get("requested-packages")),
        removals=_words(one.get("requested-base-removals")),
        foreign=(
            *_words(one.get("requested-local-packages")),
            *_words(one.get("requested-local-fileoverride-packages")),
            *_words(one.get("requested-base-local-replacements")),
        ),
        version=str(one.get("version") or ""),
    )


def _words(found: Any) -> tuple[str, ...]:
    return tuple(map(str, found)) if isinstance(found, Sequence) and not isinstance(found, str) else ()
