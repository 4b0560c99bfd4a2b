"""The flags for an Application's spec, and the change that each makes.

Shared by ``app create`` and ``app set``. Takes and returns a spec; sends no requests. Flag names and rules: Argo CD
``cmd/util/app.go`` (reference argocd-sync §9).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from syncline.cli.app.spec.toolflags import TOOL_FIELDS, TOOL_LISTS, TOOL_OPTIONS, put, with_tool_flags
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj

Flags = Mapping[str, Any]
"""Values by flag; None if not given."""

HYDRATOR = (
    ("--dry-source-repo", "Hydrator: repository that is rendered.", ("drySource", "repoURL")),
    ("--dry-source-path", "Hydrator: folder that is rendered.", ("drySource", "path")),
    ("--dry-source-revision", "Hydrator: branch, tag or commit that is rendered.", ("drySource", "targetRevision")),
    ("--sync-source-branch", "Hydrator: branch that is synced.", ("syncSource", "targetBranch")),
    ("--sync-source-path", "Hydrator: folder that is synced.", ("syncSource", "path")),
    ("--hydrate-to-branch", "Hydrator: branch that rendered manifests are pushed to.", ("hydrateTo", "targetBranch")),
)
"""Flag, help, path in ``spec.sourceHydrator``."""
POLICIES = ("none", "manual", "automated", "auto", "automatic")
OPTIONS = (
    click.option("--repo", help="Git repository: URL, file:// or a path."),
    click.option("--path", help="Folder in the repository."),
    click.option("--revision", help="Branch, tag or commit."),
    click.option("--helm-chart", help="Chart of a Helm repository."),
    click.option("--dest-server", help="URL of the destination cluster."),
    click.option("--dest-name", help="Name of the destination cluster."),
    click.option("--dest-namespace", help="Namespace of objects that name none."),
    click.option("--project", help="AppProject."),
    click.option("--sync-policy", type=click.Choice(POLICIES), help="automated (auto, automatic), or none (manual)."),
    click.option("--auto-prune/--no-auto-prune", default=None, help="Automated sync deletes what left the repository."),
    click.option("--self-heal/--no-self-heal", default=None, help="Automated sync undoes changes in the cluster."),
    click.option("--allow-empty/--no-allow-empty", default=None, help="Automated sync may delete everything."),
    click.option("--sync-option", "sync_options", multiple=True, help="X=Y adds, !X removes; repeatable."),
    click.option("--sync-retry-limit", type=int, help="Attempts after a failed sync; 0 removes the retries."),
    click.option("--sync-retry-backoff-duration", help="First wait between attempts, for example 5s."),
    click.option("--sync-retry-backoff-max-duration", help="Longest wait, for example 3m."),
    click.option("--sync-retry-backoff-factor", type=int, help="How much longer each wait is."),
    click.option(
        "--sync-retry-refresh/--no-sync-retry-refresh", default=None, help="Each attempt takes the newest commit."
    ),
    click.option("--revision-history-limit", type=int, help="Deployments kept in the history."),
    click.option("--directory-recurse/--no-directory-recurse", default=None, help="Read folders below the path too."),
    click.option("--directory-include", help="Only files that match this glob."),
    click.option("--directory-exclude", help="No files that match this glob."),
    click.option(
        "--directory-disable-extension-filter/--no-directory-disable-extension-filter",
        "disable_extension_filter",
        default=None,
        help="Read files of any name as manifests.",
    ),
    click.option("--tag-prefix", help="Only tags that begin so count for a range of versions."),
    click.option("--values", "values_files", multiple=True, help="Helm values file; repeatable."),
    click.option("--helm-set", multiple=True, metavar="KEY=VALUE", help="Helm parameter; repeatable."),
    click.option("--release-name", help="Helm release name."),
    click.option("--nameprefix", help="Kustomize name prefix."),
    click.option("--namesuffix", help="Kustomize name suffix."),
    click.option("--kustomize-namespace", help="Kustomize namespace."),
    click.option("--kustomize-image", "kustomize_images", multiple=True, help="Kustomize image; repeatable."),
    *TOOL_OPTIONS,
    click.option("--ref", help="Name by which values files of other sources call this one."),
    click.option("--source-name", help="Name of this source."),
    *(click.option(flag, help=text) for flag, text, _ in HYDRATOR),
)
FIELDS = {
    "repo": ("repoURL",),
    "path": ("path",),
    "revision": ("targetRevision",),
    "helm_chart": ("chart",),
    "ref": ("ref",),
    "source_name": ("name",),
    "directory_recurse": ("directory", "recurse"),
    "directory_include": ("directory", "include"),
    "directory_exclude": ("directory", "exclude"),
    "disable_extension_filter": ("directory", "disableExtensionFilter"),
    "tag_prefix": ("tagPrefix",),
    "release_name": ("helm", "releaseName"),
    "nameprefix": ("kustomize", "namePrefix"),
    "namesuffix": ("kustomize", "nameSuffix"),
    "kustomize_namespace": ("kustomize", "namespace"),
}
"""Flag → field of a source."""
BACKOFF = {"sync_retry_backoff_duration": "duration", "sync_retry_backoff_max_duration": "maxDuration"}
DEFAULT_BACKOFF: Obj = {"duration": "5s", "maxDuration": "3m0s", "factor": 2}
"""Argo CD's defaults of ``--sync-retry-backoff-*``."""


