"""What the controllers of the pull model share."""

from __future__ import annotations

from dataclasses import dataclass

from syncline.fleet.pull.names import Variant


@dataclass(frozen=True, slots=True)
class PullSettings:
    """``variant``: whose rules apply; None: by namespace (``observe.variant_of``). ``argo_namespace``: where Argo CD's
    objects live on the hub."""

    variant: Variant | None = None
    argo_namespace: str = "argocd"
