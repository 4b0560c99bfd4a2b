"""Templates with sprig's functions give what Go gives: the table ``answers.yaml``."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kube.gotemplate.sprig.functions import NOW

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.sprig.library import sprig_functions
from syncline.kube.gotemplate.template import TemplateError, parse

DATA: dict[str, Any] = {
    "name": "prod-eu",
    "port": 8443.0,
    "tags": ["b", "a", None, "b"],
    "labels": {"env": "prod", "team": {"name": "core"}},
    "empty": "",
    "on": True,
}
ANSWERS = yaml.safe_load((Path(__file__).parent / "answers.yaml").read_text(encoding="utf-8"))
ROWS = [
    pytest.param(row, id=f"{theme}-{number}")
    for theme, table in ANSWERS.items()
    for number, row in enumerate(table["rows"])
]


@pytest.mark.parametrize("row", ROWS)
def test_a_template_gives_the_text_or_the_error_of_go(row: dict[str, str]) -> None:
    functions = sprig_functions(lambda: NOW, Entropy(0))
    try:
        answer = {"text": parse("", row["template"], functions).render(deepcopy(DATA))}
    except TemplateError as error:
        answer = {"error": str(error)}
    assert {"template": row["template"], **answer} == row
