"""Config-management plugins: the operator's programs that render a folder, like upstream's sidecars.

``sources/rendering/renderer.py`` uses :class:`PluginRenderer` to detect plugins and to render. Only the operator
declares plugins, in a folder of ``ConfigManagementPlugin`` files, never a repository or an object of the cluster;
without such a folder there are none. Rules: Argo CD ``cmpserver/plugin``, ``util/app/discovery`` (reference argocd-app
5.1, 5.9).
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from syncline.kube.text.glob import GlobError, glob_match
from syncline.kube.yaml import loading as yaml
from syncline.sources.directory import Manifests, read_output
from syncline.sources.errors import Problem, SourceError
from syncline.sources.rendering.environment import RenderContext, expand
from syncline.sources.rendering.plugin_run import PluginRunner
from syncline.sources.rendering.source_type import SourceType
from syncline.sources.tree import Entry, Tree, with_modes

FIELD = "spec.source.plugin"
MAX_OBJECTS = 50_000
MAX_FOUND = 10_000
_NOT_IN_NAMES = re.compile(r"[^A-Z0-9_]")


class PluginError(Exception):
    """An invalid declaration; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """``spec.source.plugin``: name, variables, and parameters as written."""

    name: str = ""
    env: tuple[tuple[str, str], ...] = ()
    parameters: str = "[]"
    """The JSON of the list."""


class PluginSource(Protocol):
    """The properties of a source that plugins receive."""

    @property
    def plugin(self) -> PluginOptions: ...

    @property
    def context(self) -> RenderContext: ...

    @property
    def environment(self) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Plugin:
    """One declaration; commands are argument lists, empty for none."""

    name: str
    generate: tuple[str, ...]
    init: tuple[str, ...] = ()
    file_name: str = ""
    find_glob: str = ""
    find_command: tuple[str, ...] = ()
    keep_modes: bool = False

    @property
    def discovers(self) -> bool:
        return bool(self.file_name or self.find_glob or self.find_command)


def parse_plugin_options(block: Mapping[str, Any]) -> PluginOptions:
    """Parse the block of an Application."""
    env = [one for one in block.get("env") or () if isinstance(one, dict)]
    return PluginOptions(
        str(block.get("name") or ""),
        tuple((str(one.get("name") or ""), str(one.get("value") or "")) for one in env),
        json.dumps(block.get("parameters") or [], separators=(",", ":")),
    )


def load_plugins(folder: Path) -> tuple[Plugin, ...]:
    """Return all declarations of a folder, sorted by file. Raises :class:`PluginError`."""
    found: list[Plugin] = []
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise PluginError(f"plugins in {folder}: {error.strerror}") from None
    for path in files:
        try:
            value = yaml.load(path.read_bytes(), file=str(path))
        except (OSError, yaml.YamlError) as error:
            raise PluginError(f"plugin {path}: {error}") from None
        plugin = _plugin(value, path)
        if any(one.name == plugin.name for one in found):
            raise PluginError(f"plugin {path}: {plugin.name} is declared twice")
        found.append(plugin)
    return tuple(found)


def _plugin(value: Any, path: Path) -> Plugin:
    if not isinstance(value, dict) or value.get("kind") != "ConfigManagementPlugin":
        raise PluginError(f"plugin {path}: kind is not ConfigManagementPlugin")
    name = str((value.get("metadata") or {}).get("name") or "")
    spec = value.get("spec") or {}
    if not name or not isinstance(spec, dict):
        raise PluginError(f"plugin {path}: metadata.name or spec is missing")
    if spec.get("provideGitCreds"):
        raise PluginError(f"plugin {path}: spec.provideGitCreds is not supported; a plugin has no network")
    discover = spec.get("discover") or {}
    find = discover.get("find") or {}
    version = str(spec.get("version") or "")
    generate = _command(spec.get("generate"), "generate", path)
    if not generate:
        raise PluginError(f"plugin {path}: spec.generate.command is missing")
    return Plugin(
        f"{name}-{version}" if version else name,
        generate,
        _command(spec.get("init"), "init", path),
        str(discover.get("fileName") or ""),
        str(find.get("glob") or ""),
        _command(find, "discover.find", path),
        bool(spec.get("preserveFileMode")),
    )


def _command(block: Any, field: str, path: Path) -> tuple[str, ...]:
    if not isinstance(block, dict):
        return ()
    parts = [*(block.get("command") or ()), *(block.get("args") or ())]
    if not all(isinstance(part, str) for part in parts):
        raise PluginError(f"plugin {path}: spec.{field}: command and args are lists of texts")
    return tuple(parts) if block.get("command") else ()


