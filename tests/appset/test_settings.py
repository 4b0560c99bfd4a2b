"""What ``argocd-cmd-params-cm`` says to generators."""

from __future__ import annotations

import pytest

from syncline.appset.settings import parse_settings


@pytest.mark.parametrize(("value", "seen"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_generators_see_directories_with_a_dot_where_the_repository_server_includes_them(
    value: str, seen: bool
) -> None:
    assert parse_settings({"reposerver.include.hidden.directories": value}).hidden is seen
