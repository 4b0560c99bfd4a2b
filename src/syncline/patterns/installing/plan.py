"""One reconcile of a Pattern, in upstream's order: at most one step, then it begins again; pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``pattern_controller.go``. What differs: a cluster without
OpenShift has empty facts instead of an error, and waits for no certificates that its network operator would bring; no
repository is copied into the Git server (``origin.py``); nothing is reported to the project (analytics).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from syncline.control.plan import Create, Patch, Plan, Replace
from syncline.kube.kinds.operatorlifecycle import SUBSCRIPTION
from syncline.kube.kinds.validatedpatterns import ARGO_CD, CONSOLE_LINK, PATTERN
from syncline.kube.objects import Obj, dig, finalizers, is_terminating, labels_of
from syncline.kube.schema.extensions import SOURCE
from syncline.patterns.installing.application import CHART, application_differs, parent_application, replaced
from syncline.patterns.installing.argocd import argo_instance, with_own_settings
from syncline.patterns.installing.config import CONFIG_MAP
from syncline.patterns.installing.deletion import deletion_step
from syncline.patterns.installing.gitserver import git_server
from syncline.patterns.installing.observe import BUNDLE, COPY, PatternObserved
from syncline.patterns.installing.pattern import FINALIZER
from syncline.patterns.installing.reading import ReadCheckout, Wanted
from syncline.patterns.installing.steps import DONE_S, Step, ended, uid_and_version
from syncline.patterns.installing.subscription import gitops_subscription, subscription_differs

MENU: Final = "OpenShift GitOps"


def plan_pattern(observed: PatternObserved, now: datetime) -> Plan:
    """Plan one reconcile."""
    if observed.elsewhere:
        return ended(observed, Step("not acted on", error=observed.elsewhere, after_s=DONE_S), now)
    if is_terminating(observed.read):
        return _finalize(observed, now)
    if observed.duplicate_of:
        error = f"only one Pattern resource is allowed; there is {observed.duplicate_of}"
        return ended(observed, Step("not acted on", error=error, after_s=DONE_S), now)
    for part in STEPS:
        if (step := part(observed, now)) is not None:
            return ended(observed, step, now)
    return ended(observed, Step("reconcile complete", after_s=DONE_S, missing=""), now)


def _finalize(observed: PatternObserved, now: datetime) -> Plan:
    if FINALIZER not in finalizers(observed.read):
        return Plan(why="the Pattern waits for other finalizers")
    step = deletion_step(observed)
    if step is not None:
        return ended(observed, step, now)
    left = [one for one in finalizers(observed.read) if one != FINALIZER]
    body = {"metadata": {**uid_and_version(observed.read), "finalizers": left}}
    why = "what the Pattern made is gone, or stays as it was asked"
    return Plan(((Patch(PATTERN, observed.pattern.namespace, observed.pattern.name, body, why),),), why=why)


def _readable(observed: PatternObserved, _now: datetime) -> Step | None:
    return Step("applying defaults", error=observed.unread) if observed.unread else None


def _config(observed: PatternObserved, _now: datetime) -> Step | None:
    if observed.get("config") is not None:
        return None
    made = _map(CONFIG_MAP, observed.places.operator_namespace)
    return Step("created the configuration ConfigMap", (Create(made, "people set it up there"),))


def _finalizer(observed: PatternObserved, _now: datetime) -> Step | None:
    if FINALIZER in finalizers(observed.read):
        return None
    wanted = [*finalizers(observed.read), FINALIZER]
    body = {"metadata": {**uid_and_version(observed.read), "finalizers": wanted}}
    why = "what it makes is taken down in an order"
    return Step("updated finalizer", (Patch(PATTERN, observed.pattern.namespace, observed.pattern.name, body, why),))


def _gitops(observed: PatternObserved, _now: datetime) -> Step | None:
    """The Subscription of the GitOps operator, where the cluster has OLM."""
    if SUBSCRIPTION.group_kind not in observed.served:
        return None
    places = observed.places
    own = places.subscription_namespace != places.operator_namespace
    if observed.get("subscription namespace") is None:
        return Step("created namespace for gitops subscription", (_namespace(places.subscription_namespace),))
    if own and observed.get("subscription group") is None:
        group = {
            "apiVersion": "operators.coreos.com/v1",
            "kind": "OperatorGroup",
            "metadata": {"name": "openshift-gitops-operator", "namespace": places.subscription_namespace},
        }
        return Step("created operatorgroup for gitops subscription", (Create(group, "the Subscription needs one"),))
    wanted = gitops_subscription(observed.config, places, disable_default=not places.legacy_argo)
    live = observed.get("subscription")
    if live is None:
        return Step("created gitops subscription", (Create(wanted, "the pattern needs the GitOps operator"),))
    if subscription_differs(wanted, live):
        return Step("update gitops subscription", (Replace({**live, "spec": wanted["spec"]}, "its settings changed"),))
    return None


def _argo(observed: PatternObserved, _now: datetime) -> Step | None:
    """Namespace, certificates and ArgoCD object of all groups."""
    places = observed.places
    if observed.get("argo namespace") is None:
        if places.legacy_argo:
            return Step("check application namespace", error="waiting for creation")
        return Step("created ArgoCD namespace", (_namespace(places.argo_namespace),))
    bundle = observed.get("bundle")
    if bundle is None:
        made = _map(BUNDLE, places.argo_namespace, {"config.openshift.io/inject-trusted-cabundle": "true"})
        return Step("created trusted-ca-bundle", (Create(made, "the cluster's certificates go there"),))
    if observed.openshift and not dig(bundle, "data", "ca-bundle.crt"):
        where = f"trusted-ca-bundle configmap in {places.argo_namespace}"
        error = f"{where} not yet populated by cluster network operator"
        return Step("waiting for trusted-ca-bundle to be populated", error=error)
    if ARGO_CD.group_kind not in observed.served:
        return Step("created or updated clusterwide argo instance", error="cannot find the kind ArgoCD")
    wanted = with_own_settings(argo_instance(observed.config, places), observed.config)
    live = observed.get("argocd")
    if live is None:
        return Step("created clusterwide argo instance", (Create(wanted, "Applications of the pattern live there"),))
    spec = {**(live.get("spec") or {}), **wanted["spec"]}
    if spec != live.get("spec"):
        return Step("updated clusterwide argo instance", (Replace({**live, "spec": spec}, "its settings changed"),))
    return None


def _link(observed: PatternObserved, _now: datetime) -> Step | None:
    places, domain = observed.places, observed.pattern.status("appClusterDomain")
    if places.legacy_argo or not domain or CONSOLE_LINK.group_kind not in observed.served:
        return None
    spec = {
        "applicationMenu": {"section": MENU},
        "href": f"https://{places.argo_name}-server-{places.argo_namespace}.{domain}",
        "location": "ApplicationMenu",
        "text": "Argo CD VP",
    }
    live = observed.get("link")
    if live is None:
        name = {"name": f"{places.argo_name}-gitops-link"}
        made = {"apiVersion": CONSOLE_LINK.api_version, "kind": CONSOLE_LINK.kind, "metadata": name, "spec": spec}
        return Step("created ConsoleLink", (Create(made, "people find Argo CD in the console"),))
    if live.get("spec") != spec:
        return Step("updated ConsoleLink", (Replace({**live, "spec": spec}, "the domain changed"),))
    return None


def _token(observed: PatternObserved, _now: datetime) -> Step | None:
    """A copy of the credentials of a private repository, in the namespace of the Argo CD."""
    return _copied(observed, "token copy", observed.places.argo_namespace)


def _token_of_group(observed: PatternObserved, _now: datetime) -> Step | None:
    if observed.get("group namespace") is None:
        return None
    return _copied(observed, "token copy of the group", observed.pattern.application_name)


def _copied(observed: PatternObserved, part: str, namespace: str) -> Step | None:
    name, token = "copying clusterwide git auth secret to namespaced argo", observed.get("token")
    if not observed.pattern.git("tokenSecret"):
        return None
    if token is None:
        where = f"{observed.pattern.git('tokenSecretNamespace')}/{observed.pattern.git('tokenSecret')}"
        return Step(name, error=f'secrets "{where}" not found')
    live, data = observed.get(part), token.get("data") or {}
    if live is not None and (live.get("data") or {}) == data:
        return None
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    if live is None:
        metadata = {"name": COPY, "namespace": namespace, "labels": labels}
        made: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
        return Step(name, (Create(made, "the repository is private"),))
    metadata = {**live["metadata"], "labels": labels_of(live) | labels}
    return Step(name, (Replace({**live, "metadata": metadata, "data": data}, "the credentials changed"),))


def _git(observed: PatternObserved, now: datetime) -> Step | None:
    """The repository is read, has a permitted address, and has the values of the group."""
    pattern, wanted = observed.pattern, observed.wanted
    if error := _address(pattern.git("targetRepo")) or _address(pattern.git("originRepo"), optional=True):
        return Step("prerequisite validation", error=error, missing="")
    found = observed.found
    if observed.reading and found is None:
        return Step("cloning pattern repo", error=f"reading {wanted}", missing="")
    if found is None or _is_old(found.at, now):
        return Step("cloning pattern repo", (_read(observed, wanted),), missing="")
    if found.error:
        return Step("cloning pattern repo", error=found.error, missing="")
    group = pattern.group
    folder = f"variants/{group}/" if found.checkout.has_variants else ""
    values = f"{folder}values-{group}.yaml"
    if group and found.checkout.files.get(values) is None:
        error = f"required values file not found: {values}"
        return Step("prerequisite validation", error=error, missing=error)
    return None


def _origin(observed: PatternObserved, now: datetime) -> Step | None:
    """Where a fork names its origin, both are compared."""
    wanted, found = observed.origin_wanted, observed.origin
    if wanted is None or observed.origin_reading or _address(wanted.url):
        return None
    if found is None or _is_old(found.at, now):
        return Step("comparing with the origin", (_read(observed, wanted),), missing="")
    return None


def _parent(observed: PatternObserved, _now: datetime) -> Step | None:
    """The Application that renders the cluster group."""
    wanted = parent_application(observed.pattern, observed.checkout, observed.places)
    live = observed.get("application")
    if live is None:
        made = {**wanted, "metadata": {**wanted["metadata"], "annotations": {SOURCE: CHART}}}
        return Step("create application", (Create(made, "it renders the cluster group"),), missing="")
    if application_differs(wanted, live):
        return Step(
            "updated application", (replaced(live, wanted, "the Pattern or its repository changed"),), missing=""
        )
    return None


STEPS: Final[tuple[Callable[[PatternObserved, datetime], Step | None], ...]] = (
    _readable,
    _config,
    _finalizer,
    _gitops,
    _argo,
    _link,
    _token,
    lambda observed, _now: git_server(observed),
    _git,
    _origin,
    _parent,
    _token_of_group,
)
"""The steps in upstream's order; the first one that has something to do is taken."""


def _address(url: str, *, optional: bool = False) -> str:
    if not url:
        return "" if optional else "TargetRepo cannot be empty"
    if url.startswith(("git@", "https://", "http://")):
        return ""
    return (
        "repository URL must be either http/https or start with git@ when using ssh authentication: "
        + url.split("@")[-1]
    )


def _is_old(at: datetime, now: datetime) -> bool:
    return now >= at + timedelta(seconds=DONE_S)


def _read(observed: PatternObserved, wanted: Wanted) -> ReadCheckout:
    return ReadCheckout(wanted, observed.pattern_ref, "its values say what is installed")


def _namespace(name: str) -> Create:
    return Create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "the pattern needs it")


def _map(name: str, namespace: str, labels: dict[str, str] | None = None) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
