"""The scene ``cluster-group`` in virtual time."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from bench.groupscene import CURES, installation
from tests.recorded import SCENES

from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.installing.playing import Playing

__all__ = ["CURES", "PATTERNS", "SCENE", "Scene"]

SCENE = SCENES / "cluster-group"
PATTERNS = "/apis/gitops.hybrid-cloud-patterns.io/v1alpha1/namespaces/openshift-operators/patterns"


class Scene(Playing):
    """A cluster on which the scene is a Pattern; ``cure`` names the layer."""

    def __init__(self, where: Path, cure: str) -> None:
        super().__init__(installation(SCENE, cure, storage_after=timedelta(minutes=2)), where)

    def get(self, path: str) -> Obj | None:
        try:
            found: Obj = self.world.send("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found

    def parent(self) -> Obj:
        return self.get("/apis/argoproj.io/v1alpha1/namespaces/vp-gitops/applications/shop-hub") or {}

    def chosen(self) -> str:
        """The class that the second operator chose when it started; empty: it has not."""
        found = self.get("/api/v1/namespaces/openshift-cnv/configmaps/boot-images-storage")
        return str(dig(found, "data", "storageClass") or "")
