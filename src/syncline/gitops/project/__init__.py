"""What an AppProject permits. Start at ``gitops/project/permissions.py``."""

from syncline.gitops.project.permissions import (
    permits_app_namespace,
    permits_destination,
    permits_kind,
    permits_source,
    sync_permission,
)

__all__ = ["permits_app_namespace", "permits_destination", "permits_kind", "permits_source", "sync_permission"]
