"""``syncline app``: the verbs of ``argocd app`` that the main job needs."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from syncline.assembly.inspect import SyncRequest
from syncline.cli.appview import app_rows, describe_app, operation_block, resource_rows
from syncline.cli.connection import Connection, connection_options
from syncline.cli.failure import BLOCKED, CommandFailed
from syncline.cli.output import output_option, print_documents
from syncline.cli.plan import plan_ahead
from syncline.cli.progress import Progress, progress_for
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ResourceInfo, dig, meta, name_of, resource_version

IN_CLUSTER = "https://kubernetes.default.svc"
COMPLETED = ("Succeeded", "Failed", "Error")
CASCADE = "resources-finalizer.argocd.argoproj.io"

namespace_option = click.option("-N", "--app-namespace", default="argocd", show_default=True, help="Its namespace.")


@click.group()
def app() -> None:
    """Create, list, get, sync, wait for and delete Applications."""


def _split(name: str, namespace: str) -> tuple[str, str]:
    """``ns/name`` wins over ``--app-namespace``."""
    before, slash, after = name.rpartition("/")
    return (before, after) if slash else (namespace, name)


def _get(link: Connection, info: ResourceInfo, namespace: str, name: str) -> Obj:
    answer = link.send(client.get(info, namespace, name))
    if answer.status == 404:
        raise CommandFailed(f"Application {namespace}/{name} does not exist; `syncline app list` shows those that do")
    found: Obj = answer.or_raise()
    return found


@app.command()
@click.argument("name", required=False)
@click.option(
    "-f", "--file", "file", type=click.Path(exists=True, dir_okay=False), help="Read the Application from it."
)
@click.option("--repo", help="Git repository: URL, file:// or a path.")
@click.option("--path", "path", default=".", show_default=True, help="Folder in the repository.")
@click.option("--revision", default="HEAD", show_default=True, help="Branch, tag or commit.")
@click.option("--dest-server", default=IN_CLUSTER, show_default=True)
@click.option("--dest-namespace", default="default", show_default=True)
@click.option("--project", default="default", show_default=True)
@click.option("--sync-policy", type=click.Choice(["none", "manual", "automated", "auto"]), default="none")
@click.option("--auto-prune", is_flag=True, help="With automated sync: delete what left the repository.")
@click.option("--self-heal", is_flag=True, help="With automated sync: undo changes made in the cluster.")
@click.option("--sync-option", "sync_options", multiple=True, help="For example CreateNamespace=true; repeatable.")
@click.option("--directory-recurse", is_flag=True, help="Read folders below the path too.")
@click.option("--set-finalizer", is_flag=True, help="Delete its resources with it.")
@click.option("--upsert", is_flag=True, help="Change an Application of this name.")
@namespace_option
@connection_options
def create(name: str | None, file: str | None, upsert: bool, app_namespace: str, **given: Any) -> None:
    """Create an Application from flags or from a file."""
    wanted = applications_in(Path(file), app_namespace) if file else [_from_flags(name, app_namespace, given)]
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APPLICATION)
        for obj in wanted:
            _create_one(link, info, obj, upsert)


def applications_in(path: Path, namespace: str) -> list[Obj]:
    """The Applications of a manifest file, in ``namespace`` unless they say another. Also read by ``plan -f``."""
    from syncline.kube.yaml import load_all

    loaded = load_all(path.read_bytes(), file=str(path))
    if loaded.report.errors:
        raise CommandFailed(str(loaded.report.errors[0]))
    found = [d.value for d in loaded.documents if isinstance(d.value, dict) and d.value.get("kind") == "Application"]
    if not found:
        raise CommandFailed(f"{path}: no object of kind Application in it")
    return [obj | {"metadata": {"namespace": namespace} | obj.get("metadata", {})} for obj in found]


def _from_flags(name: str | None, namespace: str, given: dict[str, Any]) -> Obj:
    if not name or not given["repo"]:
        raise click.UsageError("give NAME and --repo, or -f FILE")
    namespace, name = _split(name, namespace)
    repo = given["repo"]
    if "://" not in repo and "@" not in repo and Path(repo).is_dir():
        repo = str(Path(repo).resolve())
    source: Obj = {"repoURL": repo, "path": given["path"], "targetRevision": given["revision"]}
    if given["directory_recurse"]:
        source["directory"] = {"recurse": True}
    policy: Obj = {}
    if given["sync_policy"] in ("automated", "auto"):
        policy["automated"] = {"prune": given["auto_prune"], "selfHeal": given["self_heal"]}
    if given["sync_options"]:
        policy["syncOptions"] = list(given["sync_options"])
    spec: Obj = {
        "project": given["project"],
        "source": source,
        "destination": {"server": given["dest_server"], "namespace": given["dest_namespace"]},
    }
    if policy:
        spec["syncPolicy"] = policy
    metadata: Obj = {"name": name, "namespace": namespace}
    if given["set_finalizer"]:
        metadata["finalizers"] = [CASCADE]
    return {"apiVersion": APPLICATION.api_version, "kind": "Application", "metadata": metadata, "spec": spec}


def _create_one(link: Connection, info: ResourceInfo, obj: Obj, upsert: bool) -> None:
    name = name_of(obj)
    answer = link.send(client.create(info, obj, field_manager="syncline", field_validation="Strict"))
    if answer.status != 409:
        answer.or_raise() if answer.ok else link.ask(client.create(info, obj, field_validation="Strict"))
        print(f"application '{name}' created")
        return
    known = _get(link, info, str(meta(obj).get("namespace")), name)
    if known.get("spec") == obj.get("spec"):
        print(f"application '{name}' unchanged")
        return
    if not upsert:
        raise CommandFailed(f"existing application spec is different; use --upsert to change application '{name}'")
    link.ask(client.update(info, known | {"spec": obj["spec"]}, field_manager="syncline"))
    print(f"application '{name}' updated")


@app.command("list")
@click.option("-p", "--project", default=None, help="Only this project.")
@click.option("-l", "--selector", default="", help="Label selector.")
@output_option("wide", "name", "json", "yaml")
@namespace_option
@connection_options
def list_apps(
    project: str | None,
    selector: str,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """List Applications."""
    with Connection(kubeconfig, context) as link:
        info = link.resource(APPLICATION)
        apps = link.ask(client.list_(info, app_namespace, label_selector=selector)).get("items") or []
    apps = [a for a in apps if project is None or dig(a, "spec", "project") == project]
    if output in ("json", "yaml"):
        print_documents(apps, output)
    elif output == "name":
        for one in apps:
            print(f"{meta(one).get('namespace')}/{name_of(one)}")
    else:
        print(app_rows(apps, wide=output == "wide"))


@app.command()
@click.argument("name")
@click.option("--refresh", is_flag=True, help="Look at the repository first.")
@output_option("json", "yaml")
@namespace_option
@connection_options
def get(
    name: str, refresh: bool, output: str | None, app_namespace: str, kubeconfig: str | None, context: str | None
) -> None:
    """Show one Application, its last operation and its resources."""
    namespace, name = _split(name, app_namespace)
    with Connection(kubeconfig, context) as link:
        info = link.resource(APPLICATION)
        found = _refresh(link, info, namespace, name) if refresh else _get(link, info, namespace, name)
    if output:
        print_documents(found, output)
    else:
        print(describe_app(found))


def _refresh(link: Connection, info: ResourceInfo, namespace: str, name: str, timeout_s: float = 60) -> Obj:
    body = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
    link.ask(client.patch(info, namespace, name, PatchType.MERGE, body))
    return _until(
        link,
        info,
        (namespace, name),
        lambda app_: "argocd.argoproj.io/refresh" not in (meta(app_).get("annotations") or {}),
        timeout_s,
        "the refresh",
    )


@app.command()
@click.argument("name")
@click.option("--revision", default="", help="Sync to this branch, tag or commit instead of the spec's.")
@click.option("--prune", is_flag=True, help="Delete what left the repository.")
@click.option("--dry-run", is_flag=True, help="Ask the API, change nothing.")
@click.option("--force", is_flag=True, help="Delete and recreate what cannot be changed.")
@click.option("--replace", "replace_", is_flag=True, help="Replace instead of apply.")
@click.option("--server-side", is_flag=True, help="Server-side apply.")
@click.option("--strategy", type=click.Choice(["apply", "hook"]), default=None, help="apply: without hooks.")
@click.option("--resource", "resources", multiple=True, metavar="GROUP:KIND:NAME", help="Only this; repeatable.")
@click.option("--retry-limit", type=int, default=0, help="Further attempts after a failure.")
@click.option("--async", "asynchronous", is_flag=True, help="Do not wait.")
@click.option("--timeout", default=0, help="Seconds to wait; 0 is for ever.")
@output_option("json", "yaml")
@namespace_option
@connection_options
def sync(name: str, output: str | None, app_namespace: str, **given: Any) -> None:
    """Sync an Application and watch its phases and waves."""
    namespace, name = _split(name, app_namespace)
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APPLICATION)
        known = _get(link, info, namespace, name)
        if known.get("operation"):
            raise CommandFailed("another operation is already in progress; wait with `syncline app wait --operation`")
        watched = not given["asynchronous"] and not output
        planned = plan_ahead(link, known, SyncRequest(given["revision"], given["prune"])) if watched else None
        begun = request_sync(link, info, known, _operation(given))
        if given["asynchronous"]:
            return
        final = follow(link, info, begun, given["timeout"], progress_for(planned) if watched else None)
    if output:
        print_documents(final, output)
    else:
        print(f"\n{operation_block(final)}")
    judge(final, full=not given["resources"])


def request_sync(link: Connection, info: ResourceInfo, app_: Obj, operation: Obj) -> Obj:
    """Write ``.operation`` and take the old operation's state away, as the API server of Argo CD does."""
    body = {
        "metadata": {"resourceVersion": resource_version(app_)},
        "operation": operation,
        "status": {"operationState": None},
    }
    namespace = str(meta(app_).get("namespace"))
    for _ in range(5):
        answer = link.send(client.patch(info, namespace, name_of(app_), PatchType.MERGE, body))
        if answer.status != 409:
            break
        app_ = _get(link, info, namespace, name_of(app_))
        body["metadata"] = {"resourceVersion": resource_version(app_)}
    if not answer.ok:
        raise CommandFailed(str(answer.obj.get("message")))
    found: Obj = answer.obj
    return found


