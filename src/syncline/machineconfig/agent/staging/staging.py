"""Stages image, kernel arguments, kernel and packages of the next boot by rpm-ostree. Nothing changes before it.

The commands follow from both configs and from what is booted, so that a machine that lost a part gets it again. Source:
Machine Config Operator ``applyLayeredOSChanges`` and what it calls, in ``pkg/daemon/update.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.files.writing import CORE_OS, UpdateError, run_checked
from syncline.machineconfig.agent.host import Host
from syncline.machineconfig.agent.planning.changes import kernel_type
from syncline.machineconfig.agent.staging.deployments import KERNEL, Deployment, Deployments, has_deployed
from syncline.machineconfig.agent.staging.kernel import absent_arguments, change_arguments
from syncline.machineconfig.agent.steps import StageSystem
from syncline.machineconfig.configs.extensions import change_packages, wanted_packages

Command: TypeAlias = tuple[str, ...]
_REAL_TIME = ("kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra")
_BIG_PAGES = ("kernel-64k-core", "kernel-64k-modules", "kernel-64k-modules-core", "kernel-64k-modules-extra")
_OWN = (KERNEL, *(f"{KERNEL}-{part}" for part in ("core", "modules", "modules-core", "modules-extra")))


def drop_staged(host: Host, sparing: Obj | None = None) -> None:
    """Remove the staged system, unless it is that of ``sparing``, by :func:`is_staged`."""
    if host.os not in CORE_OS or (sparing is not None and is_staged(sparing, has_deployed(host))):
        return
    try:
        run_checked(host, "rpm-ostree", "cleanup", "-p")
    except UpdateError as error:
        raise UpdateError(f"failed to remove pending deployment: {error}") from error


def stage_system(host: Host, action: StageSystem, booted_image: str, running: str | None = None) -> None:
    """Stage a system; do nothing without rpm-ostree. Raises UpdateError, also if a requested package is not staged,
    since the next boot would lack it."""
    if host.os not in CORE_OS:
        return
    there = has_deployed(host) or Deployments(Deployment())
    if action.arrived and is_staged(action.new, there):
        return
    commands = staging_commands(action, there.booted, booted_image, running)
    for command in commands:
        run_checked(host, *command)
    if any(command[:2] == UPDATE for command in commands):
        missing = not_staged(action.new, has_deployed(host))
        if missing:
            raise UpdateError(missing)


UPDATE = ("rpm-ostree", "update")


def staging_commands(
    action: StageSystem, booted: Deployment, booted_image: str, running: str | None = None
) -> list[Command]:
    """Return the commands in order; pure. ``running``: the kernel's command line, or None. An image that runs already
    is not staged, whatever the old config says. An image of image mode contains kernel and extensions."""
    old, new, changes = action.old, action.new, action.changes
    image = str(dig(new, "spec", "osImageURL") or "")
    another = bool(changes.os_update and image and image != booted_image)
    own_image = changes.image_mode and not changes.from_image_mode
    # A forced or repeated update applies the complete config, not the difference to the last one.
    lost = (changes.os_update or action.again) and booted.kernel_type != kernel_type(new)
    kernel = not own_image and (another or changes.kernel_type or lost)
    found: list[Command] = []
    if kernel and booted.removed_kernels and booted.added_kernels:
        # Kernel packages belong to one image, so the image's own kernel is restored first.
        gone = [word for package in booted.added_kernels for word in ("--uninstall", package)]
        found.append(("rpm-ostree", "override", "reset", *booted.removed_kernels, *gone))
    if another:
        found.append(("rpm-ostree", "rebase", "--experimental", f"ostree-unverified-registry:{image}"))
    if changes.kargs:
        before, after = (list(dig(one, "spec", "kernelArguments") or ()) for one in (old, new))
        arguments = change_arguments([*before, *after] if action.again else before, after)
        found += [("rpm-ostree", "kargs", *arguments)] if arguments else []
    elif changes.os_update or action.again:
        absent = absent_arguments(dig(new, "spec", "kernelArguments"), running) if running is not None else []
        found += [("rpm-ostree", "kargs", *change_arguments((), absent))] if absent else []
    if own_image:
        return found
    if kernel and kernel_type(new) != "default":
        found.append(("rpm-ostree", "override", "remove", *_swap(kernel_type(new))))
    extensions = dig(new, "spec", "extensions")
    if changes.extensions or ((changes.os_update or action.again) and extensions):
        packages = change_packages(booted.packages, extensions)
        found += [(*UPDATE, *packages)] if packages else []
    return found


def not_staged(config: Obj, there: Deployments | None) -> str:
    """Return why the next boot would lack extension packages, in upstream's words; empty if it would not, or if the
    machine cannot report it."""
    wanted = wanted_packages(dig(config, "spec", "extensions"))
    if there is None or not wanted:
        return ""
    if there.staged is None:
        return "no staged deployment found after applying extensions"
    missing = [package for package in wanted if package not in there.staged.packages]
    message = "the following extension packages are missing from the staged deployment"
    return f"{message}: [{' '.join(missing)}]" if missing else ""


def is_staged(config: Obj, there: Deployments | None, image: str = "") -> bool:
    """Return whether image, kernel and packages of ``config`` are staged; kernel arguments cannot be read. ``image``:
    that of image mode, which contains kernel and packages."""
    if there is None or there.staged is None:
        return False
    if image:
        return there.staged.image == image
    own = str(dig(config, "spec", "osImageURL") or "") == there.staged.image
    return own and there.staged.kernel_type == kernel_type(config) and not not_staged(config, there)


def born_with(config: Obj) -> list[Command]:
    """Return the commands that add kernel and packages to a machine that has only the image of ``config``."""
    kind, packages = kernel_type(config), change_packages((), dig(config, "spec", "extensions"))
    swap = [("rpm-ostree", "override", "remove", *_swap(kind))] if kind != "default" else []
    return [*swap, (*UPDATE, *packages)]


def _swap(kind: str) -> Sequence[str]:
    packages = _REAL_TIME if kind == "realtime" else _BIG_PAGES
    return [*_OWN, *(word for package in packages for word in ("--install", package))]
