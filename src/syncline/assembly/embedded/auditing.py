"""The audit log as files: one JSON object per line, written by a separate thread behind a bounded buffer.

Started by ``live`` if ``--audit-log`` names a file. A slow disk loses lines rather than blocking requests; metrics and
a line in the file report how many. A file over the size limit is renamed by the time of its last line
(``audit-2026-01-01T10-00-00.000.log``), as Kubernetes' API server does.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from syncline.assembly.embedded.rotation import Rotation
from syncline.cluster.access.audit import AuditRecord, event_of
from syncline.cluster.access.auditpolicy import AuditPolicy, AuditPolicyError, parse_policy
from syncline.cluster.fairness.measures import Family
from syncline.kube.yaml import loading as yaml

MAX_WAITING = 10_000
"""Limit of queued records."""
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Limit of queued bodies in bytes."""
MAX_POLICY_BYTES = 1024 * 1024
STAMP = "%Y-%m-%dT%H-%M-%S"


def read_policy(path: Path) -> AuditPolicy:
    """Read the audit policy. Raises :class:`AuditPolicyError` that names the file."""
    try:
        if path.stat().st_size > MAX_POLICY_BYTES:
            raise AuditPolicyError(f"{path}: is longer than {MAX_POLICY_BYTES} bytes, so it is no policy")
        return parse_policy(yaml.load(path.read_bytes(), file=str(path)))
    except OSError as error:
        raise AuditPolicyError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YamlError as error:
        raise AuditPolicyError(f"{path}: is no YAML: {error}") from error
    except AuditPolicyError as error:
        raise error if str(error).startswith(str(path)) else AuditPolicyError(f"{path}: {error}") from None


class AuditFile:
    """Writes the audit log. Raises OSError if the file cannot be opened."""

    def __init__(self, path: Path, rotation: Rotation | None = None) -> None:
        self._path = path
        self._rotation = rotation or Rotation()
        self._waiting: queue.Queue[AuditRecord | None] = queue.Queue(MAX_WAITING)
        self._bytes = 0
        self._lock = threading.Lock()
        self.written = 0
        self.lost = 0
        self._open()
        self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)
        self._thread.start()

    def note(self, record: AuditRecord) -> None:
        """Queue a record; the server calls it for each stage; never blocks."""
        with self._lock:
            if self._bytes + record.size > MAX_WAITING_BYTES:
                self.lost += 1
                return
            self._bytes += record.size
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            with self._lock:
                self.lost += 1
                self._bytes -= record.size

    def close(self) -> None:
        """Write the queued records, then close."""
        self._waiting.put(None)
        self._thread.join()

    def families(self) -> Iterator[Family]:
        """Yield Kubernetes' metrics of its audit log."""
        yield Family("apiserver_audit_event_total", "counter", "Audit events written.", (((), float(self.written)),))
        lost = (((("plugin", "log"),), float(self.lost)),)
        yield Family("apiserver_audit_error_total", "counter", "Audit events that were lost.", lost)

    # -- in the thread --------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while (record := self._waiting.get()) is not None:
            with self._lock:
                self._bytes -= record.size
            try:
                self._write(msgspec.json.encode(event_of(record)) + b"\n", record.at)
                self.written += 1
            except (OSError, ValueError):
                # The disk is full, or the file was removed: the next line may succeed.
                self.lost += 1
        if self.lost:
            why = "the disk was slower than the requests, or refused them"
            self._file.write(msgspec.json.encode({"kind": "Lost", "count": self.lost, "why": why}) + b"\n")
        self._file.close()

    def _write(self, line: bytes, at: datetime) -> None:
        if self._size and self._size + len(line) > self._rotation.size:
            self._rotate(at)
        self._file.write(line)
        self._size += len(line)
        if self._waiting.empty():
            self._file.flush()

    def _open(self) -> None:
        self._file = self._path.open("ab")
        self._size = self._path.stat().st_size

    def _rotate(self, at: datetime) -> None:
        self._file.close()
        stamp = f"{at.astimezone(UTC).strftime(STAMP)}.{at.microsecond // 1000:03d}"
        aside = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
        number = 0
        while aside.exists():  # Two in the same millisecond.
            number += 1
            aside = self._path.with_name(f"{self._path.stem}-{stamp}-{number}{self._path.suffix}")
        self._path.rename(aside)
        self._open()
        for old in self._superfluous(at):
            old.unlink(missing_ok=True)

    def _superfluous(self, now: datetime) -> list[Path]:
        stem, ending = re.escape(self._path.stem), re.escape(self._path.suffix)
        pattern = re.compile(rf"{stem}-(\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d)\.\d{{3}}(-\d+)?{ending}")
        dated = [
            (match[0], match[1]) for each in self._path.parent.iterdir() if (match := pattern.fullmatch(each.name))
        ]
        dated.sort(reverse=True)
        keep = self._rotation.backups or len(dated)
        gone = [name for name, _ in dated[keep:]]
        if self._rotation.age_days:
            oldest = now.astimezone(UTC) - timedelta(days=self._rotation.age_days)
            gone += [
                name for name, stamp in dated[:keep] if datetime.strptime(stamp, STAMP).replace(tzinfo=UTC) < oldest
            ]
        return [self._path.with_name(name) for name in gone]
