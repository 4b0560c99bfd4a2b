"""What the controllers of the pull model share."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.fleet.hub.works.admission import MAX_BYTES
from syncline.fleet.pull.names import Variant


@dataclass(frozen=True, slots=True)
class PullSettings:
    """``variant``: whose rules apply; None: by namespace (``observe.variant_of``). ``argo_namespace``: where Argo CD's
    objects live on the hub; ``manifest_limit``: encoded bytes of the manifests of a work."""

    variant: Variant | None = None
    argo_namespace: str = "argocd"
    manifest_limit: int = MAX_BYTES
