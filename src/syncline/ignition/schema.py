"""The fields of every object of the Ignition specification, 3.0 to 3.7, as one table.

One line per object, fields in the order in which upstream writes them. ``name:type`` with:

| sign | means |
|---|---|
| ``str`` ``int`` ``bool`` ``path`` … | plain value (lower case; see ``PLAIN``); left out when it is its zero |
| ``?`` | absent and zero differ |
| ``!`` | always written |
| ``[T]`` | list of T |
| ``Name`` | another object of the table; ``Name?`` one that may be absent although an empty one would be written |
| ``@4`` ``<4`` | since 3.4; before 3.4 |

Behind the fields: ``key=FIELD`` names what makes items of this object equal (``partition`` and ``source`` are rules of
their own), ``plain=A,B`` lists where equal items are allowed, and ``shared=A,B`` lists whose keys are one namespace.
Parser, validator, converter and merger only know this table. Source: coreos/ignition ``config/v3_*/types/schema.go``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

MINORS = 8
"""Minor versions in the table: 3.0 to 3.7."""
NEWEST = MINORS - 1

_TABLE = """
Config          ignition:Ignition! kernelArguments:KernelArguments@3 passwd:Passwd storage:Storage systemd:Systemd
Ignition        config:IgnitionConfig proxy:Proxy@1 security:Security timeouts:Timeouts version:str<4 version:str!@4
IgnitionConfig  merge:[ConfigReference]<1 merge:[Resource]@1 replace:ConfigReference<1 replace:Resource@1
ConfigReference source:str?! verification:Verification | key=source
CaReference     source:str! verification:Verification | key=source
Resource        compression:str? httpHeaders:[HTTPHeader]@1 source:str? verification:Verification | key=source
HTTPHeader      name:str! value:str? | key=name
Verification    hash:str?
Proxy           httpProxy:str? httpsProxy:str? noProxy:[noproxy]
Security        tls:TLS
TLS             certificateAuthorities:[CaReference]<1 certificateAuthorities:[Resource]@1
Timeouts        httpResponseHeaders:int? httpTotal:int?
KernelArguments shouldExist:[kernelarg] shouldNotExist:[kernelarg] | shared=shouldExist,shouldNotExist
Passwd          groups:[PasswdGroup] users:[PasswdUser]
PasswdGroup     gid:int? name:str! passwordHash:str? shouldExist:bool?@2 system:bool? | key=name
PasswdUser      gecos:str? groups:[groupname] homeDir:str? name:str! noCreateHome:bool? noLogInit:bool? \
noUserGroup:bool? passwordHash:str? primaryGroup:str? sshAuthorizedKeys:[sshkey] shell:str? \
shouldExist:bool?@2 system:bool? uid:int? | key=name
Storage         directories:[Directory] disks:[Disk] files:[File] filesystems:[Filesystem] links:[Link] luks:[Luks]@2 \
raid:[Raid] | shared=directories,files,links
NodeOwner       id:int? name:str?
Directory       group:NodeOwner overwrite:bool? path:str! user:NodeOwner mode:int? | key=path
File            group:NodeOwner overwrite:bool? path:str! user:NodeOwner append:[Resource] contents:Resource mode:int? \
| key=path plain=append
Link            group:NodeOwner overwrite:bool? path:str! user:NodeOwner hard:bool? target:str!<3 target:str?@3 \
| key=path
Disk            device:str! partitions:[Partition] wipeTable:bool? | key=device
Partition       guid:str? label:str? number:int resize:bool?@2 shouldExist:bool? sizeMiB:int? startMiB:int? \
typeGuid:str? wipePartitionEntry:bool? | key=partition
Filesystem      device:str! format:str? label:str? mountOptions:[mountoption]@1 options:[fsoption] path:str? uuid:str? \
wipeFilesystem:bool? | key=device plain=options,mountOptions
Luks            cex:Cex@5 clevis:Clevis?<3 clevis:Clevis@3 device:str? discard:bool?@4 keyFile:Resource label:str? \
name:str! openOptions:[openoption]@4 options:[luksoption] uuid:str? wipeVolume:bool? | key=name plain=options
Cex             enabled:bool?
Clevis          custom:ClevisCustom?<3 custom:ClevisCustom@3 tang:[Tang] threshold:int? tpm2:bool?
ClevisCustom    config:str!<3 config:str?@3 needsNetwork:bool? pin:str!<3 pin:str?@3
Tang            advertisement:str?@4 thumbprint:str? url:str | key=url
Raid            devices:[device]!<3 devices:[device]@3 level:str!<3 level:str?@3 name:str! options:[raidoption] \
spares:int? | key=name plain=options
Systemd         units:[Unit]
Unit            contents:str? dropins:[Dropin] enabled:bool? mask:bool? name:str! | key=name
Dropin          contents:str? name:str! | key=name
"""

PLAIN: dict[str, type] = {
    "str": str,
    "int": int,
    "bool": bool,
    "path": str,
    "uint": int,
    "size": int,
    "filemode": int,
    "url": str,
    "hash": str,
    "semver": str,
    "gzip": str,
    "fsformat": str,
    "partlabel": str,
    "guid": str,
    "unitname": str,
    "dropinname": str,
    "networkname": str,
    "device": str,
    "fsoption": str,
    "groupname": str,
    "kernelarg": str,
    "luksoption": str,
    "mountoption": str,
    "noproxy": str,
    "openoption": str,
    "raidoption": str,
    "sshkey": str,
}
"""Plain types and what they are in JSON. Old specifications have types of their own for texts with a rule, and the
items of lists of texts have one each, which is seen in refusals."""
_TOKEN = re.compile(r"(\w+):(\[?)(\w+)\]?(\??)(!?)(?:@(\d+))?(?:<(\d+))?")


@dataclass(frozen=True, slots=True)
class Field:
    """``type``: plain, or the name of an object. ``nullable``: absent and zero differ. ``always``: written even when
    zero."""

    name: str
    type: str
    many: bool
    nullable: bool
    always: bool

    @property
    def scalar(self) -> bool:
        """Whether values (or items) are plain: no object."""
        return self.type in PLAIN


@dataclass(frozen=True, slots=True)
class Object:
    """One kind of object: ``fields`` by name in writing order, ``folded`` the same names in lower case. ``plain``:
    lists whose items may repeat. ``shared``: lists whose items share one namespace."""

    name: str
    fields: dict[str, Field]
    folded: dict[str, str]
    key: str
    plain: frozenset[str]
    shared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Schema:
    """The objects of one version, by name; ``Config`` is the root."""

    version: str
    minor: int
    objects: dict[str, Object]

    @property
    def root(self) -> Object:
        return self.objects["Config"]


def version_text(minor: int) -> str:
    """The version as configurations write it: ``3.4.0``; the newest one is experimental."""
    return f"3.{minor}.0-experimental" if minor == NEWEST else f"3.{minor}.0"


@cache
def schema(minor: int) -> Schema:
    """The table as of 3.``minor``; raises KeyError for a version that does not exist."""
    if not 0 <= minor < MINORS:
        raise KeyError(f"Ignition spec 3.{minor}: known are 3.0 to 3.{NEWEST}")
    return read_table(_TABLE, minor, version_text(minor))


def read_table(table: str, minor: int, version: str) -> Schema:
    """The objects that ``table`` has at minor version ``minor``."""
    objects = (_object(line, minor) for line in table.strip().split("\n"))
    return Schema(version, minor, {one.name: one for one in objects})


def _object(line: str, minor: int) -> Object:
    name, rest = line.split(None, 1)
    tokens, _, marks = rest.partition("|")
    fields = {}
    for token in tokens.split():
        match = _TOKEN.fullmatch(token)
        assert match, f"{name}: {token} is no field"
        field, many, kind, nullable, always, since, before = match.groups()
        assert kind in PLAIN or kind[0].isupper(), f"{name}: {kind} is no type"
        if int(since or -1) <= minor < int(before or 99):
            fields[field] = Field(field, kind, bool(many), bool(nullable), bool(always))
    known = dict(mark.split("=", 1) for mark in marks.split())
    return Object(
        name,
        fields,
        {field.lower(): field for field in fields},
        known.get("key", ""),
        frozenset(known.get("plain", "").split(",")) & fields.keys(),
        frozenset(known.get("shared", "").split(",")) & fields.keys(),
    )
