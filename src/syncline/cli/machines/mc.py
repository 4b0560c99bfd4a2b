"""``syncline mc``: lists MachineConfigs, renders pools from them, and shows changes."""

from __future__ import annotations

import click

from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.manifests import read_manifests
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.machines.impact import impact
from syncline.cli.views.machineconfig import (
    change_rows,
    change_text,
    config_row,
    config_table,
    describe_config,
    is_rendered,
    part_table,
    shown,
)
from syncline.kube import client
from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from syncline.kube.objects import GVK, Obj, dig, gvk_of, name_of
from syncline.machineconfig.configs.compare import Change, changes
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME, GENERATED_VERSION, ROLE
from syncline.machineconfig.render.origins import parts_of
from syncline.machineconfig.render.refusal import RenderError
from syncline.machineconfig.render.rendering import Rendered, release_of, render
from syncline.machineconfig.render.select import select
from syncline.machineconfig.render.validate import invalid_spec

RESOURCE = f"machineconfig.{MACHINE_CONFIG.group}"
READ = (MACHINE_CONFIG.group_kind, MACHINE_CONFIG_POOL.group_kind)


@click.group(cls=Group, context_settings=CONTEXT)
def mc() -> None:
    """Show MachineConfigs, render pools without writing anything, and say what changes and what it does to nodes.

    \b
    Example:  syncline mc impact -f 99-worker-motd.yaml
              syncline mc render worker -f 99-worker-motd.yaml
              syncline mc diff worker
    """


mc.add_command(impact)


def _all(link: Connection, gvk: GVK) -> list[Obj]:
    found: list[Obj] = link.ask(client.list_(link.resource(gvk))).get("items") or []
    return sorted(found, key=lambda one: name_of(one).encode())


def _one(objects: list[Obj], kind: str, name: str) -> Obj:
    for one in objects:
        if name_of(one) == name:
            return one
    listed = "syncline mc list" if kind == "MachineConfig" else "syncline pool list"
    raise CommandFailed(f"{kind} {name} does not exist; `{listed}` shows those that do")


