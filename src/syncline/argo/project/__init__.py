"""The permissions of an AppProject; see :mod:`syncline.argo.project.permissions` and ``windows``."""

from syncline.argo.project.permissions import (
    permits_app_namespace,
    permits_destination,
    permits_kind,
    permits_resource,
    permits_source,
    sync_permission,
)
from syncline.argo.project.references import Reach
from syncline.argo.project.validation import ProjectError, merge_global, validate_project
from syncline.argo.project.windows import (
    SyncWindow,
    WindowError,
    can_sync,
    matching_windows,
    read_windows,
    window_problem,
)

__all__ = [
    "ProjectError",
    "Reach",
    "SyncWindow",
    "WindowError",
    "can_sync",
    "matching_windows",
    "merge_global",
    "permits_app_namespace",
    "permits_destination",
    "permits_kind",
    "permits_resource",
    "permits_source",
    "read_windows",
    "sync_permission",
    "validate_project",
    "window_problem",
]
