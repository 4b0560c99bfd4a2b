#!/usr/bin/env python3
"""A real Kubernetes control plane on this machine, to record from: etcd, API server, controllers, scheduler.

    python tools/control_plane.py build FOLDER               needs Go; from the published modules, some minutes
    python tools/control_plane.py up FOLDER NAME PORT        fresh each time; prints the kubeconfig
    python tools/control_plane.py down FOLDER NAME

There are no nodes and no kubelets, as in the recordings. See tests/conformance/kubernetes/README.md.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

KUBERNETES, STAGING, ETCD = "v1.36.2", "v0.36.2", "v3.6.8"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
MAIN = """package main

import (
%s
)

func main() {}
"""


def build(folder: Path) -> None:
    place = folder / "build"
    place.mkdir(parents=True, exist_ok=True)
    proxy = subprocess.run(["go", "env", "GOPROXY"], check=True, capture_output=True, text=True).stdout.split(",")[0]
    with urllib.request.urlopen(f"{proxy.strip()}/k8s.io/kubernetes/@v/{KUBERNETES}.mod", timeout=60) as answer:
        module = answer.read().decode()
    staged = sorted(set(re.findall(r"^\s+(k8s\.io/\S+) v0\.0\.0$", module, re.MULTILINE)))
    lines = ["module controlplane", "", "go 1.26.0", "", "godebug default=go1.26", "", "require ("]
    lines += [f"k8s.io/kubernetes {KUBERNETES}", f"go.etcd.io/etcd/server/v3 {ETCD}", ")", "replace ("]
    lines += [f"{name} => {name} {STAGING}" for name in staged] + [")"]
    (place / "go.mod").write_text("\n".join(lines) + "\n")
    packages = [f"k8s.io/kubernetes/cmd/{name}" for name in PROGRAMS]
    imports = [f'\t_ "{package}/app"' for package in packages] + ['\t_ "go.etcd.io/etcd/server/v3/etcdmain"']
    (place / "main.go").write_text(MAIN % "\n".join(imports))
    subprocess.run(["go", "mod", "tidy"], cwd=place, check=True)
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    names = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in names.items())
    out = folder / "bin"
    out.mkdir(exist_ok=True)
    subprocess.run(["go", "build", "-ldflags", flags, "-o", f"{out}/", *packages], cwd=place, check=True)
    subprocess.run(["go", "build", "-o", str(out / "etcd"), "go.etcd.io/etcd/server/v3"], cwd=place, check=True)


def openssl(place: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=place, check=True, capture_output=True)


def certificate(place: Path, name: str, subject: str, extension: str) -> None:
    (place / "ext").write_text(extension)
    new = ("-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-subj", subject)
    openssl(place, "req", *new, "-out", f"{name}.csr")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "365", "-extfile", "ext")
    openssl(place, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")


def kubeconfig(place: Path, name: str, port: int) -> Path:
    def text(file: str) -> str:
        return base64.b64encode((place / file).read_bytes()).decode()

    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": text("ca.crt")}
    user = {"client-certificate-data": text(f"{name}.crt"), "client-key-data": text(f"{name}.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file = place / ("kubeconfig" if name == "admin" else f"{name}.kubeconfig")
    file.write_text(json.dumps(config))
    return file


def start(folder: Path, place: Path, program: str, *flags: str) -> None:
    with (place / f"{program}.log").open("w") as log:
        command = [str(folder / "bin" / program), *flags]
        child = subprocess.Popen(command, cwd=place, stdout=log, stderr=log, start_new_session=True)
    (place / f"{program}.pid").write_text(str(child.pid))


def up(folder: Path, name: str, port: int) -> None:
    down(folder, name)
    place = folder / "run" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    authority = ("-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "365", "-subj", "/CN=kubernetes-ca")
    openssl(place, "req", "-x509", "-newkey", "rsa:2048", *authority)
    openssl(place, "genrsa", "-out", "sa.key", "2048")
    openssl(place, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    certificate(place, "admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")
    certificate(place, "server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    certificate(place, "manager", "/CN=system:kube-controller-manager", "extendedKeyUsage=clientAuth")
    certificate(place, "scheduler", "/CN=system:kube-scheduler", "extendedKeyUsage=clientAuth")
    admin, manager, scheduler = (kubeconfig(place, who, port) for who in ("admin", "manager", "scheduler"))
    client, peer = f"http://127.0.0.1:{port + 1}", f"http://127.0.0.1:{port + 2}"
    start(
        *(folder, place, "etcd", "--data-dir=etcd", f"--listen-client-urls={client}"),
        *(f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"),
        *(f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"),
    )
    start(
        *(folder, place, "kube-apiserver", f"--etcd-servers={client}", "--bind-address=127.0.0.1"),
        *(f"--secure-port={port}", "--service-cluster-ip-range=10.96.0.0/16", "--client-ca-file=ca.crt"),
        *("--tls-cert-file=server.crt", "--tls-private-key-file=server.key", "--service-account-key-file=sa.pub"),
        *("--service-account-signing-key-file=sa.key", "--authorization-mode=Node,RBAC", "--allow-privileged=true"),
        *("--service-account-issuer=https://kubernetes.default.svc.cluster.local",),
    )
    ready = ["curl", "-skf", "--cert", "admin.crt", "--key", "admin.key", f"https://127.0.0.1:{port}/readyz"]
    for _ in range(240):
        # Only when it is ready does RBAC let the controllers in; they end for good if they come before.
        if subprocess.run(ready, cwd=place, capture_output=True).returncode == 0:
            break
        time.sleep(0.5)
    shared = ("--leader-elect=false", "--bind-address=127.0.0.1")
    signing = ("--cluster-signing-cert-file=ca.crt", "--cluster-signing-key-file=ca.key", "--root-ca-file=ca.crt")
    keys = ("--service-account-private-key-file=sa.key", "--use-service-account-credentials=true")
    start(
        *(folder, place, "kube-controller-manager", *shared, *signing, *keys, f"--secure-port={port + 3}"),
        *(f"--kubeconfig={manager}", f"--authentication-kubeconfig={manager}"),
        f"--authorization-kubeconfig={manager}",
    )
    start(
        *(folder, place, "kube-scheduler", *shared, f"--secure-port={port + 4}", f"--kubeconfig={scheduler}"),
        *(f"--authentication-kubeconfig={scheduler}", f"--authorization-kubeconfig={scheduler}"),
    )
    sys.stdout.write(f"{admin}\n")


def down(folder: Path, name: str) -> None:
    for file in (folder / "run" / name).glob("*.pid"):
        try:
            os.kill(int(file.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            continue


def main(arguments: list[str]) -> int:
    match arguments:
        case ["build", folder]:
            build(Path(folder).resolve())
        case ["up", folder, name, port]:
            up(Path(folder).resolve(), name, int(port))
        case ["down", folder, name]:
            down(Path(folder).resolve(), name)
        case _:
            sys.stdout.write(__doc__ or "")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
