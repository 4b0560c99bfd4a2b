"""``node list -o wide`` adds what ``kubectl get nodes -o wide`` adds."""

from __future__ import annotations

from syncline.base.clock import VirtualClock
from syncline.cli.views.pool import node_table
from syncline.kube.objects import Obj

NODE: Obj = {
    "metadata": {"name": "w", "creationTimestamp": "1970-01-01T00:00:00Z"},
    "status": {
        "addresses": [{"type": "Hostname", "address": "w"}, {"type": "InternalIP", "address": "10.0.0.7"}],
        "nodeInfo": {
            "kubeletVersion": "v1.36.2",
            "osImage": "Linux 1",
            "kernelVersion": "6.1",
            "containerRuntimeVersion": "cri-o://1.36",
        },
    },
}


def test_a_wide_list_of_nodes_shows_their_machines() -> None:
    now = VirtualClock().now()
    narrow, wide = (node_table([NODE], [], now, wide=wide).splitlines() for wide in (False, True))
    assert wide[0].split()[-5:] == ["VERSION", "INTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert wide[1].split()[-6:] == ["v1.36.2", "10.0.0.7", "Linux", "1", "6.1", "cri-o://1.36"]
    assert "VERSION" not in narrow[0] and wide[1].startswith(narrow[1])