def _operation(given: dict[str, Any]) -> Obj:
    sync_: Obj = {}
    if given["revision"]:
        sync_["revision"] = given["revision"]
    if given["prune"]:
        sync_["prune"] = True
    if given["dry_run"]:
        sync_["dryRun"] = True
    if given["strategy"] or given["force"]:
        sync_["syncStrategy"] = {given["strategy"] or "hook": {"force": True} if given["force"] else {}}
    options = [
        text for flag, text in (("replace_", "Replace=true"), ("server_side", "ServerSideApply=true")) if given[flag]
    ]
    if options:
        sync_["syncOptions"] = options
    if given["resources"]:
        sync_["resources"] = [_selected(text) for text in given["resources"]]
    operation: Obj = {"initiatedBy": {"username": "syncline"}, "sync": sync_}
    if given["retry_limit"]:
        operation["retry"] = {"limit": given["retry_limit"]}
    return operation


def _selected(text: str) -> Obj:
    parts = text.split(":")
    if len(parts) != 3:
        raise click.UsageError(f"--resource {text!r}: write GROUP:KIND:NAME or GROUP:KIND:NAMESPACE/NAME")
    namespace, _, name = parts[2].rpartition("/")
    selected: Obj = {"group": parts[0], "kind": parts[1], "name": name}
    return selected | ({"namespace": namespace} if namespace else {})


