"""What creating, changing and deleting an Application writes, and when it is refused; pure.

Rules: Argo CD ``server/application/application.go`` (Create, updateApp, validateAndNormalizeApp, Delete) and
``util/argo`` (ValidateManagedByURL). Fields that this version does not know stay as the client sent them.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from syncline.argo.application import RESOURCES_FINALIZER, AppView
from syncline.argo.clusters import Cluster, destination_of
from syncline.argo.requests.refused import INVALID, UNKNOWN, Refused
from syncline.argo.spec import validate_spec
from syncline.argo.typed import normalized_spec, stored_spec
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, meta, name_of

MANAGED_BY = "argocd.argoproj.io/managed-by-url"
METADATA = ("labels", "annotations", "finalizers")
"""Parts of ``metadata`` that a client decides."""
PROPAGATION = {"": "", "foreground": "/foreground", "background": "/background"}
"""What a propagation policy adds to the finalizer of a cascading deletion."""


def check_names(app: Obj) -> None:
    """Raise :class:`Refused` if the Application has no name, or two of its sources have the same."""
    if not name_of(app):
        raise Refused("resource name may not be empty", UNKNOWN)
    names = [str(one.get("name") or "") for one in AppView(app).sources] if AppView(app).multi_source else []
    twice = next((one for one in names if one and names.count(one) > 1), "")
    if twice:
        raise Refused(f"application {name_of(app)} has duplicate source name: {twice}", UNKNOWN)


def check_destination(app: Obj, clusters: tuple[Cluster, ...]) -> Cluster:
    """Return the cluster of an Application. Raises :class:`Refused`."""
    found = destination_of(app, clusters)
    if isinstance(found, str):
        raise Refused(f"application destination spec for {name_of(app)} is invalid: {found}", INVALID)
    return found


def check_permitted(app: Obj, project: Obj, control_namespace: str, clusters: tuple[Cluster, ...]) -> None:
    """Raise :class:`Refused` if the spec lacks something, or its project does not permit sources or destination."""
    found = validate_spec(app, project, control_namespace=control_namespace, clusters=clusters)
    url = _managed_by_problem(annotations_of(app).get(MANAGED_BY, ""))
    problems = [one.message for one in found] or ([f"invalid managed-by URL: {url}"] if url else [])
    if problems:
        raise invalid_spec(app, problems)


def invalid_spec(app: Obj, problems: Sequence[str]) -> Refused:
    """Return the refusal of a spec with these problems."""
    listed = ";".join(f"InvalidSpecError: {one}" for one in problems)
    return Refused(f"application spec for {name_of(app)} is invalid: {listed}", INVALID)


def _managed_by_problem(url: str) -> str:
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        return f"failed to parse URL: {error}"
    return "" if not url or scheme in ("http", "https") else "URL must include http or https protocol"


def created(asked: Obj) -> Obj:
    """Return what creating an Application writes. An operation is left out: who may create need not be allowed to
    sync manifests of their own."""
    kept = {key: value for key, value in asked.items() if key != "operation"}
    kind = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind}
    return {**kept, **kind, "spec": stored_spec(asked.get("spec") or {})}


def is_same(known: Obj, asked: Obj) -> bool:
    """Return whether an Application already is as a client asks, so that creating it again changes nothing."""
    parts = all((meta(known).get(part) or None) == (meta(asked).get(part) or None) for part in METADATA)
    return parts and normalized_spec(known.get("spec") or {}) == normalized_spec(asked.get("spec") or {})


def updated(known: Obj, asked: Obj, *, merge: bool = False) -> Obj:
    """Return ``known`` with the spec and the metadata that a client decides; ``merge``: its labels and annotations stay
    where the client has no others."""
    metadata = {key: value for key, value in meta(known).items() if key not in METADATA}
    for part in METADATA:
        given = meta(asked).get(part)
        if merge and part != "finalizers":
            given = {**(meta(known).get(part) or {}), **(given or {})}
        if given:
            metadata[part] = given
    return {**known, "metadata": metadata, "spec": stored_spec(asked.get("spec") or {})}


def cascading(app: Obj, *, cascade: bool, policy: str = "") -> list[str] | None:
    """Return the finalizers that a deletion needs, None if the Application has them. Raises :class:`Refused` for a
    policy that is unknown, or given for a deletion that leaves the resources."""
    if policy and not cascade:
        raise Refused("cannot set propagation policy when cascading is disabled", INVALID)
    if policy.lower() not in PROPAGATION:
        raise Refused(f"invalid propagation policy: {policy}", INVALID)
    before: list[str] = list(dig(app, "metadata", "finalizers", default=[]) or [])
    wanted = RESOURCES_FINALIZER + PROPAGATION[policy.lower()]
    after = [one for one in before if one.split("/")[0] != RESOURCES_FINALIZER] + ([wanted] if cascade else [])
    if cascade and (wanted in before or meta(app).get("deletionTimestamp")):
        return None  # Kubernetes refuses finalizers for what is being deleted
    return None if after == before else after
