"""Fixes for refused renders, by upstream's message; the first pattern that matches decides."""

from __future__ import annotations

import re

_WAIVE = "spec.irreconcilableValidationOverrides.storage of MachineConfiguration cluster"
_FIXES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"FIPS", "leave spec.fips as it was installed; only new machines can differ"),
        (r"ignition kargs section", "write them to spec.kernelArguments of the MachineConfig"),
        (r"ignition (disks|filesystems|raid) section", f"leave the section as it was installed, or waive it: {_WAIVE}"),
        (r"ignition directories section", "take storage.directories out; files make their directories"),
        (r"ignition links section", "take storage.links out; make the link with a unit"),
        (r"includes append", "give the whole file in contents instead of append"),
        (r"cannot create \S+force", "touch that file on the node instead"),
        (r"passwd", "only ssh keys and the password of user core can change; take the rest out"),
        (r"SSH keys and password hash", "only ssh keys and the password of user core can change; take the rest out"),
        (r"kernel-devel", "take the extension kernel-devel or the kernel type out"),
        (r"no MachineConfigs found matching", "correct spec.machineConfigSelector of the pool"),
        (r"too large", "make the MachineConfigs smaller; let the nodes fetch large files"),
        (r"cannot find label", "give it the label machineconfiguration.openshift.io/role"),
        (r"could not find any MachineConfigPool", "correct spec.machineConfigPoolSelector, or label the pool"),
        (r"runc", "let a ContainerRuntimeConfig set defaultRuntime to crun"),
        (r"not found$", "bring the rendered MachineConfig back; see syncline pool history"),
    )
)


def fix_for(message: str) -> str:
    """Return a fix, or an empty string."""
    return next((text for pattern, text in _FIXES if pattern.search(message)), "")
