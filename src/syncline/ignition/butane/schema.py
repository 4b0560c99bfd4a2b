"""Which keys a Butane document may hold, per version, and which Ignition keys they become: tables only.

``ignition/butane/reading.py`` decodes by :func:`document_type`, ``ignition/butane/translation.py`` walks the result.
What Ignition makes of the keys stands in ``ignition/schema.py``. A *base* is the number of a Butane base version:
base 5 is base 0.5 and translates to Ignition 3.4. The names of types and packages are upstream's, since its messages
show them.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple


class Field(NamedTuple):
    """One key. ``json`` is what Ignition calls it, None for sugar.

    ``kind`` is ``str int bool struct list map``; ``struct`` is the type of the value or of a list's items, None where
    items are text. ``nullable`` means that absent differs from zero.
    """

    key: str
    json: str | None
    kind: str
    nullable: bool
    struct: Struct | None
    type_name: str


class Struct(NamedTuple):
    """A mapping type: its fields in upstream's order. ``name`` decides about special rules (``Resource``)."""

    name: str
    package: str
    fields: tuple[Field, ...]
    by_key: dict[str, Field]

    @property
    def type_name(self) -> str:
        return f"{self.package}.{self.name}"


# One line per type: `key=type`, `?` nullable, `[T]` list, `{T}` mapping of text, `+` sugar that Ignition does not know,
# `@N` from base N on, `@N-M` from base N up to base M. A type that is not in the table is text.
_BASE: Final = """
Ignition: config=IgnitionConfig proxy=Proxy@2 security=Security timeouts=Timeouts
IgnitionConfig: merge=[ConfigReference]@1-1 merge=[Resource]@2 replace=ConfigReference@1-1 replace=Resource@2
ConfigReference: source=str? verification=Verification
CaReference: source=str verification=Verification
FileContents: compression=str? source=str? +inline=str? verification=Verification
Resource: compression=str? http_headers=[HTTPHeader] source=str? +inline=str? +local=str? verification=Verification
HTTPHeader: name=str value=str?
Verification: hash=str?
Proxy: http_proxy=str? https_proxy=str? no_proxy=[string]
Security: tls=TLS
TLS: certificate_authorities=[CaReference]@1-1 certificate_authorities=[Resource]@2
Timeouts: http_response_headers=int? http_total=int?
KernelArguments: should_exist=[KernelArgument] should_not_exist=[KernelArgument]
Passwd: groups=[PasswdGroup] users=[PasswdUser]
PasswdGroup: gid=int? name=str password_hash=str? should_exist=bool?@3 system=bool?
PasswdUser: gecos=str? groups=[Group] home_dir=str? name=str no_create_home=bool? no_log_init=bool? \
no_user_group=bool? password_hash=str? primary_group=str? should_exist=bool?@3 \
ssh_authorized_keys=[SSHAuthorizedKey] +ssh_authorized_keys_local=[string]@5 shell=str? system=bool? uid=int?
Storage: directories=[Directory] disks=[Disk] files=[File] filesystems=[Filesystem] links=[Link] luks=[Luks]@3 \
raid=[Raid] +trees=[Tree]@2
Directory: group=NodeGroup overwrite=bool? path=str user=NodeUser mode=int?
File: group=NodeGroup overwrite=bool? path=str user=NodeUser append=[FileContents]@1-1 append=[Resource]@2 \
contents=FileContents@1-1 contents=Resource@2 mode=int?
Link: group=NodeGroup overwrite=bool? path=str user=NodeUser hard=bool? target=str@1-3 target=str?@4
NodeGroup: id=int? name=str?
NodeUser: id=int? name=str?
Disk: device=str partitions=[Partition] wipe_table=bool?
Partition: guid=str? label=str? number=int resize=bool?@3 should_exist=bool? size_mib=int? start_mib=int? \
type_guid=str? wipe_partition_entry=bool?
Filesystem: device=str format=str? label=str? mount_options=[string]@2 options=[FilesystemOption]@1-1 \
options=[string]@2 path=str? uuid=str? wipe_filesystem=bool? +with_mount_unit=bool?@2
Luks: cex=Cex@6 clevis=Clevis?@3-3 clevis=Clevis@4 device=str? discard=bool?@5 key_file=Resource label=str? \
name=str open_options=[string]@5 options=[LuksOption]@3-4 options=[string]@5 uuid=str? wipe_volume=bool?
Cex: enabled=bool?
Clevis: custom=Custom?@3-3 custom=ClevisCustom@4 tang=[Tang] threshold=int? tpm2=bool?
Custom: config=str needs_network=bool? pin=str
ClevisCustom: config=str? needs_network=bool? pin=str?
Tang: thumbprint=str? url=str advertisement=str?@5
Raid: devices=[Device]@1-3 devices=[Device]@4 level=str@1-3 level=str?@4 name=str options=[RaidOption]@1-4 \
options=[string]@5 spares=int?
Tree: group=NodeGroup@7 local=str path=str? user=NodeUser@7 file_mode=int?@7 dir_mode=int?@7
Systemd: units=[Unit] +quadlets=[Quadlet]@8
Unit: contents=str? +contents_local=str?@5 dropins=[Dropin] enabled=bool? mask=bool? name=str
Dropin: contents=str? +contents_local=str?@5 name=str
Quadlet: contents=str? contents_local=str? name=str rootful=bool dropins=[Dropin]
"""

