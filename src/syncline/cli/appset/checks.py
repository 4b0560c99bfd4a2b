"""What argocd-server checks before it stores or generates an ApplicationSet; the texts are upstream's
(``server/applicationset/applicationset.go``)."""

from __future__ import annotations

from syncline.appset.checking import TEMPLATED, problem_of, project_of
from syncline.cli.access.connection import Connection
from syncline.cli.app.target import control_namespace
from syncline.cli.frame.failure import CommandFailed
from syncline.kube import client
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, name_of, namespace_of


def check_set(found: Obj) -> None:
    """Raise CommandFailed for a templated project, and for an element without a generator."""
    problem = problem_of(found)
    if problem.endswith(TEMPLATED):
        problem += f": {name_of(found)} has {project_of(found)!r}; `kubectl apply` stores it"
    if problem:
        raise CommandFailed(problem)


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
