"""Parses the section [Install] of unit files and validates unit names; pure.

Used by ``hosts/linuxunits.py``. Source: systemd.unit(5), systemd.preset(5), and ``src/shared/install.c`` and
``src/basic/unit-name.c`` of systemd 252.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

WANTS = {"WantedBy": "wants", "RequiredBy": "requires"}
ALIASED = ("service", "socket", "target", "device", "timer", "path")
"""Types of units that may have other names."""
MAX_NAME = 255
_NAME = re.compile(
    r"[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\@-]*)?"
    r"\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)"
)
_SPECIFIER = re.compile(r"%(.)")


@dataclass
class Install:
    wanted: list[tuple[str, str]] = field(default_factory=list)
    """Kind of link (``wants`` …) and the unit that gets it."""
    aliases: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    instance: str = ""


def is_unit_name(text: str) -> bool:
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def instance_of(name: str) -> str:
    """Return the instance: ``tty1`` of ``getty@tty1.service``; empty for templates and plain names."""
    return name.rpartition(".")[0].partition("@")[2]


def is_template(name: str) -> bool:
    return name.rpartition(".")[0].endswith("@") and name.count("@") == 1


def template_of(name: str) -> str:
    """Return the template: ``getty@.service`` of ``getty@tty1.service``; other names are returned unchanged."""
    stem, dot, suffix = name.rpartition(".")
    prefix, at, _ = stem.partition("@")
    return f"{prefix}@{dot}{suffix}" if at else name


def with_instance(name: str, instance: str) -> str:
    """Return the name of an instance of the template or instance ``name``."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem.partition('@')[0]}@{instance}{dot}{suffix}"


def alias_name(name: str, alias: str) -> str | None:
    """Return the name of an alias link; empty if it equals the unit's own name, None if the alias is not allowed."""
    if is_template(alias) and instance_of(name):
        alias = with_instance(alias, instance_of(name))
    kind = name.rpartition(".")[2]
    if not is_unit_name(alias) or alias.rpartition(".")[2] != kind or kind not in ALIASED:
        return None
    if instance_of(alias):
        if not (is_template(name) or instance_of(name) == instance_of(alias)):
            return None
        same = template_of(alias) == template_of(name)
        return "" if same else alias
    if is_template(alias) != is_template(name) or instance_of(name):
        return None
    return "" if alias == name else alias


def expanded(text: str, name: str, install: Install) -> str:
    """Expand the specifiers that depend on the unit's own name; other specifiers stay."""
    stem, _, suffix = name.rpartition(".")
    prefix = stem.partition("@")[0]
    instance = instance_of(name) or (install.instance if is_template(name) else "")
    whole = with_instance(name, instance) if is_template(name) and instance else name
    values = {
        "n": whole,
        "N": whole.removesuffix(f".{suffix}"),
        "p": prefix,
        "i": instance,
        "j": prefix.rpartition("-")[2],
        "%": "%",
    }
    return _SPECIFIER.sub(lambda found: values.get(found[1], found[0]), text)


def add_install_lines(install: Install, name: str, content: bytes) -> None:
    """Add the [Install] lines of the unit ``name``; an empty assignment clears earlier values."""
    for key, value in _lines(content.decode("utf-8", "replace")):
        words = value.split()
        if key in WANTS:
            if not words:
                install.wanted = [one for one in install.wanted if one[0] != WANTS[key]]
            install.wanted += [(WANTS[key], word) for word in words]
        elif key == "Alias":
            install.aliases = [*install.aliases, *words] if words else []
        elif key == "Also":
            install.also += words
        elif key == "DefaultInstance" and is_template(name):
            install.instance = value if is_unit_name(f"a@{value}.service") else ""


def _lines(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        elif section == "[Install]" and line and line[0] not in "#;":
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()


def preset_of(rules: Iterable[str], name: str) -> tuple[bool, list[str]]:
    """Return whether the first matching rule enables the unit (default: yes), and which instances of a template."""
    for line in rules:
        words = line.split()
        if len(words) < 2 or words[0] not in ("enable", "disable"):
            continue
        pattern = words[1]
        if words[0] == "enable" and is_template(pattern) and len(words) > 2:
            instances = [with_instance(pattern, each) for each in words[2:]]
            if fnmatch.fnmatchcase(name, pattern):
                return True, instances
            if name in instances:
                return True, [name]
        elif fnmatch.fnmatchcase(name, pattern):
            return words[0] == "enable", []
    return True, []
