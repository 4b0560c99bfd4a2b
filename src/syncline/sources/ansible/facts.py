"""Facts of the target: :func:`read_facts` of a file, :func:`facts_of_node` of a Node object."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.text.quantity import QuantityError, parse_quantity
from syncline.sources.errors import Problem, SourceError

FIELD = "--facts-from"
MAX_BYTES = 8 * 1024 * 1024
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
_RELEASE = re.compile(r"(?P<name>[A-Za-z ]+?)(?: release)?\s+(?P<version>\d[\d.]*)")


def read_facts(path: Path) -> bytes:
    """Return the facts of a file, as :func:`facts_of`. Raises :class:`SourceError`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SourceError(Problem.TOO_LARGE, f"{path}: facts have at most {MAX_BYTES} bytes", field=FIELD)
        text = path.read_bytes()
        # `ansible -m setup` prints "HOST | SUCCESS => {…}".
        found = msgspec.json.decode(text[max(text.find(b"{"), 0) :])
    except (OSError, msgspec.DecodeError) as error:
        raise SourceError(Problem.INVALID, f"{path}: not readable as JSON ({error})", field=FIELD) from None
    return facts_of(found, str(path))


def facts_of(found: object, subject: str) -> bytes:
    """Return facts as the module ``setup`` answers them, with their prefix, as JSON. Raises :class:`SourceError`."""
    facts = found.get("ansible_facts", found) if isinstance(found, dict) else None
    if not isinstance(facts, dict) or not facts:
        message = f"{subject}: facts are a JSON object, as `ansible -m setup` prints it"
        raise SourceError(Problem.INVALID, message, field=FIELD)
    named = {f"ansible_{str(name).removeprefix('ansible_')}": value for name, value in facts.items()}
    return msgspec.json.encode(named)


def facts_of_node(node: Obj) -> dict[str, Any]:
    """Return the facts that a Node object tells: names, addresses, size, OS, kernel. Everything else is unknown, and a
    playbook that asks for it fails."""
    info, addresses = dig(node, "status", "nodeInfo", default={}), dig(node, "status", "addresses", default=[])
    by_type = {str(each.get("type")): str(each.get("address")) for each in addresses if isinstance(each, dict)}
    hostname = by_type.get("Hostname") or labels_of(node).get("kubernetes.io/hostname") or name_of(node)
    image = str(info.get("osImage", ""))
    release = _RELEASE.search(image)
    version = release["version"] if release else ""
    red_hat = "Red Hat" in image or "CoreOS" in image or not image
    architecture = str(info.get("architecture", "amd64"))
    facts: dict[str, Any] = {
        "hostname": hostname.split(".")[0],
        "nodename": hostname,
        "fqdn": hostname,
        "architecture": _ARCHITECTURES.get(architecture, architecture),
        "machine": _ARCHITECTURES.get(architecture, architecture),
        "kernel": str(info.get("kernelVersion", "")),
        "system": "Linux",
        "distribution": "RedHat" if red_hat else (release["name"] if release else "").strip(),
        "distribution_version": version,
        "distribution_major_version": version.split(".")[0],
        "os_family": "RedHat" if red_hat else "",
        "service_mgr": "systemd",
        "pkg_mgr": "dnf",
        "is_chroot": False,
        "selinux": {"status": "enabled", "mode": "enforcing"},
        "machine_id": str(info.get("machineID", "")),
        "env": {},
        "default_ipv4": {"address": by_type.get("InternalIP", "")},
        "all_ipv4_addresses": [by_type["InternalIP"]] if "InternalIP" in by_type else [],
    }
    capacity = dig(node, "status", "capacity", default={})
    for name, fact, unit in (("cpu", "processor_vcpus", 1), ("memory", "memtotal_mb", 1024**2)):
        try:
            facts[fact] = int(parse_quantity(str(capacity.get(name, ""))).value() // unit)
        except (QuantityError, ValueError, TypeError):
            continue
    return {name: value for name, value in facts.items() if value not in ("", {"address": ""}, [])}