@dataclass(frozen=True, slots=True)
class PluginRenderer:
    """Renders with the declared plugins."""

    plugins: tuple[Plugin, ...]
    runner: PluginRunner
    _found: OrderedDict[tuple[str, ...], bool] = field(default_factory=OrderedDict, compare=False, repr=False)
    """What discovery commands said of a folder at a commit, so that a look that finds nothing new starts none."""

    @property
    def source_type(self) -> SourceType:
        return SourceType.PLUGIN

    def claims(self, tree: Tree, spec: PluginSource) -> bool:
        """Return True if a plugin discovers the folder; used if the Application names no tool."""
        return self._claiming(tree, spec) is not None

    def reads(self, tree: Tree, spec: PluginSource) -> tuple[Entry, ...]:
        """Return the whole repository with its modes: a program may read any file."""
        return with_modes(tree.whole().entries)

    def options(self, spec: PluginSource) -> object:
        return self.plugins, spec.plugin, sorted(self._environment(spec).items())

    def render(self, tree: Tree, spec: PluginSource, entries: tuple[Entry, ...]) -> Manifests:
        plugin = self._chosen(tree, spec)
        environment = self._environment(spec)
        with self.runner.checkout(tree, keep_modes=plugin.keep_modes) as place:
            if plugin.init:
                self.runner.run(place, plugin.init, environment, f"plugin {plugin.name}: init")
            output = self.runner.run(place, plugin.generate, environment, f"plugin {plugin.name}: generate")
        return Manifests(tuple(read_output(tree.path or ".", output.decode("utf-8", "replace"), MAX_OBJECTS)))

    def _chosen(self, tree: Tree, spec: PluginSource) -> Plugin:
        wanted = spec.plugin.name
        if not wanted:
            found = self._claiming(tree, spec)
            if found is None:
                raise SourceError(Problem.INVALID, "could not find plugin supporting the given repository", field=FIELD)
            return found
        plugin = next((one for one in self.plugins if one.name == wanted), None)
        if plugin is None or (plugin.discovers and not self._matches(plugin, tree, spec)):
            known = ", ".join(one.name for one in self.plugins) or "none"
            message = f'could not find cmp-server plugin with name "{wanted}" supporting the given repository'
            raise SourceError(Problem.INVALID, message, field=f"{FIELD}.name", fix=f"declared are: {known}")
        return plugin

    def _claiming(self, tree: Tree, spec: PluginSource) -> Plugin | None:
        return next((one for one in self.plugins if one.discovers and self._matches(one, tree, spec)), None)

    def _matches(self, plugin: Plugin, tree: Tree, spec: PluginSource) -> bool:
        """Apply discovery: by file name, or by pattern, or by a command that succeeds with output."""
        names = [entry.path for entry in tree.entries]
        try:
            if plugin.file_name:
                return any(glob_match(_bare(plugin.file_name), name, separators="/") for name in names)
            if plugin.find_glob:
                pattern = _bare(plugin.find_glob)
                both = (pattern, pattern.replace("**/", ""))
                return any(glob_match(one, name, separators="/") for name in names for one in both)
        except GlobError as error:
            raise SourceError(Problem.INVALID, f"plugin {plugin.name}: {error}") from None
        key = (plugin.name, tree.whole().id, tree.path, repr(spec.plugin), repr(spec.context))
        known = self._found.get(key)
        if known is not None:
            return known
        with self.runner.checkout(tree, keep_modes=plugin.keep_modes) as place:
            label = f"plugin {plugin.name}: discover"
            try:
                said = bool(self.runner.run(place, plugin.find_command, self._environment(spec), label).strip())
            except SourceError as error:
                if error.problem is not Problem.INVALID:
                    raise
                said = False  # a command that fails does not want the folder
        self._found[key] = said
        while len(self._found) > MAX_FOUND:
            self._found.popitem(last=False)
        return said

    def _environment(self, spec: PluginSource) -> dict[str, str]:
        """Return build variables, the Application's with prefix ``ARGOCD_ENV_``, and its parameters in both forms."""
        build = spec.environment
        versions = {"KUBE_VERSION": spec.context.kube_version, "KUBE_API_VERSIONS": ",".join(spec.context.api_versions)}
        own = {f"ARGOCD_ENV_{name}": expand(value, build) for name, value in spec.plugin.env}
        return build | versions | own | _parameters(spec.plugin.parameters)


def _bare(pattern: str) -> str:
    return pattern.removeprefix("./").lstrip("/")


def _parameters(text: str) -> dict[str, str]:
    found = {"ARGOCD_APP_PARAMETERS": text}
    for one in json.loads(text):
        if not isinstance(one, dict):
            continue
        base = f"PARAM_{_escaped(str(one.get('name') or ''))}"
        if one.get("string") is not None:
            found[base] = str(one["string"])
        for key, value in _pairs(one.get("map")):
            found[f"{base}_{_escaped(key)}"] = value
        values: Sequence[Any] = one["array"] if isinstance(one.get("array"), list) else ()
        for index, value in enumerate(values):
            found[f"{base}_{index}"] = str(value)
    return found


def _pairs(given: Any) -> list[tuple[str, str]]:
    return [(str(key), str(value)) for key, value in given.items()] if isinstance(given, dict) else []


def _escaped(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name.upper())
