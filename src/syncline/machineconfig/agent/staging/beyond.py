"""Finds settings that the agent cannot apply to this machine, most of them without rpm-ostree; pure.

:func:`beyond_reach` is checked before an update and before a machine joins. Upstream ignores them and reports Done.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, labels_of
from syncline.machineconfig.agent.hosts import FixedSystem
from syncline.machineconfig.agent.planning.changes import kernel_type
from syncline.machineconfig.agent.planning.impossible import impossible
from syncline.machineconfig.agent.staging.kernel import missing_arguments

ARCHITECTURE = "kubernetes.io/arch"
BIG_PAGES, ARM = "64k-pages", "arm64"


def beyond_reach(node: Obj, system: FixedSystem | None, new: Obj) -> str:
    """Return the field, what is missing and a fix; empty if there is none. An image alone is accepted, so that such
    machines can share a pool with others, and so are settings that a user has applied by hand."""
    wrong = impossible(new)
    if wrong:
        return wrong
    architecture = labels_of(node).get(ARCHITECTURE) or dig(node, "status", "nodeInfo", "architecture") or ARM
    if kernel_type(new) == BIG_PAGES and architecture != ARM:
        message = "64k-pages is only supported for aarch64 architecture"
        return f"spec.kernelType: {message}, and this node is {architecture}; leave it out, or use another pool"
    if system is None:
        return ""
    why = f"{system.name} is no image of CoreOS, so that no rpm-ostree can do it"
    missing = missing_arguments(dig(new, "spec", "kernelArguments"), system.command_line)
    if missing:
        mend = "add them to the boot loader's configuration (GRUB_CMDLINE_LINUX) and reboot, or use another pool"
        return f"spec.kernelArguments: {missing}; {why}; {mend}"
    if kernel_type(new) != "default":
        return f'spec.kernelType: found "{kernel_type(new)}"; {why}; leave it out, or use another pool'
    extensions = dig(new, "spec", "extensions")
    if extensions:
        return f"spec.extensions: found [{' '.join(extensions)}]; {why}; install packages by hand, or use another pool"
    return ""
