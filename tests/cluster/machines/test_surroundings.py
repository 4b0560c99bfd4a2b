"""What the kubelet gives to containers: host names, hosts, resolvers, variables of Services. Policies as sentences."""

from __future__ import annotations

from typing import Any

import pytest
from machine_world import MachineWorld

from syncline.cluster.machines.processes.surroundings import (
    SERVICE_ADDRESS,
    SysctlError,
    host_name,
    hosts_file,
    master_address,
    resolver_file,
    service_variables,
    sysctls_of,
)
from syncline.kube.objects import Obj


def pod(name: str = "p", **spec: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def service(namespace: str, name: str, address: str, *ports: Obj) -> Obj:
    listed = list(ports) or [{"port": 80}]
    metadata = {"name": name, "namespace": namespace}
    return {"kind": "Service", "metadata": metadata, "spec": {"clusterIP": address, "ports": listed}}


NAMES = [
    ("a pod has its own name", pod(), "p"),
    ("or the one that it asks for", pod(hostname="h", subdomain="s"), "h"),
    ("or its whole name", pod(hostname="h", subdomain="s", setHostnameAsFQDN=True), "h.s.ns.svc.cluster.local"),
    (
        "or a name that goes before all",
        pod(hostname="h", subdomain="s", hostnameOverride="o.example.org"),
        "o.example.org",
    ),
    ("a long name is cut, and ends with no dash", pod("a" * 62 + "-b"), "a" * 62),
    ("on the network of the machine it is the machine's", pod(hostNetwork=True, hostname="h"), "node-1"),
]


@pytest.mark.parametrize(("policy", "given", "name"), NAMES, ids=[case[0] for case in NAMES])
def test_host_names(policy: str, given: Obj, name: str) -> None:
    assert host_name(given, "node-1") == name


def test_the_hosts_file_names_the_pod_and_its_aliases() -> None:
    aliases = [{"ip": "123.45.67.89", "hostnames": ["foo", "bar"]}]
    text = hosts_file(pod(hostname="h", subdomain="s", hostAliases=aliases), "10.1.2.3", "10.96.0.1")
    assert text.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert "\n10.1.2.3\th.s.ns.svc.cluster.local\th\n" in text
    assert "\n# Entries added by HostAliases.\n123.45.67.89\tfoo\tbar\n" in text
    assert "\n10.96.0.1\tkubernetes.default.svc.cluster.local\t" in text
    assert "\n10.1.2.3\tp\n" in hosts_file(pod(), "10.1.2.3", "10.96.0.1")
    shared = hosts_file(pod(hostNetwork=True), "10.1.2.3", "10.96.0.1")
    assert "(host network)" in shared and "10.1.2.3" not in shared


def test_kernel_parameters_are_the_usual_ones_and_those_of_the_pod_if_they_are_safe() -> None:
    asked = [
        {"name": "kernel/shm_rmid_forced", "value": "1"},
        {"name": "net.ipv4.ip_unprivileged_port_start", "value": "9"},
    ]
    found = sysctls_of(pod(securityContext={"sysctls": asked}))
    assert found["kernel.shm_rmid_forced"] == "1" and found["net.ipv4.ip_unprivileged_port_start"] == "9"
    assert sysctls_of(pod())["net.ipv4.ip_unprivileged_port_start"] == "0"
    for name in ("kernel.msgmax", "net.ipv4.ip_forward", "../../etc/x", "vm.swappiness"):
        with pytest.raises(SysctlError, match="is not set for local processes"):
            sysctls_of(pod(securityContext={"sysctls": [{"name": name, "value": "1"}]}))


SEARCH = "search ns.svc.cluster.local svc.cluster.local cluster.local"
OWN = {
    "nameservers": ["1.1.1.1"],
    "searches": ["resolv.conf.local"],
    "options": [{"name": "ndots", "value": "2"}, {"name": "x"}],
}
RESOLVERS = [
    ("a pod searches the cluster", pod(), f"{SEARCH}\noptions ndots:5\n"),
    (
        "with policy None there is what the pod says",
        pod(dnsPolicy="None", dnsConfig=OWN),
        "search resolv.conf.local\nnameserver 1.1.1.1\noptions ndots:2 x\n",
    ),
    (
        "what the pod says is added, and its options go before",
        pod(dnsConfig=OWN),
        f"{SEARCH} resolv.conf.local\nnameserver 1.1.1.1\noptions ndots:2 x\n",
    ),
    ("policy Default is the machine's, which asks no server", pod(dnsPolicy="Default"), ""),
    ("on the network of the machine ClusterFirst is Default", pod(dnsPolicy="ClusterFirst", hostNetwork=True), ""),
    (
        "unless it asks for the cluster there, too",
        pod(dnsPolicy="ClusterFirstWithHostNet", hostNetwork=True),
        f"{SEARCH}\noptions ndots:5\n",
    ),
]


@pytest.mark.parametrize(("policy", "given", "text"), RESOLVERS, ids=[case[0] for case in RESOLVERS])
def test_resolvers(policy: str, given: Obj, text: str) -> None:
    assert resolver_file(given) == text


MASTER = service("default", "kubernetes", "10.96.0.1", {"name": "https", "port": 443})


def test_services_of_the_namespace_and_the_api_are_variables() -> None:
    found = service_variables(
        pod(),
        [
            service(
                "ns",
                "foo-service",
                "10.0.0.7",
                {"name": "web-port", "port": 8765, "protocol": "TCP"},
                {"port": 9, "protocol": "UDP"},
            ),
            service("ns", "headless", "None"),
            service("ns", "external", ""),
            service("ns", "six", "fd00::1"),
            service("other", "bar", "10.0.0.8"),
            MASTER,
        ],
    )
    foo = {name: value for name, value in found.items() if name.startswith("FOO")}
    assert foo == {
        "FOO_SERVICE_SERVICE_HOST": "10.0.0.7",
        "FOO_SERVICE_SERVICE_PORT": "8765",
        "FOO_SERVICE_SERVICE_PORT_WEB_PORT": "8765",
        "FOO_SERVICE_PORT": "tcp://10.0.0.7:8765",
        "FOO_SERVICE_PORT_8765_TCP": "tcp://10.0.0.7:8765",
        "FOO_SERVICE_PORT_8765_TCP_PROTO": "tcp",
        "FOO_SERVICE_PORT_8765_TCP_PORT": "8765",
        "FOO_SERVICE_PORT_8765_TCP_ADDR": "10.0.0.7",
        "FOO_SERVICE_PORT_9_UDP": "udp://10.0.0.7:9",
        "FOO_SERVICE_PORT_9_UDP_PROTO": "udp",
        "FOO_SERVICE_PORT_9_UDP_PORT": "9",
        "FOO_SERVICE_PORT_9_UDP_ADDR": "10.0.0.7",
    }
    assert found["SIX_PORT"] == "tcp://[fd00::1]:80"
    assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == "443"
    assert not any(name.startswith(("BAR", "HEADLESS", "EXTERNAL")) for name in found)


def test_a_pod_without_links_has_the_variables_of_the_api_alone() -> None:
    found = service_variables(pod(enableServiceLinks=False), [service("ns", "foo", "10.0.0.7"), MASTER])
    assert found and all(name.startswith("KUBERNETES_") for name in found)


def test_a_service_named_kubernetes_in_the_namespace_goes_before() -> None:
    found = service_variables(pod(), [MASTER, service("ns", "kubernetes", "10.0.0.9")])
    assert found["KUBERNETES_SERVICE_HOST"] == "10.0.0.9"
    assert master_address([MASTER, service("ns", "kubernetes", "10.0.0.9")]) == ("10.96.0.1", 443)
    assert master_address([]) == master_address([service("default", "kubernetes", "fd00::1")]) == SERVICE_ADDRESS


def test_a_container_gets_the_services_of_its_namespace_and_its_host_name(world: MachineWorld) -> None:
    body = service("default", "foo", "") | {"apiVersion": "v1"}
    del body["spec"]["clusterIP"]
    address = world.post("/api/v1/namespaces/default/services", body)["spec"]["clusterIP"]
    command = ["sh", "-c", "echo $FOO_SERVICE_HOST $FOO_PORT_80_TCP_PROTO $KUBERNETES_SERVICE_PORT $HOSTNAME"]
    containers = [{"name": "c", "image": "x:1", "command": command}]
    world.make_pod(containers=containers, restartPolicy="Never", hostname="own")
    world.idle()
    assert world.log() == f"{address} tcp 443 own\n"
