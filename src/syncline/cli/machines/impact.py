"""``syncline mc impact``: forecasts the effect of a change on nodes before it is made."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import BLOCKED, UNSAFE, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syncline.control.cache import Cache
    from syncline.kube.objects import Obj, ObjectRef
    from syncline.machineconfig.impact.forecast import Change

CHANGES = 2
"""Exit code if nodes are affected, as ``plan`` has it for changes."""


@click.command("impact")
@click.option(
    "-f",
    "--filename",
    "places",
    multiple=True,
    metavar="FILE",
    help="Manifests as if they were applied: a file, a folder, - for stdin, Butane (.bu); repeatable.",
)
@click.option(
    "--delete",
    "--without",
    "deletions",
    multiple=True,
    metavar="[KIND/]NAME",
    help="As if this MachineConfig, or object of KIND, were deleted; repeatable.",
)
@click.option("--revision", default="", help="Applications as they are at this branch, tag or commit.")
@click.option("--app", "apps", multiple=True, metavar="APP", help="Only this Application of --revision; repeatable.")
@click.option("--prune", is_flag=True, help="With --revision: as `app sync --prune` would run.")
@click.option("--pool", default="", metavar="POOL", help="Tell of this pool only.")
@click.option(
    "--against",
    default=None,
    metavar="FILE|DIR",
    help="Without a cluster: against what `kubectl get -o yaml` wrote of one.",
)
@click.option(
    "--folder",
    default=None,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The playbook of the AnsibleConfig in -f as it is in this folder, not in Git.",
)
@click.option("--check", is_flag=True, help="Run playbooks of AnsibleConfigs in check mode, in a throwaway root here.")
@click.option("--all", "everything", is_flag=True, help="List every node, also of large pools.")
@output_option("json", "yaml")
@click.option("-N", "--app-namespace", default="argocd", show_default=True, help="Namespace of Applications.")
@connection_options
def impact(
    places: tuple[str, ...],
    deletions: tuple[str, ...],
    revision: str,
    apps: tuple[str, ...],
    prune: bool,
    pool: str,
    against: str | None,
    folder: Path | None,
    check: bool,
    everything: bool,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Say what a change would do to nodes: none, reload, restart, drain or reboot, which field causes it, in which
    order and how long; what would be refused, and which drains cannot finish. Nothing is written.

    Takes MachineConfigs and whatever they are made of (KubeletConfig, ContainerRuntimeConfig, image mirrors, pools,
    node disruption policies, AnsibleConfigs, whose playbooks are read from Git). Without a change it reports what is in
    progress or held back now.

    \b
    Exit codes: 0 no node is touched, 2 nodes are touched, 3 blocked (a pool is paused, a drain cannot finish),
                4 refused (cannot be rendered, or nodes cannot take it on)
    Examples:   syncline mc impact -f 99-worker-nosmt.yaml
                syncline mc impact -f motd.bu --delete 99-old --pool worker
                syncline mc impact --revision feature/chrony
                syncline mc impact -f ansibleconfig.yaml --folder ./playbooks --check
    """
    from syncline.assembly.machines.impact import forecaster
    from syncline.base.clock import SystemClock
    from syncline.cli.access.manifests import read_manifests
    from syncline.cli.views.impact import describe_impact
    from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
    from syncline.kube.objects import gvk_of

    if (apps or prune) and not revision:
        raise click.UsageError("--app and --prune go with --revision")
    given = [one for place in places for one in read_manifests(place)]
    with contextlib.ExitStack() as open_links:
        link = None if against is not None else open_links.enter_context(Connection(kubeconfig, context))
        cache = _look(link, against, app_namespace, given, whole=bool(revision))
        _has_pool(cache, pool)
        change, notes = _asked(cache, places, given, deletions)
        if revision:
            change, report = _at_revision(link, cache, change, revision, apps, app_namespace, prune=prune)
            notes += report
        now = (link.now() if link is not None else SystemClock().now()).replace(microsecond=0)
        configs = [one for one in change.applied if gvk_of(one).group_kind == ANSIBLE_CONFIG.group_kind]
        if configs or folder is not None or check:
            from syncline.cli.machines.playbooks import check_playbooks, read_playbooks

            if not configs:
                raise CommandFailed("--folder and --check go with an AnsibleConfig in -f", USAGE)
            read = read_playbooks(configs, folder, link, cache, app_namespace, now)
            checks = check_playbooks(configs, read, cache) if check else {}
            change = replace(change, playbooks=read, checks=checks)
    found = forecaster(cache, playbooks=change.playbooks).forecast(change, now, pool)
    if output:
        print_documents(found.to_obj() | {"notes": [*notes, *found.notes]}, output)
    else:
        print(describe_impact(found, notes, everything=everything))
    return {"nothing": 0, "changes": CHANGES, "blocked": BLOCKED, "refused": UNSAFE}[found.verdict]


