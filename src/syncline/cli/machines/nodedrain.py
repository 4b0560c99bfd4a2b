"""``syncline node cordon|uncordon|drain``: by hand, with the pods and the forecast of a pool's own drain.

A drain that cannot finish does not begin (``machineconfig/drain/feasible.py``); the node is cordoned only after that.
A node whose pool drains it is left to its pool: the drain controller would write the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import click

from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import BLOCKED, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.control.cache import Cache
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.machineconfig.drain.feasible import Outlook, judge
from syncline.machineconfig.drain.observe import BUDGET, DAEMON_SET, POD, READS, daemon_sets, sight
from syncline.machineconfig.drain.pods import UNMANAGED, Departure, departures
from syncline.machineconfig.drain.proposals import proposals
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN

NODE, PODS = GVK("", "v1", "Node"), GVK("", "v1", "Pod")
NEEDED = (NODE.group_kind, POD, DAEMON_SET, BUDGET)
"""Kinds without which no drain can be judged: one that may not be listed is a refusal, not an empty list."""
MANAGER = "syncline-node"
AGAIN_S = 5.0
"""Seconds between two evictions of a pod that was refused, as kubectl's."""
NAMED = 10
"""Pods that an error names."""


def _options(about: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what the three commands share."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = output_option("json", "yaml")(connection_options(command))
        return click.argument("name")(click.option("--dry-run", is_flag=True, help=about)(command))

    return add


@click.command()
@_options("Say what would change; change nothing.")
def cordon(name: str, dry_run: bool, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Cordon a node: no new pods come to it."""
    with Connection(kubeconfig, context) as link:
        changed = _schedule(link, _free(link, name), False, dry_run)
    _print({"node": name, "changed": changed, "schedulable": False, "dryRun": dry_run}, output)


@click.command()
@_options("Say what would change; change nothing.")
def uncordon(name: str, dry_run: bool, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Uncordon a node: pods may come to it again."""
    with Connection(kubeconfig, context) as link:
        changed = _schedule(link, _free(link, name), True, dry_run)
    _print({"node": name, "changed": changed, "schedulable": True, "dryRun": dry_run}, output)


@click.command()
@click.option(
    "--timeout", default=600.0, show_default=True, help="Seconds to wait for the pods; 0: as long as it takes."
)
@click.option("--force", is_flag=True, help="Evict also pods that no controller replaces.")
@click.option("--insist", is_flag=True, help="Begin although the forecast says that it cannot finish.")
@_options("Say which pods would leave; change nothing.")
def drain(
    name: str,
    timeout: float,
    force: bool,
    insist: bool,
    dry_run: bool,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Cordon a node and evict its pods within their disruption budgets.

    Pods of DaemonSets and static pods stay, as when its pool drains it. If the drain cannot finish it does not begin,
    and the cause and a remedy are printed. Cordon and drain stay until `syncline node uncordon NAME`.

    \b
    Exit codes: 0 drained, 1 failed, 3 it cannot finish, its pool drains the node, or the time is over
    Example:    syncline node drain worker-1 --timeout 300
    """
    with Connection(kubeconfig, context) as link:
        node, cache = _free(link, name), _read(link)
        found = departures(name, cache.objects(POD), daemon_sets(cache))
        _check_unmanaged(name, found, force)
        if not insist:
            _check_forecast(link, cache, name)
        work = _Drain(link, name, timeout, daemon_sets(cache))
        leaving = [each.pod for each in found if each.leaves]
        cordoned = _schedule(link, node, False, dry_run)
        if not dry_run:
            work.run()
    gone = work.evicted if not dry_run else {_called(pod) for pod in leaving}
    stay = {_called(each.pod): each.warning or "static pod" for each in found if not each.leaves}
    _print(
        {
            "node": name,
            "changed": cordoned or bool(gone),
            "cordoned": cordoned,
            "schedulable": False,
            "evicted": sorted(gone),
            "staying": dict(sorted(stay.items())),
            "dryRun": dry_run,
        },
        output,
    )


def _print(document: dict[str, Any], output: str | None) -> None:
    if output:
        print_documents(document, output)
        return
    evicted = document.get("evicted")
    verb = "drained" if evicted is not None else "uncordoned" if document["schedulable"] else "cordoned"
    text = f"node/{document['node']} {verb}" if document["changed"] else f"node/{document['node']} already {verb}"
    print(text + (f", {len(evicted)} pods evicted" if evicted else "") + (" (dry run)" if document["dryRun"] else ""))


def _called(pod: Obj) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)}"


def _free(link: Connection, name: str) -> Obj:
    """Return the Node. Raises CommandFailed if it does not exist, or while its pool drains it."""
    answer = link.send(client.get(link.resource(NODE), "", name))
    if answer.status == 404:
        raise CommandFailed(f"node {name} does not exist; `syncline node list` shows those that do")
    found: Obj = link.check(answer)
    have = annotations_of(found)
    wanted = have.get(DESIRED_DRAIN, "")
    if wanted != have.get(LAST_DRAIN, ""):
        raise CommandFailed(
            f"node {name} is updated by its pool, whose drain controller has {wanted.partition('-')[0] or 'it'} to do; "
            f"`syncline node get {name}` shows how far it is, `syncline pool pause POOL` keeps the next ones",
            BLOCKED,
        )
    return found


def _schedule(link: Connection, node: Obj, schedulable: bool, dry_run: bool) -> bool:
    """Make the node (un)schedulable; return whether it was otherwise."""
    if bool(dig(node, "spec", "unschedulable")) is not schedulable:
        return False
    if not dry_run:
        body = {
            "metadata": {"resourceVersion": resource_version(node)},
            "spec": {"unschedulable": None if schedulable else True},
        }
        kind = link.resource(NODE)
        link.ask(client.patch(kind, "", name_of(node), PatchType.MERGE, body, field_manager=MANAGER))
    return True


def _read(link: Connection) -> Cache:
    """Return what a forecast reads. Raises CommandFailed if pods, nodes, DaemonSets or budgets may not be listed."""
    found = link.run(snapshot_of_cluster({}, only={*NEEDED, *READS}))
    for kind in NEEDED:
        if not found.cache.has_synced(kind):
            why = next(
                (text for text in found.unreadable if text.startswith(_plural(link, kind))), "they are not served"
            )
            raise CommandFailed(f"a drain needs to know all {kind.kind}s: {why}")
    for problem in found.unreadable:
        click.echo(f"warning: not seen: {problem}", err=True)
    return found.cache


def _plural(link: Connection, kind: GroupKind) -> str:
    info = link.mapper.preferred(kind)
    return f"{info.group_resource}:" if info is not None else "-"


def _check_unmanaged(name: str, found: Sequence[Departure], force: bool) -> None:
    lost = [_called(each.pod) for each in found if each.leaves and each.warning == UNMANAGED]
    if lost and not force:
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        raise CommandFailed(
            f"the drain of node {name} would delete pods that no controller replaces: {', '.join(lost[:NAMED])}{more}; "
            "--force evicts them, too",
            BLOCKED,
        )


def _check_forecast(link: Connection, cache: Cache, name: str) -> None:
    seen, now = sight(cache), link.now()
    verdict = judge(seen, name, now)
    if verdict.outlook is Outlook.BLOCKED:
        fixes = "".join(f"\nwould help: {fix}" for fix in proposals(seen, verdict, now))
        raise CommandFailed(f"{verdict.message()}; --insist begins it all the same{fixes}", BLOCKED)


@dataclass
class _Drain:
    """The evictions of one node, until nothing is left to leave."""

    link: Connection
    node: str
    timeout_s: float
    daemon_sets: frozenset[ObjectRef]
    evicted: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    """Pod → why its last eviction was refused."""

    def run(self) -> None:
        """Raises CommandFailed when the time is over, or an eviction is refused for good."""
        deadline = self.link.now() + timedelta(seconds=self.timeout_s) if self.timeout_s else None
        info, on_it = self.link.resource(PODS), f"spec.nodeName={self.node}"
        while True:
            listed = self.link.ask(client.list_(info, field_selector=on_it))
            pods = [{"apiVersion": "v1", "kind": "Pod"} | one for one in listed.get("items") or ()]
            leaving = [each.pod for each in departures(self.node, pods, self.daemon_sets) if each.leaves]
            if not leaving:
                return
            now = self.link.now()
            if deadline is not None and now >= deadline:
                raise CommandFailed(self._overdue(leaving), BLOCKED)
            self._evict([pod for pod in leaving if not is_terminating(pod)])
            left = AGAIN_S if deadline is None else min(AGAIN_S, (deadline - now).total_seconds())
            self._await(leaving, resource_version(listed), on_it, left)

    def _evict(self, pods: Sequence[Obj]) -> None:
        info = self.link.resource(PODS)
        for pod in pods:
            answer = self.link.send(client.evict(info, namespace_of(pod), name_of(pod), uid=uid_of(pod)))
            if answer.status == 429:
                self.refused[_called(pod)] = str(dig(answer.obj, "message", default="too many requests"))
                continue
            self.refused.pop(_called(pod), None)
            if answer.status != 404:
                self.link.check(answer)
                self.evicted.add(_called(pod))

    def _await(self, leaving: Sequence[Obj], since: str, on_it: str, left_s: float) -> None:
        """Wait until these pods are gone, at most for ``left_s`` seconds."""
        missing = {uid_of(pod) for pod in leaving}
        request = client.watch(self.link.resource(PODS), resource_version=since, field_selector=on_it)
        query = dict(request.query) | {"timeoutSeconds": str(max(int(left_s), 1))}
        for event in self.link.watch(client.Request("GET", request.path, query)):
            if event["type"] == "DELETED":
                missing.discard(uid_of(event["object"]))
            if not missing:
                return

    def _overdue(self, leaving: Sequence[Obj]) -> str:
        said = [f"{_called(pod)} ({self.refused.get(_called(pod)) or 'is terminating'})" for pod in leaving[:NAMED]]
        more = f" and {len(leaving) - NAMED} more" if len(leaving) > NAMED else ""
        return (
            f"timed out after {self.timeout_s:g} s: node {self.node} is cordoned, and still there are "
            f"{', '.join(said)}{more}; run it again to go on, or `syncline node uncordon {self.node}`"
        )