_DOCUMENT: Final = (
    "version=str variant=str ignition=Ignition kernel_arguments=KernelArguments@4 passwd=Passwd storage=Storage "
    "systemd=Systemd"
)

# Keys of the fcos variant stand above the base; here `@` counts versions of the variant (1.5 is 5).
_FCOS: Final = """
BootDevice: layout=str? luks=BootDeviceLuks mirror=BootDeviceMirror
BootDeviceLuks: cex=Cex@6 discard=bool?@5 device=str?@6 tang=[Tang] threshold=int? tpm2=bool?
BootDeviceMirror: devices=[string]
Grub: users=[GrubUser]
GrubUser: name=str password_hash=str?
"""
_FCOS_DOCUMENT: Final = "boot_device=BootDevice@3 grub=Grub@5"

_OPENSHIFT: Final = """
Metadata: name=str labels={string}
OpenShift: kernel_arguments=[string] extensions=[string] fips=bool? kernel_type=str?
"""
_OPENSHIFT_DOCUMENT: Final = "metadata=Metadata openshift=OpenShift"


def camel(key: str) -> str:
    """Return Ignition's name of a key: ``sizeMiB`` for ``size_mib``."""
    if key.endswith("_mib"):
        key = key.removesuffix("_mib") + "MiB"
    first, *rest = key.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def snake(key: str) -> str:
    """Return Butane's name of a key: ``size_mib`` for ``sizeMiB``."""
    out: list[str] = []
    at = 0
    while at < len(key):
        if key.startswith("MiB", at):
            out.append("_mib")
            at += 3
            continue
        character = key[at]
        out.append("_" + character.lower() if "A" <= character <= "Z" else character.lower())
        at += 1
    return "".join(out)


class _Table:
    """Parses the lines of a table into types; ``base`` selects the existing ones."""

    def __init__(self, text: str, base: int, package: str, outer: _Table | None = None) -> None:
        self._lines = dict(line.split(": ", 1) for line in text.strip().splitlines())
        self._base = base
        self._package = package
        self._outer = outer
        self._made: dict[str, Struct] = {}

    def struct(self, name: str) -> Struct | None:
        if name in self._lines:
            if name not in self._made:
                self._made[name] = self.make(name, self._lines[name])
            return self._made[name]
        return None if self._outer is None else self._outer.struct(name)

    def make(self, name: str, line: str) -> Struct:
        fields = tuple(field for word in line.split() if (field := self._field(word)) is not None)
        return Struct(name, self._package, fields, {field.key: field for field in fields})

    def _field(self, word: str) -> Field | None:
        word, _, bases = word.partition("@")
        first, _, last = bases.partition("-")
        if not int(first or 0) <= self._base <= int(last or 99):
            return None
        key, _, kind = word.lstrip("+").partition("=")
        json = None if word.startswith("+") else camel(key)
        nullable, kind = kind.endswith("?"), kind.removesuffix("?")
        if kind in ("str", "int", "bool"):
            return Field(key, json, kind, nullable, None, "string" if kind == "str" else kind)
        if kind.startswith("{"):
            return Field(key, json, "map", nullable, None, "map[string]string")
        item = kind.strip("[]")
        struct = self.struct(item)
        type_name = struct.type_name if struct else item if item == "string" else f"{self._package}.{item}"
        if kind.startswith("["):
            named = f"{self._package}.HTTPHeaders" if item == "HTTPHeader" else f"[]{type_name}"
            return Field(key, json, "list", nullable, struct, named)
        return Field(key, json, "struct", nullable, struct, type_name)


def _package(base: int) -> str:
    return f"v0_{base}_exp" if base == 8 else f"v0_{base}"


@cache
def _base_table(base: int) -> _Table:
    return _Table(_BASE, base, _package(base))


_HEADER_FIELDS: Final = tuple(Field(key, None, "str", False, None, "string") for key in ("version", "variant"))
HEADER: Final = Struct("commonFields", "config", _HEADER_FIELDS, {field.key: field for field in _HEADER_FIELDS})
"""What is read of every document to learn which type the rest has."""


@cache
def document_type(base: int, fcos: int = -1, openshift: int = -1) -> Struct:
    """Return the type of a document: base, fcos version 1.``fcos`` and openshift 4.``openshift`` (-1: none)."""
    inner = _base_table(base)
    fields = list(inner.make("Config", _DOCUMENT).fields)
    if fcos >= 0:
        exp = "_exp" if fcos == 8 else ""
        fields += _Table(_FCOS, fcos, f"v1_{fcos}{exp}", inner).make("Config", _FCOS_DOCUMENT).fields
    if openshift >= 0:
        exp = "_exp" if openshift == 23 else ""
        fields += _Table(_OPENSHIFT, 0, f"v4_{openshift}{exp}", inner).make("Config", _OPENSHIFT_DOCUMENT).fields
    return Struct("Config", "config", tuple(fields), {field.key: field for field in fields})
