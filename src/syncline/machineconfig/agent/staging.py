"""The system of the next boot, by rpm-ostree: image, kernel arguments, kernel and packages. Nothing is in force before.

Source: Machine Config Operator ``applyLayeredOSChanges`` and what it calls, in ``pkg/daemon/update.go``.
"""

from __future__ import annotations

import json
from typing import Any

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.changes import kernel_type
from syncline.machineconfig.agent.host import Host
from syncline.machineconfig.agent.kernel import change_arguments
from syncline.machineconfig.agent.steps import StageSystem
from syncline.machineconfig.agent.writing import CORE_OS, UpdateError
from syncline.machineconfig.extensions import change_packages

__all__ = ["drop_staged", "run_checked", "stage_system"]

KERNEL = "kernel"
OTHER_KERNELS = ("kernel-rt-", "kernel-64k-")


def run_checked(host: Host, *command: str) -> None:
    """Raises UpdateError."""
    done = host.run(command)
    if not done.ok:
        line = " ".join(command)
        raise UpdateError(f"error running {line}: {done.output}: exit status {done.code}")


def drop_staged(host: Host) -> None:
    if host.os not in CORE_OS:
        return
    try:
        run_checked(host, "rpm-ostree", "cleanup", "-p")
    except UpdateError as error:
        raise UpdateError(f"failed to remove pending deployment: {error}") from error


def stage_system(host: Host, action: StageSystem, booted_image: str) -> None:
    """Systems without rpm-ostree are left alone, and so is an image that runs already, whatever the old config says. An
    image of image mode holds kernel and extensions. Raises UpdateError."""
    if host.os not in CORE_OS:
        return
    old, new, changes = action.old, action.new, action.changes
    image = str(dig(new, "spec", "osImageURL") or "")
    another = changes.os_update and image and image != booted_image
    own_image = changes.image_mode and not changes.from_image_mode
    if (another or changes.kernel_type) and not own_image:
        _give_kernel_back(host)
    if another:
        run_checked(host, "rpm-ostree", "rebase", "--experimental", f"ostree-unverified-registry:{image}")
    if changes.kargs:
        before, after = (list(dig(one, "spec", "kernelArguments") or ()) for one in (old, new))
        arguments = change_arguments([*before, *after] if action.again else before, after)
        if arguments:
            run_checked(host, "rpm-ostree", "kargs", *arguments)
    if own_image:
        return
    if (another or changes.kernel_type) and kernel_type(new) != "default":
        run_checked(host, "rpm-ostree", "override", "remove", *_kernel_packages(kernel_type(new)))
    if changes.extensions or (changes.os_update and dig(new, "spec", "extensions")):
        packages = change_packages(_installed(host), dig(new, "spec", "extensions"))
        if packages:
            run_checked(host, "rpm-ostree", "update", *packages)


def _give_kernel_back(host: Host) -> None:
    """Another kernel that was put in place of the image's is undone first: packages of a kernel belong to one image.
    What somebody has done by hand, one without the other, is left alone."""
    booted = _booted(host)
    removed = [str(one) for one in booted.get("requested-base-removals") or () if _is_kernel(str(one))]
    layered = [str(one) for one in booted.get("requested-packages") or () if str(one).startswith(OTHER_KERNELS)]
    if removed and layered:
        gone = [word for package in layered for word in ("--uninstall", package)]
        run_checked(host, "rpm-ostree", "override", "reset", *removed, *gone)


def _is_kernel(package: str) -> bool:
    return package == KERNEL or package.startswith(f"{KERNEL}-")


def _booted(host: Host) -> Obj:
    done = host.run(["rpm-ostree", "status", "--json"])
    try:
        status: Any = json.loads(done.output) if done.ok else {}
    except ValueError:
        return {}
    deployments = status.get("deployments") or () if isinstance(status, dict) else ()
    return next((one for one in deployments if one.get("booted")), {})


def _kernel_packages(kind: str) -> list[str]:
    parts = ("core", "modules", "modules-core", "modules-extra")
    gone = [KERNEL, *(f"{KERNEL}-{part}" for part in parts)]
    base = "kernel-rt" if kind == "realtime" else "kernel-64k"
    return [*gone, *(word for part in parts for word in ("--install", f"{base}-{part}"))]


def _installed(host: Host) -> list[str]:
    done = host.run(["rpm", "-qa", "--queryformat", "%{NAME}\\n"])
    return done.output.split() if done.ok else []