def _look(link: Connection | None, against: str | None, namespace: str, given: Sequence[Obj], *, whole: bool) -> Cache:
    """Return a snapshot of the kinds that a forecast reads (all if Applications are rendered too), and of the given
    kinds' CRDs, which decide what is accepted."""
    from syncline.assembly.inspection.snapshot import snapshot_of_cluster
    from syncline.assembly.machines.impact import impact_kinds
    from syncline.cli.access.snapshots import look_at, look_offline
    from syncline.kube import client
    from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
    from syncline.kube.objects import GVK, gvk_of
    from syncline.machineconfig.impact.admission import DEFINITIONS

    if link is None:
        return look_offline(against or "", namespace)
    if whole:
        return look_at(link, namespace)
    snapshot = link.run(snapshot_of_cluster({}, {*impact_kinds(), ANSIBLE_CONFIG.group_kind}))
    for problem in snapshot.unreadable:
        click.echo(f"warning: not seen: {problem}", err=True)
    definitions = link.mapper.find(GVK(DEFINITIONS.group, "v1", DEFINITIONS.kind))
    for info in (snapshot.cache.mapper.preferred(kind) for kind in sorted({gvk_of(one).group_kind for one in given})):
        if info is not None and definitions is not None and "." in info.group:
            answer = link.send(client.get(definitions, "", f"{info.plural}.{info.group}"))
            if answer.status != 404:
                snapshot.cache.put(DEFINITIONS, link.check(answer))
    return snapshot.cache


def _has_pool(cache: Cache, name: str) -> None:
    from syncline.kube.objects import GroupKind, ObjectRef, name_of
    from syncline.machineconfig.names import POOL

    for kind in (GroupKind(*POOL), GroupKind("", "Node")):
        unread = cache.unread(ObjectRef(*kind, "", ""))
        if unread:
            raise CommandFailed(f"a forecast needs every {kind.kind}: {unread}")
    pools = [name_of(one) for one in cache.objects(POOL)]
    if not pools:
        raise CommandFailed(
            "there is no MachineConfigPool in the cluster; `syncline up --machine-config` makes master and worker"
        )
    if name and name not in pools:
        raise CommandFailed(f"MachineConfigPool {name} does not exist; there are {', '.join(pools)}", USAGE)


def _asked(
    cache: Cache, files: Sequence[str], given: Sequence[Obj], deletions: Sequence[str]
) -> tuple[Change, list[str]]:
    """Return the change described by files and flags. Objects that do not affect machines are counted and skipped."""
    from syncline.assembly.machines.impact import impact_kinds
    from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
    from syncline.kube.objects import gvk_of
    from syncline.machineconfig.impact.forecast import Change

    kinds = {*impact_kinds(), ANSIBLE_CONFIG.group_kind}
    mine = [_placed(cache, one) for one in given if gvk_of(one).group_kind in kinds]
    if files and not mine:
        raise CommandFailed("-f: there is nothing in it that concerns machines, such as a MachineConfig", USAGE)
    others = len(given) - len(mine)
    message = "1 other object of the files does" if others == 1 else f"{others} other objects of the files do"
    notes = [f"{message} not concern machines"] if others else []
    return Change(applied=mine, deleted=[_deleted(cache, text, mine) for text in deletions]), notes


def _placed(cache: Cache, obj: Obj) -> Obj:
    """Return the object, in namespace ``default`` if its kind is namespaced and it names none."""
    from syncline.kube.objects import gvk_of, namespace_of

    info = cache.mapper.preferred(gvk_of(obj).group_kind)
    if info is None or not info.namespaced or namespace_of(obj):
        return obj
    return obj | {"metadata": obj["metadata"] | {"namespace": "default"}}


def _deleted(cache: Cache, text: str, given: Sequence[Obj]) -> ObjectRef:
    from syncline.explain.naming import SHORT
    from syncline.kube.objects import ObjectRef, name_of
    from syncline.machineconfig.names import MACHINE_CONFIG

    kind, slash, name = text.rpartition("/")
    group_kind = MACHINE_CONFIG
    if slash:
        info = cache.mapper.by_name(SHORT.get(kind.lower(), kind))
        if info is None:
            raise CommandFailed(f"--delete {text}: the cluster serves no kind {kind!r}", USAGE)
        group_kind = info.group_kind
    ref = ObjectRef(*group_kind, "", name)
    if cache.get(ref) is None:
        raise CommandFailed(f"--delete {text}: there is no such {group_kind.kind}; see `syncline mc list`", USAGE)
    if any(name_of(one) == name and one.get("kind") == group_kind.kind for one in given):
        raise CommandFailed(f"--delete {text}: it is in the files of -f, too", USAGE)
    return ref


def _at_revision(
    link: Connection | None,
    cache: Cache,
    change: Change,
    revision: str,
    apps: Sequence[str],
    namespace: str,
    *,
    prune: bool,
) -> tuple[Change, list[str]]:
    from syncline.assembly.sources.revisions import revised_change
    from syncline.base.clock import SystemClock
    from syncline.cli.access.destinations import Elsewhere
    from syncline.cli.access.snapshots import source_reader
    from syncline.gitops.application.observing.observe import AppSettings

    settings = AppSettings(control_namespace=namespace)
    now = link.now() if link is not None else SystemClock().now()
    with source_reader(link, cache, namespace) as reader, Elsewhere(link, namespace, cache) as others:
        found = revised_change(cache, revision, apps, reader, settings, now, others, prune=prune)
    if found.problem:
        raise CommandFailed(found.problem)
    return found.joined(change), list(found.notes)
