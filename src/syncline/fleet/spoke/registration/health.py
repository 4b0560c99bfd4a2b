"""Whether a cluster's own API server answers: probes, and how long a failure must last to count; pure.

Rules: ``pkg/registration/spoke/managedcluster`` of upstream (reference ocm-pull-model §1.6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from syncline.fleet.conditions import condition
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.kube.objects import Obj

EVERY: Final = timedelta(seconds=60)
"""Between two probes that succeed."""
AGAIN: Final = timedelta(seconds=5)
"""Until the next probe after one that failed."""
PERSISTS: Final = timedelta(seconds=20)
"""How long probes must fail before the cluster counts as unavailable."""
MAX_TEXT: Final = 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API server answered to a probe. ``code`` 0: nothing. ``version``: what it reports, if it works."""

    code: int
    text: str = ""
    version: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 200


@dataclass(frozen=True, slots=True)
class Health:
    """What probes found so far. ``failing_since``: the first failure after the last success."""

    answer: Answer | None = None
    probed: datetime | None = None
    failing_since: datetime | None = None

    def noted(self, answer: Answer, now: datetime) -> Health:
        """Return what is known after one more probe; the version outlives failures."""
        if answer.ok:
            return Health(answer, now)
        known = self.answer.version if self.answer is not None else ""
        return Health(replace(answer, version=known), now, self.failing_since or now)

    def next_probe(self) -> datetime | None:
        """Return when the next probe is due; None: now."""
        if self.probed is None:
            return None
        return self.probed + (EVERY if self.failing_since is None else AGAIN)

    def judged(self) -> Obj | None:
        """Return the condition to set; None: nothing is known, or a failure may still pass."""
        if self.answer is None or self.probed is None:
            return None
        if self.failing_since is None:
            return condition(AVAILABLE, "True", "ManagedClusterAvailable", "Managed cluster is available")
        if self.probed - self.failing_since < PERSISTS:
            return None
        text = f"The kube-apiserver is not ok, status code: {self.answer.code}, {self.answer.text[:MAX_TEXT]}"
        return condition(AVAILABLE, "False", "ManagedClusterKubeAPIServerUnavailable", text)
