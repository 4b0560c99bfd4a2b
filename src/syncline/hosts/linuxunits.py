"""Enables, disables and queries the units of a system that does not run, by the links that systemd reads at boot.

``systemctl --root`` follows links that lead out of the root, so it is not used. Source: systemd.unit(5) "[INSTALL]",
systemd.preset(5), and ``systemctl --root`` of version 252, with which tests compare link by link.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from syncline.hosts.linuxroot import LinuxRoot
from syncline.hosts.unitinstall import (
    WANTS,
    Install,
    add_install_lines,
    alias_name,
    expanded,
    instance_of,
    is_template,
    is_unit_name,
    preset_of,
    template_of,
    with_instance,
)
from syncline.machineconfig.agent.host import Done, HostError

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
NULL = "/dev/null"
NON_TEMPLATE = "non-template unit"
GOOD_STATES = ("enabled", "enabled-runtime", "static", "alias", "indirect")
MAX_ALSO = 100
MAX_ALIASES = 20
"""Maximum length of a chain of alias links; systemd's limit."""


class _Refused(Exception):
    """The operation is refused; the message is systemctl's, without the verb."""


def unit_files(root: LinuxRoot) -> frozenset[str]:
    """Return the names of all unit files, including generated ones."""
    return frozenset(name for place in (*PLACES, *GENERATED) for name in root.names(place) if name.endswith(SUFFIXES))


class _Unit:
    """A unit. ``name`` is the real name of an alias; ``path`` is None if there is no file."""

    def __init__(self, name: str, path: str | None, install: Install, *, masked: bool = False) -> None:
        self.name, self.path, self.install, self.masked = name, path, install, masked

    @property
    def names(self) -> set[str]:
        """Return the names under which [Install] creates links, including the default instance."""
        aliases = [alias_name(self.name, expanded(each, self.name, self.install)) for each in self.install.aliases]
        found = {self.name, *(each for each in aliases if each)}
        usual = self.install.instance if is_template(self.name) else ""
        return found | {with_instance(each, usual) for each in found if usual and is_template(each)}


