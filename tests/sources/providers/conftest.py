from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from tests.sources.providers.replay import Replay, ReplayHost

Serve = Callable[[Mapping[str, Replay | list[Replay]]], ReplayHost]


@pytest.fixture
def serve() -> Iterator[Serve]:
    hosts: list[ReplayHost] = []

    def start(answers: Mapping[str, Replay | list[Replay]]) -> ReplayHost:
        hosts.append(ReplayHost(answers))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()
