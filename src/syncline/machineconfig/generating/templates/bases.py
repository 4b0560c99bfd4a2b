"""Builds the base MachineConfigs of each role: kubelet, container runtime, proxy. Entry point: :func:`base_configs`.

They are small on purpose: files that other controllers and users extend, and units for the two services that a node
needs. Names and paths are upstream's (``00-ROLE``, ``01-ROLE-kubelet``, ``01-ROLE-container-runtime``). Source:
reference machine-config 1.2.
"""

from __future__ import annotations

import json

from syncline.kube.objects import Obj, dig
from syncline.kube.yaml import loading as yaml
from syncline.machineconfig.generating.kubelet.files import KUBELET_CONF
from syncline.machineconfig.generating.kubelet.tls import tls_settings
from syncline.machineconfig.generating.making import file_of, made_config
from syncline.machineconfig.generating.runtime.files import STORAGE_PATH
from syncline.machineconfig.generating.runtime.registries import POLICY_PATH, REGISTRIES_PATH
from syncline.machineconfig.render.rendering import Release

STORAGE_CONF = """\
[storage]
driver = "overlay"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"

[storage.options]
additionalimagestores = []

[storage.options.overlay]
skip_mount_home = "true"
"""
REGISTRIES_CONF = """\
unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]
short-name-mode = ""
"""
_ACCEPT = [{"type": "insecureAcceptAnything"}]
POLICY_JSON = json.dumps({"default": _ACCEPT, "transports": {"docker-daemon": {"": _ACCEPT}}}, indent=2) + "\n"

_CRIO = """\
[crio.runtime]
cgroup_manager = "systemd"
conmon_cgroup = "pod"
default_runtime = "crun"

[crio.metrics]
enable_metrics = true
metrics_port = 9537
"""
_SYSCTL = "fs.inotify.max_user_watches = 65536\nfs.inotify.max_user_instances = 8192\n"


def roles(controller_config: Obj) -> tuple[str, ...]:
    """Return the built-in pools; arbiter only in clusters with arbiters."""
    topology = dig(controller_config, "spec", "infra", "status", "controlPlaneTopology", default="")
    return ("master", "worker", "arbiter") if topology == "HighlyAvailableArbiter" else ("master", "worker")


def kubelet_configuration(controller_config: Obj, api_server: Obj | None = None) -> Obj:
    """Return the KubeletConfiguration ``kubelet.config.k8s.io/v1beta1`` of all roles as JSON."""
    version, suites = tls_settings(dig(api_server, "spec", "tlsSecurityProfile"))
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"},
        },
        "cgroupDriver": "systemd",
        "cgroupRoot": "/",
        "clusterDNS": [str(dig(controller_config, "spec", "clusterDNSIP", default="") or "")],
        "clusterDomain": "cluster.local",
        "containerLogMaxSize": "50Mi",
        "enforceNodeAllocatable": ["pods", "system-reserved-compressible"],
        "failSwapOn": False,
        "kubeAPIBurst": 100,
        "kubeAPIQPS": 50,
        "maxPods": 250,
        "memorySwap": {"swapBehavior": "NoSwap"},
        "nodeStatusReportFrequency": "5m",
        "nodeStatusUpdateFrequency": "10s",
        "podPidsLimit": 4096,
        "protectKernelDefaults": True,
        "rotateCertificates": True,
        "serializeImagePulls": False,
        "serverTLSBootstrap": True,
        "staticPodPath": "/etc/kubernetes/manifests",
        "systemCgroups": "/system.slice",
        "systemReservedCgroup": "/system.slice",
        "tlsCipherSuites": suites,
        "tlsMinVersion": version,
    }


def base_configs(controller_config: Obj, release: Release, api_server: Obj | None = None) -> list[Obj]:
    """Return the base MachineConfigs of all roles, sorted by name within a role."""
    found = []
    for role in roles(controller_config):
        image = {"osImageURL": str(dig(controller_config, "spec", "baseOSContainerImage", default="") or "")}
        found += [
            made_config(f"00-{role}", role, release, files=_common(controller_config), spec=image),
            made_config(f"01-{role}-container-runtime", role, release, files=_runtime(), units=[_crio()]),
            made_config(
                f"01-{role}-kubelet",
                role,
                release,
                files=[file_of(KUBELET_CONF, yaml.dump(kubelet_configuration(controller_config, api_server)))],
                units=[_kubelet(role)],
            ),
        ]
    return found


def _common(controller_config: Obj) -> list[Obj]:
    proxy = dig(controller_config, "spec", "proxy") or {}
    names = (("httpProxy", "HTTP_PROXY"), ("httpsProxy", "HTTPS_PROXY"), ("noProxy", "NO_PROXY"))
    lines = [f"{name}={proxy[field]}\n" for field, name in names if proxy.get(field)]
    return [file_of("/etc/mco/proxy.env", "".join(lines)), file_of("/etc/sysctl.d/inotify.conf", _SYSCTL)]


def _runtime() -> list[Obj]:
    return [
        file_of(STORAGE_PATH, STORAGE_CONF),
        file_of(REGISTRIES_PATH, REGISTRIES_CONF),
        file_of(POLICY_PATH, POLICY_JSON),
        file_of("/etc/crio/crio.conf.d/00-default", _CRIO),
    ]


def _crio() -> Obj:
    proxy = "[Service]\nEnvironmentFile=-/etc/mco/proxy.env\n"
    return {"dropins": [{"contents": proxy, "name": "10-mco-default-env.conf"}], "name": "crio.service"}


def _kubelet(role: str) -> Obj:
    labels = "node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master" if role == "master" else ""
    labels = labels or f"node-role.kubernetes.io/{role}"
    contents = (
        "[Unit]\nDescription=Kubernetes node agent\nWants=network-online.target crio.service\n"
        "After=network-online.target crio.service\n\n"
        "[Service]\nType=notify\nEnvironment=KUBELET_LOG_LEVEL=2\nEnvironmentFile=-/etc/mco/proxy.env\n"
        "EnvironmentFile=-/etc/node-sizing-enabled.env\n"
        f"ExecStart=/usr/bin/kubelet --config={KUBELET_CONF} --kubeconfig=/var/lib/kubelet/kubeconfig "
        "--bootstrap-kubeconfig=/etc/kubernetes/kubeconfig "
        f"--container-runtime-endpoint=/var/run/crio/crio.sock --node-labels={labels} -v=${{KUBELET_LOG_LEVEL}}\n"
        "Restart=always\nRestartSec=10\n\n[Install]\nWantedBy=multi-user.target\n"
    )
    return {"contents": contents, "enabled": True, "name": "kubelet.service"}
