"""The kind ``FleetRollout``: the order in which clusters get the Applications of one ApplicationSet.

People write the spec (stop, skip, roll back); only the hub's controllers write the status, whose permits decide what a
cluster gets.
"""

from __future__ import annotations

from typing import Final

from syncline.kube.kinds.structure import (
    AGE,
    CONDITION,
    COUNT,
    INT,
    STR,
    TIME,
    atomic,
    column,
    definition,
    enum,
    keyed,
    kind_schema,
    obj,
)
from syncline.kube.kinds.syncline import GROUP, VERSION
from syncline.kube.objects import GVK, Obj

ROLLOUT: Final = GVK(GROUP, VERSION, "FleetRollout")
MAX_CLUSTERS: Final = 2000
"""Entries of ``status.clusters``; a roll-out over more is not begun beyond them until some are done."""
MAX_SKIPPED: Final = 500
MAX_REVISIONS: Final = 100
MAX_WAVES: Final = 200
MAX_HISTORY: Final = 10
MAX_TEXT: Final = 1024
PHASES: Final = ("Unordered", "Progressing", "Waiting", "Failed", "Stopped", "RollingBack", "RolledBack", "Done")
OUTCOMES: Final = ("Done", "Superseded", "RolledBack")
STATES: Final = ("Waiting", "Permitted", "Progressing", "Proving", "Failed", "Skipped", "NotCounted")

_NAME: Final[Obj] = STR | {"minLength": 1, "maxLength": 253}
_RELEASE: Final[Obj] = STR | {"maxLength": 64, "pattern": "^[0-9a-f]*$"}
_TEXT: Final[Obj] = STR | {"maxLength": MAX_TEXT}
_REVISION: Final = obj(
    dict.fromkeys(("repoURL", "chart", "targetRevision", "commit"), _TEXT),
    about="what a targetRevision stood for on the hub",
)

_NAMED: Final = "self.metadata.name == self.spec.of.name + (self.spec.of.kind == 'Application' ? '.app' : '')"
_NAMED_MESSAGE: Final = "metadata.name has to be spec.of.name, for an Application spec.of.name and .app"


def fleet_rollout_crd() -> Obj:
    """CustomResourceDefinition ``fleetrollouts.syncline.dev``."""
    about = "The order in which clusters get the Applications of one ApplicationSet, and how far it is."
    schema = kind_schema(_spec(), _status(), "spec", about=about)
    schema["x-kubernetes-validations"] = [{"rule": _NAMED, "message": _NAMED_MESSAGE}]
    columns = (
        column("Release", ".status.release"),
        column("Phase", ".status.phase"),
        column("Wave", ".status.wave", "integer"),
        column("Done", ".status.progress"),
        column("Failed", ".status.failed", "integer"),
        AGE,
        column("Message", ".status.message", wide=True),
    )
    return definition(ROLLOUT, "fleetrollouts", schema, short=("frl",), columns=columns, namespaced=True)


def _spec() -> Obj:
    unchanging = {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]}
    of = obj({"kind": enum("ApplicationSet", "Application"), "name": _NAME}, "kind", "name") | unchanging
    skipped = obj({"cluster": _NAME, "release": _RELEASE, "by": _TEXT}, "cluster", "release")
    return obj(
        {
            "of": of | {"description": "whose Applications; a stand-alone Application has a roll-out of its own"},
            "stopped": obj({"reason": _TEXT, "since": TIME, "by": _TEXT}, about="while it is there nothing begins"),
            "skip": keyed(skipped, "cluster", "release", maxItems=MAX_SKIPPED)
            | {"description": "clusters that do not get a release, and for which nothing waits"},
            "rollBack": obj(
                {"from": _RELEASE, "reason": _TEXT, "since": TIME, "by": _TEXT},
                "from",
                about="a release that goes back, in reverse order, to the one that each cluster proved before; over "
                "when another release comes",
            ),
        },
        "of",
        about="what people decide about the order",
    )


def _status() -> Obj:
    wave = obj(
        {
            "wave": INT,
            **dict.fromkeys(("total", "done", "inProgress", "pending", "failed"), COUNT),
            "since": TIME | {"description": "since when it waits or progresses"},
        },
        "wave",
    )
    cluster = obj(
        {
            "cluster": _NAME,
            "application": _NAME,
            "wave": INT,
            "state": enum(*STATES),
            "release": _RELEASE | {"description": "what it should carry; its other fields are about that"},
            "permitted": _RELEASE | {"description": "the release that its work may carry next"},
            "since": TIME | {"description": "since when it is in this state"},
            "healthySince": TIME | {"description": "since when it is as wanted, by the clock of the hub"},
            "operationBefore": _TEXT | {"description": "when its operation before this release began, as it reports"},
            "why": _TEXT,
            "until": TIME | {"description": "when it goes on without a change"},
        },
        "cluster",
        "application",
        about="an Application that does not have the release yet, or has not proved it",
    )
    ended = obj(
        {
            "release": _RELEASE,
            "revisions": atomic(_REVISION, maxItems=MAX_REVISIONS),
            "startedAt": TIME,
            "endedAt": TIME,
            "outcome": enum(*OUTCOMES),
        }
    )
    return obj(
        {
            "observedGeneration": COUNT,
            "release": _RELEASE | {"description": "what the template and its revisions are now"},
            "revisions": atomic(_REVISION, maxItems=MAX_REVISIONS),
            "content": _RELEASE | {"description": "what the Applications are now, by their hash"},
            "startedAt": TIME,
            "superseded": COUNT | {"description": "releases since the last one that all clusters proved"},
            "phase": enum(*PHASES),
            "message": STR | {"maxLength": 32_768},
            "wave": INT | {"description": "the first wave that is not done"},
            "progress": STR | {"maxLength": 32, "description": "done of total"},
            **dict.fromkeys(("total", "done", "failed", "omitted"), COUNT),
            "waves": atomic(wave, maxItems=MAX_WAVES),
            "clusters": keyed(cluster, "cluster", "application", maxItems=MAX_CLUSTERS),
            "history": atomic(ended, maxItems=MAX_HISTORY),
            "conditions": keyed(CONDITION, "type"),
        }
    )
