"""The ``syncline.dev/v1alpha1`` kinds: what the APIs that people know have no object for."""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    AGE,
    BOOL,
    CONDITION,
    COUNT,
    SELECTOR,
    STR,
    TIME,
    atomic,
    column,
    definition,
    keyed,
    kind_schema,
    obj,
)
from syncline.kube.objects import GVK, Obj

GROUP = "syncline.dev"
VERSION = "v1alpha1"
HOLD = GVK(GROUP, VERSION, "Hold")
BUDGET = GVK(GROUP, VERSION, "FleetDisruptionBudget")
REPORT = GVK(GROUP, VERSION, "ApplicationReport")
MAX_FAILED = 1000
"""Failed resources in one ApplicationReport."""
MAX_REPORTED = 5000
"""Resources in one ApplicationReport."""
MAX_MESSAGE = 32_768
"""Characters of one text in an ApplicationReport."""
MAX_CAUSES = 8
"""Causes of one failed resource in an ApplicationReport."""
MAX_WAITS = 20
"""Resources that are under way in one ApplicationReport."""
MAX_PARTS = 20
"""Objects that one ApplicationReport may be divided into."""
MAX_POOLS = 200
"""Pools in one Hold; more than any cluster has."""
MAX_PLACES = 2000
"""Places in one FleetDisruptionBudget: with all of them taken its status stays below half a megabyte or so."""


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


def report_crd() -> Obj:
    """CustomResourceDefinition ``applicationreports.syncline.dev``: what a cluster reports of an Application that it
    pulls. Agents write it in the namespace of their cluster."""
    text = STR | {"maxLength": MAX_MESSAGE}

    def texts(*names: str) -> Obj:
        return obj(dict.fromkeys(names, text))

    identity = ("group", "version", "kind", "namespace", "name")
    cause = texts("subject", "state", "message", "since", "nextAction")
    cause["properties"] |= {"depth": COUNT | {"maximum": MAX_CAUSES}}
    failed = texts(*identity, "reason", "message")
    failed["properties"] |= {
        "causes": atomic(cause, maxItems=MAX_CAUSES)
        | {"description": "why, as far as the cluster knows: each cause before its deeper ones"}
    }
    content = obj(
        {
            "part": obj(
                {"number": COUNT, "of": COUNT, "digest": text, "failed": COUNT, "resources": COUNT},
                about="of a report in parts: which one, of how many, of which version, and the totals of all",
            ),
            "application": texts("namespace", "name") | {"description": "the Application on the cluster"},
            "release": STR
            | {"maxLength": 64, "description": "annotation syncline.dev/release of the Application on the cluster"},
            "stale": BOOL | {"description": "the status is of another spec than the Application has"},
            "health": texts("status", "message", "lastTransitionTime"),
            "sync": texts("status", "revision"),
            "operation": texts("phase", "message", "startedAt", "finishedAt", "revision"),
            "conditions": atomic(texts("type", "message", "lastTransitionTime"), maxItems=100),
            "waits": atomic(texts(*identity, "message"), maxItems=MAX_WAITS)
            | {"description": "what is under way, where the Application says what it waits for"},
            "failed": atomic(failed, maxItems=MAX_FAILED)
            | {"description": "what failed in the last operation, and what is not well"},
            "resources": atomic(texts(*identity, "status", "health"), maxItems=MAX_REPORTED),
            "omitted": COUNT | {"description": "how many resources are left out: the report would be too large"},
        },
        "application",
    )
    schema = kind_schema(None, None, "report", about="How an Application fares in the cluster that pulls it.")
    schema["properties"]["report"] = content
    columns = (
        column("Application", ".report.application.name"),
        column("Sync", ".report.sync.status"),
        column("Health", ".report.health.status"),
        column("Operation", ".report.operation.phase"),
        AGE,
    )
    return definition(REPORT, "applicationreports", schema, columns=columns, status=False, namespaced=True)


def budget_crd() -> Obj:
    """CustomResourceDefinition ``fleetdisruptionbudgets.syncline.dev``: how many of the clusters that it selects may be
    unavailable at once over all roll-outs."""
    most = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "x-kubernetes-validations": [
            {
                "rule": "type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",
                "message": "must be a number that is not negative, or a percentage from 0% to 100%",
            }
        ],
        "description": "a number of clusters, or a percentage of those selected, rounded down",
    }
    spec = obj(
        {
            "clusterSelector": SELECTOR | {"description": "labels of ManagedClusters; {} selects all of them"},
            "maxUnavailable": most,
        },
        "clusterSelector",
        "maxUnavailable",
        about="which clusters, and how many of them at most",
    )
    holder = obj(dict.fromkeys(("group", "kind", "name", "namespace", "uid"), STR), "kind", "name", "uid")
    place = obj(
        {"cluster": STR, "holder": holder, "holderUID": STR, "reason": STR, "since": TIME},
        "cluster",
        "holderUID",
        "holder",
        about="a roll-out that may disturb one cluster, reserved before it does",
    )
    status = obj(
        {
            "conditions": keyed(CONDITION, "type"),
            "observedGeneration": COUNT,
            "permitted": COUNT | {"description": "how many clusters may be unavailable at once"},
            "places": keyed(place, "cluster", "holderUID", maxItems=MAX_PLACES),
            "selected": COUNT | {"description": "accepted clusters that match"},
            "unavailable": COUNT | {"description": "clusters with a place, and others that are not available"},
        }
    )
    about = "Bounds how many of some clusters are unavailable at once, over all roll-outs that select them."
    schema = kind_schema(spec, status, "spec", about=about)
    columns = (
        column("Max", ".spec.maxUnavailable"),
        column("Selected", ".status.selected", "integer"),
        column("Permitted", ".status.permitted", "integer"),
        column("Unavailable", ".status.unavailable", "integer"),
        AGE,
    )
    return definition(BUDGET, "fleetdisruptionbudgets", schema, short=("fdb",), columns=columns)
