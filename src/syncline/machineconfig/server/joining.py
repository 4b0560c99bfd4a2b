"""Builds the Ignition config of a joining machine: its pool's rendered config, and files for its access and its agent;
pure.

Source: reference machine-config 4.10; Machine Config Operator ``pkg/server/*_server.go`` and ``server.go``.
"""

from __future__ import annotations

import base64
import binascii
import copy
from dataclasses import dataclass, field

from syncline.ignition.butane.encoding import escaped
from syncline.ignition.golang import Version, parse_version
from syncline.ignition.jsontext import dump
from syncline.ignition.versions.converting import ConversionError, convert_raw_to, convert_to
from syncline.kube.objects import Obj, annotations_of, dig, meta, name_of, resource_version, uid_of
from syncline.machineconfig.configs.parsing import NEWEST_VERSION, ConfigError, lifted_config
from syncline.machineconfig.names import (
    ARBITER,
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_IMAGE,
    DONE,
    ENCAPSULATED,
    FIRST_PIVOT,
    INSTALLED,
    MASTER,
    NODE_ANNOTATIONS,
    STATE,
    annotation,
)
from syncline.machineconfig.render.naming import typed_spec
from syncline.machineconfig.server.world import World, image_for_new_machine, served_config

PRE_BUILT_IMAGE = annotation("pre-built-image")
KUBELET_CA = "/etc/kubernetes/kubelet-ca.crt"
CLOUD_CA = "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"
KUBECONFIG = "/etc/kubernetes/kubeconfig"
EMPTY: Obj = {"ignition": {"version": NEWEST_VERSION}}
FIRST_WITH_ARGUMENTS = Version(3, 3, 0)
_FIELDS = ("osImageURL", "baseOSExtensionsContainerImage", "config", "kernelArguments", "extensions", "fips")


