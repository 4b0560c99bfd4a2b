"""``boot_device`` and ``grub`` of the fcos and openshift variants: mirrored or encrypted root disks, boot passwords.

Generated parts have lower priority than those of the user. The partitions repeat those of the operating system's image,
so their sizes and types are fixed. Source: coreos/butane ``config/fcos/v1_*/translate.go``.
"""

from __future__ import annotations

from typing import Any, Final

from syncline.ignition.butane import messages as m
from syncline.ignition.butane.merging import Config, Part, common_source
from syncline.ignition.butane.places import warning
from syncline.ignition.butane.translation import Draft, text_bytes
from syncline.ignition.report import Path

Value = dict[str, Any]

_RESERVED: Final = ("reserved", 1, "8DA63339-0007-60C0-C436-083AC8230908")
_BIOS: Final = ("bios", 1, "21686148-6449-6E6F-744E-656564454649")
_PREP: Final = ("prep", 4, "9E1A2D38-C612-4316-AA26-8B49521E5A8B")
_ESP: Final = ("esp", 127, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B")
_BOOT_MIB: Final = 384

_FIRMWARE: Final[dict[str | None, tuple[tuple[str, int, str], tuple[str, int, str]]]] = {
    None: (_BIOS, _ESP),
    "x86_64": (_BIOS, _ESP),
    "aarch64": (_RESERVED, _ESP),
    "ppc64le": (_PREP, _RESERVED),
}
"""The two partitions before boot and root, by layout; s390x is never mirrored."""

_LUKS_SUFFIX: Final = {"s390x-eckd": "2", "s390x-zfcp": "4"}

_RESERVED_NUMBERS: Final = {"BIOS-BOOT": 1, "PowerPC-PReP-boot": 1, "EFI-SYSTEM": 2, "boot": 3, "root": 4}
_ROOT_MIB: Final = 8192

GRUB_PATH: Final = "/boot/grub2/user.cfg"


def add_boot_device(draft: Draft) -> None:
    """Add disks, arrays, volumes and filesystems of the boot device under the user's config."""
    boot: Value = draft.document.get("boot_device", {})
    luks: Value = boot.get("luks", {})
    cex = bool(luks.get("cex", {}).get("enabled"))
    encrypted = bool(luks.get("tpm2") or luks.get("tang") or cex)
    devices: list[str] = boot.get("mirror", {}).get("devices") or []
    if not encrypted and not devices:
        return
    generated = Part()
    sugar = _Sugar(draft, generated)
    layout = boot.get("layout")
    if devices:
        sugar.mirror(devices, layout)
    if encrypted:
        sugar.luks(luks, layout, mirrored=bool(devices), cex=cex)
    device = "/dev/mapper/root" if encrypted else "/dev/md/md-root"
    sugar.filesystem(device, "xfs", "root", ("boot_device",))
    generated.places["storage", "filesystems"] = generated.places["storage",] = ("boot_device",)
    draft.lay_over(generated)


class _Sugar:
    """Builds the generated config step by step."""

    def __init__(self, draft: Draft, generated: Part) -> None:
        self._draft = draft
        self._places = generated.places
        self._storage: Config = generated.config.setdefault("storage", {})

    def _add(self, section: str, kind: str, value: Config, source: Path) -> None:
        items = self._storage.setdefault(section, [])
        schema = self._draft.schema
        at = ("storage", section, len(items))
        common_source(schema, schema.objects[kind], value, at, source, self._places)
        items.append(value)

    def filesystem(self, device: str, format_: str, label: str, source: Path) -> None:
        value = {"device": device, "format": format_, "label": label, "wipeFilesystem": True}
        self._add("filesystems", "Filesystem", value, source)

    def mirror(self, devices: list[str], layout: str | None) -> None:
        source: Path = ("boot_device", "mirror")
        firmware = _FIRMWARE[layout]
        for index, device in enumerate(devices):
            number = index + 1
            at = (*source, "devices", index)
            partitions = [
                {"label": f"{name}-{number}", "sizeMiB": size, "typeGuid": guid} for name, size, guid in firmware
            ]
            partitions.append({"label": f"boot-{number}", "sizeMiB": _BOOT_MIB})
            partitions.append({"label": f"root-{number}"})
            self._add("disks", "Disk", {"device": device, "partitions": partitions, "wipeTable": True}, at)
            if _ESP in firmware:
                self.filesystem(f"/dev/disk/by-partlabel/esp-{number}", "vfat", f"esp-{number}", at)
        self._places["storage", "disks"] = (*source, "devices")
        for name in ("boot", "root"):
            raid: Config = {
                "devices": [f"/dev/disk/by-partlabel/{name}-{index + 1}" for index in range(len(devices))],
                "level": "raid1",
                "name": f"md-{name}",
            }
            if name == "boot":
                # The superblock stands at the end, so that a BIOS boot loader needs no knowledge of arrays.
                raid["options"] = ["--metadata=1.0"]
            self._add("raid", "Raid", raid, source)
        self._places["storage", "raid"] = source
        self.filesystem("/dev/md/md-boot", "ext4", "boot", source)

    def luks(self, luks: Value, layout: str | None, *, mirrored: bool, cex: bool) -> None:
        source: Path = ("boot_device", "luks")
        at: Path = ("storage", "luks", 0)
        places = self._places
        device = "/dev/md/md-root" if mirrored else "/dev/disk/by-partlabel/root"
        if layout in _LUKS_SUFFIX:
            device = luks.get("device", "") + _LUKS_SUFFIX[layout]
        volume: Config = {"device": device, "label": "luks-root", "name": "root", "wipeVolume": True}
        if "discard" in luks:
            volume["discard"] = luks["discard"]
        if cex:
            volume["cex"] = {"enabled": luks["cex"]["enabled"]}
            places[*at, "cex"] = source
            places[*at, "cex", "enabled"] = (*source, "enabled")
        else:
            volume["clevis"] = self._clevis(luks, source, (*at, "clevis"))
        places[*at, "discard"] = (*source, "discard")
        for name in ("device", "label", "name", "wipeVolume"):
            places[*at, name] = source
        places[at] = places["storage", "luks"] = source
        self._storage["luks"] = [volume]

    def _clevis(self, luks: Value, source: Path, at: Path) -> Config:
        places = self._places
        clevis: Config = {}
        if "tang" in luks:
            clevis["tang"] = [dict(tang) for tang in luks["tang"]]
            places[*at, "tang"] = (*source, "tang")
            for index, tang in enumerate(luks["tang"]):
                for name in ("url", *tang):
                    places[*at, "tang", index, name] = (*source, "tang", index, name)
                if tang:
                    places[*at, "tang", index] = (*source, "tang", index)
        for name in ("threshold", "tpm2"):
            if name in luks:
                clevis[name] = luks[name]
                places[*at, name] = (*source, name)
        places[at] = source
        return clevis


def warn_about_disks(draft: Draft) -> None:
    """Warn about surprising partitions: a root that is or stays small, reserved labels with the wrong number."""
    for number, disk in enumerate(draft.config.get("storage", {}).get("disks") or ()):
        partitions: list[Config] = disk.get("partitions") or []
        for index, partition in enumerate(partitions):
            label = partition.get("label")
            if label is None:
                continue
            at = ("storage", "disks", number, "partitions", index)
            if label == "root" and draft.spec.fcos >= 3:
                size = partition.get("sizeMiB") or 0
                others = partitions[:index] + partitions[index + 1 :]
                if not size and any(not other.get("startMiB") for other in others):
                    draft.findings.append(warning((*at, "label"), m.ROOT_CONSTRAINED, result=True))
                elif size and size < _ROOT_MIB:
                    draft.findings.append(warning((*at, "size_mib"), m.ROOT_TOO_SMALL, result=True))
            wanted = _RESERVED_NUMBERS.get(label)
            if wanted is not None and not disk.get("wipeTable") and partition.get("number", 0) != wanted:
                draft.findings.append(warning((*at, "label"), m.WRONG_PARTITION_NUMBER, result=True))


def add_grub(draft: Draft) -> None:
    """Add users and passwords of the boot loader. Merge even without any, since that also trims recorded positions."""
    users: list[Value] = draft.document.get("grub", {}).get("users") or []
    generated = Part()
    if users:
        names = " ".join(user.get("name", "") for user in users)
        passwords = [f"password_pbkdf2 {user.get('name', '')} {user.get('password_hash', '')}" for user in users]
        text = "\n".join(["# Generated by Butane", "", f'set superusers="{names}"', *passwords, ""])
        source, compression = draft.encoded(text_bytes(text))
        storage: Config = {
            "filesystems": [{"device": "/dev/disk/by-label/boot", "format": "ext4", "path": "/boot"}],
            "files": [{"path": GRUB_PATH, "append": [{"source": source, "compression": compression}]}],
        }
        generated.config["storage"] = storage
        schema = draft.schema
        common_source(schema, schema.objects["Storage"], storage, ("storage",), ("grub", "users"), generated.places)
    draft.lay_over(generated)
