#!/usr/bin/env python3
"""A real Kubernetes control plane on this machine, to record from: etcd, API server, controllers, scheduler.

    python tools/control_plane.py up PROGRAMS FOLDER PORT    empty each time; prints the kubeconfig
    python tools/control_plane.py down FOLDER

PROGRAMS is a folder with etcd, kube-apiserver, kube-controller-manager and kube-scheduler, as their projects release
them. FOLDER takes data, logs and keys; what it held is removed. PORT and the four after it are used. There are no
nodes and no kubelets, as in the recordings. See tests/conformance/kubernetes/README.md.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


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


def start(programs: Path, place: Path, program: str, *flags: str) -> None:
    with (place / f"{program}.log").open("w") as log:
        command = [str(programs / program), *flags]
        child = subprocess.Popen(command, cwd=place, stdout=log, stderr=log, start_new_session=True)
    (place / f"{program}.pid").write_text(str(child.pid))


def up(programs: Path, place: Path, port: int) -> None:
    if missing := [name for name in PROGRAMS if not (programs / name).is_file()]:
        sys.exit(f"{programs}: {', '.join(missing)} not found; it must hold {', '.join(PROGRAMS)}")
    down(place)
    if place.exists() and any(place.iterdir()) and not (place / "ca.crt").exists():
        sys.exit(f"{place}: is not empty and holds no control plane; name a folder that may be removed")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    authority = ("-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "365", "-subj", "/CN=kubernetes-ca")
    openssl(place, "req", "-x509", "-newkey", "rsa:2048", *authority)
    openssl(place, "genrsa", "-out", "sa.key", "2048")
    openssl(place, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    certificate(place, "admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")
    # Pods reach the API by the first address of the Services, as kubeadm's certificates have it.
    names = "IP:127.0.0.1,DNS:localhost,IP:10.96.0.1,DNS:kubernetes.default.svc,DNS:kubernetes"
    certificate(place, "server", "/CN=kube-apiserver", f"subjectAltName={names}")
    certificate(place, "manager", "/CN=system:kube-controller-manager", "extendedKeyUsage=clientAuth")
    certificate(place, "scheduler", "/CN=system:kube-scheduler", "extendedKeyUsage=clientAuth")
    admin, manager, scheduler = (kubeconfig(place, who, port) for who in ("admin", "manager", "scheduler"))
    client, peer = f"http://127.0.0.1:{port + 1}", f"http://127.0.0.1:{port + 2}"
    start(
        *(programs, place, "etcd", "--data-dir=etcd", f"--listen-client-urls={client}"),
        *(f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"),
        *(f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"),
    )
    start(
        *(programs, place, "kube-apiserver", f"--etcd-servers={client}", "--bind-address=127.0.0.1"),
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
        *(programs, place, "kube-controller-manager", *shared, *signing, *keys, f"--secure-port={port + 3}"),
        *(f"--kubeconfig={manager}", f"--authentication-kubeconfig={manager}"),
        f"--authorization-kubeconfig={manager}",
    )
    start(
        *(programs, place, "kube-scheduler", *shared, f"--secure-port={port + 4}", f"--kubeconfig={scheduler}"),
        *(f"--authentication-kubeconfig={scheduler}", f"--authorization-kubeconfig={scheduler}"),
    )
    sys.stdout.write(f"{admin}\n")


def down(place: Path) -> None:
    for file in place.glob("*.pid"):
        try:
            os.kill(int(file.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            continue


def main(arguments: list[str]) -> int:
    match arguments:
        case ["up", programs, folder, port]:
            up(Path(programs).resolve(), Path(folder).resolve(), int(port))
        case ["down", folder]:
            down(Path(folder).resolve())
        case _:
            sys.stdout.write(__doc__ or "")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