class Unserved(Exception):
    """The request gets no config: ``status`` is for the client, the message for the log."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Choice:
    """All that a machine's config depends on. ``version``: ``2.2.0``, ``3.0.0`` to ``3.5.0``; ``image``: of image mode,
    else empty."""

    found: Obj
    controller_config: Obj
    version: str
    image: str
    bootstrap: bool
    kubeconfig: str = field(repr=False)

    @property
    def key(self) -> tuple[str | bool, ...] | None:
        """A cache key: equal keys have the same config; None if an object has no uid or version."""
        lines = [(uid_of(each), resource_version(each)) for each in (self.found, self.controller_config)]
        if not all(uid and version for uid, version in lines):
            return None
        return (*lines[0], *lines[1], self.version, self.image, self.bootstrap, self.kubeconfig)


def choose(pool_name: str, version: str, world: World) -> Choice:
    """Return what ``pool_name`` serves to a joining machine. Raises Unserved."""
    pool = _pool(pool_name, world)
    rendered = str(dig(pool, "status", "configuration", "name", default="")) if world.bootstrap else served_config(pool)
    if not rendered:
        raise Unserved(404 if world.bootstrap else 500, f"MachineConfigPool {pool_name} has no config in force yet")
    found = world.configs.get(rendered)
    if found is None:
        raise Unserved(404 if world.bootstrap else 500, f"MachineConfig {rendered!r} does not exist")
    if world.controller_config is None:
        raise Unserved(500, "there is no ControllerConfig")
    if not world.kubeconfig:
        raise Unserved(500, "there is no kubeconfig for machines that join yet")
    image = "" if world.bootstrap else image_for_new_machine(pool, world)
    return Choice(found, world.controller_config, version, image, world.bootstrap, world.kubeconfig)


def config_of(choice: Choice) -> Obj:
    """Return the built config; a large one takes milliseconds. Raises Unserved."""
    asked = parse_version(choice.version)
    assert asked is not None
    try:
        config = copy.deepcopy(lifted_config(dig(choice.found, "spec", "config")))
        machine_config = _with_arguments(choice.found, config, asked)
        _add_authorities(config, choice.controller_config)
        empty = convert_to(EMPTY, NEWEST_VERSION if choice.bootstrap else choice.version)
        first, *others = _agents_files(machine_config, choice.image, empty)
        for path, contents in (first, (KUBECONFIG, choice.kubeconfig), *others):
            _append(config, path, contents)
        return convert_raw_to(dump(config).encode(), choice.version)
    except (ConfigError, ConversionError) as problem:
        raise Unserved(500, f"MachineConfig {name_of(choice.found)}: {problem}") from problem


def joining_files(found: Obj, image: str) -> tuple[tuple[str, str], ...]:
    """Return paths and texts of the files that a machine gets besides those of the rendered config ``found``: for its
    first boot and its agent. ``image``: of image mode, else empty."""
    return _agents_files(_sent_config(found, typed_spec(found.get("spec"))), image, EMPTY)


def _agents_files(config: Obj, image: str, empty: Obj) -> tuple[tuple[str, str], ...]:
    notes = dump(_provisioning_annotations(name_of(config), image, config))
    whole = config | {"spec": config["spec"] | ({"osImageURL": image} if image else {})}
    first_boot = whole | {"spec": whole["spec"] | {"config": empty}}
    return (NODE_ANNOTATIONS, notes), (INSTALLED, dump(whole, indent=4)), (ENCAPSULATED, dump(first_boot))


def _pool(name: str, world: World) -> Obj:
    if world.bootstrap and name not in (MASTER, ARBITER):
        raise Unserved(500, f"a cluster that does not exist yet has no pool {name!r}; it has master and arbiter")
    pool = world.pools.get(name)
    if pool is None:
        raise Unserved(404 if world.bootstrap else 500, f"MachineConfigPool {name!r} does not exist")
    return pool


def _with_arguments(found: Obj, config: Obj, asked: Version) -> Obj:
    """Return the MachineConfig to send. Kernel arguments that the config's version does not support move from
    ``config`` to it. Raises Unserved if that is impossible."""
    spec = typed_spec(found.get("spec"))
    if asked.older_than(FIRST_WITH_ARGUMENTS):
        arguments = config.pop("kernelArguments", None) or {}
        if arguments.get("shouldNotExist"):
            raise Unserved(500, f"version {asked} cannot say that kernel arguments should not exist")
        if arguments.get("shouldExist"):
            spec["kernelArguments"] = [*(spec["kernelArguments"] or ()), *arguments["shouldExist"]]
    return _sent_config(found, spec)


def _sent_config(found: Obj, spec: Obj) -> Obj:
    ordered = {key: spec[key] for key in _FIELDS} | spec
    kind: Obj = {key: found[key] for key in ("kind", "apiVersion") if key in found}
    fields = {key: value for key, value in meta(found).items() if value}  # Go omits empty fields
    return {**kind, "metadata": fields, "spec": ordered}


def _provisioning_annotations(rendered: str, image: str, found: Obj) -> Obj:
    """Return the annotations that the node agent sets at its first run."""
    known = {CURRENT: rendered, DESIRED: rendered, FIRST_PIVOT: rendered, STATE: DONE}
    image = annotations_of(found).get(PRE_BUILT_IMAGE) or image
    if image:
        known |= {CURRENT_IMAGE: image, DESIRED_IMAGE: image}
    return dict(sorted(known.items()))


def _add_authorities(config: Obj, controller_config: Obj) -> None:
    """Add the current authorities: a paused pool's rendered config may have older ones."""
    for path, source in ((KUBELET_CA, "kubeAPIServerServingCAData"), (CLOUD_CA, "cloudProviderCAData")):
        encoded = dig(controller_config, "spec", source, default="") or ""
        try:
            data = base64.b64decode(encoded)
        except (binascii.Error, ValueError) as problem:
            name = name_of(controller_config)
            raise Unserved(500, f"ControllerConfig {name}: spec.{source} is not base64: {problem}") from None
        if not data:
            continue
        there = next((each for each in dig(config, "storage", "files", default=()) if each.get("path") == path), None)
        if there is None:
            _append(config, path, data)
        else:
            there.setdefault("contents", {})["source"] = _source(data)


def _append(config: Obj, path: str, contents: str | bytes) -> None:
    file = {"overwrite": True, "path": path, "contents": {"source": _source(contents)}, "mode": 0o644}
    config.setdefault("storage", {}).setdefault("files", []).append(file)


def _source(contents: str | bytes) -> str:
    return "data:," + escaped(contents.encode() if isinstance(contents, str) else contents)
