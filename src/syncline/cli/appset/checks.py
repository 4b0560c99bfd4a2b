"""What argocd-server checks before it stores or generates an ApplicationSet; the texts are upstream's
(``server/applicationset/applicationset.go``)."""

from __future__ import annotations

from syncline.cli.access.connection import Connection
from syncline.cli.app.target import control_namespace
from syncline.cli.frame.failure import CommandFailed
from syncline.kube import client
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, dig, name_of, namespace_of

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


def project_of(found: Obj) -> str:
    """Return the project of the template, as it is written."""
    return str(dig(found, "spec", "template", "spec", "project", default="") or "")


def check_set(found: Obj) -> None:
    """Raise CommandFailed for a templated project, and for an element without a generator."""
    if "{{" in project_of(found):
        raise CommandFailed(
            f"{PREFIX}: {TEMPLATED}: {name_of(found)} has {project_of(found)!r}; `kubectl apply` stores it"
        )
    for element in dig(found, "spec", "generators", default=[]) or []:
        names = set(element) if isinstance(element, dict) else set()
        if not names & {*KINDS, "selector"}:
            unknown = f": {', '.join(sorted(names))}" if names else ""
            raise CommandFailed(
                f"{PREFIX}: ApplicationSet {name_of(found)} contains unrecognized generators{unknown}; known are "
                f"{', '.join(KINDS)}"
            )


def unknown_project(found: Obj, fix: str = "") -> CommandFailed:
    """Return the failure for a project of the template that does not exist."""
    return CommandFailed(
        f"error checking create permissions for ApplicationSets {name_of(found)}: ApplicationSet references project "
        f"{project_of(found)} which does not exist; {fix or 'see `syncline proj list`'}"
    )


def check_project(link: Connection, found: Obj) -> None:
    """Raise CommandFailed if the project of the template does not exist; one that may not be read is not checked."""
    name = project_of(found)
    if not name:
        return  # the schema requires it
    control = control_namespace(link, namespace_of(found))
    answer = link.send(client.get(link.resource(APP_PROJECT), control, name))
    if answer.status == 404:
        raise unknown_project(found)
    if answer.status != Forbidden.code:
        link.check(answer)
