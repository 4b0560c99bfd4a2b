"""Which Applications a repository stands for, and which addresses they give it; pure. Entry point:
:func:`applications_of`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename, dirname, normpath

from syncline.argo.webhooks.match import same_place
from syncline.kube.kinds.argoproj import APPLICATION, GROUP
from syncline.kube.objects import Obj, dig, meta, name_of, namespace_of
from syncline.rehearsal.given.deployed import files_of, is_below, roots_of
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
    control_namespace: str = CONTROL_NAMESPACE
    """Where the GitOps controllers are: where these objects are, of projects before others."""


def applications_of(
    files: Files,
    name: str,
    namespace: str = "",
    there: Sequence[Obj] = (),
    path: str = "",
    origins: Sequence[str] = (),
) -> Applications:
    """Return what the repository stands for. ``there``: Applications of the cluster, of which those count that name a
    path of a repository without any of its own. ``namespace``: of the Application that is made of a folder without any;
    by default the one that its manifests name most, or else ``name``. ``path``: the folder to deploy, instead of the
    Applications that there are. ``origins``: addresses that the clone names for itself. Raises ScenarioError (usage) if
    there is nothing to deploy."""
    if path:
        return _of_folder(files, name, namespace or _usual_namespace(files, normpath(path)) or name, normpath(path))
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
    urls = addresses_of(files, [one for _, app in apps for one in sources_of(app)], origins)
    brought = [(path, brought_by(files, [app], urls)) for path, app in apps]
    first = roots_of(brought)
    mine = brought_by(files, [app for _, app in apps], urls)
    projects = [obj for path, obj in found if obj["kind"] == "AppProject" and path not in mine]
    roots = [*projects, *(app for number, (_, app) in enumerate(apps) if number in first)]
    assumed = [f"{', '.join(urls)} is this repository"] if urls else []
    spaces = _missing_namespaces(files, roots)
    if spaces:
        assumed.append(f"namespaces that manifests name and do not make are there: {', '.join(spaces)}")
    control = control_namespace_of(obj for _, obj in found)
    spaces = tuple(sorted({*spaces, *map(namespace_of, roots)} - {"", control}))
    return Applications(tuple(_placed(obj, control) for obj in roots), urls, spaces, tuple(assumed), control)


def control_namespace_of(objects: Iterable[Obj]) -> str:
    """Return where Argo CD is: where most of its projects are, or else most of its Applications and sets."""
    named = Counter((obj.get("kind") == "AppProject", namespace_of(obj)) for obj in objects if namespace_of(obj))
    return min(named, key=lambda one: (not one[0], -named[one], one[1]), default=(False, CONTROL_NAMESPACE))[1]


def brought_by(files: Files, apps: Sequence[Obj], urls: Sequence[str]) -> frozenset[str]:
    """Return the files that Applications, or those of sets, bring objects from; ``urls``: addresses of the
    repository."""
    mine = ((app, one) for app in apps for one in sources_of(app) if one.get("repoURL") in urls)
    return frozenset().union(*(files_of(files, app, one) for app, one in mine))


def pulled_applications(files: Files, manifests: Sequence[Obj], urls: Sequence[str]) -> Applications:
    """Return what a cluster gets as works of its hub: Namespaces, projects and Applications. ``urls``: addresses of the
    rehearsed repository."""
    apps = [one for one in manifests if one.get("kind") != "Namespace"]
    made = {name_of(one) for one in manifests if one.get("kind") == "Namespace"}
    spaces = {*_missing_namespaces(files, apps), *made, *map(namespace_of, apps)} - {""}
    return Applications(tuple(apps), tuple(urls), tuple(sorted(spaces)))


def _is_root(obj: Obj) -> bool:
    return str(obj.get("apiVersion") or "").startswith(f"{GROUP}/") and obj.get("kind") in ROOTS and bool(name_of(obj))


def _placed(obj: Obj, namespace: str) -> Obj:
    return obj | {"metadata": {**meta(obj), "namespace": namespace_of(obj) or namespace}}


def sources_of(app: Obj) -> Iterator[Obj]:
    """Yield the sources of an Application, or of the template of a set, that are in Git."""
    spec = dig(app, "spec", "template", "spec") if app.get("kind") == "ApplicationSet" else app.get("spec")
    for one in [dig(spec, "source"), *(dig(spec, "sources") or ())]:
        if isinstance(one, dict) and one.get("repoURL") and not one.get("chart"):
            yield one


def _is_of(files: Files, app: Obj) -> bool:
    """Return whether an Application of a cluster may be of this repository: a path that both have tells."""
    return app["kind"] == "AppProject" or any(
        is_here(files, one) or "{{" in str(one.get("path") or "") for one in sources_of(app)
    )


def is_here(files: Files, source: Obj) -> bool:
    """Return whether a source names a path of the repository, other than all of it."""
    path = normpath(str(source.get("path") or "."))
    return path != "." and any(is_below(each, path) for each in files.content)


def addresses_of(files: Files, sources: Sequence[Obj], origins: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the addresses that are those of this repository: what the clone names for itself, what goes with a path
    that is in it, and what has the name of one of these. Without any, what goes with no path of its own."""
    places = {same_place(one) for one in origins} - {None}
    urls = {str(one["repoURL"]) for one in sources}
    named = {str(one["repoURL"]) for one in sources if is_here(files, one)}
    named |= {url for url in urls if same_place(url) in places}
    open_ = {str(one["repoURL"]) for one in sources if _is_open(str(one.get("path") or "."))}
    names = {_last(url) for url in named}
    return tuple(sorted(named | {url for url in open_ if not named or _last(url) in names}))


def _is_open(path: str) -> bool:
    return "{{" in path or normpath(path) == "."


def _last(url: str) -> str:
    return url.rstrip("/").removesuffix(".git").rpartition("/")[2]


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


def _usual_namespace(files: Files, folder: str = ".") -> str:
    named: Counter[str] = Counter()
    for path, obj in files.objects():
        if not is_below(path, folder):
            continue
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
    """Return the sources with addresses replaced by their places, at their only branch; a chart has the place of its
    repository and name."""
    return tuple(_localized(one, places) for one in sources)


def _localized(source: Obj, places: Mapping[str, str]) -> Obj:
    url = str(source.get("repoURL") or "")
    if source.get("chart"):
        place = places.get(f"{url.rstrip('/')}/{source['chart']}")
        bare = {key: value for key, value in source.items() if key != "chart"}
        return source if place is None else bare | {"repoURL": place, "path": ".", "targetRevision": "main"}
    return source | {"repoURL": places[url], "targetRevision": "main"} if url in places else source
