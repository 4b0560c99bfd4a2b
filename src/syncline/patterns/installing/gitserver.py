"""The Git server inside the cluster that a Pattern asks for: :func:`git_server`; pure.

Facts: validatedpatterns/patterns-operator 1bf5a2c3, ``createGiteaInstance`` and ``newArgoGiteaApplication``: a
namespace, the Secret of an administrator, and an Application that installs Gitea. What follows is in ``origin.py``.
"""

from __future__ import annotations

import base64

from syncline.control.plan import Create
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj
from syncline.patterns.installing.application import FOREGROUND, application_differs, replaced, sync_policy
from syncline.patterns.installing.config import GIT_CHART, GIT_CHART_VERSION, GIT_CHARTS
from syncline.patterns.installing.observe import PatternObserved
from syncline.patterns.installing.origin import (
    ADMINISTRATOR,
    NAMESPACE,
    SECRET,
    address,
    left_open,
    wants_git_server,
)
from syncline.patterns.installing.origin import APPLICATION as NAME
from syncline.patterns.installing.pattern import LABEL
from syncline.patterns.installing.steps import Step


def git_server(observed: PatternObserved) -> Step | None:
    """Return the next step towards the server; where there is nothing else to read, the wait for its repository."""
    pattern = observed.pattern
    if not wants_git_server(pattern):
        return None
    if observed.get("git namespace") is None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        return Step("created namespace for the git server", (Create(made, "the Pattern asks for a Git server"),))
    if observed.get("git secret") is None:
        return Step("created the git server's administrator", (Create(_secret(observed.drawn), "it logs in"),))
    wanted, live = _application(observed), observed.get("git application")
    if live is None:
        return Step("created gitea application", (Create(wanted, "it installs the Git server"),))
    if application_differs(wanted, live):
        return Step("updated gitea application", (replaced(live, wanted, "the Pattern or its settings changed"),))
    if not pattern.git("targetRepo"):
        return Step("waiting for the repository in the git server", error=left_open(pattern), missing="")
    return None


def _secret(password: str) -> Obj:
    data = {"username": ADMINISTRATOR, "password": password}
    metadata = {"name": SECRET, "namespace": NAMESPACE}
    encoded = {key: base64.b64encode(one.encode()).decode() for key, one in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}


def _application(observed: PatternObserved) -> Obj:
    config, url = observed.config, address(observed.pattern)
    parameters = {
        "gitea.admin.existingSecret": SECRET,
        "gitea.console.href": url,
        "gitea.config.server.ROOT_URL": url,
    }
    source = {
        "repoURL": config.text(GIT_CHARTS),
        "targetRevision": config.text(GIT_CHART_VERSION),
        "chart": config.text(GIT_CHART),
        "helm": {"parameters": [{"name": key, "value": one} for key, one in parameters.items()]},
    }
    spec: Obj = {
        "destination": {"name": "in-cluster", "namespace": NAMESPACE},
        "project": "default",
        "source": source,
    }
    if policy := sync_policy(observed.pattern):
        spec["syncPolicy"] = policy
    metadata = {
        "name": NAME,
        "namespace": observed.places.argo_namespace,
        "labels": {LABEL: observed.pattern.name},
        "finalizers": [FOREGROUND],
    }
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}
