"""Signs hydrated commits with the key of the repository's write Secret, or as git is configured: :func:`signing`.

During one commit the key is in a file that only this user may read, in memory if possible. OpenSSH keys sign by
ssh-keygen; PGP keys by gpg with a temporary keyring.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from syncline.base.scratch import credentials_folder
from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.process import Bounds, child_environment, run_bounded, run_git

FIELD = "commitSigningKey"
LIMIT = Bounds(30.0)
Signing = tuple[list[str], list[str], dict[str, str]]


@contextlib.contextmanager
def signing(key: Secret | None, shown: str) -> Iterator[Signing]:
    """Yield options of git, arguments of ``commit-tree`` and its environment. Raises :class:`SourceError`; ``shown`` is
    the repository in messages."""
    if key is None:
        yield ([], ["-S"] if _configured() else [], {})
        return
    text = key.reveal()
    with tempfile.TemporaryDirectory(prefix="sign-", dir=credentials_folder()) as made:
        folder = Path(made)
        if "OPENSSH PRIVATE KEY" in text:
            place = folder / "key"
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text if text.endswith("\n") else text + "\n")
            options = ["-c", "gpg.format=ssh", "-c", f"user.signingkey={place}", "-c", "gpg.ssh.program=ssh-keygen"]
            yield options, ["-S"], {"SSH_AUTH_SOCK": ""}
        elif "PGP PRIVATE KEY" in text:
            with _keyring(folder, text, shown) as (identity, environment):
                yield ["-c", "gpg.format=openpgp", "-c", "gpg.program=gpg"], [f"-S{identity}"], environment
        else:
            raise _unusable(shown, "it is neither an OpenSSH nor a PGP private key")


def _configured() -> bool:
    """Return True if the machine's git configuration enables signatures (``commit.gpgSign``)."""
    asked = ["config", "--type=bool", "--get", "commit.gpgsign"]
    return run_git(asked, bounds=LIMIT, label="git configuration").output.strip() == b"true"


@contextlib.contextmanager
def _keyring(folder: Path, text: str, shown: str) -> Iterator[tuple[str, dict[str, str]]]:
    if shutil.which("gpg") is None:
        raise _unusable(shown, "gpg is not installed where the controllers run")
    environment = {"GNUPGHOME": str(folder)}
    try:
        _gpg(["--import"], environment, shown, text.encode())
        listed = _gpg(["--list-secret-keys", "--with-colons"], environment, shown)
        fingerprints = [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")]
        if not fingerprints:
            raise _unusable(shown, "gpg finds no private key in it")
        yield fingerprints[0], environment
    finally:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # the agent ends with its folder all the same
            subprocess.run(
                ["gpgconf", "--kill", "all"],
                env=child_environment() | environment,
                capture_output=True,
                timeout=LIMIT.whole_s,
                check=False,
            )


def _gpg(arguments: Sequence[str], environment: dict[str, str], shown: str, stdin: bytes = b"") -> str:
    command = ["gpg", "--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", *arguments]
    code, output, _ = run_bounded(command, child_environment() | environment, LIMIT, "gpg", stdin)
    if code != 0:
        raise _unusable(shown, "gpg does not take it (a key with a passphrase cannot sign)")
    return output.decode("utf-8", "replace")


def _unusable(shown: str, why: str) -> SourceError:
    message = f"repository {shown}: {FIELD} of its repository-write Secret cannot sign: {why}"
    return SourceError(Problem.DENIED, message, subject=shown)
