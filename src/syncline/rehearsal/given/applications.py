"""Which Applications a repository stands for, and which addresses they give it; pure. Entry point:
:func:`applications_of`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, normpath

from syncline.kube.kinds.argoproj import APPLICATION, GROUP
from syncline.kube.objects import Obj, dig, meta, name_of, namespace_of
from syncline.rehearsal.given.files import YAML, Files
from syncline.rehearsal.given.pattern import GLOBAL, pattern_of
from syncline.rehearsal.reading import MANIFESTS
from syncline.rehearsal.scenario import ScenarioError

REPOSITORY = "https://rehearsed.example/repository.git"
"""The address of a repository whose files name none."""
CONTROL_NAMESPACE = "argocd"
BUILT = ("chart.yaml", "kustomization.yaml", "kustomization.yml")
MAX_NAMED = 10
ROOTS = ("Application", "ApplicationSet", "AppProject")


@dataclass(frozen=True)
class Applications:
    """``objects`` are created as a person would create them; ``urls`` are addresses of the rehearsed repository."""

    objects: tuple[Obj, ...]
    urls: tuple[str, ...]
    namespaces: tuple[str, ...]
    """Namespaces that manifests name and none of them makes; they are there before."""
    assumed: tuple[str, ...] = ()


def applications_of(
    files: Files, name: str, namespace: str = "", there: Sequence[Obj] = (), path: str = ""
) -> Applications:
    """Return what the repository stands for. ``there``: Applications of the cluster, of which those count that name a
    path of a repository without any of its own. ``namespace``: of the Application that is made of a folder without any;
    by default the one that its manifests name most, or else ``name``. ``path``: the folder to
    deploy, instead of the Applications that there are. Raises ScenarioError (usage) if there is nothing to deploy."""
    if path:
        return _of_folder(files, name, namespace or _usual_namespace(files) or name, normpath(path))
    found = [(path, obj) for path, obj in files.objects() if _is_root(obj)]
    apps = [(path, obj) for path, obj in found if obj["kind"] != "AppProject"]
    if not apps:
        found = [("", app) for app in there if _is_root(app) and _is_of(files, app)]
        apps = [(path, obj) for path, obj in found if obj["kind"] != "AppProject"]
    if not apps and (pattern := pattern_of(files, name, REPOSITORY)) is not None:
        text = f"it is a pattern: cluster group {pattern['spec']['clusterGroupName']} is installed"
        assumed = (
            [text] if GLOBAL in files.content else [text, f"there is no {GLOBAL}: one without a secret store is made"]
        )
        return Applications((pattern,), (REPOSITORY,), (), tuple(assumed))
    if not apps:
        return _of_folder(files, name, namespace or _usual_namespace(files) or name)
    urls = tuple(sorted({str(one.get("repoURL")) for _, app in apps for one in sources_of(app) if is_here(files, one)}))
    deployed = {
        normpath(str(one.get("path"))) for _, app in apps for one in sources_of(app) if one.get("repoURL") in urls
    }
    roots = [obj for path, obj in found if not any(is_below(path, folder) for folder in deployed)]
    if not any(obj["kind"] != "AppProject" for obj in roots):
        raise ScenarioError(f"{name}: each of its Applications is deployed by another; create one by --app", usage=True)
    assumed = [f"{', '.join(urls)} is this repository"] if urls else []
    spaces = _missing_namespaces(files, roots)
    if spaces:
        assumed.append(f"namespaces that manifests name and do not make are there: {', '.join(spaces)}")
    return Applications(tuple(_placed(obj) for obj in roots), urls, spaces, tuple(assumed))


def pulled_applications(files: Files, manifests: Sequence[Obj], urls: Sequence[str]) -> Applications:
    """Return what a cluster gets as works of its hub: Namespaces, projects and Applications. ``urls``: addresses of the
    rehearsed repository."""
    apps = [one for one in manifests if one.get("kind") != "Namespace"]
    made = {name_of(one) for one in manifests if one.get("kind") == "Namespace"}
    spaces = {*_missing_namespaces(files, apps), *made, *map(namespace_of, apps)} - {""}
    return Applications(tuple(apps), tuple(urls), tuple(sorted(spaces)))


def _is_root(obj: Obj) -> bool:
    return str(obj.get("apiVersion") or "").startswith(f"{GROUP}/") and obj.get("kind") in ROOTS and bool(name_of(obj))


def _placed(obj: Obj) -> Obj:
    return obj | {"metadata": {**meta(obj), "namespace": namespace_of(obj) or CONTROL_NAMESPACE}}


def sources_of(app: Obj) -> Iterator[Obj]:
    """Yield the sources of an Application, or of the template of a set, that are in Git."""
    spec = dig(app, "spec", "template", "spec") if app.get("kind") == "ApplicationSet" else app.get("spec")
    for one in [dig(spec, "source"), *(dig(spec, "sources") or ())]:
        if isinstance(one, dict) and one.get("repoURL") and not one.get("chart"):
            yield one


def _is_of(files: Files, app: Obj) -> bool:
    """Return whether an Application of a cluster may be of this repository: a path that both have tells."""
    named = [one for one in sources_of(app) if normpath(str(one.get("path") or ".")) != "."]
    return app["kind"] == "AppProject" or any(is_here(files, one) for one in named)


def is_here(files: Files, source: Obj) -> bool:
    """Return whether the path of a source is in the repository."""
    path = normpath(str(source.get("path") or "."))
    return path == "." or "{{" in path or any(is_below(each, path) for each in files.content)


def is_below(path: str, folder: str) -> bool:
    return folder == "." or path.startswith(f"{folder}/")


def _of_folder(files: Files, name: str, namespace: str, path: str = ".") -> Applications:
    """Return one Application of a folder, as ``syncline demo`` makes it."""
    inside = [each for each in files.content if is_below(each, path)]
    top = [each for each in inside if dirname(each) == path.removeprefix(".") and each.endswith(MANIFESTS)]
    below = [each for each in inside if each.endswith(YAML)]
    if not below and not top:
        where = name if path == "." else f"{name}: {path}"
        raise ScenarioError(f"{where}: holds no file that is one of {', '.join(MANIFESTS)}", usage=True)
    source: Obj = {"repoURL": REPOSITORY, "targetRevision": "main", "path": path}
    if not top:
        built = sorted({dirname(each) for each in below if basename(each).lower() in BUILT})
        if built:
            some = ", ".join(built[:MAX_NAMED])
            text = f"{name}: holds no Application; name a folder to deploy by --path: {some}"
            raise ScenarioError(text, usage=True)
        source["directory"] = {"recurse": True}
    spec: Obj = {
        "project": "default",
        "source": source,
        "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
        "syncPolicy": {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"]},
    }
    app: Obj = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "spec": spec}
    app["metadata"] = {"name": name, "namespace": CONTROL_NAMESPACE}
    where = "the folder" if path == "." else f"folder {path}"
    assumed = [f"no Application is given: one is made of {where}, automated, to namespace {namespace}"]
    spaces = _missing_namespaces(files, [app])
    if spaces:
        assumed.append(f"namespaces that manifests name and do not make are there: {', '.join(spaces)}")
    return Applications((app,), (REPOSITORY,), spaces, tuple(assumed))


def _usual_namespace(files: Files) -> str:
    named: Counter[str] = Counter()
    for _, obj in files.objects():
        named.update([namespace_of(obj), *(str(one.get("namespace") or "") for one in obj.get("subjects") or ())])
    del named[""]
    return min(named, key=lambda one: (-named[one], one), default="")


def _missing_namespaces(files: Files, apps: list[Obj]) -> tuple[str, ...]:
    named = {namespace_of(obj) for _, obj in files.objects() if not _is_root(obj)}
    named |= {_namespace(app) for app in apps if not _creates(app)}
    made = {name_of(obj) for _, obj in files.objects() if obj.get("kind") == "Namespace"}
    made |= {_namespace(app) for app in apps if _creates(app)}
    return tuple(sorted(one for one in named - made - {"", "default", CONTROL_NAMESPACE} if "{" not in one))


def _namespace(app: Obj) -> str:
    return str(dig(app, "spec", "destination", "namespace") or "")


def _creates(app: Obj) -> bool:
    return "CreateNamespace=true" in (dig(app, "spec", "syncPolicy", "syncOptions") or ())


def localized(sources: tuple[Obj, ...], places: Mapping[str, str]) -> tuple[Obj, ...]:
    """Return the sources with the rehearsed repository's addresses replaced by its place, at its only branch."""
    return tuple(
        one | {"repoURL": places[one["repoURL"]], "targetRevision": "main"} if one.get("repoURL") in places else one
        for one in sources
    )