def follow(link: Connection, info: ResourceInfo, app_: Obj, timeout_s: float, progress: Progress | None) -> Obj:
    """Show the operation until it ended; returns the Application at its end."""
    try:

        def ended(state: Obj) -> bool:
            if progress is not None:
                progress.update(state, link.now())
            phase = dig(state, "status", "operationState", "phase", default="")
            return phase in COMPLETED and not state.get("operation")

        where = (str(meta(app_).get("namespace")), name_of(app_))
        return _until(link, info, where, ended, timeout_s, "the operation")
    finally:
        if progress is not None:
            progress.close()


def _until(
    link: Connection, info: ResourceInfo, where: tuple[str, str], reached: Any, timeout_s: float, what: str
) -> Obj:
    """Watch one Application until ``reached``; the deadline is checked at every event and every watch timeout."""
    deadline = link.now() + timedelta(seconds=timeout_s) if timeout_s else None
    while True:
        found = _get(link, info, *where)
        if reached(found):
            return found
        request = client.watch(
            info, where[0], resource_version=resource_version(found), field_selector=f"metadata.name={where[1]}"
        )
        left = 30.0 if deadline is None else max((deadline - link.now()).total_seconds(), 1.0)
        query = dict(request.query) | {"timeoutSeconds": str(max(int(min(left, 30.0)), 1))}
        for event in link.watch(client.Request("GET", request.path, query)):
            if event["type"] == "DELETED":
                raise CommandFailed(f"Application {'/'.join(where)} was deleted meanwhile")
            if event["type"] != "BOOKMARK" and reached(event["object"]):
                found_: Obj = event["object"]
                return found_
        if deadline is not None and link.now() >= deadline:
            message = dig(_get(link, info, *where), "status", "operationState", "message", default="")
            hint = f": {message}" if message else ""
            raise CommandFailed(f"timed out after {timeout_s:g} s waiting for {what}{hint}", BLOCKED)


