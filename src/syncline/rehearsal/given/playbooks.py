"""Which AnsibleConfigs of a rehearsed repository have their playbook in it."""

from __future__ import annotations

from posixpath import normpath

from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.given.files import Files


def is_ansible_config(obj: Obj) -> bool:
    return (obj.get("apiVersion"), obj.get("kind")) == (ANSIBLE_CONFIG.api_version, ANSIBLE_CONFIG.kind)


def addresses_of(files: Files) -> tuple[str, ...]:
    """Return the addresses under which AnsibleConfigs name this repository: those whose playbook or role it has."""
    found = {
        str(dig(obj, "spec", "repository", "repoURL") or "")
        for _, obj in files.objects()
        if is_ansible_config(obj) and _has(files, obj)
    }
    return tuple(sorted(found - {""}))


def _has(files: Files, config: Obj) -> bool:
    path, playbook, role = (str(dig(config, "spec", key) or "") for key in ("path", "playbook", "role"))
    if playbook:
        return normpath(f"{path or '.'}/{playbook}").lstrip("/") in files.content
    folder = normpath(f"{path or '.'}/roles/{role}").lstrip("/")
    return bool(role) and any(each.startswith(f"{folder}/") for each in files.content)
