"""What the controllers of the pull model share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from syncline.fleet.hub.works.admission import MAX_BYTES
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.order.revisions import POLL_S, RevisionStore

ORDER: Final = "pulled-order"
"""Name of the controller that decides which clusters get a new release."""


@dataclass(frozen=True, slots=True)
class PullSettings:
    """``variant``: whose rules apply; None: by namespace (``observe.variant_of``). ``argo_namespace``: where Argo CD's
    objects live on the hub; ``manifest_limit``: encoded bytes of the manifests of a work; ``poll_s``: seconds between
    two looks at a repository of an ordered Application."""

    variant: Variant | None = None
    argo_namespace: str = "argocd"
    manifest_limit: int = MAX_BYTES
    poll_s: float = POLL_S
    revisions: RevisionStore | None = field(default=None, compare=False)
    """What branches and tags name now; None: this process reads no repositories, and they travel as they are."""