def judge(final: Obj, *, full: bool = True) -> None:
    """A failure where the operation did not succeed, or left something that has to be pruned."""
    phase = dig(final, "status", "operationState", "phase")
    if phase != "Succeeded":
        message = dig(final, "status", "operationState", "message", default="")
        raise CommandFailed(f"Operation has completed with phase: {phase} ({message})")
    pruning = [
        r
        for r in dig(final, "status", "operationState", "syncResult", "resources", default=[])
        if r.get("status") == "PruneSkipped" and "no prune" not in str(r.get("message"))
    ]
    if pruning and full:
        raise CommandFailed(f"{len(pruning)} resources require pruning")


@app.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--sync", "want_sync", is_flag=True, help="Wait for Synced.")
@click.option("--health", "want_health", is_flag=True, help="Wait for Healthy.")
@click.option("--operation", "want_operation", is_flag=True, help="Wait until no operation runs.")
@click.option("--degraded", is_flag=True, help="Degraded is fine too.")
@click.option("--suspended", is_flag=True, help="Suspended is fine too.")
@click.option("--delete", "want_delete", is_flag=True, help="Wait until it is gone.")
@click.option("--timeout", default=0, help="Seconds to wait; 0 is for ever.")
@namespace_option
@connection_options
def wait(names: tuple[str, ...], app_namespace: str, timeout: int, **given: Any) -> None:
    """Wait until Applications are Synced and Healthy and no operation runs."""
    if not any(
        given[k] for k in ("want_sync", "want_health", "want_operation", "degraded", "suspended", "want_delete")
    ):
        given |= {"want_sync": True, "want_health": True, "want_operation": True}
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APPLICATION)
        for name in names:
            where = _split(name, app_namespace)
            if given["want_delete"]:
                _wait_gone(link, info, where, timeout)
                continue
            final = _until(link, info, where, lambda a: _satisfied(a, given), timeout, f"Application {name}")
            print(f"{name}: {dig(final, 'status', 'sync', 'status')}, {dig(final, 'status', 'health', 'status')}")


def _satisfied(app_: Obj, given: dict[str, Any]) -> bool:
    health = dig(app_, "status", "health", "status", default="Unknown")
    wanted = {
        code
        for flag, code in (("want_health", "Healthy"), ("degraded", "Degraded"), ("suspended", "Suspended"))
        if given[flag]
    }
    if given["want_health"] and health == "Degraded" and "Degraded" not in wanted:
        raise CommandFailed(f"application '{name_of(app_)}' health state has transitioned to Degraded")
    if wanted and health not in wanted:
        return False
    if given["want_sync"] and dig(app_, "status", "sync", "status") != "Synced":
        return False
    running = app_.get("operation") or dig(app_, "status", "operationState", "phase") in ("Running", "Terminating")
    return not (given["want_operation"] and running)


def _wait_gone(link: Connection, info: ResourceInfo, where: tuple[str, str], timeout_s: float) -> None:
    if link.send(client.get(info, *where)).status == 404:
        return
    try:
        _until(link, info, where, lambda _a: False, timeout_s, "its deletion")
    except CommandFailed as error:
        if "was deleted meanwhile" not in str(error) and "does not exist" not in str(error):
            raise


@app.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--cascade/--no-cascade", default=True, show_default=True, help="Delete its resources too.")
@click.option("-p", "--propagation-policy", type=click.Choice(["foreground", "background"]), default="foreground")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", "wait_", is_flag=True, help="Wait until it is gone.")
@namespace_option
@connection_options
def delete(
    names: tuple[str, ...],
    cascade: bool,
    propagation_policy: str,
    yes: bool,
    wait_: bool,
    app_namespace: str,
    **given: Any,
) -> None:
    """Delete Applications, with their resources unless --no-cascade."""
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APPLICATION)
        for name in names:
            where = _split(name, app_namespace)
            found = _get(link, info, *where)
            if not yes and sys.stdin.isatty():
                count = len(resource_rows(found))
                what = f"with its {count} resources" if cascade else "without its resources"
                click.confirm(f"Delete application '{name}' {what}?", abort=True)
            _set_cascade(link, info, found, cascade, propagation_policy)
            link.ask(client.delete(info, *where))
            print(f"application '{where[1]}' deleted")
            if wait_:
                _wait_gone(link, info, where, 0)


def _set_cascade(link: Connection, info: ResourceInfo, found: Obj, cascade: bool, policy: str) -> None:
    before = list(meta(found).get("finalizers") or [])
    after = [f for f in before if not f.startswith(CASCADE)]
    if cascade:
        after.append(CASCADE if policy == "foreground" else f"{CASCADE}/background")
    if after != before:
        body = {"metadata": {"finalizers": after or None}}
        namespace = str(meta(found).get("namespace"))
        link.ask(client.patch(info, namespace, name_of(found), PatchType.MERGE, body))
