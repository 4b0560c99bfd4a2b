"""What is checked before an ApplicationSet is stored or generated: :func:`problem_of`.

Used by the server and by ``syncline appset``. Pure; the texts are those of upstream's
``server/applicationset/applicationset.go``.
"""

from __future__ import annotations

from syncline.kube.objects import Obj, dig, meta, name_of

KINDS = (
    "clusterDecisionResource",
    "clusters",
    "git",
    "list",
    "matrix",
    "merge",
    "plugin",
    "pullRequest",
    "scmProvider",
)
PREFIX = "error validating ApplicationSets"
TEMPLATED = "the Argo CD API does not currently support creating ApplicationSets with templated `project` fields"
WRITTEN = ("labels", "annotations", "finalizers")


def project_of(found: Obj) -> str:
    """Return the project of the template, as it is written."""
    return str(dig(found, "spec", "template", "spec", "project", default="") or "")


def problem_of(found: Obj) -> str:
    """Return what upstream says of a templated project, and of an element without a generator; empty: neither."""
    if "{{" in project_of(found):
        return f"{PREFIX}: {TEMPLATED}"
    for element in dig(found, "spec", "generators", default=[]) or []:
        names = set(element) if isinstance(element, dict) else set()
        if not names & {*KINDS, "selector"}:
            unknown = f": {', '.join(sorted(names))}" if names else ""
            return (
                f"{PREFIX}: ApplicationSet {name_of(found)} contains unrecognized generators{unknown}; known are "
                f"{', '.join(KINDS)}"
            )
    return ""


def same_set(known: Obj, wanted: Obj) -> bool:
    """Return whether nothing of what a person writes differs, as upstream compares them."""
    return known.get("spec") == wanted.get("spec") and all(
        (meta(known).get(field) or None) == (meta(wanted).get(field) or None) for field in WRITTEN
    )


def merged(known: Obj, wanted: Obj) -> Obj:
    """Return the stored set with the spec and finalizers of ``wanted``; labels and annotations are added."""
    metadata = dict(meta(known))
    for field in ("labels", "annotations"):
        both = {**(metadata.get(field) or {}), **(meta(wanted).get(field) or {})}
        metadata |= {field: both} if both else {}
    metadata["finalizers"] = meta(wanted).get("finalizers") or []
    return known | {"metadata": metadata, "spec": wanted.get("spec") or {}}
