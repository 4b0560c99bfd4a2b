"""ApplicationQuery: a question about an Application that a cluster pulls, answered by the cluster's agent."""

from __future__ import annotations

from typing import Final

from syncline.kube.kinds.structure import (
    AGE,
    BOOL,
    COUNT,
    STR,
    TIME,
    atomic,
    column,
    definition,
    enum,
    kind_schema,
    obj,
)
from syncline.kube.objects import GVK, Obj

QUERY: Final = GVK("syncline.dev", "v1alpha1", "ApplicationQuery")
QUERIES: Final = "applicationqueries"
"""The resource, in paths and rules."""
MAX_ANSWER: Final = 900_000
"""Bytes of the answer in one object: an API server stores no more than about 1.5 MB."""
MAX_ROWS: Final = 5000
"""Rows of one answer."""
MAX_LINES: Final = 100_000
MAX_TEXT: Final = 32_768
"""Characters of one sentence."""


def query_crd() -> Obj:
    """CustomResourceDefinition ``applicationqueries.syncline.dev``. It is in the namespace of the cluster that answers;
    its spec cannot be changed, and the hub deletes it five minutes after it was made."""
    name = STR | {"maxLength": 253}
    given = name | {"minLength": 1}
    spec = obj(
        {
            "application": obj({"namespace": given, "name": given}, "namespace", "name")
            | {"description": "the Application on the hub"},
            "ask": enum("resources", "manifests", "diff", "logs"),
            "askedBy": STR | {"minLength": 1, "maxLength": 512, "description": "user name of who makes this object"},
            "source": enum("git", "live") | {"description": "which side manifests are of"},
            "select": obj(dict.fromkeys(("group", "kind", "namespace", "name"), name))
            | {"description": "objects of the Application; empty fields fit all"},
            "container": name,
            "previous": BOOL,
            "tailLines": COUNT | {"maximum": MAX_LINES},
            "sinceSeconds": COUNT | {"minimum": 1},
            "timestamps": BOOL,
            "offset": COUNT | {"description": "rows to skip: status.next of the answer before"},
            "limitBytes": COUNT | {"minimum": 1000, "maximum": MAX_ANSWER},
        },
        "application",
        "ask",
        "askedBy",
        about="what is asked, and by whom",
    )
    spec["x-kubernetes-validations"] = [{"rule": "self == oldSelf", "message": "a question is not changed; ask again"}]
    sentence = STR | {"maxLength": MAX_TEXT}
    status = obj(
        {
            "phase": enum("Accepted", "Refused", "Answered", "Failed"),
            "work": name | {"description": "the ManifestWork that carries the Application; set by the hub"},
            "acceptedAt": TIME,
            "expiresAt": TIME | {"description": "when the hub deletes this object"},
            "answeredAt": TIME,
            "error": sentence | {"description": "why there is no answer"},
            "notes": atomic(sentence, maxItems=100) | {"description": "what the answer lacks"},
            "rows": atomic(STR | {"maxLength": MAX_ANSWER}, maxItems=MAX_ROWS)
            | {"description": "the answer: one JSON text for each object or log"},
            "next": COUNT | {"description": "there is more: ask again with this offset"},
        }
    )
    schema = kind_schema(spec, status, "spec", about="A question about an Application that a cluster pulls.")
    columns = (
        column("Application", ".spec.application.name"),
        column("Ask", ".spec.ask"),
        column("By", ".spec.askedBy"),
        column("Phase", ".status.phase"),
        AGE,
    )
    return definition(QUERY, QUERIES, schema, columns=columns, namespaced=True)
