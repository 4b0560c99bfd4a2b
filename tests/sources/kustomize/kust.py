"""Building a kustomization from a dict of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.sources.kustomize.build import Built, build
from syncline.sources.kustomize.loader import DEFAULT_LIMITS, Limits, Source, TreeFiles
from syncline.sources.tree import MemoryTree

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: b\n"
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      serviceAccountName: robot
      initContainers:
      - name: init
        image: busybox
      containers:
      - name: main
        image: reg.example.com:5000/nginx:1.25
        envFrom:
        - configMapRef: {name: c}
"""


def built(
    files: Mapping[str, str | bytes], path: str = "", *, limits: Limits = DEFAULT_LIMITS, **options: Any
) -> Built:
    content = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    return build(Source(TreeFiles(MemoryTree(content)), limits=limits), path, **options)


def one(kustomization: str, resource: str = CONFIG_MAP, **files: str) -> dict[str, Any]:
    """The first object of a kustomization over one resource file."""
    all_files = {"kustomization.yaml": f"resources: [r.yaml]\n{kustomization}", "r.yaml": resource, **files}
    return built(all_files).objects[0]
