"""The build environment and how it is put into values."""

from __future__ import annotations

import pytest

from syncline.sources.rendering.environment import RenderContext, build_environment, expand, plain_version

GIVEN = {"ARGOCD_APP_NAME": "shop", "A": "1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$ARGOCD_APP_NAME-ui", "shop-ui"),
        ("${ARGOCD_APP_NAME}_ui", "shop_ui"),
        ("$ARGOCD_APP_NAME_ui", ""),
        ("cost: $$5", "cost: $5"),
        ("$UNKNOWN.", "."),
        ("end$", "end$"),
        ("$ x", "$ x"),
        ("${}x", "x"),
        ("${A", "A"),
        ("$1$A", "1"),
        ("plain", "plain"),
    ],
)
def test_variables_are_replaced_as_by_gos_expand(text: str, expected: str) -> None:
    assert expand(text, GIVEN) == expected


@pytest.mark.parametrize(
    ("told", "given"),
    [
        ("v1.36.0+syncline", "1.36.0"),
        ("v1.31.2-gke.1700000", "1.31.2"),
        ("1.30", "1.30"),
        ("v1.030.1", "1.30.1"),
        ("", ""),
        ("latest", "latest"),
    ],
)
def test_charts_and_plugins_are_told_the_numbers_of_a_version(told: str, given: str) -> None:
    assert plain_version(told) == given


def test_the_build_environment_has_upstreams_names() -> None:
    context = RenderContext("team_shop", "web", "prod")
    found = build_environment(context, url="https://g/r", path="p", revision="main", sha="0123456789abcdef")
    assert found == {
        "ARGOCD_APP_NAME": "team_shop",
        "ARGOCD_APP_NAMESPACE": "prod",
        "ARGOCD_APP_PROJECT_NAME": "web",
        "ARGOCD_APP_REVISION": "0123456789abcdef",
        "ARGOCD_APP_REVISION_SHORT": "0123456",
        "ARGOCD_APP_REVISION_SHORT_8": "01234567",
        "ARGOCD_APP_SOURCE_PATH": "p",
        "ARGOCD_APP_SOURCE_REPO_URL": "https://g/r",
        "ARGOCD_APP_SOURCE_TARGET_REVISION": "main",
    }
    assert context.name == "shop"
