"""An add-on of one's own: each cluster gets a ConfigMap that greets it. Run it beside a hub:

python greeting.py --kubeconfig HUB
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from syncline.hosts.addon import AddOn, Cluster, main


def manifests(cluster: Cluster) -> Iterable[dict[str, Any]]:
    """What one cluster gets; called again when its labels, claims, version or configuration change."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}}
    text = cluster.variables.get("GREETING", "Hello")
    yield {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "greeting", "namespace": cluster.namespace},
        "data": {"text": f"{text}, {cluster.name} in {cluster.labels.get('region', 'no region')}"},
    }


ADDON = AddOn("greeting", manifests, description="Greets clusters", placement="default/everywhere")

if __name__ == "__main__":
    main(ADDON)