def spec_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every option for the spec."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def with_flags(spec: Obj, flags: Flags, position: int = 0) -> Obj:
    """Apply the flags to ``spec``; ``position`` (from 1) selects one of several sources. Raises CommandFailed."""
    made = dict(spec)
    if _about_source(flags):
        made = _with_source(made, flags, position)
    destination = {
        "server": flags.get("dest_server"),
        "name": flags.get("dest_name"),
        "namespace": flags.get("dest_namespace"),
    }
    made["destination"] = _with_destination(made.get("destination") or {}, destination)
    hydrated = _hydrator(made.get("sourceHydrator") or {}, flags)
    if hydrated:
        made["sourceHydrator"] = hydrated
    if flags.get("project"):
        made["project"] = flags["project"]
    if flags.get("revision_history_limit") is not None:
        made["revisionHistoryLimit"] = flags["revision_history_limit"]
    policy = _with_policy(made.pop("syncPolicy", None) or {}, flags)
    return made | ({"syncPolicy": policy} if policy else {})


def _hydrator(known: Obj, flags: Flags) -> Obj:
    """Return ``spec.sourceHydrator`` with the flags applied; an empty branch removes ``hydrateTo``."""
    made = {block: dict(fields) for block, fields in known.items()}
    for flag, _, (block, field) in HYDRATOR:
        value = flags.get(flag.removeprefix("--").replace("-", "_"))
        if value == "" and block == "hydrateTo":
            made.pop(block, None)
        elif value is not None:
            made.setdefault(block, {})[field] = repository_of(value) if field == "repoURL" else value
    return made


def repository_of(text: str) -> str:
    """Return a URL unchanged, and an existing folder as absolute path."""
    if "://" in text or "@" in text or not Path(text).is_dir():
        return text
    return str(Path(text).resolve())


def position_of(spec: Obj, position: int, name: str) -> int:
    """Return the position of a source, from 1, by ``--source-position`` or ``--source-name``; 0 without both."""
    if position and name:
        raise CommandFailed("Only one of source-position and source-name can be specified.", USAGE)
    names = [one.get("name") for one in spec.get("sources") or []]
    if name and name not in names:
        known = ", ".join(one for one in names if one) or "none has a name"
        raise CommandFailed(f"--source-name {name}: no source is called so ({known})", USAGE)
    return names.index(name) + 1 if name else position


def _about_source(flags: Flags) -> bool:
    lists = ("values_files", "kustomize_images", *TOOL_FIELDS, *TOOL_LISTS)
    return any(flags.get(name) not in (None, ()) for name in (*FIELDS, *lists))


