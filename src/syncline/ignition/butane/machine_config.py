"""The openshift variant: an Ignition config inside a MachineConfig, and what OpenShift refuses in one.

Source: coreos/butane ``config/openshift/v4_*/translate.go``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from syncline.ignition.butane import messages as m
from syncline.ignition.butane.boot_device import GRUB_PATH
from syncline.ignition.butane.merging import Config, common_source
from syncline.ignition.butane.places import Finding, Places, error, warning
from syncline.ignition.butane.translation import Draft
from syncline.ignition.golang import UrlError, parse_url
from syncline.ignition.report import Path

CONFIG: Final[Path] = ("spec", "config")

_FIELDS: Final = ("kernel_arguments", "extensions", "fips", "kernel_type")
_JSON: Final = {"kernel_arguments": "kernelArguments", "kernel_type": "kernelType"}

_CIPHER: Final = "--cipher"
_FIPS_CIPHER: Final = "aes-cbc-essiv:sha256"
"""FIPS 140-2 does not allow the default mode."""


def move_grub_to_contents(draft: Draft) -> None:
    """Move the boot loader's passwords to contents (from 4.23 on): the Machine Config Operator does not append to
    files."""
    for index, node in enumerate(draft.config.get("storage", {}).get("files") or ()):
        if node.get("path") != GRUB_PATH:
            continue
        appended = node.get("append") or []
        if len(appended) != 1:
            return
        at = ("storage", "files", index)
        node["contents"] = appended[0]
        del node["append"]
        moved: Places = {}
        kind = draft.schema.objects["Resource"]
        common_source(draft.schema, kind, node["contents"], (*at, "contents"), (), moved)
        for new in moved:
            old = (*at, "append", 0, *new[len(at) + 1 :])
            if old in draft.places:
                draft.places[new] = draft.places.pop(old)
        return


def wrapped_places(draft: Draft) -> Places:
    """Return positions by paths from the root of the MachineConfig."""
    document = draft.document
    places: Places = {(*CONFIG, *path): source for path, source in draft.places.items()}
    places["apiVersion",] = places["kind",] = places["spec",] = ("version",)
    places["metadata",] = ("metadata",)
    places["metadata", "name"] = ("metadata", "name")
    places["metadata", "labels"] = ("metadata", "labels")
    places[CONFIG] = ()
    for key in document.get("metadata", {}).get("labels") or ():
        places["metadata", "labels", key] = ("metadata", "labels", key)
    section = document.get("openshift", {})
    for name in _FIELDS:
        if name in section:
            source, result = ("openshift", name), ("spec", _JSON.get(name, name))
            places[result] = source
            if isinstance(section[name], list):
                places.update({(*result, index): (*source, index) for index in range(len(section[name]))})
    return places


def openshift_fields(document: Config) -> Config:
    """Return the fields beside the config in ``spec``, with upstream's names and order."""
    section = document.get("openshift", {})
    return {_JSON.get(name, name): section[name] for name in _FIELDS if name in section}


def wrap(document: Config, config: Config) -> Config:
    """Return the MachineConfig with a canonical ``config``."""
    metadata = document.get("metadata", {})
    shown: Config = {"name": metadata.get("name", "")}
    if labels := metadata.get("labels"):
        shown["labels"] = dict(sorted(labels.items()))
    spec: Config = {"config": config}
    spec.update({name: part for name, part in openshift_fields(document).items() if part != []})
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": shown,
        "spec": spec,
    }


def add_fips_cipher(draft: Draft, places: Places) -> None:
    """Set a cipher that FIPS allows on volumes without one (up to 4.19). ``places`` are the wrapped ones."""
    if not draft.document.get("openshift", {}).get("fips"):
        return
    for index, luks in enumerate(draft.config.get("storage", {}).get("luks") or ()):
        options: list[str] = luks.get("options") or []
        if any(option in (_CIPHER, "-c") or option.startswith(f"{_CIPHER}=") for option in options):
            continue
        at = (*CONFIG, "storage", "luks", index, "options")
        source = ("openshift", "fips")
        places[*at, len(options)] = places[*at, len(options) + 1] = source
        if not options:
            places[at] = source
        luks["options"] = [*options, _CIPHER, _FIPS_CIPHER]


def refused(draft: Draft) -> Iterator[Finding]:
    """Yield values that RHCOS or the Machine Config Operator cannot apply, with paths from the MachineConfig's root."""
    config, minor = draft.config, draft.spec.openshift
    storage: Config = config.get("storage", {})
    filesystems: list[Any] = storage.get("filesystems") or []
    unsupported = [("btrfs", m.BTRFS_SUPPORT)]
    if minor >= 14:
        unsupported.append(("none", m.FILESYSTEM_NONE_SUPPORT))
    for format_, message in unsupported:
        for index, filesystem in enumerate(filesystems):
            if filesystem.get("format") == format_:
                yield error((*CONFIG, "storage", "filesystems", index, "format"), message, result=True)
    for index, file in enumerate(storage.get("files") or ()):
        at = (*CONFIG, "storage", "files", index)
        source = file.get("contents", {}).get("source")
        if source is not None and _scheme(source) not in (None, "data"):
            yield error((*at, "contents", "source"), m.FILE_SCHEME_SUPPORT, result=True)
        if minor >= 10 and (file.get("mode") or 0) & ~0o777:
            yield error((*at, "mode"), m.FILE_SPECIAL_MODE_SUPPORT, result=True)
    for index, user in enumerate(config.get("passwd", {}).get("users") or ()):
        if user.get("name", "") != "core":
            yield error((*CONFIG, "passwd", "users", index, "name"), m.USER_NAME_SUPPORT, result=True)


def _scheme(source: str) -> str | None:
    """Return the scheme of a URL; None if it is invalid, which validation reports."""
    try:
        return parse_url(source).scheme
    except UrlError:
        return None


def elided(draft: Draft, places: Places) -> Iterator[Finding]:
    """Yield the parts that raw output omits."""
    for name in openshift_fields(draft.document):
        source = places.get(("spec", name), ("spec", name))
        yield warning(source, m.FIELD_ELIDED)
