"""``syncline explain``: shows what blocks an object, down to the cause, and the next step."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import partial

import click

from syncline.assembly.inspection.preview import observed_application
from syncline.cli.access.connection import Connection, connection_options, refused
from syncline.cli.access.destinations import Elsewhere
from syncline.cli.access.snapshots import include, looking, source_reader
from syncline.cli.app.target import control_namespace
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.application import set_ref_of
from syncline.cli.views.cause import describe_cause
from syncline.control.cache import Cache
from syncline.explain.application import explain_application
from syncline.explain.fleet.carried import explain_carried
from syncline.explain.graph import cause_to_obj, explain_object
from syncline.explain.naming import SHORT, NamingError, object_ref
from syncline.explain.view import Found, LogTail, View
from syncline.fleet.pull.names import is_carried
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, ObjectRef, name_of

LOG_LINES = 20
"""Last log lines read from a failed container."""
POD = GVK("", "v1", "Pod")
SHOWN = 5
"""Existing names listed when a name is not found."""


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="KIND/NAME | KIND/NAMESPACE/NAME | APP")
@click.option("-n", "--namespace", default=None, help="Namespace of the object.")
@output_option("json", "yaml")
@click.option("-N", "--app-namespace", default="argocd", show_default=True, help="Namespace of Applications.")
@connection_options
def explain(
    words: tuple[str, ...],
    namespace: str | None,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Show in at most ten lines what blocks an object, down to the cause, and what to do next.

    \b
    Examples:   syncline explain app/shop
                syncline explain appset/fleet
                syncline explain cluster/eu-1
                syncline explain pool/worker
                syncline explain deployment/web -n shop
    Exit codes: 0 nothing blocks, 3 blocked
    """
    if len(words) > 2 or (len(words) == 2 and any("/" in word for word in words)):
        raise CommandFailed(f"{' '.join(words)!r}: explain tells of one object; write KIND/NAME", USAGE)
    target = "/".join(words)
    with Connection(kubeconfig, context) as link:
        settings = AppSettings(control_namespace=control_namespace(link, app_namespace))
        with looking(link, settings.control_namespace) as cache:
            ref = meant(cache.mapper, target, (namespace or link.namespace, app_namespace))
            if cache.get(ref) is None:
                raise CommandFailed(cache.unread(ref) or _missing(cache, ref, target))
            with Elsewhere(link, settings.control_namespace, cache) as others:
                found = _found(link, others, cache, ref, settings)
        now = link.now()
    if output:
        print_documents(cause_to_obj(found.cause) | {"blocked": found.blocked}, output)
    else:
        print(describe_cause(found.cause, now))
    return BLOCKED if found.blocked else 0


def meant(mapper: Mapper, target: str, spaces: tuple[str, str]) -> ObjectRef:
    """As :func:`object_ref`; an invalid name is a usage error."""
    try:
        return object_ref(mapper, target, spaces)
    except NamingError as error:
        raise CommandFailed(str(error), USAGE) from error


def _missing(cache: Cache, ref: ObjectRef, target: str) -> str:
    """Return the message for a missing object, with existing names, as most missing ones are misspelt."""
    where = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
    text = f"{ref.kind} {where} does not exist"
    if "/" not in target and cache.mapper.by_name(SHORT.get(target.lower(), target)) is not None:
        return f"{text}; to have a {target.lower()} explained write {target.lower()}/NAME"
    there = sorted(name_of(one) for one in cache.objects(ref.group_kind, ref.namespace))
    near = difflib.get_close_matches(ref.name, there, SHOWN) or there[:SHOWN]
    more = ", …" if len(near) < len(there) else ""
    return f"{text}; there {'is' if len(near) == 1 else 'are'} {', '.join(near)}{more}" if near else text


def _found(link: Connection, others: Elsewhere, cache: Cache, ref: ObjectRef, settings: AppSettings) -> Found:
    obj = cache.get(ref)
    assert obj is not None, "it was there a moment ago"
    if ref.group_kind == APPLICATION.group_kind:
        found = explained_application(link, others, cache, ref, settings)
        owner = set_ref_of(obj)
        if owner is None:
            return found
        from syncline.cli.appset.explaining import origin

        made = origin(link, cache, owner, ref.name, settings.control_namespace)
        own = found.cause.because
        # What holds a rollout comes first: a sync by hand would go around it.
        return replace(found, cause=replace(found.cause, because=(made, *own) if made.next_action else (*own, made)))
    view = View(cache, link.now(), _logs(link))
    if ref.group_kind == APPLICATION_SET.group_kind:
        from syncline.cli.appset.explaining import explained_set

        below = partial(explained_application, link, others, cache, settings=settings)
        return explained_set(link, view, cache, obj, settings.control_namespace, below)
    return explain_object(view, obj)


def explained_application(
    link: Connection, others: Elsewhere, cache: Cache, ref: ObjectRef, settings: AppSettings
) -> Found:
    obj, now = cache.get(ref), link.now()
    assert obj is not None, "it was there a moment ago"
    if is_carried(obj):
        return explain_carried(View(cache, now), obj)
    include(cache, obj, settings.control_namespace)
    with source_reader(link, cache, settings.control_namespace) as reader:
        observed = observed_application(cache, ref, reader, settings, now, others)
    assert observed is not None, "the Application was there a moment ago"
    there = others.snapshot(observed.remote) if observed.remote else None
    if there is None:
        return explain_application(View(cache, now, _logs(link)), observed)
    return explain_application(View(there, now, _logs(others.link_to(obj))), observed)


def _logs(link: Connection) -> LogTail:
    pods = link.resource(POD)

    def tail(namespace: str, pod: str, container: str) -> tuple[str, ...]:
        query = {"container": container, "tailLines": str(LOG_LINES)}
        answer = link.send(Request("GET", pods.path(namespace, pod, "log"), query))
        if answer.status == Forbidden.code:
            return (f"(its log may not be read: {refused(answer.refusal())})",)
        return tuple(answer.raw.decode("utf-8", "replace").splitlines()) if answer.ok else ()

    return tail
