"""The build environment and how it is put into values."""

from __future__ import annotations

import pytest

from syncline.sources.environment import RenderContext, build_environment, expand

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
