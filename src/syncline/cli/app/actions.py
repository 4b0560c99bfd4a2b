"""``syncline app actions list|run``: actions such as restart, pause and scale on one object of an Application.

Actions run with the user's rights: Kubernetes RBAC decides. Before anything is written, every resulting object is
checked against the project, and every creation is tried as a dry run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from syncline.argo.project import sync_permission
from syncline.argo.settings import CONFIG_MAP
from syncline.assembly.scripts.lua import LuaWorker
from syncline.cli.access.connection import Connection, refused
from syncline.cli.access.destinations import Elsewhere
from syncline.cli.app.target import MANAGER, control_namespace, get_app, namespace_options, split
from syncline.cli.fleet.asking import refuse_pulled
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, LazyGroup
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.gitops.resource_actions.available import ActionScripts, offered_actions, parse_action_scripts, run_action
from syncline.gitops.resource_actions.model import ActionFailed, Effect, Verb
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.errors import Forbidden, NotFound
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import GVK, Obj, ResourceInfo, dig, gvk_of, name_of, namespace_of
from syncline.kube.patching.patches import create_merge_patch

ACTION_VERBS: dict[str, tuple[str, str]] = {
    "list": ("app.actions:list_actions", "List the actions that objects of an Application offer."),
    "run": ("app.actions:run", "Run an action on one object, or with --all on every one that fits."),
}


@click.command(cls=LazyGroup, table=ACTION_VERBS, context_settings=CONTEXT)
def actions() -> None:
    """Run actions on the objects of an Application: restart, pause, scale and others.

    \b
    Example:  syncline app actions list shop
              syncline app actions run shop restart --kind Deployment
    """


def filters(command: Any) -> Any:
    command = click.option("--namespace", default=None, help="Only objects of this namespace.")(command)
    command = click.option("--resource-name", default=None, help="Only the object of this name.")(command)
    return click.option("--group", default=None, help="Only objects of this API group; '' is the core group.")(command)


@click.command("list")
@click.argument("name")
@click.option("--kind", default=None, help="Only objects of this kind.")
@filters
@output_option("json", "yaml", also=("--out",))
@namespace_options
def list_actions(name: str, output: str | None, app_namespace: str, **given: Any) -> None:
    """List the actions that the objects of an Application offer, those of argocd-cm included.

    \b
    Example:  syncline app actions list shop --kind Deployment
    """
    where = split(name, app_namespace)
    with elsewhere(given, where) as (home, others), LuaWorker() as worker:
        app = get_app(home, where)
        refuse_pulled(app, "listing actions")
        link, scripts = others.link_to(app), _scripts(home, control_namespace(home, where[0]))
        rows = [
            (obj, offer)
            for obj in live_objects(link, app, given)
            for offer in _refusable(lambda obj=obj: offered_actions(obj, scripts, worker))
        ]
    if output:
        print_documents([_shown(obj) | offer.to_obj() for obj, offer in rows], output)
        return
    lines = [
        (gvk_of(obj).group, gvk_of(obj).kind, name_of(obj), offer.name, str(offer.disabled).lower())
        for obj, offer in rows
    ]
    print(table(("GROUP", "KIND", "NAME", "ACTION", "DISABLED"), lines))


@click.command()
@click.argument("name")
@click.argument("action")
@click.option("--kind", required=True, help="Kind of the object.")
@filters
@click.option("--all", "every", is_flag=True, help="Every object that fits, not just one.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="A parameter of the action; repeat it.")
@namespace_options
def run(name: str, action: str, every: bool, params: tuple[str, ...], app_namespace: str, **given: Any) -> None:
    """Run an action on one object of an Application.

    \b
    Example:  syncline app actions run shop restart --kind Deployment --resource-name web
              syncline app actions run shop scale --kind Deployment --param replicas=3
    """
    asked = _parameters(params)
    where = split(name, app_namespace)
    with elsewhere(given, where) as (home, others), LuaWorker() as worker:
        app = get_app(home, where)
        refuse_pulled(app, f"running action {action}")
        link, scripts = others.link_to(app), _scripts(home, control_namespace(home, where[0]))
        found = pick(list(live_objects(link, app, given)), every)
        now = link.now()
        planned = [
            (obj, _refusable(lambda obj=obj: run_action(obj, action, asked, scripts, worker, now))) for obj in found
        ]
        project = project_of(home, app, control_namespace(home, where[0]))
        for _, effects in planned:
            _check(link, app, project, effects)
        for obj, effects in planned:
            for effect in effects:
                print(_handle(link, obj, effect))


@contextlib.contextmanager
def elsewhere(given: Mapping[str, Any], where: tuple[str, str]) -> Iterator[tuple[Connection, Elsewhere]]:
    """Yield the connection to the kubeconfig's cluster, and the destinations of an Application at ``where``."""
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(Connection(given["kubeconfig"], given["context"]))
        yield home, stack.enter_context(Elsewhere(home, control_namespace(home, where[0])))


