#!/usr/bin/env python3
"""Make the container image of ``deploy/``: an OCI archive of Debian packages, the lock file's wheels and this checkout.

    python3 tools/image.py syncline.tar [--tag localhost/syncline:latest] [--suite bookworm] [--mirror URL]

Needs mmdebstrap (a Debian package; it works without root) and pip, no Docker daemon. ``podman load -i``, ``docker load
-i``, ``ctr images import`` and ``kind load image-archive`` take what it writes. The same commit, packages and lock file
give the same bytes: a mirror of one moment (https://snapshot.debian.org) makes that so for good. See deploy/README.md.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = "python3-minimal,libpython3-stdlib,git,openssh-client,gnupg,ca-certificates"
"""What the controllers call: Git over http and ssh, signatures, the certificates of public hosts."""
LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale")
PYTHON = "3.11"
SITE = "usr/lib/syncline"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
USER = 65532
TAG = re.compile(r"[a-z0-9.:-]+(?:/[a-z0-9._-]+)+:[\w.-]{1,128}")
LAUNCHER = "#!/usr/bin/python3\nimport sys\nfrom syncline.cli.main import main\nsys.exit(main())\n"


def rootfs(target: Path, content: Path, suite: str, mirror: str, architecture: str, epoch: int) -> None:
    """Debian's essential packages, :data:`PACKAGES` and ``content`` as one tar file. Python's modules are compiled by
    the Python that will run them, since a read-only file system keeps nothing that is compiled later."""
    compiling = f"chroot $1 python3 -m compileall -q -j0 --invalidation-mode unchecked-hash /{SITE}"
    # ssh asks for the name of its user, and a number alone has none.
    user = f'echo "syncline:x:{USER}:{USER}::/tmp:/usr/sbin/nologin" >> $1/etc/passwd'
    group = f'echo "syncline:x:{USER}:" >> $1/etc/group'
    hooks = [f"copy-in {content / 'usr'} /", f"PYTHONHASHSEED=0 {compiling}", user, group]
    command = ["mmdebstrap", "--quiet", "--variant=essential", f"--architectures={architecture}"]
    command += [f"--include={PACKAGES}", *(f"--dpkgopt=path-exclude=/{path}/*" for path in LEFT_OUT)]
    command += [*(f"--customize-hook={hook}" for hook in hooks), suite, str(target), *([mirror] if mirror else [])]
    subprocess.run(command, check=True, env=dict(os.environ, SOURCE_DATE_EPOCH=str(epoch)))


def wheels(target: Path, machine: str) -> None:
    """The lock file's wheels for the image's Python, whatever Python runs this."""
    names = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34")
    platforms = [f"--platform={name}_{machine}" for name in names]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--require-hashes", "--no-deps"]
    command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", PYTHON, *platforms]
    subprocess.run([*command, "--target", str(target), "-r", str(ROOT / "requirements.lock")], check=True)
    shutil.rmtree(target / "bin", ignore_errors=True)  # launchers that name the Python that ran pip


def sources(target: Path) -> None:
    """The package as the commit has it: what is not in Git is not in the image."""
    listed = subprocess.run(["git", "ls-files", "-z", "src/syncline"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        file = target / Path(name).relative_to("src")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, file)


def image(layer: bytes, tag: str, architecture: str, epoch: int, target: Path) -> str:
    """Write an image of one layer as an archive of an OCI image layout (image-spec 1.1, image-layout.md). Returns the
    digest of its manifest."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, media: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{media}", "digest": f"sha256:{digest}", "size": len(content)}

    config = {
        "architecture": architecture,
        "os": "linux",
        "created": datetime.fromtimestamp(epoch, UTC).isoformat(),
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["syncline"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", f"PYTHONPATH=/{SITE}", "HOME=/tmp", "LANG=C.UTF-8"],
            "Labels": {"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.title": "syncline"},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(encoded(config), "config.v1+json"),
        "layers": [blob(gzip.compress(layer, 6, mtime=0), "layer.v1.tar+gzip")],
    }
    entry = blob(encoded(manifest), "manifest.v1+json")
    version = tag.rpartition(":")[2]
    names = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": tag}
    index = {"schemaVersion": 2, "manifests": [entry | {"annotations": names}]}
    files = {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}
    files |= {"index.json": encoded(index), "oci-layout": encoded({"imageLayoutVersion": "1.0.0"})}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            file = tarfile.TarInfo(path)
            file.size, file.mtime = len(content), epoch
            archive.addfile(file, io.BytesIO(content))
    return str(entry["digest"])


def encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the container image of deploy/ without a Docker daemon.")
    parser.add_argument("target", type=Path, help="the archive to write")
    parser.add_argument("--tag", default="localhost/syncline:latest", help="HOST/NAME:VERSION (default: %(default)s)")
    parser.add_argument("--suite", default="bookworm", help=f"of Debian; its Python has to be {PYTHON}")
    parser.add_argument("--mirror", default="", help="of Debian; default: as this machine's apt")
    chosen = parser.parse_args()
    if not TAG.fullmatch(chosen.tag):
        parser.error(f"--tag {chosen.tag}: is not HOST/NAME:VERSION")
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        parser.error(f"machine {machine}: no image for it; allowed: {', '.join(ARCHITECTURES)}")
    if shutil.which("mmdebstrap") is None:
        parser.error("mmdebstrap is not installed; it is a package of Debian and Ubuntu of that name")
    epoch = int(subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True))
    with tempfile.TemporaryDirectory(prefix="syncline-image-") as work:
        content = Path(work) / "content"
        wheels(content / SITE, machine)
        sources(content / SITE)
        launcher = content / "usr/local/bin/syncline"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o755)
        for path in [content / "usr", *content.rglob("*")]:
            os.utime(path, (epoch, epoch))
        layer = Path(work) / "layer.tar"
        rootfs(layer, content, chosen.suite, chosen.mirror, ARCHITECTURES[machine], epoch)
        digest = image(layer.read_bytes(), chosen.tag, ARCHITECTURES[machine], epoch, chosen.target)
    sys.stdout.write(f"{chosen.target}: {chosen.tag}, {chosen.target.stat().st_size / 2**20:.0f} MiB, {digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
