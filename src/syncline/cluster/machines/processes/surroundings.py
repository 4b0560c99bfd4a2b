"""The kubelet's defaults for every container of a pod: host name, ``/etc/hosts``, ``/etc/resolv.conf`` and variables of
Services.

Pure. Rules of the kubelet (``kubelet_pods.go``, ``envvars.go``, ``network/dns``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from syncline.kube.objects import Obj, dig, name_of, namespace_of

USUAL_SYSCTLS = {"net.ipv4.ip_unprivileged_port_start": "0"}
"""As in containerd: every command may listen on every port."""
SAFE_SYSCTLS = frozenset(
    (
        *USUAL_SYSCTLS,
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
"""Sysctls that the kubelet allows, since each pod has its own."""
CLUSTER_DOMAIN = "cluster.local"
SERVICE_ADDRESS = ("10.96.0.1", 443)
"""Address of the Service ``default/kubernetes`` while the API does not have it."""
LONGEST_NAME = 63
MOST_SEARCHES, MOST_SEARCHED, MOST_SERVERS = 32, 2048, 3
"""Limits of ``resolv.conf``: entries and characters of its search list, name servers."""
MASTER = ("default", "kubernetes")
HOSTS = (
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
    "fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
)
HOSTS_OF_MACHINE = (
    "# Kubernetes-managed hosts file (host network).\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
)
API_NAMES = ("kubernetes.default.svc.cluster.local", "kubernetes.default.svc", "kubernetes.default", "kubernetes")


class SysctlError(Exception):
    """A kernel parameter that a local process cannot have; the message names it."""


def sysctls_of(pod: Obj) -> dict[str, str]:
    """Return the pod's kernel parameters by name; raise SysctlError."""
    asked = dig(pod, "spec", "securityContext", "sysctls", default=None) or ()
    wanted = {str(each["name"]).replace("/", "."): str(each.get("value") or "") for each in asked}
    unsafe = sorted(wanted.keys() - SAFE_SYSCTLS)
    if unsafe:
        raise SysctlError(
            f'spec.securityContext.sysctls: "{unsafe[0]}" is not set for local processes; '
            f"these can be: {', '.join(sorted(SAFE_SYSCTLS))}"
        )
    return USUAL_SYSCTLS | wanted


def host_name(pod: Obj, node: str = "") -> str:
    """Return the host name: the machine's with hostNetwork, qualified with ``setHostnameAsFQDN``."""
    spec = pod.get("spec") or {}
    if spec.get("hostnameOverride"):
        return _cut(str(spec["hostnameOverride"]))
    if spec.get("hostNetwork") and node:
        return node
    own, domain = _cut(str(spec.get("hostname") or name_of(pod))), _domain(pod)
    return f"{own}.{domain}" if domain and spec.get("setHostnameAsFQDN") else own


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME].rstrip("-.")


def _domain(pod: Obj) -> str:
    subdomain = dig(pod, "spec", "subdomain", default="")
    if not subdomain or dig(pod, "spec", "hostnameOverride", default=""):
        return ""
    return f"{subdomain}.{namespace_of(pod)}.svc.{CLUSTER_DOMAIN}"


def hosts_file(pod: Obj, ip: str, api: str) -> str:
    """Return ``/etc/hosts`` of the pod at ``ip``. Its last line names the API at ``api``, in place of cluster DNS."""
    spec = pod.get("spec") or {}
    text = HOSTS_OF_MACHINE
    if not spec.get("hostNetwork"):
        domain = _domain(pod)
        own = _cut(str(spec.get("hostnameOverride") or spec.get("hostname") or name_of(pod)))
        text = HOSTS + (f"{ip}\t{own}.{domain}\t{own}\n" if domain else f"{ip}\t{own}\n")
    aliases = spec.get("hostAliases") or ()
    if aliases:
        text += "\n# Entries added by HostAliases.\n"
        text += "".join("\t".join((str(each["ip"]), *map(str, each.get("hostnames") or ()))) + "\n" for each in aliases)
    return text + "\n# The API of the cluster.\n" + "\t".join((api, *API_NAMES)) + "\n"


def resolver_file(pod: Obj) -> str:
    """Return ``/etc/resolv.conf``: the search list of cluster DNS, and the pod's own settings, without a name server of
    ours, since there is no DNS."""
    spec, own = pod.get("spec") or {}, dig(pod, "spec", "dnsConfig", default=None) or {}
    policy = str(spec.get("dnsPolicy") or "ClusterFirst")
    cluster = policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not spec.get("hostNetwork"))
    below = f"svc.{CLUSTER_DOMAIN}"
    searches = [f"{namespace_of(pod)}.{below}", below, CLUSTER_DOMAIN] if cluster else []
    options = {"ndots": "5"} if cluster else {}
    options |= {str(each["name"]): str(each.get("value") or "") for each in own.get("options") or ()}
    searches = list(dict.fromkeys((*searches, *map(str, own.get("searches") or ()))))[:MOST_SEARCHES]
    while len(" ".join(searches)) > MOST_SEARCHED:
        searches.pop()
    lines = [f"nameserver {each}" for each in list(dict.fromkeys(own.get("nameservers") or ()))[:MOST_SERVERS]]
    lines = [f"search {' '.join(searches)}", *lines] if searches else lines
    if options:
        lines.append("options " + " ".join(f"{key}:{value}" if value else key for key, value in options.items()))
    return "".join(f"{line}\n" for line in lines)


def master_address(services: Iterable[Obj]) -> tuple[str, int]:
    """Return the API's IPv4 address and port for pods."""
    for each in services:
        if (namespace_of(each), name_of(each)) == MASTER and "." in _address(each):
            return _address(each), int(each["spec"]["ports"][0]["port"])
    return SERVICE_ADDRESS


def service_variables(pod: Obj, services: Iterable[Obj]) -> Mapping[str, str]:
    """Return the variables of ``default/kubernetes``, and of the Services in the pod's namespace unless it disables
    links; one named ``kubernetes`` there takes precedence."""
    links = dig(pod, "spec", "enableServiceLinks", default=True) is not False
    chosen: dict[str, Obj] = {}
    for each in sorted(services, key=lambda each: (namespace_of(each) == namespace_of(pod), name_of(each))):
        place = (namespace_of(each), name_of(each))
        if _address(each) and (place == MASTER or (place[0] == namespace_of(pod) and links)):
            chosen[place[1]] = each
    return dict(pair for _, each in sorted(chosen.items()) for pair in _variables(each))


def _address(service: Obj) -> str:
    address = str(dig(service, "spec", "clusterIP", default="") or "")
    return address if address != "None" and dig(service, "spec", "ports", default=None) else ""


def _variables(service: Obj) -> Iterator[tuple[str, str]]:
    prefix, address = _variable_name(name_of(service)), _address(service)
    ports = service["spec"]["ports"]
    yield f"{prefix}_SERVICE_HOST", address
    yield f"{prefix}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{_variable_name(str(port['name']))}", str(port["port"])
    host = f"[{address}]" if ":" in address else address
    for place, port in enumerate(ports):
        protocol = str(port.get("protocol") or "TCP")
        where = f"{protocol.lower()}://{host}:{port['port']}"
        if place == 0:
            yield f"{prefix}_PORT", where
        own = f"{prefix}_PORT_{port['port']}_{protocol.upper()}"
        yield from ((own, where), (f"{own}_PROTO", protocol.lower()), (f"{own}_PORT", str(port["port"])))
        yield f"{own}_ADDR", address


def _variable_name(text: str) -> str:
    return text.replace("-", "_").upper()
