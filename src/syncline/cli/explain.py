"""``syncline explain``: what blocks an object, down to the cause, and what to do next."""

from __future__ import annotations

import click

from syncline.assembly.inspect import observed_application
from syncline.cli.connection import Connection, connection_options
from syncline.cli.elsewhere import Elsewhere
from syncline.cli.explainview import describe_cause
from syncline.cli.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.looking import look_at, source_reader
from syncline.cli.output import output_option, print_documents
from syncline.control.cache import Cache
from syncline.explain.application import explain_application
from syncline.explain.graph import cause_to_obj, explain_object
from syncline.explain.view import Found, LogTail, View
from syncline.gitops.application.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, ObjectRef

SHORT = {"app": "applications", "pool": "machineconfigpools"}
"""Kinds by the words that our own commands use for them."""
LOG_LINES = 20
"""Last lines of a failed container's log that are asked for."""
POD = GVK("", "v1", "Pod")


@click.command()
@click.argument("target", metavar="KIND/NAME | KIND/NAMESPACE/NAME | APP")
@click.option("-n", "--namespace", default=None, help="Namespace of the object.")
@output_option("json", "yaml")
@click.option("-N", "--app-namespace", default="argocd", show_default=True, help="Namespace of Applications.")
@connection_options
def explain(
    target: str,
    namespace: str | None,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Say in at most ten lines what blocks an object, down to the cause, and what to do next.

    \b
    Exit codes: 0 nothing blocks, 3 blocked
    """
    with Connection(kubeconfig, context) as link:
        settings = AppSettings(control_namespace=app_namespace)
        cache = look_at(link, app_namespace)
        spaces = (namespace or link.namespace, app_namespace)
        ref = object_ref(cache.mapper, target, spaces)
        with Elsewhere(link, app_namespace, cache) as others:
            found = _found(link, others, cache, ref, settings)
        now = link.now()
    if output:
        print_documents(cause_to_obj(found.cause) | {"blocked": found.blocked}, output)
    else:
        print(describe_cause(found.cause, now))
    return BLOCKED if found.blocked else 0


def object_ref(mapper: Mapper, target: str, spaces: tuple[str, str]) -> ObjectRef:
    """What a person typed, as a reference; ``spaces`` are the namespaces of objects and of Applications."""
    parts = target.split("/")
    if len(parts) == 1:
        return ObjectRef(APPLICATION.group, APPLICATION.kind, spaces[1], target)
    if len(parts) > 3 or not all(parts):
        raise CommandFailed(f"{target!r}: write KIND/NAME, KIND/NAMESPACE/NAME or the name of an Application", USAGE)
    kind = SHORT.get(parts[0].lower(), parts[0])
    info = mapper.by_name(kind)
    if info is None:
        raise CommandFailed(f"{target!r}: the cluster serves no kind {parts[0]!r}; see `kubectl api-resources`", USAGE)
    default = spaces[1] if info.group_kind == APPLICATION.group_kind else spaces[0]
    space = parts[1] if len(parts) == 3 else default
    return ObjectRef(info.group, info.kind, space if info.namespaced else "", parts[-1])


def _found(link: Connection, others: Elsewhere, cache: Cache, ref: ObjectRef, settings: AppSettings) -> Found:
    obj = cache.get(ref)
    if obj is None:
        where = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        raise CommandFailed(f"{ref.kind} {where} does not exist")
    now = link.now()
    if ref.group_kind != APPLICATION.group_kind:
        return explain_object(View(cache, now, _logs(link)), obj)
    with source_reader(link, cache, settings.control_namespace) as reader:
        seen = observed_application(cache, ref, reader, settings, now, others)
    assert seen is not None, "the Application was there a moment ago"
    there = others.snapshot(seen.remote) if seen.remote else None
    if there is None:
        return explain_application(View(cache, now, _logs(link)), seen)
    return explain_application(View(there, now, _logs(others.link_to(obj))), seen)


def _logs(link: Connection) -> LogTail:
    pods = link.resource(POD)

    def tail(namespace: str, pod: str, container: str) -> tuple[str, ...]:
        query = {"container": container, "tailLines": str(LOG_LINES)}
        answer = link.send(Request("GET", pods.path(namespace, pod, "log"), query))
        return tuple(answer.raw.decode("utf-8", "replace").splitlines()) if answer.ok else ()

    return tail
