"""Rules that the steps of a health table cannot express, as functions: ``rule: NAME`` calls one.

:mod:`syncline.apply.health.known` passes :data:`RULES` to the tables. Each takes the object and the step's settings,
and returns a health or None for "continue with the next step".
"""

from __future__ import annotations

from syncline.apply.health.rules import (
    clusters,
    crossplane,
    gateways,
    progress,
    promoter,
    rollout,
    stores,
    tallies,
    workloads,
)
from syncline.apply.health.table import Rule

RULES: dict[str, Rule] = {
    **clusters.RULES,
    **crossplane.RULES,
    **gateways.RULES,
    **progress.RULES,
    **promoter.RULES,
    **rollout.RULES,
    **stores.RULES,
    **tallies.RULES,
    **workloads.RULES,
}
