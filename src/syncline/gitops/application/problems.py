"""Why an Application may not be compared, synced or read, by its spec and by its operation; pure.

Every reconcile calls it before it renders or writes; so do plan and explanations. The project judges an operation's
sources, wherever they are written (its request, a rollback, an earlier result), with the same function as the spec: a
client that can write an Application can write all of these fields.
"""

from __future__ import annotations

from syncline.argo.clusters import destination_of
from syncline.argo.conditions import Condition
from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.spec import validate_spec
from syncline.gitops.application.observing.observe import AppObserved, operation_sources
from syncline.gitops.application.operating.holds import refused_pools
from syncline.kube.objects import Obj

MAX_UNREAD = 5
"""Limit of the named reasons why live objects are unknown."""
SOURCES = ("source", "sources", "sourceHydrator")


def spec_problems(observed: AppObserved) -> list[Condition]:
    """Return the problems of spec, operation and installation settings as conditions, in upstream's words."""
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
    """Return a condition if no controller works on the namespace: commands report it, controllers skip the Application.
    A controller flag may enable a namespace that the ConfigMap does not list; a reconciled Application is enabled."""
    if observed.enabled or observed.view.status.get("reconciledAt"):
        return []
    text = (
        f"namespace '{observed.view.namespace}' is not permitted: application.namespaces of {PARAMETERS_MAP} in "
        f"namespace {observed.settings.control_namespace} does not list it, so no controller works on this Application"
    )
    return [Condition("InvalidSpecError", text)]


def _judged(observed: AppObserved, app: Obj) -> list[Condition]:
    """Return the spec's problems. An unreadable project or cluster is not absent, so it makes no spec invalid."""
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
    """Return the Application with the sources of its operation."""
    view = observed.view
    sources = list(operation_sources(view))
    several = view.multi_source or len(sources) > 1
    spec = {key: value for key, value in view.spec.items() if key not in SOURCES}
    return view.obj | {"spec": spec | ({"sources": sources} if several else {"source": sources[0] if sources else {}})}
