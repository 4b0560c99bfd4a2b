"""Units of a system that does not run: enabled, disabled and asked by the links that systemd reads when it boots.

``systemctl --root`` follows links that lead out of the root, so it is not used. Source: systemd.unit(5) "[INSTALL]",
systemd.preset(5), and ``systemctl --root`` of version 252, with which a test compares.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from syncline.assembly.linuxroot import LinuxRoot
from syncline.machineconfig.agent.host import Done, HostError

__all__ = ["OfflineUnits", "unit_files"]

CONFIG = "/etc/systemd/system"
PLACES = (
    CONFIG,
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
GENERATED = ("/run/systemd/transient", *(f"/run/systemd/generator{kind}" for kind in ("", ".early", ".late")))
PRESETS = (
    "/etc/systemd/system-preset",
    "/run/systemd/system-preset",
    "/usr/local/lib/systemd/system-preset",
    "/usr/lib/systemd/system-preset",
    "/lib/systemd/system-preset",
)
SUFFIXES = (
    ".service",
    ".socket",
    ".device",
    ".mount",
    ".automount",
    ".swap",
    ".target",
    ".path",
    ".timer",
    ".slice",
    ".scope",
)
WANTS = {"WantedBy": "wants", "RequiredBy": "requires", "UpheldBy": "upholds"}
MAX_ALSO = 100


def unit_files(root: LinuxRoot) -> frozenset[str]:
    """Names of all unit files, also of those that generators made."""
    return frozenset(name for place in (*PLACES, *GENERATED) for name in root.names(place) if name.endswith(SUFFIXES))


@dataclass
class _Install:
    wanted: list[tuple[str, str]] = field(default_factory=list)
    """Kind of link (``wants`` …) and the unit that gets it."""
    aliases: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    instance: str = ""

    @property
    def empty(self) -> bool:
        return not (self.wanted or self.aliases or self.also)


class OfflineUnits:
    def __init__(self, root: LinuxRoot) -> None:
        self._root = root

    def run(self, verb: str, names: Sequence[str]) -> Done:
        """``enable``, ``disable``, ``preset`` or ``is-enabled``; the code and the gist of what systemctl says."""
        try:
            if verb == "is-enabled":
                states = [self._state(name) for name in names]
                good = any(state in ("enabled", "enabled-runtime", "static", "alias", "indirect") for state in states)
                return Done(0 if good else 1, "\n".join(states))
            for name in names:
                if verb != "disable" and (problem := self._problem(name)):
                    if verb == "preset":
                        continue
                    return Done(1, f"Failed to {verb} unit, unit {name} {problem}.")
            for name in names:
                self._change(verb == "enable" or (verb == "preset" and self._preset(name)), name)
        except HostError as error:
            return Done(1, f"Failed to {verb} unit: {error}")
        return Done(0)

    # -- asking -------------------------------------------------------------------------------------------------------

    def _problem(self, name: str) -> str:
        if "/" in name or name.startswith("."):
            return "has no valid name"
        path = self._path(name)
        if path is None:
            return "does not exist"
        return "is masked" if self._is_masked(path) else ""

    def _path(self, name: str) -> str | None:
        """Of its file; of an instance that of the template."""
        template = _template(name)
        candidates = [name] if template == name else [name, template]
        for each in candidates:
            for place in PLACES:
                if self._root.stat(f"{place}/{each}") is not None:
                    return f"{place}/{each}"
        return None

    def _is_masked(self, path: str) -> bool:
        found = self._root.stat(path)
        return found is not None and found.kind == "symlink" and found.target == "/dev/null"

    def _state(self, name: str) -> str:
        path = self._path(name)
        if path is None:
            return "not-found"
        if self._is_masked(path):
            return "masked"
        install = self._install(_template(name), path)
        links = list(self._links(name))
        if links:
            usual = _instance(name, install)
            told = not usual or any(posixpath.basename(link) == usual for link in links)
            return "enabled" if told else "indirect"  # of a template its usual instance counts
        return "static" if install.empty else "indirect" if not (install.wanted or install.aliases) else "disabled"

    def _install(self, name: str, path: str) -> _Install:
        install = _Install()
        texts = [self._root.read(path)]
        for place in PLACES:
            folder = f"{place}/{name}.d"
            texts += [
                self._root.read(f"{folder}/{each}") for each in self._root.names(folder) if each.endswith(".conf")
            ]
        for text in texts:
            for key, value in _install_lines(text.decode("utf-8", "replace")):
                _add(install, key, value)
        return install

    def _links(self, name: str) -> Iterator[str]:
        """Links below the configuration that enable a unit: of that name, or to a file of that name. Of a template also
        those of its instances."""
        for entry in self._root.names(CONFIG):
            path = f"{CONFIG}/{entry}"
            if entry.endswith(tuple(f".{kind}" for kind in WANTS.values())):
                yield from (f"{path}/{each}" for each in self._root.names(path) if name in (each, _template(each)))
            elif entry != name:
                found = self._root.stat(path)
                if found is not None and found.kind == "symlink" and posixpath.basename(found.target) == name:
                    yield path

    def _preset(self, name: str) -> bool:
        files: dict[str, str] = {}
        for place in PRESETS:
            for each in self._root.names(place):
                if each.endswith(".preset"):
                    files.setdefault(each, f"{place}/{each}")
        for _, path in sorted(files.items()):
            for line in self._root.read(path).decode("utf-8", "replace").splitlines():
                words = line.split()
                if len(words) >= 2 and words[0] in ("enable", "disable") and fnmatch.fnmatchcase(name, words[1]):
                    return words[0] == "enable"
        return True

    # -- changing -----------------------------------------------------------------------------------------------------

    def _change(self, enable: bool, name: str) -> None:
        todo, seen = [name], set[str]()
        while todo and len(seen) < MAX_ALSO:
            each = todo.pop()
            if each in seen or "/" in each:
                continue
            seen.add(each)
            path = self._path(each)
            if path is None or self._is_masked(path):
                install = _Install()
            else:
                install = self._install(_template(each), path)
            todo += install.also
            if enable and path is not None:
                self._enable(each, path, install)
            elif not enable:
                for link in list(self._links(each)):
                    self._root.remove(link)

    def _enable(self, name: str, path: str, install: _Install) -> None:
        if "@." in name:
            if not install.instance:
                return
            name = _instance(name, install)
        for kind, target in install.wanted:
            folder = f"{CONFIG}/{target}.{kind}"
            self._root.make_directories(folder)
            self._root.link(f"{folder}/{name}", path)
        for alias in install.aliases:
            if alias != name:
                self._root.link(f"{CONFIG}/{alias}", path)


def _template(name: str) -> str:
    """``getty@.service`` of ``getty@tty1.service``; other names as they are."""
    stem, dot, suffix = name.rpartition(".")
    prefix, at, _ = stem.partition("@")
    return f"{prefix}@{dot}{suffix}" if at else name


def _instance(name: str, install: _Install) -> str:
    """Of a template the instance that it is enabled as; empty for other names."""
    return name.replace("@.", f"@{install.instance}.", 1) if "@." in name else ""


def _install_lines(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Install]" and line and line[0] not in "#;":
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()


def _add(install: _Install, key: str, value: str) -> None:
    names = [name for name in value.split() if "/" not in name and not name.startswith(".")]
    if key in WANTS:
        install.wanted = [one for one in install.wanted if names or one[0] != WANTS[key]]  # an empty one clears
        install.wanted += [(WANTS[key], name) for name in names]
    elif key == "Alias":
        install.aliases = [*install.aliases, *names] if names else []
    elif key == "Also":
        install.also = [*install.also, *names] if names else []
    elif key == "DefaultInstance":
        install.instance = value if "/" not in value else ""
