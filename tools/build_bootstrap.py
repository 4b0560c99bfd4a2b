"""Makes the default policy objects that the embedded cluster starts with.

Run by a developer when the Kubernetes version moves. In comes a kubeconfig of a freshly started upstream control plane
of that version; out goes ``src/syncline/cluster/data/bootstrap.json.xz``: the default roles and bindings, priority
classes, flow schemas and priority levels, without what each cluster fills in itself. Equal input gives equal output.

    python tools/build_bootstrap.py --kubeconfig FILE
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "src" / "syncline" / "cluster" / "data" / "bootstrap.json.xz"
KINDS = (
    "clusterroles",
    "clusterrolebindings",
    "roles",
    "rolebindings",
    "priorityclasses",
    "flowschemas",
    "prioritylevelconfigurations",
)
OWN_METADATA = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
"""Filled in by each cluster."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    kubeconfig = parser.parse_args().kubeconfig
    objects = [plain(obj) for kind in KINDS for obj in listed(kubeconfig, kind)]
    text = json.dumps(objects, sort_keys=True, separators=(",", ":"))
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def listed(kubeconfig: str, kind: str) -> list[dict[str, Any]]:
    command = ["kubectl", "--kubeconfig", kubeconfig, "get", kind, "-A", "-o", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    labelled = "rbac.authorization.k8s.io/v1"
    return [item for item in items if item["apiVersion"] != labelled or is_default(item)]


def is_default(item: dict[str, Any]) -> bool:
    return item["metadata"].get("labels", {}).get("kubernetes.io/bootstrapping") == "rbac-defaults"


def plain(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in OWN_METADATA}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


if __name__ == "__main__":
    main()
