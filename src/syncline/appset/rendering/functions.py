"""The functions that upstream adds to sprig's: normalize, slugify, toYaml, fromYaml, fromYamlArray."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from syncline.appset.rendering.goforms import GoError, plain, yaml_list, yaml_map
from syncline.appset.rendering.slug import normalize, slugify
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_text
from syncline.kube.yaml.loading import dump


def _to_yaml(value: Any) -> str:
    made = dump(plain(value)).removesuffix("\n")
    check_text(len(made))
    return made


def _from_yaml(text: str) -> dict[str, Any]:
    try:
        return yaml_map(text)
    except GoError as error:
        raise FunctionError(str(error)) from None


def _from_yaml_array(text: str) -> list[Any]:
    try:
        return yaml_list(text)
    except GoError as error:
        raise FunctionError(str(error)) from None


OWN: Mapping[str, Function] = MappingProxyType(
    {
        "normalize": Function(normalize, (Kind.STRING,), result=Kind.STRING),
        "slugify": Function(slugify, (Kind.ANY,), variadic=True, result=Kind.STRING),
        "toYaml": Function(_to_yaml, (Kind.ANY,), result=Kind.STRING),
        "fromYaml": Function(_from_yaml, (Kind.STRING,), result=Kind.DICT),
        "fromYamlArray": Function(_from_yaml_array, (Kind.STRING,), result=Kind.LIST),
    }
)
FUNCTIONS: Mapping[str, Function] = MappingProxyType({**OWN})
