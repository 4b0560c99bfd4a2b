"""The ``syncline.dev/v1alpha1`` kinds: what the APIs that people know have no object for."""

from __future__ import annotations

from syncline.kube.kinds.structure import AGE, STR, TIME, column, definition, kind_schema, obj
from syncline.kube.objects import GVK, Obj

GROUP = "syncline.dev"
VERSION = "v1alpha1"
HOLD = GVK(GROUP, VERSION, "Hold")
MAX_POOLS = 200
"""Pools in one Hold; more than any cluster has."""


def hold_crd() -> Obj:
    """CustomResourceDefinition ``holds.syncline.dev``: while a Hold lives, its pools begin no new node updates."""
    pools = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": MAX_POOLS}
    spec = obj(
        {
            "expiresAt": TIME | {"description": "when it ends by itself, however its owner fared"},
            "owner": STR | {"description": "who holds: a person, or an Application's operation"},
            "pools": pools | {"description": "names of MachineConfigPools"},
            "reason": STR | {"description": "why; people see it"},
        },
        "expiresAt",
        "owner",
        "pools",
        about="which pools are held, by whom, why and until when",
    )
    schema = kind_schema(spec, None, "spec", about="A Hold keeps machine config pools from beginning new node updates.")
    columns = (
        column("Pools", ".spec.pools"),
        column("Owner", ".spec.owner"),
        column("Reason", ".spec.reason"),
        column("Expires", ".spec.expiresAt"),
        AGE,
    )
    return definition(HOLD, "holds", schema, columns=columns, status=False)
