"""The rendering tools by their names in upstream's status. Pure."""

from __future__ import annotations

from enum import StrEnum


class SourceType(StrEnum):
    """The tools by their names in ``status.sourceType``."""

    DIRECTORY = "Directory"
    HELM = "Helm"
    KUSTOMIZE = "Kustomize"
    PLUGIN = "Plugin"
