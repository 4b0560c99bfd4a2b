"""Secrets that new clusters are made with: install configs, and what External Secrets reads of the secret store."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

from syncline.clustergroup.acm.facts import GROUPS, Facts
from syncline.clustergroup.acm.provision import DEPLOYMENTS, POOLS, Wanted, of_group
from syncline.clustergroup.printing import Printer, first, is_empty, printed, to_yaml
from syncline.kube.gotemplate.fmt import sprint
from syncline.kube.objects import Obj

_HUB: Final = "secret/data/hub"
_AWS: Final = ("awsKeyPath", f"{_HUB}/aws")
_AZURE: Final = ("azureKeyPath", f"{_HUB}/azureOsServicePrincipal")
_PULL: Final = ("openshiftPullSecret", "pullSecretKeyPath", f"{_HUB}/openshiftPullSecret", "content")
_PUBLIC: Final = ("sshPublicKey", "sshPublicKeyPath", f"{_HUB}/publickey", "content")
_PRIVATE: Final = ("sshPrivateKey", "sshPrivateKeyPath", f"{_HUB}/privatekey", "content")
_PRINCIPAL: Final = ("azureOsServicePrincipal", *_AZURE, "content")
_AWS_KEYS: Final = (("awsKeyId", *_AWS, "aws_access_key_id"), ("awsAccessKey", *_AWS, "aws_secret_access_key"))
_LABELS: Final = {
    "cluster.open-cluster-management.io/credentials": "",
    "cluster.open-cluster-management.io/type": "aws",
}
"""Labels of credentials; upstream writes the same type for Azure."""
_NO_PROXY: Final = dict.fromkeys(("httpProxy", "httpsProxy", "noProxy", "additionalTrustBundle"), "")


def _filled(name: str) -> str:
    """What External Secrets replaces by a value."""
    return f"{{{{ .{name} | toString }}}}"


_SHARED_KEYS: Final = {
    "pullSecret": _filled("openshiftPullSecret"),
    "ssh-privatekey": _filled("sshPrivateKey"),
    "ssh-publickey": _filled("sshPublicKey"),
}


class _Writer:
    """Writes the Secrets of one pool or deployment."""

    def __init__(self, out: Printer, facts: Facts, one: Wanted) -> None:
        self.out, self.facts, self.one = out, facts, one

    def name(self, part: str) -> Any:
        return self.one.named(self.out, part)

    def metadata(self, part: str) -> Obj:
        own = {"namespace": self.out.plain(self.one.name)} if self.one.owns else {}
        return {"name": self.name(part), **own}

    def key(self, field: str, default: str) -> Any:
        return self.out.plain(first(self.out.field(self.one.given, field, GROUPS), default))

    def read(self, *entries: tuple[str, str, str, str]) -> Obj:
        """Entries: name, field of the values with the path in the store, default path, property."""
        return {
            "data": [
                {"secretKey": name, "remoteRef": {"key": self.key(field, default), "property": part}}
                for name, field, default, part in entries
            ]
        }

    def external(self, part: str, read: Obj, template: Obj) -> Obj:
        store = self.facts.values.get("secretStore")
        reference = {key: self.out.plain(self.out.field(store, key, "secretStore")) for key in ("name", "kind")}
        target = {"name": self.name(part), "creationPolicy": "Owner", "template": template}
        return {
            "apiVersion": "external-secrets.io/v1beta1",
            "kind": "ExternalSecret",
            "metadata": self.metadata(part),
            "spec": {**read, "refreshInterval": "24h0m0s", "secretStoreRef": reference, "target": target},
        }


_Secrets = Callable[[_Writer], list[Obj]]


def aws(facts: Facts) -> list[Obj]:
    """Return the credentials for clusters on AWS."""
    return list(_each(facts, "provision/secrets-aws", _on("aws", _aws)))


def azure(facts: Facts) -> list[Obj]:
    """Return the credentials for clusters on Azure."""
    return list(_each(facts, "provision/secrets-azure", _on("azure", _azure)))


def common(facts: Facts) -> list[Obj]:
    """Return the install config, pull secret and SSH key of each pool and deployment."""
    return list(_each(facts, "provision/secrets-common", _common))


def _each(facts: Facts, part: str, secrets: _Secrets) -> Iterator[Obj]:
    out = facts.printer(part)
    for group in facts.groups(out):
        for key in (POOLS, DEPLOYMENTS):
            for one in of_group(out, group, key):
                yield from secrets(_Writer(out, facts, one))


def _on(cloud: str, secrets: _Secrets) -> _Secrets:
    def made(writer: _Writer) -> list[Obj]:
        platform = writer.out.field(writer.one.given, "platform", GROUPS)
        return [] if is_empty(writer.out.field(platform, cloud, f"{GROUPS}: platform")) else secrets(writer)

    return made


def _base_domain(writer: _Writer) -> Obj:
    return {"baseDomain": writer.out.inside(writer.one.given.get("baseDomain"))}


def _aws(writer: _Writer) -> list[Obj]:
    data = {
        **_base_domain(writer),
        **_SHARED_KEYS,
        "aws_access_key_id": _filled("awsKeyId"),
        "aws_secret_access_key": _filled("awsAccessKey"),
        **_NO_PROXY,
    }
    infrastructure = {"type": "Opaque", "metadata": {"labels": _LABELS}, "data": data}
    whole_key = {"dataFrom": [{"extract": {"key": writer.key(*_AWS)}}]}
    return [
        writer.external("creds", whole_key, {"type": "Opaque"}),
        writer.external("infra-creds", writer.read(_PULL, *_AWS_KEYS, _PUBLIC, _PRIVATE), infrastructure),
    ]


def _azure(writer: _Writer) -> list[Obj]:
    principal = {"osServicePrincipal.json": _filled("azureOsServicePrincipal")}
    settings = writer.one.given["platform"]["azure"]
    zone = writer.out.field(settings, "baseDomainResourceGroupName", f"{GROUPS}: platform.azure")
    data = {
        "cloudName": "AzurePublicCloud",
        **principal,
        **_base_domain(writer),
        "baseDomainResourceGroupName": writer.out.inside(sprint(zone)),
        **_SHARED_KEYS,
        **_NO_PROXY,
    }
    infrastructure = {"type": "Opaque", "metadata": {"labels": _LABELS}, "data": data}
    return [
        writer.external("creds", writer.read(_PRINCIPAL), {"type": "Opaque", "data": principal}),
        writer.external("infra-creds", writer.read(_PULL, _PUBLIC, _PRIVATE, _PRINCIPAL), infrastructure),
    ]


def _common(writer: _Writer) -> list[Obj]:
    encoded = b64encode(install_config(writer.out, writer.one).encode()).decode()
    pull = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": _filled("openshiftPullSecret")}}
    key = {"type": "Opaque", "data": {"ssh-privatekey": _filled("sshPrivateKey")}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": writer.metadata("install-config"),
            "data": {"install-config.yaml": encoded},
            "type": "Opaque",
        },
        writer.external("pull-secret", writer.read(_PULL), pull),
        writer.external("ssh-private-key", writer.read(_PRIVATE), key),
    ]


def install_config(out: Printer, one: Wanted) -> str:
    """Return the text of OpenShift's ``install-config.yaml``.

    The text is an interface: it is compared as base64, so that lines, blanks and comments are those of the chart.
    """
    cloud, _, machine = one.cloud(out)
    workers = _machines(out, one, "workers", 0, f"    {cloud}:\n      type: {machine}")
    control = _machines(out, one, "controlPlane", 3, f"    {cloud}:\n      type: {machine}")
    why = "# skip, hive will inject based on it's secrets"
    return (
        f"\n\napiVersion: v1\nmetadata:\n  name: '{_inside(one.given.get('name'))}' \n"
        f"baseDomain: {_inside(one.given.get('baseDomain'))}\n"
        f"controlPlane:\n  architecture: amd64\n  hyperthreading: Enabled\n  name: controlPlane\n{control}"
        f"compute:\n- hyperthreading: Enabled\n  architecture: amd64\n  name: 'worker'\n{workers}"
        "networking:\n  clusterNetwork:\n  - cidr: 10.128.0.0/14\n    hostPrefix: 23\n"
        "  machineNetwork:\n  - cidr: 10.0.0.0/16\n  networkType: OVNKubernetes\n"
        "  serviceNetwork:\n  - 172.30.0.0/16\n"
        f"platform:\n{_indented(one.given.get('platform'), 2)}\n"
        f'pullSecret: "" {why}\nsshKey: ""     {why}'
    )


def _inside(value: Any) -> str:
    """Return a value as a template prints it whose text another function takes; Helm leaves nil as it is there."""
    return "<no value>" if value is None else printed(value)


def _indented(value: Any, by: int) -> str:
    return "\n".join(" " * by + line for line in to_yaml(value).split("\n"))


def _machines(out: Printer, one: Wanted, key: str, least: int, default: str) -> str:
    """Return how many machines of which kind: as given, or three of the cloud's usual type."""
    given = one.given.get(key)
    if is_empty(given):
        return f"  replicas: 3\n  platform:\n{default}\n"
    count = first(out.field(given, "count", f"{GROUPS}: {key}"), float(least))
    platform = out.field(given, "platform", f"{GROUPS}: {key}")
    described = "" if is_empty(platform) else f"  platform:\n{_indented(platform, 4)}\n"
    return f"  replicas: {printed(0.0 if count is None else count)}\n{described}"
