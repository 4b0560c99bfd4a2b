"""Verifies that a revision is signed by a key that its project trusts: :func:`check_signatures`.

``sources/sourcing.py`` calls it before a Git source is rendered. Policies come from AppProjects, keys from the
ConfigMap ``argocd-gpg-keys-cm`` (PGP) and, beyond upstream, ``syncline-ssh-signers-cm`` (SSH allowed signers). Git
itself verifies, with ``gpg`` and ``ssh-keygen`` and a keyring of exactly these keys; without these programs the
revision is refused. Rules and words: Argo CD ``util/sourceintegrity``, ``util/git`` (reference argocd-app 2.4).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syncline.kube.objects import Obj, dig
from syncline.kube.text.glob import GlobError, glob_match
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.process import child_environment
from syncline.sources.remote.address import address_pattern, parse_address

if TYPE_CHECKING:
    from syncline.sources.git.mirrors import Repository

HEAD, STRICT, NONE = "head", "strict", "none"
CHECK = "GIT/GPG: "
"""How messages about signatures begin."""
SHOWN = 10
"""Problems in one message, as upstream."""
IMPORT_S = 60.0
SEAL = "Argocd-gpg-seal:"
LIST = ("log", "--no-show-signature", "--no-patch", "--no-color", "--no-mailmap")
"""Not ``rev-list``: it does not read who may sign with SSH keys (git 2.39)."""

_GRADES = {
    "G": "signed",
    "B": "bad signature",
    "U": "signed with untrusted key",
    "X": "expired signature",
    "Y": "signed with expired key",
    "R": "signed with revoked key",
    "E": "signed with key not in keyring",
    "N": "unsigned",
}
_STATUS = {"GOODSIG": "G", "BADSIG": "B", "EXPSIG": "X", "EXPKEYSIG": "Y", "REVKEYSIG": "R", "ERRSIG": "E"}
_GPG_LINE = re.compile(r"\[GNUPG:\] (GOODSIG|BADSIG|EXPSIG|EXPKEYSIG|REVKEYSIG|ERRSIG) ([0-9A-F]+) ")
_SSH_LINE = re.compile(r'Good "git" signature (for .+ )?with \S+ key (SHA256:\S+)')
_HEX_40, _HEX_16 = re.compile(r"[0-9A-F]{40}"), re.compile(r"[0-9A-F]{16}")


@dataclass(frozen=True, slots=True)
class GitPolicy:
    """The policy. ``mode`` head: the tag or commit itself; strict: its history too. ``keys``: ids or fingerprints."""

    mode: str
    keys: tuple[str, ...]

    def trusts(self, key: str) -> bool:
        """Return True if ``key``, as printed by git, is one of the policy's; an invalid id is never trusted."""
        for given in self.keys:
            if given.startswith("SHA256:"):
                if given == key:
                    return True
                continue
            upper = given.upper()
            short = upper[24:] if _HEX_40.fullmatch(upper) else upper if _HEX_16.fullmatch(upper) else ""
            if short and short == key.upper():
                return True
        return False


@dataclass(frozen=True, slots=True)
class Keyring:
    """The known keys: armoured PGP keys, and lines of allowed signers."""

    pgp: tuple[str, ...] = ()
    signers: str = ""


NO_KEYS = Keyring()


def policy_for(project: Obj, url: str) -> GitPolicy | None:
    """Return the policy of ``project`` for repositories at ``url``, or None. Raises :class:`SourceError`."""
    legacy = [str(one.get("keyID") or "") for one in dig(project, "spec", "signatureKeys", default=[]) or []]
    policies = dig(project, "spec", "sourceIntegrity", "git", "policies", default=None)
    if policies is None:
        return GitPolicy(HEAD, tuple(legacy)) if legacy else None
    fitting = [one for one in policies or () if _covers(one, url)]
    if len(fitting) > 1:
        message = f"multiple ({len(fitting)}) git source integrity policies found for repo URL: {url}"
        raise SourceError(Problem.REFUSED, message, field="spec.project")
    gpg = fitting[0].get("gpg") if fitting else None
    if not gpg or gpg.get("mode") == NONE:
        return None
    mode = str(gpg.get("mode") or "")
    if mode not in (HEAD, STRICT):
        raise SourceError(Problem.REFUSED, f'unknown GPG mode "{mode}" configured for GIT source integrity')
    return GitPolicy(mode, tuple(str(key) for key in gpg.get("keys") or ()))


def _covers(policy: Mapping[str, object], url: str) -> bool:
    included = False
    for repo in policy.get("repos") or ():  # type: ignore[attr-defined]
        pattern = str(repo.get("url") or "")
        denies = pattern.startswith("!")
        try:
            matches = _names(pattern.removeprefix("!"), url)
        except GlobError as error:
            raise SourceError(Problem.REFUSED, f"source integrity: {error}", field="spec.project") from None
        if matches and denies:
            return False
        included = included or (matches and not denies)
    return included


def _names(pattern: str, url: str) -> bool:
    """Match also normal forms: another spelling of an address is still subject to its policy. Raises GlobError."""
    forms = parse_address(url).forms
    return glob_match(pattern, url) or any(glob_match(address_pattern(pattern), form) for form in forms)


@dataclass(frozen=True, slots=True)
class _Signature:
    revision: str
    grade: str
    key: str
    author: str