@mc.command("list")
@click.option("--pool", "pool_name", default=None, metavar="POOL", help="Only those of this pool.")
@click.option("--rendered", is_flag=True, help="Those that pools are rendered to, instead of what they are made from.")
@output_option("json", "yaml", "name")
@connection_options
def list_configs(
    pool_name: str | None, rendered: bool, output: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """List MachineConfigs with their pools and contents.

    \b
    Example:  syncline mc list --pool worker
    """
    with Connection(kubeconfig, context) as link:
        pools, configs = _all(link, MACHINE_CONFIG_POOL), _all(link, MACHINE_CONFIG)
        now = link.now()
    if pool_name is not None:
        _one(pools, "MachineConfigPool", pool_name)
    rows = [config_row(one, pools) for one in configs if is_rendered(one) == rendered]
    rows = [row for row in rows if pool_name is None or pool_name in row["pools"]]
    if output == "name":
        print_names(RESOURCE, [row["name"] for row in rows])
    elif output:
        print_documents(rows, output)
    else:
        print_table(config_table(rows, now), len(rows), "MachineConfigs")


@mc.command("get")
@click.argument("name", metavar="NAME")
@click.option("--contents", is_flag=True, help="Also the texts of files and units, decoded.")
@output_option("json", "yaml", "name")
@connection_options
def get_config(name: str, contents: bool, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show one MachineConfig as people read it; passwords are masked.

    \b
    Example:  syncline mc get 99-worker-motd --contents
    """
    with Connection(kubeconfig, context) as link:
        found = _one(_all(link, MACHINE_CONFIG), "MachineConfig", name)
        pools = _all(link, MACHINE_CONFIG_POOL)
    if output == "name":
        print_names(RESOURCE, [name])
    elif output:
        print_documents(shown(found), output)
    else:
        print(describe_config(found, pools, contents=contents))


@mc.command("render")
@click.argument("pool_name", metavar="POOL")
@click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    metavar="FILE",
    help="MachineConfigs as if they were applied: a file, a folder, - for stdin, Butane (.bu); repeatable.",
)
@click.option("--offline", is_flag=True, help="Without a cluster: from the files of -f alone.")
@click.option("--without", multiple=True, metavar="NAME", help="As if this MachineConfig were deleted; repeatable.")
@click.option("--diff", "with_diff", is_flag=True, help="Say what changes against what the pool aims at.")
@output_option("json", "yaml", "name")
@connection_options
def render_pool(
    pool_name: str,
    paths: tuple[str, ...],
    offline: bool,
    without: tuple[str, ...],
    with_diff: bool,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Render a pool, write nothing, and say which MachineConfig each part came from.

    \b
    Example:  syncline mc render worker
              syncline mc render worker -f machineconfigs/ --diff
              syncline mc render worker -f machineconfigs/ --offline
    """
    given = [one for path in paths for one in _read(path)]
    if offline:
        if not given or with_diff:
            raise CommandFailed("--offline: give files with -f, and no --diff: there is nothing to compare with", USAGE)
        stored, pool, controller = [], _offline_pool(given, pool_name), OFFLINE
    else:
        with Connection(kubeconfig, context) as link:
            pool = _one(_all(link, MACHINE_CONFIG_POOL), "MachineConfigPool", pool_name)
            stored = _all(link, MACHINE_CONFIG)
            controller = _one(_all(link, CONTROLLER_CONFIG), "ControllerConfig", CONTROLLER_CONFIG_NAME)
    configs = _overlaid(stored, [one for one in given if gvk_of(one).kind == MACHINE_CONFIG.kind], without)
    done = _rendered(pool, configs, controller)
    target = str(dig(pool, "spec", "configuration", "name", default="") or "")
    if output == "name":
        print_names(RESOURCE, [name_of(done.config)])
    elif output:
        print_documents(shown(done.config), output)
    elif with_diff:
        before = next((one for one in stored if name_of(one) == target), None)
        print(f"{target or '<nothing>'} → {name_of(done.config)}")
        print(change_text(_changes(before, done.config), contents=True) or "nothing changes")
    else:
        aim = "which the pool aims at" if name_of(done.config) == target else f"the pool aims at {target or '<none>'}"
        print(f"{name_of(done.config)}, {'from these files alone' if offline else aim}\n")
        print(part_table(parts_of(done.merged.order)))


OFFLINE: Obj = {"metadata": {"annotations": {GENERATED_VERSION: "offline"}}, "spec": {}}
"""A ControllerConfig without content."""


def _offline_pool(given: list[Obj], name: str) -> Obj:
    """Return the pool from the files, else the usual one: a custom pool takes the workers' configs too."""
    for one in given:
        if gvk_of(one).kind == MACHINE_CONFIG_POOL.kind and name_of(one) == name:
            return one
    roles = [name] if name in ("master", "worker", "arbiter") else ["worker", name]
    selector = {"matchExpressions": [{"key": ROLE, "operator": "In", "values": roles}]}
    return {"metadata": {"name": name}, "spec": {"machineConfigSelector": selector}}


def _overlaid(stored: list[Obj], given: list[Obj], without: tuple[str, ...]) -> list[Obj]:
    names = {name_of(one) for one in stored}
    for name in without:
        if name not in names:
            raise CommandFailed(f"--without {name}: there is no such MachineConfig", USAGE)
    replaced = {name_of(one) for one in given} | set(without)
    return [one for one in stored if name_of(one) not in replaced] + given


def _read(place: str) -> list[Obj]:
    """Return the MachineConfigs and pools of a file, a folder or standard input; other objects are skipped."""
    found = [one for one in read_manifests(place) if gvk_of(one).group_kind in READ]
    if not any(gvk_of(one).kind == MACHINE_CONFIG.kind for one in found):
        raise CommandFailed(f"-f {place}: there is no MachineConfig in it", USAGE)
    for one in found:
        spec = one.get("spec")
        if spec is not None and not isinstance(spec, dict):
            message = f"spec is {spec!r:.40}, it must be an object"
            raise CommandFailed(f"-f {place}: {one['kind']} {name_of(one)}: {message}", USAGE)
    return found


def _rendered(pool: Obj, configs: list[Obj], controller: Obj) -> Rendered:
    """Render by the rules of the release that rendered the cluster's configs."""
    release = release_of(controller, (one for one in configs if not is_rendered(one)))
    try:
        selection = select(pool, configs)
        if not selection.configs:
            raise RenderError(f"no MachineConfigs found matching selector {selection.selector}")
        for config in selection.configs:
            wrong = invalid_spec(config.get("spec"))
            if wrong:
                # Upstream's message does not name the config.
                raise RenderError(f"MachineConfig {name_of(config)}: {wrong}")
        return render(pool, selection.configs, controller, release)
    except ValueError as error:
        raise CommandFailed(f"MachineConfigPool {name_of(pool)} cannot be rendered: {str(error).rstrip()}") from error


@mc.command("diff")
@click.argument("names", nargs=-1, required=True, metavar="POOL | OLD NEW")
@click.option("--contents", is_flag=True, help="Also the lines of texts that change.")
@click.option("--exit-code", is_flag=True, help="End with 2 if there are differences.")
@output_option("json", "yaml")
@connection_options
def diff(
    names: tuple[str, ...],
    contents: bool,
    exit_code: bool,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Say in words what changes: from one MachineConfig to another, or from what all machines of a pool have to what
    the pool aims at.

    \b
    Example:  syncline mc diff worker
              syncline mc diff rendered-worker-0123 rendered-worker-4567 --contents
    """
    if len(names) > 2:
        raise CommandFailed("give one pool, or two MachineConfigs", USAGE)
    with Connection(kubeconfig, context) as link:
        configs = _all(link, MACHINE_CONFIG)
        if len(names) == 1:
            pool = _one(_all(link, MACHINE_CONFIG_POOL), "MachineConfigPool", names[0])
            parts = ("status", "spec")
            names = tuple(str(dig(pool, part, "configuration", "name", default="") or "") for part in parts)
    old, new = (_one(configs, "MachineConfig", name) if name else None for name in names)
    found = _changes(old, new)
    if output:
        print_documents({"from": names[0], "to": names[1], "changes": change_rows(found)}, output)
    else:
        print(f"{names[0] or '<nothing>'} → {names[1] or '<nothing>'}")
        print(change_text(found, contents=contents) or "nothing changes")
    return 2 if exit_code and found else 0


def _changes(old: Obj | None, new: Obj | None) -> list[Change]:
    try:
        return changes((old or {}).get("spec"), (new or {}).get("spec"))
    except ConfigError as error:
        raise CommandFailed(f"a configuration cannot be read: {str(error).rstrip()}") from error