class OfflineUnits:
    def __init__(self, root: LinuxRoot) -> None:
        self._root = root

    def run(self, verb: str, names: Sequence[str]) -> Done:
        """Run ``enable``, ``disable``, ``preset`` or ``is-enabled``; return systemctl's exit code and main message."""
        try:
            if verb == "is-enabled":
                states = [self._state(name) for name in names]
                return Done(0 if any(state in GOOD_STATES for state in states) else 1, "\n".join(states))
            if verb == "enable":
                self._enable_all(names)
            elif verb == "disable":
                self._disable_all(names)
            else:
                self._preset_all(names)
        except _Refused as error:
            return Done(1, f"Failed to {verb} unit, {error}.")
        except HostError as error:
            return Done(1, f"Failed to {verb} unit: {error}")
        return Done(0)

    # -- finding ------------------------------------------------------------------------------------------------------

    def _found(self, name: str) -> _Unit:
        """Return the unit of a name, following alias links."""
        for _ in range(MAX_ALIASES):
            path = self._path(name)
            if path is None:
                return _Unit(name, None, Install())
            target = self._link(path)
            if target is None:
                return _Unit(name, path, self._install(name, path))
            if target == NULL:
                return _Unit(name, path, Install(), masked=True)
            real = posixpath.basename(target)
            if instance_of(name) and is_template(real):
                real = with_instance(real, instance_of(name))
            if real == name or not is_unit_name(real):
                return _Unit(name, target, self._install(name, target))
            name = real
        return _Unit(name, None, Install())

    def _path(self, name: str) -> str | None:
        """Return the path of the unit's file, for an instance that of its template."""
        for each in dict.fromkeys((name, template_of(name))):
            for place in PLACES:
                if self._root.stat(f"{place}/{each}") is not None:
                    return f"{place}/{each}"
        return None

    def _link(self, path: str) -> str | None:
        """Return the link target as an absolute path below the root; None if ``path`` is no link."""
        found = self._root.stat(path)
        if found is None or found.kind != "symlink":
            return None
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), found.target))

    def _end(self, path: str) -> str:
        """Return the final target of a chain of links, existing or not."""
        for _ in range(MAX_ALIASES):
            target = self._link(path)
            if target is None:
                break
            path = target
        return path

    def _install(self, name: str, path: str) -> Install:
        install = Install()
        if self._root.exists(path):
            add_install_lines(install, name, self._root.read(path))
        dropins: dict[str, str] = {}
        for place in PLACES:
            for each in dict.fromkeys((name, template_of(name))):
                for file in self._root.names(f"{place}/{each}.d"):
                    if file.endswith(".conf"):
                        dropins.setdefault(file, f"{place}/{each}.d/{file}")
        for _, dropin in sorted(dropins.items()):
            if self._link(dropin) != NULL:
                add_install_lines(install, name, self._root.read(dropin))
        return install

    def _needed(self, name: str) -> _Unit:
        if not is_unit_name(name):
            raise _Refused(f"unit {name} has no valid name")
        unit = self._found(name)
        if unit.path is None:
            raise _Refused(f"unit {name} does not exist")
        if unit.masked:
            raise _Refused(f"unit {name} is masked")
        return unit

    def _is_linked(self, name: str) -> bool:
        """Return whether the name is a link in the configuration; systemctl requires the unit's own name."""
        path = self._path(name)
        return path is not None and path.startswith(f"{CONFIG}/") and self._link(path) not in (None, NULL)

    # -- asking -------------------------------------------------------------------------------------------------------

    def _state(self, name: str) -> str:
        unit = self._found(name)
        if unit.path is None:
            return "not-found"
        if unit.masked:
            return "masked"
        if name != posixpath.basename(unit.path) and not instance_of(unit.name):
            return "alias"
        links = list(self._links(unit))
        known = unit.names
        if any(posixpath.basename(link) in known for link in links):
            return "enabled"
        install = unit.install
        if links:
            return "indirect"
        return "disabled" if install.wanted or install.aliases else "indirect" if install.also else "static"

    def _links(self, unit: _Unit) -> Iterator[str]:
        """Yield the links in the configuration that have the unit's name or lead to a file of that name."""
        file = posixpath.basename(unit.path or unit.name)
        for path, inside in self._all_links():
            name, target = posixpath.basename(path), posixpath.basename(self._link(path) or "")
            if name == file and not inside:
                continue  # the unit itself
            if name == unit.name or (target == file and not instance_of(unit.name)):
                yield path

    def _all_links(self) -> Iterator[tuple[str, bool]]:
        """Yield each link with whether it is in a ``.wants`` or similar folder."""
        for entry in self._root.names(CONFIG):
            path = f"{CONFIG}/{entry}"
            if entry.endswith(tuple(f".{kind}" for kind in WANTS.values())):
                for each in self._root.names(path):
                    if self._link(f"{path}/{each}") is not None:
                        yield f"{path}/{each}", True
            elif self._link(path) is not None:
                yield path, False

    # -- enabling -----------------------------------------------------------------------------------------------------

    def _enable_all(self, names: Sequence[str]) -> None:
        for name in names:
            if self._is_linked(name):
                raise _Refused(f"refusing to operate on alias name or linked unit file {name}")
        units = {unit.name: unit for unit in (self._needed(name) for name in names)}
        refusals = self._apply(units)
        if refusals:
            raise _Refused(refusals[0])

    def _apply(self, units: dict[str, _Unit]) -> list[str]:
        """Enable the units and those existing that ``Also`` names. Tries all; returns the refusals."""
        refusals: list[str] = []
        todo, seen = list(units.values()), set(units)
        while todo:
            unit = todo.pop(0)
            for each in unit.install.also:
                name = expanded(each, unit.name, unit.install)
                if name not in seen and is_unit_name(name) and len(seen) < MAX_ALSO:
                    seen.add(name)
                    found = self._found(name)
                    if found.name == name or found.name not in seen:
                        seen.add(found.name)
                        todo.append(found)
            if unit.path is not None and not unit.masked:
                refusals += self._enable(unit)
        return refusals

    def _enable(self, unit: _Unit) -> list[str]:
        """Create the unit's links kind by kind, and return the refusals of the first kind that made or refused any."""
        kinds = dict.fromkeys(kind for kind, _ in unit.install.wanted)
        results = [self._alias(unit)]
        results += [self._want(unit, kind) for kind in sorted(kinds, key=list(WANTS.values()).index)]
        return next((refusals for made, refusals in results if made or refusals), [])

    def _alias(self, unit: _Unit) -> tuple[bool, list[str]]:
        """Create the alias links. Returns whether all were created, and the refusals."""
        made, refusals = False, list[str]()
        for alias in unit.install.aliases:
            given = expanded(alias, unit.name, unit.install)
            name = alias_name(unit.name, given)
            if name is None:
                refusals.append(f"cannot alias {unit.name} as {given}")
            elif name:
                refusals += self._make(f"{CONFIG}/{name}", unit.path or "")
                made = True
        return made and not refusals, refusals

    def _want(self, unit: _Unit, kind: str) -> tuple[bool, list[str]]:
        name = unit.name
        if is_template(name) and unit.install.instance:
            name = with_instance(name, unit.install.instance)
            if self._found(name).masked:
                return False, [f"unit {name} is masked"]
        refusals: list[str] = []
        made = False
        for target in (expanded(one, unit.name, unit.install) for of, one in unit.install.wanted if of == kind):
            if not is_unit_name(target):
                refusals.append(f"destination {target} is not a valid unit name")
            elif is_template(name) and not (is_template(target) or instance_of(target)):
                refusals.append(f"destination unit {target} is a {NON_TEMPLATE}")
            else:
                refusals += self._make(f"{CONFIG}/{target}.{kind}/{name}", unit.path or "")
                made = True
        return made and not refusals, refusals

    def _make(self, path: str, target: str) -> list[str]:
        """Create a link. Returns a refusal if another file exists there."""
        if self._root.stat(path) is None:
            self._root.make_directories(posixpath.dirname(path))
            self._root.link(path, target)
            return []
        there = self._link(path)
        if there is not None and self._end(there) == self._end(target):
            return []
        return [f"file {path} already exists" + (f" and is a symlink to {there}" if there else "")]

    # -- disabling ----------------------------------------------------------------------------------------------------

    def _disable_all(self, names: Sequence[str], *, also: bool = True) -> None:
        marked: set[str] = set()
        todo, seen = list(names), set(names)
        while todo:
            unit = self._found(todo.pop(0))
            if unit.masked:
                continue
            marked.add(unit.name)
            for each in unit.install.also if also else ():
                name = expanded(each, unit.name, unit.install)
                if name not in seen and len(seen) < MAX_ALSO:
                    seen.add(name)
                    todo.append(name)
        self._remove(marked)

    def _remove(self, marked: set[str]) -> None:
        """Remove all links that have a marked name or lead to one, then links that went through a removed link."""
        again = True
        while again:
            again = False
            for path, inside in list(self._all_links()):
                name, end = posixpath.basename(path), self._end(path)
                if end == NULL and not inside:
                    continue
                if {name, posixpath.basename(end), end} & marked:
                    self._root.remove(path)
                    marked.add(path)
                    folder = posixpath.dirname(path)
                    if inside and not self._root.names(folder):
                        self._root.remove(folder)
                    again = True

    # -- presets ------------------------------------------------------------------------------------------------------

    def _preset_all(self, names: Sequence[str]) -> None:
        plus: dict[str, _Unit] = {}
        minus: list[str] = []
        rules = self._presets()
        for name in names:
            found = self._found(name)
            if found.path is None:
                raise _Refused(f"unit {name} does not exist")
            if found.name != name:
                continue  # an alias has the state of its unit
            wanted, instances = preset_of(rules, name)
            if not wanted:
                minus.append(name)
            for each in instances or (name,):
                if wanted:
                    found = self._needed(each)
                    plus[found.name] = found
        if minus:
            self._disable_all(minus, also=False)
        refusals = [text for text in self._apply(plus) if not text.endswith(NON_TEMPLATE)]
        if refusals:
            raise _Refused(refusals[0])

    def _presets(self) -> list[str]:
        files: dict[str, str] = {}
        for place in PRESETS:
            for each in self._root.names(place):
                if each.endswith(".preset"):
                    files.setdefault(each, f"{place}/{each}")
        texts = (self._root.read(path) for _, path in sorted(files.items()) if self._link(path) != NULL)
        return [line for text in texts for line in text.decode("utf-8", "replace").splitlines()]
