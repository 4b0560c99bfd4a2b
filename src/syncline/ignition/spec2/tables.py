"""The fields of specification 1 and 2.0 to 2.4; the signs are those of :mod:`syncline.ignition.schema`.

2.0 was written by hand upstream, with types of its own and another order of fields; 2.1 to 2.4 are one table. Source:
coreos/ignition v0.35.0 ``config/v1/types``, ``config/v2_*/types``.
"""

from __future__ import annotations

from functools import cache

from syncline.ignition.schema import Schema, read_table

NEWEST = 4
FIRST = -1
"""The minor version under which rules know specification 1."""

_SPEC_1 = """
Config          ignitionVersion:int! storage:Storage systemd:Systemd networkd:Networkd passwd:Passwd
Storage         disks:[Disk] raid:[Raid] filesystems:[Filesystem]
Disk            device:path wipeTable:bool partitions:[Partition]
Partition       label:partlabel number:int! size:size! start:size! typeGuid:guid
Raid            name:str! level:str! devices:[path] spares:int
Filesystem      device:path format:fsformat create:Create? files:[File]
Create          force:bool options:[str]
File            path:path contents:str mode:filemode uid:int gid:int
Systemd         units:[Unit]
Unit            name:unitname enable:bool mask:bool contents:str dropins:[Dropin]
Dropin          name:dropinname contents:str
Networkd        units:[NetworkdUnit]
NetworkdUnit    name:networkname contents:str
Passwd          users:[PasswdUser] groups:[PasswdGroup]
PasswdGroup     name:str gid:uint? passwordHash:str system:bool
PasswdUser      name:str passwordHash:str sshAuthorizedKeys:[str] create:UserCreate?
UserCreate      uid:uint? gecos:str homeDir:str noCreateHome:bool primaryGroup:str groups:[str] noUserGroup:bool \
system:bool noLogInit:bool shell:str
"""

_SPEC_2_0 = """
Config          ignition:Ignition! storage:Storage systemd:Systemd networkd:Networkd passwd:Passwd
Ignition        version:semver config:IgnitionConfig
IgnitionConfig  append:[ConfigReference] replace:ConfigReference?
ConfigReference source:url verification:Verification
Verification    hash:hash?
Storage         disks:[Disk] raid:[Raid] filesystems:[Filesystem] files:[File]
Disk            device:path wipeTable:bool partitions:[Partition]
Partition       label:partlabel number:int! size:size! start:size! typeGuid:guid
Raid            name:str! level:str! devices:[path] spares:int
Filesystem      name:str mount:Mount? path:path?
Mount           device:path format:fsformat create:Create?
Create          force:bool options:[str]
File            filesystem:str path:path contents:FileContents mode:filemode user:FileOwner group:FileOwner
FileOwner       id:int
FileContents    compression:gzip source:url verification:Verification
Systemd         units:[Unit]
Unit            name:unitname enable:bool mask:bool contents:str dropins:[Dropin]
Dropin          name:dropinname contents:str
Networkd        units:[NetworkdUnit]
NetworkdUnit    name:networkname contents:str
Passwd          users:[PasswdUser] groups:[PasswdGroup]
PasswdGroup     name:str gid:uint? passwordHash:str system:bool
PasswdUser      name:str passwordHash:str sshAuthorizedKeys:[str] create:UserCreate?
UserCreate      uid:uint? gecos:str homeDir:str noCreateHome:bool primaryGroup:str groups:[str] noUserGroup:bool \
system:bool noLogInit:bool shell:str
"""

