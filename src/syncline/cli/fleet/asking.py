"""Asks a cluster about an Application that it pulls: writes an ApplicationQuery on the hub, and waits for the answer of
the cluster's agent. Each answer that is waited for, and each that does not come, is said with its reason."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import click
import msgspec

from syncline.base.entropy import Entropy
from syncline.cli.access.connection import Connection
from syncline.cli.frame.failure import BLOCKED, CommandFailed
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.fleet.pull import names
from syncline.fleet.pull.queries.model import Ask, Phase, Question, phase_of, query_object
from syncline.kube import client
from syncline.kube.kinds.applicationqueries import QUERY
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.syncline import REPORT
from syncline.kube.objects import GVK, Obj, ResourceInfo, annotations_of, dig, name_of, namespace_of

timeout_option = click.option(
    "--timeout", default=60, show_default=True, help="Seconds to wait for the agent of a cluster that pulls it."
)
REVIEW: Final = GVK("authentication.k8s.io", "v1", "SelfSubjectReview")
FIRST_S, LOOK_S = 0.1, 1.0
"""Seconds between two looks for the answer: at first, and at most."""
MAX_PARTS: Final = 20
"""Objects that one answer may come in."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the hub knows of a cluster. ``silent``: no answer can come; ``doubt``: why one may not come."""

    cluster: str
    silent: str = ""
    doubt: str = ""


def cluster_of(app: Obj) -> str:
    """Return the cluster that pulls an Application of the hub; empty for one of this cluster."""
    return annotations_of(app)[names.CLUSTER] if names.is_carried(app) else ""


def about(app: Obj, ask: Ask, **given: Any) -> Question:
    """Return a question about an Application; who asks is added when it is sent."""
    return Question(namespace_of(app), name_of(app), ask, "", **given)


def refuse_pulled(app: Obj, what: str) -> None:
    """Raise CommandFailed for an Application of another cluster: the hub cannot act there."""
    if cluster := cluster_of(app):
        raise CommandFailed(f"{what} is not possible here: cluster {cluster} pulls the Application; do it there")


def standing_of(link: Connection, cluster: str) -> Standing:
    """Look whether an agent of Syncline reports from a cluster. What may not be read leaves that open."""
    found = link.send(client.get(_kind(link, MANAGED_CLUSTER), "", cluster))
    if found.status == 404:
        return Standing(cluster, silent=f"the hub has no cluster {cluster}; `syncline cluster list` shows those it has")
    reports = link.send(client.list_(_kind(link, REPORT), cluster, limit=1))
    if reports.ok and not reports.obj.get("items"):
        why = f"no agent of Syncline has reported from cluster {cluster}; agents of OCM answer no questions"
        return Standing(cluster, silent=f"{why}. Look there, or run `syncline agent` on it")
    known = find_condition(dig(found.obj, "status", "conditions") or (), AVAILABLE) if found.ok else None
    if known is not None and known.get("status") != "True":
        since = known.get("lastTransitionTime")
        return Standing(cluster, doubt=f"cluster {cluster} has not reported since {since}: {known.get('message')}")
    return Standing(cluster)


def asked(link: Connection, app: Obj, question: Question, timeout_s: float) -> list[Obj]:
    """Return the rows of the answer. Raises CommandFailed, with the reason, if there is none within ``timeout_s``."""
    cluster = cluster_of(app)
    standing = standing_of(link, cluster)
    if standing.silent:
        raise CommandFailed(standing.silent, BLOCKED)
    if standing.doubt:
        click.echo(f"warning: {standing.doubt}; waiting for {timeout_s:g} s", err=True)
    me = link.ask(client.create(_kind(link, REVIEW), {"apiVersion": REVIEW.api_version, "kind": REVIEW.kind}))
    question = replace(question, asked_by=str(dig(me, "status", "userInfo", "username") or ""))
    rows: list[Obj] = []
    ends = link.now() + timedelta(seconds=timeout_s)
    for _ in range(MAX_PARTS):
        status = _one(link, standing, question, ends, timeout_s)
        for note in status.get("notes") or ():
            click.echo(f"warning: {note}", err=True)
        rows += _decoded(cluster, status.get("rows") or ())
        following = status.get("next")
        if not isinstance(following, int) or following <= question.offset:
            return rows
        question = question.from_row(following)
    click.echo(f"warning: the answer has more than {MAX_PARTS} parts; choose with --kind or --name", err=True)
    return rows


def _kind(link: Connection, gvk: GVK) -> ResourceInfo:
    found = link.mapper.find(gvk)
    if found is None:
        raise CommandFailed(f"{link.server} serves no {gvk.kind} ({gvk.api_version}); does its role `pull` run?")
    return found


def _one(link: Connection, standing: Standing, question: Question, ends: datetime, timeout_s: float) -> Obj:
    """Ask once; return the status of the answered query, which is deleted."""
    info, cluster = _kind(link, QUERY), standing.cluster
    name = f"q-{Entropy().uid()}"  # who may only get a query by its name must not guess it
    link.ask(client.create(info, query_object(question, cluster, name)))
    pause, phase = FIRST_S, ""
    try:
        while link.now() < ends:
            answer = link.send(client.get(info, cluster, name))
            if answer.status == 404:
                raise CommandFailed(f"the hub deleted the question: cluster {cluster} has too many; ask again later")
            query = link.check(answer)
            phase, status = phase_of(query), query.get("status") or {}
            if phase == Phase.ANSWERED:
                found: Obj = status
                return found
            if phase in (Phase.REFUSED, Phase.FAILED):
                raise CommandFailed(f"cluster {cluster}: {status.get('error')}")
            time.sleep(pause)
            pause = min(pause * 1.5, LOOK_S)
    finally:
        link.send(client.delete(info, cluster, name))
    waits = (
        f"the agent of cluster {cluster} has not answered" if phase else "the hub's role `pull` has not passed it on"
    )
    doubt = f": {standing.doubt}" if standing.doubt else ""
    raise CommandFailed(f"no answer within {timeout_s:g} s: {waits}{doubt}", BLOCKED)


def _decoded(cluster: str, texts: Sequence[Any]) -> list[Obj]:
    rows = []
    for text in texts:
        try:
            row = msgspec.json.decode(str(text))
        except (msgspec.DecodeError, RecursionError) as error:
            raise CommandFailed(f"the answer of cluster {cluster} cannot be read: {error}") from error
        if not isinstance(row, dict):
            raise CommandFailed(f"the answer of cluster {cluster} cannot be read: a row is no object")
        rows.append(row)
    return rows
