"""The files of a playbook as one deterministic archive: :func:`pack`, and back: :func:`unpack`; pure."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

MAX_FILES = 5_000
MAX_BYTES = 8 << 20
MAX_PACKED = 512 << 10
"""Bytes of an archive: with its base64 it stays within what the API stores of one MachineConfig, of which the rendered
one holds all of a pool."""


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    executable: bool = False


Files = Mapping[str, File]
"""By path below the folder of the AnsibleConfig, with ``/``."""


class ContentError(ValueError):
    """The files are too many, too large, or no archive of ours."""


def pack(files: Files) -> bytes:
    """Return the archive; the same files give the same bytes. Raises ContentError beyond the limits."""
    size = sum(len(file.content) for file in files.values())
    if len(files) > MAX_FILES or size > MAX_BYTES:
        raise ContentError(_too_large(files, f"{len(files)} files of {size} bytes; at most {MAX_FILES} of {MAX_BYTES}"))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, file in sorted(files.items()):
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(file.content), 0o755 if file.executable else 0o644
            try:
                archive.addfile(info, io.BytesIO(file.content))
            except ValueError as error:
                raise ContentError(f"{path}: {error}; give it a shorter name") from None
    packed = gzip.compress(plain.getvalue(), 9, mtime=0)
    if len(packed) > MAX_PACKED:
        raise ContentError(_too_large(files, f"{len(packed)} bytes when packed; at most {MAX_PACKED}"))
    return packed


def unpack(packed: bytes) -> dict[str, File]:
    """Return the files of an archive. Raises ContentError for anything that :func:`pack` does not write."""
    found: dict[str, File] = {}
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            plain = stream.read(2 * MAX_BYTES + 1024 * MAX_FILES)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for info in archive:
                parts = info.name.split("/")
                if not info.isreg() or any(part in ("", ".", "..") for part in parts) or len(found) >= MAX_FILES:
                    raise ContentError(f"the archive holds {info.name[:200]!r}, which is not one of ours")
                stream_of = archive.extractfile(info)
                found[info.name] = File(stream_of.read() if stream_of is not None else b"", bool(info.mode & 0o100))
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ContentError(f"the archive cannot be read: {error}") from None
    return found


def _too_large(files: Files, found: str) -> str:
    sizes: dict[str, int] = {}
    for path, file in files.items():
        top = "/".join(path.split("/")[:2])
        sizes[top] = sizes.get(top, 0) + len(file.content)
    largest = max(sorted(sizes), key=sizes.__getitem__, default="")
    return f"the playbook's folder has {found}: the largest part is {largest}; name a smaller folder in spec.path"
