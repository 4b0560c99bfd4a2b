"""Validate paths inside volumes and containers: relative, without ``..``.

The validators of volumes and containers call it. Source: Kubernetes ``validateLocalDescendingPath`` and related
functions.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.validation.engine.causes import invalid
from syncline.kube.errors import FieldCause


def no_backsteps_causes(value: Any, path: str) -> list[FieldCause]:
    return [invalid(path, value, "must not contain '..'")] if ".." in str(value or "").split("/") else []


def descending_path_causes(value: Any, path: str) -> list[FieldCause]:
    """Require a relative path that stays below its start."""
    absolute = str(value or "").startswith("/")
    causes = [invalid(path, value, "must be a relative path")] if absolute else []
    return causes + no_backsteps_causes(value, path)


def local_path_causes(value: Any, path: str) -> list[FieldCause]:
    """The same for a volume's file; names that start with two dots are reserved for the kubelet."""
    text = str(value or "")
    causes = descending_path_causes(value, path)
    if text.startswith("..") and not text.startswith("../"):
        causes.append(invalid(path, value, "must not start with '..'"))
    return causes
