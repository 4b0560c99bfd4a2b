"""Commits hydrated manifests to a branch, adds a note about the dry commit, and pushes: :class:`HydratedRepository`.

Called in a worker thread with the finished files. Nothing is checked out: trees are created in a bare mirror, so links,
filters, hooks and attributes of the repository have no effect. Branches only move forward, and nothing is deleted. If
others pushed meanwhile, their commits are fetched and the commit is recreated on top, a few times. Files, notes and
branches: Argo CD ``commitserver/commit``.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from syncline.base.scratch import work_folder
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Repository
from syncline.sources.git.process import Bounds, GitAnswer, run_git
from syncline.sources.hydrating.signing import signing
from syncline.sources.revision import Refs

NOTES = "refs/notes/hydrator.metadata"
ATTRIBUTES = b"**/README.md linguist-generated=true\n**/hydrator.metadata linguist-generated=true"
MANIFEST = "manifest.yaml"
FIELD = "spec.sourceHydrator.syncSource"
WRITING = "give credentials that may push there in a Secret of type repository-write or repo-write-creds"
ATTEMPTS = 5
"""Pushes of one branch or note, each on top of what the remote has then."""
LOCAL_BOUNDS = Bounds(90.0)
_MOVED = re.compile(
    r"\[rejected\]|fetch first|non-fast-forward|stale info|reference already exists|incorrect old value"
    r"|failed to update ref|cannot lock ref"
)
_LOCAL_RECEIVER = (
    "git -c core.hooksPath=/dev/null -c core.alternateRefsCommand=true -c receive.autogc=false "
    "-c receive.denyCurrentBranch=refuse receive-pack"
)
"""A repository on this machine runs nothing of its own configuration with our rights."""


@dataclass(frozen=True, slots=True)
class HydratedFolder:
    """The files of one Application. ``others``: files written beside the manifest when it changed."""

    path: str
    manifest: bytes
    others: Callable[[], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class HydratedWrite:
    """The content of one hydration. ``root``: files of the root, written whenever a folder changes."""

    sync_branch: str
    target_branch: str
    dry_sha: str
    folders: tuple[HydratedFolder, ...]
    root: Mapping[str, bytes]
    message: str
    author: str
    email: str
    when: datetime

    def identity(self) -> dict[str, str]:
        """Author and committer as environment variables of git."""
        date = f"{int(self.when.timestamp())} +0000"
        return {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", self.author), ("EMAIL", self.email), ("DATE", date))
        }


class HydratedRepository(Repository):
    """A repository to push hydrated manifests to."""

    def write(self, wanted: HydratedWrite) -> str:
        """Return the commit with the manifests; an existing one if none of them changed.

        Raises :class:`SourceError`.
        """
        with self._lock:
            for attempt in range(1, ATTEMPTS + 1):
                refs = self.refs()
                base = self._base(refs, wanted)
                changed = self._changed(base, wanted)
                if not changed:
                    self._note(base, wanted, refs)
                    return base
                made = self._commit(base, wanted, changed)
                if self._push(f"{made}:refs/heads/{wanted.target_branch}", last=attempt == ATTEMPTS):
                    self._note(made, wanted, refs)
                    return made
        raise AssertionError("the last refusal raises")

    # -- what is there ---------------------------------------------------------------------------------------------

    def _base(self, refs: Refs, wanted: HydratedWrite) -> str:
        """Return the commit to build on: of the target branch, or of the sync branch, which is created if needed."""
        sync, target = (f"refs/heads/{branch}" for branch in (wanted.sync_branch, wanted.target_branch))
        there = [name for name in dict.fromkeys((sync, target)) if refs.sha_of(name) is not None]
        if there:
            self._fetch(*(f"+{name}:{name}" for name in there))
        found = refs.sha_of(target) or refs.sha_of(sync)
        if refs.sha_of(sync) is None:
            begun = self._begin_branch(wanted)
            found = found or begun
        assert found is not None, "a branch that was missing has begun"
        return found

    def _begin_branch(self, wanted: HydratedWrite) -> str:
        """Push an empty commit, so that comparisons with the sync branch find one."""
        self._begin()
        tree = self._run(["mktree"])
        made = self._commit_tree(tree, (), f"Initial commit for {wanted.sync_branch}\n", wanted)
        self._push(f"{made}:refs/heads/{wanted.sync_branch}", last=True)
        return made

    def _changed(self, base: str, wanted: HydratedWrite) -> list[HydratedFolder]:
        """Return the folders whose manifest differs from the branch."""
        places = [f"{base}:{folder.path}/{MANIFEST}" for folder in wanted.folders]
        output = self._output(["cat-file", "--batch"], "".join(f"{place}\n" for place in places).encode())
        found: list[HydratedFolder] = []
        at = 0
        for folder in wanted.folders:
            end = output.index(b"\n", at)
            header = output[at:end].split(b" ")
            at = end + 1
            content = None
            if header[-1].isdigit() and header[-2] in (b"blob", b"tree", b"commit", b"tag"):
                content = output[at : at + int(header[-1])] if header[-2] == b"blob" else None
                at += int(header[-1]) + 1
            if content != folder.manifest:
                found.append(folder)
        return found

    # -- what is made ----------------------------------------------------------------------------------------------

    def _commit(self, base: str, wanted: HydratedWrite, changed: Sequence[HydratedFolder]) -> str:
        files = dict(wanted.root)
        for folder in changed:
            named = {MANIFEST: folder.manifest, **folder.others()}
            files |= {f"{folder.path}/{name}": content for name, content in named.items()}
        with tempfile.TemporaryDirectory(prefix="hydrated-", dir=work_folder()) as made:
            scratch = Path(made)
            blobs = self._blobs(scratch, list(files.values()))
            index = {"GIT_INDEX_FILE": str(scratch / "index")}
            self._run(["read-tree", base], environment=index)
            # One by one, what stands in the way of a path is an error; a list of them would take its place.
            added = [part for at in zip(blobs, files) for part in ("--cacheinfo", f"100644,{at[0]},{at[1]}")]
            self._run(["update-index", "--add", *added], environment=index)
            tree = self._run(["write-tree"], environment=index)
        return self._commit_tree(tree, ("-p", base), wanted.message, wanted)

    def _blobs(self, scratch: Path, contents: Sequence[bytes]) -> list[str]:
        places = []
        for number, content in enumerate(contents):
            places.append(scratch / f"blob-{number}")
            places[-1].write_bytes(content)
        listed = "".join(f"{place}\n" for place in places).encode()
        return self._run(["hash-object", "-w", "--no-filters", "--stdin-paths"], listed).split()

    def _commit_tree(self, tree: str, parents: Sequence[str], message: str, wanted: HydratedWrite) -> str:
        key = self.access.signing_key if self.access is not None else None
        with signing(key, self.shown) as (options, arguments, environment):
            return self._run(
                [*options, "commit-tree", *arguments, *parents, "-F", "-", tree],
                message.encode("utf-8", "replace"),
                environment=wanted.identity() | environment,
            )

    # -- notes -----------------------------------------------------------------------------------------------------

    def _note(self, sha: str, wanted: HydratedWrite, refs: Refs) -> None:
        """Write a note that names the dry commit, also if it changed nothing."""
        for attempt in range(1, ATTEMPTS + 1):
            if refs.sha_of(NOTES) is not None:
                self._fetch(f"+{NOTES}:{NOTES}")
                if self._noted(sha) == wanted.dry_sha:
                    return
            note = json.dumps({"drySha": wanted.dry_sha}, separators=(",", ":"))
            added = ["notes", f"--ref={NOTES}", "add", "-f", "-m", note, sha]
            self._run(added, environment=wanted.identity())
            if self._push(f"{NOTES}:{NOTES}", last=attempt == ATTEMPTS):
                return
            refs = self.refs()

    def _noted(self, sha: str) -> str:
        answer = self.read_mirror(["notes", f"--ref={NOTES}", "show", sha])
        try:
            found = json.loads(answer.output) if answer.code == 0 else None
        except (ValueError, RecursionError):
            return ""
        return str(found.get("drySha") or "") if isinstance(found, dict) else ""

    # -- git ---------------------------------------------------------------------------------------------------------

    def _push(self, refspec: str, *, last: bool) -> bool:
        """Push; return False if the remote has something newer. Raises :class:`SourceError`."""
        receiver = [f"--receive-pack={_LOCAL_RECEIVER}"] if self.is_local else []
        options = ["push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"]
        answer = self._ask_remote([*options, *receiver, "--", self.url, refspec], directory=self._mirror)
        if answer.code == 0:
            return True
        report = answer.output.decode("utf-8", "replace") + answer.complaint
        if _MOVED.search(report) and not last:
            return False
        raise self._refused(answer, refspec, report)

    def _refused(self, answer: GitAnswer, refspec: str, text: str) -> SourceError:
        line = next((line for line in text.splitlines() if line.startswith("!")), "")
        why = re.sub(r"\s+", " ", line.rpartition("\t")[2]) or answer.complaint or f"git ended with code {answer.code}"
        message = f"push of {refspec.rpartition(':')[2]} to repository {self.shown}: {self._masked(why)}"
        usual = self._failure(answer)
        return SourceError(usual.problem, message, subject=self.shown, field=FIELD, fix=usual.fix)

    def _failure(self, answer: GitAnswer) -> SourceError:
        found = super()._failure(answer)
        fix = WRITING if found.problem is Problem.DENIED else found.fix
        return SourceError(found.problem, found.message, subject=self.shown, field=FIELD, fix=fix)

    def _masked(self, text: str) -> str:
        return text if self.access is None else self.access.mask(text)

    def _run(
        self, arguments: Sequence[str], stdin: bytes = b"", *, environment: Mapping[str, str] | None = None
    ) -> str:
        return self._output(arguments, stdin, environment=environment).decode("utf-8", "replace").strip()

    def _output(
        self, arguments: Sequence[str], stdin: bytes = b"", *, environment: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the output of a git command in the mirror. Raises :class:`SourceError`."""
        answer = run_git(
            arguments,
            directory=self._mirror,
            stdin=stdin,
            bounds=LOCAL_BOUNDS,
            label=f"mirror of {self.shown}",
            environment=environment,
        )
        if answer.code != 0:
            why = self._masked(answer.complaint) or f"git ended with code {answer.code}"
            raise SourceError(Problem.INVALID, f"hydrated commit for {self.shown}: {why}", subject=self.shown)
        return answer.output