_SPEC_2 = """
Config          ignition:Ignition! networkd:Networkd passwd:Passwd storage:Storage systemd:Systemd
Ignition        config:IgnitionConfig proxy:Proxy@4 security:Security@2 timeouts:Timeouts version:str
IgnitionConfig  append:[ConfigReference] replace:ConfigReference?
ConfigReference httpHeaders:[HTTPHeader]@4 source:str<3 source:str!@3 verification:Verification
CaReference     httpHeaders:[HTTPHeader]@4 source:str<3 source:str!@3 verification:Verification
HTTPHeader      name:str! value:str!
Verification    hash:str?
Proxy           httpProxy:str httpsProxy:str noProxy:[str]
Security        tls:TLS
TLS             certificateAuthorities:[CaReference]
Timeouts        httpResponseHeaders:int? httpTotal:int?
Networkd        units:[NetworkdUnit]
NetworkdUnit    contents:str dropins:[NetworkdDropin]@2 name:str<3 name:str!@3
NetworkdDropin  contents:str name:str<3 name:str!@3
Passwd          groups:[PasswdGroup] users:[PasswdUser]
PasswdGroup     gid:int? name:str<3 name:str!@3 passwordHash:str system:bool
PasswdUser      create:UserCreate? gecos:str groups:[str] homeDir:str name:str<3 name:str!@3 noCreateHome:bool \
noLogInit:bool noUserGroup:bool passwordHash:str? primaryGroup:str sshAuthorizedKeys:[str] shell:str system:bool \
uid:int?
UserCreate      gecos:str groups:[str] homeDir:str noCreateHome:bool noLogInit:bool noUserGroup:bool primaryGroup:str \
shell:str system:bool uid:int?
Storage         directories:[Directory] disks:[Disk] files:[File] filesystems:[Filesystem] links:[Link] raid:[Raid]
NodeOwner       id:int? name:str
Directory       filesystem:str<3 filesystem:str!@3 group:NodeOwner<2 group:NodeOwner?@2 overwrite:bool?@2 \
path:str<3 path:str!@3 user:NodeOwner<2 user:NodeOwner?@2 mode:int<2 mode:int?@2
File            filesystem:str<3 filesystem:str!@3 group:NodeOwner<2 group:NodeOwner?@2 overwrite:bool?@2 \
path:str<3 path:str!@3 user:NodeOwner<2 user:NodeOwner?@2 append:bool@2 contents:FileContents mode:int<2 mode:int?@2
Link            filesystem:str<3 filesystem:str!@3 group:NodeOwner<2 group:NodeOwner?@2 overwrite:bool?@2 \
path:str<3 path:str!@3 user:NodeOwner<2 user:NodeOwner?@2 hard:bool target:str<3 target:str!@3
FileContents    compression:str httpHeaders:[HTTPHeader]@4 source:str verification:Verification
Disk            device:str<3 device:str!@3 partitions:[Partition] wipeTable:bool
Partition       guid:str label:str<3 label:str?@3 number:int shouldExist:bool?@3 size:int<3 size:int?@3 sizeMiB:int?@3 \
start:int<3 start:int?@3 startMiB:int?@3 typeGuid:str wipePartitionEntry:bool@3
Filesystem      mount:Mount? name:str path:str?
Mount           create:Create? device:str<3 device:str!@3 format:str<3 format:str!@3 label:str? options:[str] \
uuid:str? wipeFilesystem:bool
Create          force:bool options:[str]
Raid            devices:[str]<3 devices:[str]!@3 level:str<3 level:str!@3 name:str<3 name:str!@3 options:[str]@2 \
spares:int
Systemd         units:[Unit]
Unit            contents:str dropins:[Dropin] enable:bool enabled:bool? mask:bool name:str<3 name:str!@3
Dropin          contents:str name:str<3 name:str!@3
"""


@cache
def spec2(minor: int) -> Schema:
    """2.``minor``; raises KeyError for a version that does not exist."""
    if not 0 <= minor <= NEWEST:
        raise KeyError(f"Ignition spec 2.{minor}: known are 2.0 to 2.{NEWEST}")
    return read_table(_SPEC_2 if minor else _SPEC_2_0, minor, f"2.{minor}.0")


@cache
def spec1() -> Schema:
    """Specification 1."""
    return read_table(_SPEC_1, FIRST, "1")
