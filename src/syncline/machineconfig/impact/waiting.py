"""Why the turn of a node does not come, after a roll-out was played; pure."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.machineconfig.impact.report import NAMED, joined
from syncline.machineconfig.names import FAILED_STATES, REASON
from syncline.machineconfig.pools.candidates import unavailable
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.nodestate import is_failing, mcd_state, not_ready

__all__ = ["failing_words", "why_it_waits"]


def failing_words(node: Obj) -> str:
    """What a node says of its failure; empty if it says none."""
    if mcd_state(node) not in FAILED_STATES:
        return ""
    return f"node {name_of(node)} is {mcd_state(node)}: {annotations_of(node).get(REASON) or 'it does not say why'}"


def why_it_waits(node: Obj, nodes: Sequence[Obj], stuck: Sequence[str], limit: int, layering: Layering) -> str:
    """``nodes``: those of its pool when nothing moves any more; ``stuck``: names of those whose own turn does not
    end. What is wrong with the node itself comes first."""
    own = not_ready(node) or failing_words(node)
    if own:
        return own
    if layering.layered and not layering.progress().goes_on:
        return f"its pool is in image mode: {layering.progress().reason}"
    down = {name_of(each) for each in nodes if is_failing(each)} | {name_of(each) for each in unavailable(nodes)}
    takers = sorted({*stuck, *down} - {name_of(node)})
    if not takers:
        return "its pool does not begin with it"
    named = takers if len(takers) <= NAMED else [*takers[:NAMED], f"{len(takers) - NAMED} more"]
    verb = "takes" if len(takers) == 1 else "take"
    return f"{joined(named)} {verb} all that may be unavailable (maxUnavailable {limit})"
