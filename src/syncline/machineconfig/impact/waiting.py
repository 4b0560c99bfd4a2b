"""Explains why a node is not updated in a simulated roll-out; pure."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.machineconfig.impact.report import NAMED, joined
from syncline.machineconfig.names import FAILED_STATES, REASON
from syncline.machineconfig.pools.nodestate import mcd_state, not_ready
from syncline.machineconfig.pools.waits import Reason, Wait


def failing_words(node: Obj) -> str:
    """Return the failure that a node reports, or an empty string."""
    if mcd_state(node) not in FAILED_STATES:
        return ""
    return f"node {name_of(node)} is {mcd_state(node)}: {annotations_of(node).get(REASON) or 'it does not say why'}"


def why_it_waits(node: Obj, waits: Sequence[Wait], limit: int) -> str:
    """Return why a node waits: its own trouble first, else from ``waits``, which the pool controller notes at the
    end."""
    own = not_ready(node) or failing_words(node)
    if own:
        return own
    wait = next((each for each in waits if not each.nodes or name_of(node) in each.nodes), None)
    if wait is None:
        return "its pool does not begin with it"
    if wait.reason is Reason.IMAGE:
        return f"its pool is in image mode: {wait.message}"
    if wait.reason is not Reason.CAPACITY:
        return wait.message
    takers = sorted(wait.takers)
    named = takers if len(takers) <= NAMED else [*takers[:NAMED], f"{len(takers) - NAMED} more"]
    verb = "takes" if len(takers) == 1 else "take"
    return f"{joined(named)} {verb} all that may be unavailable (maxUnavailable {limit})"
