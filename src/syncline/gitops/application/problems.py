"""Why an Application may not be compared, synced or read from: its spec, and what its operation asks for instead; pure.

Called by every reconcile before anything is rendered or written, by the plan and by explanations. What an operation
takes its manifests from, wherever that is written (its request, a rollback, the result of a reconcile before), is
judged by the project with the same function as the spec: a client that can write an Application can write all of these
fields.
"""

from __future__ import annotations

from syncline.argo.clusters import destination_of
from syncline.argo.conditions import Condition
from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.spec import validate_spec
from syncline.gitops.application.observing.observe import AppObserved, operation_sources
from syncline.gitops.application.operating.holds import refused_pools
from syncline.kube.objects import Obj

__all__ = ["spec_problems"]

MAX_UNREAD = 5
"""Reasons why live objects are not known that are named."""
SOURCES = ("source", "sources", "sourceHydrator")


def spec_problems(observed: AppObserved) -> list[Condition]:
    """What is wrong with the spec and the operation, in upstream's words, and with settings of all Applications."""
    found = [*_not_enabled(observed), *_judged(observed, observed.view.obj)]
    if observed.view.operation is not None and operation_sources(observed.view) != observed.view.sources:
        found += [one for one in _judged(observed, _as_operated(observed)) if one not in found]
    if observed.view.operation is not None:
        found += [Condition("InvalidSpecError", text) for text in refused_pools(observed)]
    texts = list(observed.system.settings.problems)
    if observed.remote_problem:
        texts.append(f"Failed to load live state: {observed.remote_problem}")
    texts += [f"Failed to load live state: {why}" for why in sorted(set(observed.unread.values()))[:MAX_UNREAD]]
    return [*found, *(Condition("ComparisonError", text) for text in texts)]


def _not_enabled(observed: AppObserved) -> list[Condition]:
    """Of an Application that no controller works on: commands say so, for the controllers pass it over. A flag of the
    controllers may enable what the ConfigMap does not; what they have reconciled is enabled."""
    if observed.enabled or observed.view.status.get("reconciledAt"):
        return []
    text = (
        f"namespace '{observed.view.namespace}' is not permitted: application.namespaces of {PARAMETERS_MAP} in "
        f"namespace {observed.settings.control_namespace} does not list it, so no controller works on this Application"
    )
    return [Condition("InvalidSpecError", text)]


def _judged(observed: AppObserved, app: Obj) -> list[Condition]:
    """What may not be read is no reason to call the spec wrong: neither its project nor its cluster is absent."""
    cluster = destination_of(app, observed.clusters)
    if observed.project_unread:
        why = f"what project {observed.view.project} permits is not known: {observed.project_unread}"
        return [Condition("UnknownError", why)]
    if observed.clusters_unread and isinstance(cluster, str):
        return [Condition("UnknownError", f"which clusters are declared is not known: {observed.clusters_unread}")]
    found = validate_spec(
        app, observed.project, control_namespace=observed.settings.control_namespace, clusters=observed.clusters
    )
    if observed.clusters_unread and any(f"project '{observed.view.project}'" in one.message for one in found):
        owned = f"which repositories and clusters belong to project {observed.view.project}"
        return [Condition("UnknownError", f"{owned} is not known: {observed.clusters_unread}")]
    return found


def _as_operated(observed: AppObserved) -> Obj:
    """The Application as its operation would have it: with the sources that the operation uses."""
    view = observed.view
    sources = list(operation_sources(view))
    several = view.multi_source or len(sources) > 1
    spec = {key: value for key, value in view.spec.items() if key not in SOURCES}
    return view.obj | {"spec": spec | ({"sources": sources} if several else {"source": sources[0] if sources else {}})}