def _with_source(spec: Obj, flags: Flags, position: int) -> Obj:
    several = spec.get("sources") or []
    if not several:
        return spec | {"source": _source(spec.get("source") or {}, flags)}
    if not 1 <= position <= len(several):
        raise CommandFailed(
            f"the Application has {len(several)} sources; say which with --source-position 1 to {len(several)}", USAGE
        )
    changed = [_source(one, flags) if at == position else one for at, one in enumerate(several, 1)]
    return spec | {"sources": changed}


def _source(source: Obj, flags: Flags) -> Obj:
    made = dict(source)
    for flag, place in FIELDS.items():
        value = flags.get(flag)
        if value is not None:
            put(made, place, repository_of(value) if flag == "repo" else value)
    if flags.get("values_files"):
        put(made, ("helm", "valueFiles"), list(flags["values_files"]))
    if flags.get("kustomize_images"):
        known = list((made.get("kustomize") or {}).get("images") or [])
        put(made, ("kustomize", "images"), _with_images(known, flags["kustomize_images"]))
    with_tool_flags(made, flags)
    return made


def _with_images(known: list[str], given: tuple[str, ...]) -> list[str]:
    """Merge images; a later one of the same name replaces an earlier one."""
    images = {image_name(image): image for image in known}
    return list((images | {image_name(image): image for image in given}).values())


def image_name(image: str) -> str:
    """Return ``nginx`` for ``nginx=mine:1``, ``nginx:1`` and ``nginx@sha256:…``."""
    name, equals, _ = image.partition("=")
    if equals:
        return name
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return f"{head}{slash}{tail.partition(':')[0]}"


def _with_destination(known: Obj, given: Obj) -> Obj:
    """Merge the destination; a cluster's URL replaces its name and vice versa."""
    if given["server"] and given["name"]:
        raise CommandFailed("give --dest-server or --dest-name, not both", USAGE)
    made = dict(known)
    if given["server"]:
        made.pop("name", None)
    if given["name"]:
        made.pop("server", None)
    return made | {key: value for key, value in given.items() if value}


def _with_policy(known: Obj, flags: Flags) -> Obj:
    policy = dict(known)
    match flags.get("sync_policy"):
        case "none" | "manual":
            policy.pop("automated", None)
        case "automated" | "auto" | "automatic":
            policy["automated"] = {}
    given = {"prune": "auto_prune", "selfHeal": "self_heal", "allowEmpty": "allow_empty"}
    wanted = {field: flags[flag] for field, flag in given.items() if flags.get(flag) is not None}
    if wanted:
        policy["automated"] = {**policy.get("automated", {"enabled": False}), **wanted}
    if flags.get("sync_options"):
        policy["syncOptions"] = _with_options(list(policy.get("syncOptions") or []), flags["sync_options"])
        if not policy["syncOptions"]:
            del policy["syncOptions"]
    return _with_retry(policy, flags)


def _with_options(known: list[str], given: tuple[str, ...]) -> list[str]:
    for text in given:
        bare = text.removeprefix("!")
        if bare != text:
            known = [option for option in known if option != bare and not option.startswith(f"{bare}=")]
        elif text not in known:
            known = [*known, text]
    return known


def _with_retry(policy: Obj, flags: Flags) -> Obj:
    limit = flags.get("sync_retry_limit")
    refresh = flags.get("sync_retry_refresh")
    given = {} if refresh is None else {"refresh": refresh}
    backoff = {field: flags[flag] for flag, field in BACKOFF.items() if flags.get(flag)}
    if flags.get("sync_retry_backoff_factor") is not None:
        backoff["factor"] = flags["sync_retry_backoff_factor"]
    if limit is not None and limit < 0:
        raise CommandFailed(f"--sync-retry-limit {limit}: give 0 to remove the retries, or a positive number", USAGE)
    if limit == 0:
        return {key: value for key, value in policy.items() if key != "retry"}
    known = {**(policy.get("retry") or {}), **given}
    if limit is not None or backoff:
        known["backoff"] = {**DEFAULT_BACKOFF, **(known.get("backoff") or {}), **backoff}
    return policy | ({"retry": known | ({"limit": limit} if limit else {})} if known else {})