def check_signatures(
    repository: Repository, sha: str, tag: str, policy: GitPolicy, keyring: Keyring, folder: Path
) -> None:
    """Raise :class:`SourceError` unless the commit (and the annotated ``tag`` that named it) is signed as required.

    ``folder`` holds the keyring, which is recreated when its keys change.
    """
    environment, options = _prepared(keyring, folder)
    found: list[_Signature] = []
    if tag:
        found.append(_tag_signature(repository, tag, environment, options))
    if not tag or policy.mode == STRICT:
        found += _commit_signatures(repository, sha, policy.mode == STRICT, environment, options)
    problems = _problems(found, policy)
    if problems:
        raise SourceError(
            Problem.DENIED,
            "\n".join(f"{CHECK}{one}" for one in problems),
            subject=repository.shown,
            field="spec.source.targetRevision",
            fix="" if any(one.grade == "G" for one in found) else "sign it with a key that the project lists",
        )


def _problems(found: Sequence[_Signature], policy: GitPolicy) -> list[str]:
    """Return the first ten problems; commits by one key are one, unsigned ones are listed each."""
    reported: set[str] = set()
    problems: list[str] = []
    for one in found:
        if one.grade == "G" and policy.trusts(one.key):
            continue
        if one.key and re.fullmatch(r"[0-9a-f]{40,64}", one.revision):
            if one.key in reported:
                continue
            reported.add(one.key)
        what = _GRADES[one.grade] if one.grade != "G" else "signed with unallowed key"
        problems.append(f"Failed verifying revision {one.revision} by '{one.author}': {what} (key_id={one.key})")
    return problems[:SHOWN]


def _prepared(keyring: Keyring, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return environment and options for git, with the keyring in its own folder. Raises :class:`SourceError`."""
    name = hashlib.sha256("\0".join((*keyring.pgp, keyring.signers)).encode()).hexdigest()[:32]
    home = folder / name
    if not (home / "ready").exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder))
        (made / "gpg.conf").write_text("trust-model always\nno-autostart\nno-auto-key-retrieve\nbatch\n")
        (made / "signers").write_text(keyring.signers)
        if keyring.pgp:
            _import(made, keyring.pgp)
        (made / "ready").touch()
        try:
            os.rename(made, home)
        except OSError:  # another thread was faster
            shutil.rmtree(made, ignore_errors=True)
    if shutil.which("gpg") is None and keyring.pgp:
        raise _cannot("gpg is not installed")
    return {"GNUPGHOME": str(home)}, ["-c", f"gpg.ssh.allowedSignersFile={home / 'signers'}", "-c", "gpg.program=gpg"]


def _import(home: Path, keys: Sequence[str]) -> None:
    try:
        answer = subprocess.run(
            ["gpg", "--quiet", "--import"],
            input="\n".join(keys).encode(),
            capture_output=True,
            timeout=IMPORT_S,
            check=False,
            env=child_environment() | {"GNUPGHOME": str(home)},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _cannot(f"gpg cannot be run ({type(error).__name__})") from None
    if answer.returncode not in (0, 2):  # 2: some of the keys are unreadable; the others count
        raise _cannot("gpg does not take the keys of argocd-gpg-keys-cm")


def _cannot(why: str) -> SourceError:
    message = f"signatures are asked for and cannot be verified: {why}"
    return SourceError(Problem.REFUSED, message, fix="install GnuPG where the controllers run")


def _tag_signature(
    repository: Repository, tag: str, environment: Mapping[str, str], options: Sequence[str]
) -> _Signature:
    form = "%(taggername) %(taggeremail)"
    author = repository.read_mirror(["for-each-ref", f"refs/tags/{tag}", f"--format={form}"]).output.decode().strip()
    answer = repository.read_mirror(
        [*options, "verify-tag", "--raw", f"refs/tags/{tag}"], environment=environment, whole_complaint=True
    )
    text = answer.complaint
    match = _GPG_LINE.search(text)
    if match is not None:
        return _Signature(tag, _STATUS[match[1]], match[2], author)
    ssh = _SSH_LINE.search(text)
    if ssh is not None:
        trusted = answer.code == 0 and bool(ssh[1])
        return _Signature(tag, "G" if trusted else "U", ssh[2], author)
    unsigned = "no signature found" in text
    return _Signature(tag, "N" if unsigned else "B", "", author)


def _commit_signatures(
    repository: Repository, sha: str, deep: bool, environment: Mapping[str, str], options: Sequence[str]
) -> list[_Signature]:
    chosen = _history(repository, sha, environment, options) if deep else [sha, "-1"]
    form = "--pretty=tformat:%H%x00%G?%x00%GK%x00%an <%ae>"
    asked = [*options, *LIST, form, *chosen, "--"]
    answer = repository.read_mirror(asked, environment=environment)
    if answer.code != 0 or not answer.output:
        raise _cannot(answer.complaint or f"git found no signatures for {sha}")
    found: list[_Signature] = []
    for line in answer.output.decode("utf-8", "replace").splitlines():
        revision, grade, key, author = line.split("\0", 3)
        found.append(_Signature(revision, grade if grade in _GRADES else "B", key, author))
    return found


def _history(repository: Repository, sha: str, environment: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """Return all ancestors, up to signed commits that seal the history before them."""
    asked = [*options, *LIST, "--pretty=tformat:%G? %H", f"--grep={SEAL}"]
    answer = repository.read_mirror([*asked, "--regexp-ignore-case", sha, "--"], environment=environment)
    seals = [line[2:] for line in answer.output.decode().splitlines() if line.startswith("G ")]
    if not seals:
        return [sha]
    return [sha, "-1"] if seals[0] == sha else ["--boundary", sha, "--not", *seals]
