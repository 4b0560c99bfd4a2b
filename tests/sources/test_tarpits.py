"""Remotes that waste time: every conversation ends by itself, and what failed is remembered.

Nothing is said of how long it takes: a conversation without its bound would never end.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from tests.sources.tarpit import Behaviour, Tarpit, endless, silent, tarpit, trickling

from syncline.assembly.sources.reading import GitSourceReader
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.git.process import Bounds, RemoteLimits, run_bounded
from syncline.sources.remote.artifacts import Artifacts
from syncline.sources.remote.turns import COMPUTING
from syncline.sources.remote.web import WebLimits, WebRequest, fetch
from syncline.sources.workers.pool import shared_workers
from syncline.sources.workers.read_scope import FIRST_PAUSE_S, LONGEST_PAUSE_S, SPREAD, ReadScope, read_scope

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n"
HELLO = bytes.fromhex("1603033ff0")
"""The beginning of a long TLS record: the rest comes byte by byte."""
SOON = RemoteLimits(Bounds(1.5), 1, Bounds(1.5, quiet_s=1))
START = datetime(2026, 1, 1, tzinfo=UTC)
SHA = "a" * 40


@pytest.mark.parametrize("revision", ["main", SHA], ids=["asks what there is", "fetches a commit"])
@pytest.mark.parametrize(
    ("scheme", "behaviour"),
    [
        ("http", silent),
        ("http", trickling(OK)),
        ("http", endless(OK)),
        ("https", silent),
        ("https", trickling(HELLO)),
        ("ssh", silent),
        ("ssh", endless(b"not a banner\r\n")),
    ],
    ids=["silent", "trickle", "endless", "tls silent", "tls trickle", "ssh silent", "ssh endless"],
)
def test_a_git_remote_that_hangs_is_given_up(scheme: str, behaviour: Behaviour, revision: str, tmp_path: Path) -> None:
    git = Git(GitSettings(tmp_path, limits=SOON))
    with tarpit(behaviour) as server:
        repository = git.repository(f"{scheme}://{server.host}/r.git")
        with pytest.raises(SourceError) as caught:
            repository.tree(repository.resolve(revision))
    assert caught.value.problem in (Problem.UNREACHABLE, Problem.REVISION_UNKNOWN)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("scheme", "behaviour"),
    [
        ("http", silent),
        ("http", trickling(b"HTTP/1.1 200 OK\r\nx-header: ")),
        ("http", trickling(b"HTTP/1.1 200 OK\r\n\r\n")),
        ("https", silent),
        ("https", trickling(HELLO)),
    ],
    ids=["silent", "headers trickle", "body trickles", "tls silent", "tls trickle"],
)
def test_a_web_request_ends_in_its_time_whatever_the_host_does(scheme: str, behaviour: Behaviour) -> None:
    with tarpit(behaviour) as server:
        limits = WebLimits(wait_s=60, wall_s=0.5)
        with pytest.raises(SourceError, match=r"no whole answer within 0\.\d seconds|handshake|EOF|closed"):
            fetch(WebRequest(f"{scheme}://{server.host}/index.yaml", "chart repository", limits=limits))


def test_a_child_that_is_silent_is_ended_and_its_complaints_are_bounded() -> None:
    environment = {"PATH": "/usr/bin:/bin"}
    with pytest.raises(SourceError, match=r"not a byte within 0\.2 seconds"):
        run_bounded(["sleep", "600"], environment, Bounds(600, quiet_s=0.2), "x")
    noisy = ["sh", "-c", "head -c 1000000 /dev/zero >&2; printf 'fatal: the end\\n' >&2; printf out"]
    code, output, complaint = run_bounded(noisy, environment, Bounds(60), "x")
    assert (code, output, complaint[-15:], len(complaint)) == (0, b"out", b"fatal: the end\n", 8192)
    with pytest.raises(SourceError, match="larger than 1000 bytes"):
        run_bounded(["yes"], environment, Bounds(60, output_bytes=1000), "x")


def test_what_a_child_leaves_behind_does_not_keep_its_answer() -> None:
    command = ["sh", "-c", "printf out; exec >&-; sleep 60 & exit 3"]
    assert run_bounded(command, {"PATH": "/usr/bin:/bin"}, Bounds(50), "x")[:2] == (3, b"out")


# -- what is remembered of a remote that failed ------------------------------------------------------------------------


class Remote:
    """A reader of one address that hangs up on everybody, and how often it was asked."""

    def __init__(self, folder: Path, server: Tarpit) -> None:
        self.reader = GitSourceReader(folder, allow_local=False, limits=SOON)
        self.sources = ({"repoURL": f"http://{server.host}/r.git", "path": "."},)

    def poll(self, after_s: float) -> str:
        now = START + timedelta(seconds=after_s)
        return self.reader.poll(self.sources, ("main",), now, since=None).error

    def ask(self, after_s: float) -> str:
        return self.reader.read(self.sources, ("main",), START + timedelta(seconds=after_s)).error

    def asked(self) -> int:
        return sum(count for _, _, _, count in self.reader.requests())


def hangs_up(connection: object, over: object) -> None:
    connection.close()  # type: ignore[attr-defined]


def test_a_remote_that_failed_is_not_asked_by_each_application_in_turn(tmp_path: Path) -> None:
    with tarpit(hangs_up) as server:
        remote = Remote(tmp_path, server)
        first = remote.poll(0)
        later = {remote.poll(1) for _ in range(50)}
        assert remote.asked() == 1
        assert len(later) == 1
        (text,) = later
        assert text.startswith(first.partition(";")[0]) and "(asked at 2026-01-01T00:00:0" in text
        assert "it is asked again at 2026-01-01T00:00:" in text


def test_who_asks_for_it_asks_a_failed_remote_once_and_shares_what_comes(tmp_path: Path) -> None:
    with tarpit(hangs_up) as server:
        remote = Remote(tmp_path, server)
        remote.poll(0)
        remote.ask(2)
        assert remote.asked() == 2
        remote.poll(3)
        assert remote.asked() == 2


def test_pauses_grow_to_a_bound_and_end_at_different_times_for_different_remotes(tmp_path: Path) -> None:
    with tarpit(hangs_up) as one, tarpit(hangs_up) as other:
        tried: list[list[int]] = []
        for number, server in enumerate((one, other)):
            remote = Remote(tmp_path / str(number), server)
            times: list[int] = []
            for second in range(600):
                before = remote.asked()
                remote.poll(second)
                if remote.asked() > before:
                    times.append(second)
            tried.append(times)
    for times in tried:
        pauses = [after - before for before, after in pairwise(times)]
        assert FIRST_PAUSE_S * (1 - SPREAD) <= pauses[0] <= FIRST_PAUSE_S * (1 + SPREAD) + 2
        assert max(pauses) <= LONGEST_PAUSE_S * (1 + SPREAD) + 2
        assert pauses[-1] > 4 * pauses[0]
    assert tried[0] != tried[1]


def test_a_chart_repository_that_failed_is_not_asked_again_at_once_and_one_that_hangs_stops_no_other(
    tmp_path: Path,
) -> None:
    """Many hang at once: whoever reads another chart waits for none of them."""
    artifacts = Artifacts(tmp_path)
    over, servers = threading.Event(), [Tarpit() for _ in range(40)]

    def read(server: Tarpit) -> None:
        with contextlib.suppress(SourceError):
            artifacts.chart(f"http://{server.host}", "web", "1.0.0")

    threads = [threading.Thread(target=read, args=(server,), daemon=True) for server in servers]
    try:
        for thread in threads:
            thread.start()
        while not all(server.asked for server in servers):
            over.wait(0.01)
        with tarpit(hangs_up) as failing:
            for _ in range(20):
                with read_scope(ReadScope(START, asked=False)), pytest.raises(SourceError):
                    artifacts.chart(f"http://{failing.host}", "web", "1.0.0")
            assert failing.asked == 1
        assert all(thread.is_alive() for thread in threads)
    finally:
        for server in servers:
            server.close()


def test_a_clock_that_was_put_back_does_not_keep_a_remote_from_being_asked(tmp_path: Path) -> None:
    with tarpit(hangs_up) as server:
        remote = Remote(tmp_path, server)
        remote.poll(0)
        remote.poll(-3600)
        assert remote.asked() == 2


def test_nothing_is_left_of_the_turns_of_reads_that_failed(tmp_path: Path) -> None:
    with tarpit(hangs_up) as server:
        Remote(tmp_path, server).ask(0)
    empty = {"working": 0, "slow": 0, "waiting": 0}
    assert (COMPUTING.counts(), shared_workers().turns.counts()) == (empty, empty)
