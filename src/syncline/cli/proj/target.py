"""Finds, reads and changes a project. Shared by the verbs of ``syncline proj``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from syncline.argo.project import ProjectError, validate_project
from syncline.cli.access.connection import Connection, namespaced
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.suggesting import suggestion
from syncline.kube import client
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, dig

MAX_CONFLICTS = 5
"""Attempts to write despite concurrent writes."""
Change = Callable[[Obj], Obj]
"""Old spec → new spec; raises CommandFailed if impossible."""

namespace_options = namespaced("Namespace of projects.", "-N", "--app-namespace", "namespace")


def get_project(link: Connection, namespace: str, name: str) -> Obj:
    """Return the project of this name. Raises CommandFailed."""
    answer = link.send(client.get(link.resource(APP_PROJECT), namespace, name))
    if answer.status == 404:
        near = suggestion(link, link.resource(APP_PROJECT), namespace, name)
        raise CommandFailed(f"project '{name}' does not exist; `syncline proj list` shows those that do{near}")
    found: Obj = link.check(answer)
    return found


def check_project(project: Obj) -> Obj:
    """Return the project if the controllers accept it. Raises CommandFailed."""
    try:
        validate_project(project)
    except ProjectError as error:
        raise CommandFailed(str(error.args[0])) from error
    return project


def change_spec(given: Mapping[str, Any], name: str, change: Change, *, unchanged: str = "", did: str = "") -> None:
    """Read the project, change its spec and write it; after a conflict, start over. ``unchanged``: printed if nothing
    changes; without it the project is written anyway. ``did``: printed after the write."""
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APP_PROJECT)
        for attempt in range(1, MAX_CONFLICTS + 1):
            found = get_project(link, given["namespace"], name)
            before = dig(found, "spec", default={})
            spec = change(before)
            if unchanged and spec == before:
                print(unchanged)
                return
            wanted = check_project(found | {"spec": spec})
            answer = link.send(client.update(info, wanted, field_manager="syncline", field_validation="Strict"))
            if answer.status != 409 or attempt == MAX_CONFLICTS:
                link.check(answer)
                break
    print(did or f"project '{name}' updated")