def _parameters(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    wrong = next((one for one, sign, _ in pairs if not sign or not one), None)
    if wrong is not None:
        raise CommandFailed(f"--param {wrong}: write NAME=VALUE", USAGE)
    return {key: value for key, _, value in pairs}


def _refusable(make: Any) -> Any:
    try:
        return make()
    except ActionFailed as error:
        raise CommandFailed(str(error)) from error


def _scripts(link: Connection, namespace: str) -> Mapping[str, ActionScripts]:
    info = link.resource(GVK("", "v1", "ConfigMap"))
    answer = link.send(client.get(info, namespace, CONFIG_MAP))
    if answer.status == Forbidden.code:
        click.echo(f"warning: actions of this installation are not known: {refused(answer.refusal())}", err=True)
    if answer.status in (Forbidden.code, NotFound.code):
        return {}
    try:
        return parse_action_scripts(dig(link.check(answer), "data", default={}) or {})
    except ValueError as error:
        raise CommandFailed(f"{namespace}/{CONFIG_MAP}: {error}") from error


def live_objects(link: Connection, app: Obj, given: Mapping[str, Any]) -> Iterator[Obj]:
    """Yield the matching live objects in the Application's status; not those that they own, as upstream."""
    wanted = (
        ("group", given["group"]),
        ("kind", given["kind"]),
        ("namespace", given["namespace"]),
        ("name", given["resource_name"]),
    )
    for row in dig(app, "status", "resources", default=[]):
        if any(value is not None and value != str(row.get(key) or "") for key, value in wanted) or row.get("hook"):
            continue
        gvk = GVK(str(row.get("group") or ""), str(row.get("version") or ""), str(row.get("kind") or ""))
        info = link.mapper.find(gvk)
        if info is None:
            continue
        answer = link.send(client.get(info, str(row.get("namespace") or ""), str(row.get("name") or "")))
        if answer.status != 404:
            yield link.check(answer)


def pick(found: list[Obj], every: bool) -> list[Obj]:
    """Return the matches, all of one kind; raises CommandFailed in upstream's words (``FilterResources``)."""
    if not found:
        raise CommandFailed("No matching resource found; see `syncline app resources`")
    if len(found) > 1 and not every:
        names = ", ".join(sorted(f"{gvk_of(obj).kind}/{name_of(obj)}" for obj in found))
        raise CommandFailed(
            f"Multiple resources match inputs: {names}. Use the --all flag or --resource-name to say which"
        )
    if len({gvk_of(obj).group for obj in found}) > 1:
        raise CommandFailed("Ambiguous resource group. Use flag --group to specify resource group explicitly.")
    return found


def project_of(link: Connection, app: Obj, namespace: str) -> Obj:
    name = str(dig(app, "spec", "project") or "default")
    found: Obj = link.ask(client.get(link.resource(APP_PROJECT), namespace, name))
    return found


def _info(link: Connection, obj: Obj) -> ResourceInfo:
    return link.resource(gvk_of(obj))


def _check(link: Connection, app: Obj, project: Obj, effects: tuple[Effect, ...]) -> None:
    destination = dig(app, "spec", "destination", default={})
    for effect in effects:
        info = _info(link, effect.obj)
        refused = sync_permission(project, effect.obj, info, destination)
        if refused:
            raise CommandFailed(refused)
        if effect.verb is Verb.CREATE:
            link.ask(client.create(info, effect.obj, dry_run=True, field_manager=MANAGER))


def _handle(link: Connection, live: Obj, effect: Effect) -> str:
    info = _info(link, effect.obj)
    shown = f"{info.kind}/{name_of(effect.obj)}"
    if effect.verb is Verb.CREATE:
        link.ask(client.create(info, effect.obj, field_manager=MANAGER))
        return f"{shown} created"
    body = create_merge_patch(live, effect.obj)
    if not body:
        return f"{shown} unchanged"
    where = (namespace_of(live), name_of(live))
    status = {"status": body.pop("status")} if "status" in body else {}
    if status:
        request = client.patch(info, *where, PatchType.MERGE, status, subresource="status", field_manager=MANAGER)
        answer = link.send(request)
        if answer.status == 404:
            body |= status  # the kind has no status subresource
        else:
            link.check(answer)
    if body:
        link.ask(client.patch(info, *where, PatchType.MERGE, body, field_manager=MANAGER))
    return f"{shown} patched"


def _shown(obj: Obj) -> Obj:
    return {"group": gvk_of(obj).group, "kind": gvk_of(obj).kind, "resource": name_of(obj)}
