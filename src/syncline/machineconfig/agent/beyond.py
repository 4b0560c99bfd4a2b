"""What a machine without rpm-ostree is asked for and cannot be given by its agent; pure.

Asked before an update and before a machine joins. Upstream lets it pass and calls the node Done.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.changes import kernel_type
from syncline.machineconfig.agent.hosts import FixedSystem
from syncline.machineconfig.agent.kernel import missing_arguments

__all__ = ["beyond_reach"]


def beyond_reach(system: FixedSystem | None, new: Obj) -> str:
    """The field, what is missing, and what to do; empty: nothing is. An image alone passes, so that such machines can
    be in a pool with others; so does what people have done by hand."""
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
