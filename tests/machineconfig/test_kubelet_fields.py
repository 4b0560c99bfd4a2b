"""Kubelet configurations are read, merged and written as Go does it; as tables."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.machineconfig.generating.kubelet.files import invalid_kubelet_config
from syncline.machineconfig.generating.kubelet.schema import KubeletDecodeError, decode, encode, merge


@pytest.mark.parametrize(
    "raw",
    [
        {"maxPods": 2**31},
        {"maxPods": 1.5},
        {"maxPods": True},
        {"podPidsLimit": 2**63},
        {"logging": {"verbosity": -1}},
        {"syncFrequency": 10},
        {"syncFrequency": "10 s"},
        {"clusterDNS": "10.0.0.1"},
        {"maxPods": "5", "volumePluginDir": 1},
        {"syncFrequency": None},
        {"authentication": []},
        {"reservedMemory": [{"limits": {"memory": "x"}}]},
    ],
)
def test_values_of_the_wrong_type_or_size_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(KubeletDecodeError):
        decode(raw)
    assert "KubeletConfig could not be unmarshalled" in str(invalid_kubelet_config({"spec": {"kubeletConfig": raw}}))


MERGES: dict[str, tuple[Any, Any, str, Any]] = {
    "false does not win over true": (
        {"serializeImagePulls": True},
        {"serializeImagePulls": False},
        "serializeImagePulls",
        True,
    ),
    "false is kept where nothing was said": ({}, {"serializeImagePulls": False}, "serializeImagePulls", False),
    "zero does not win": ({"maxPods": 5}, {"maxPods": 0}, "maxPods", 5),
    "lists replace": ({"tlsCipherSuites": ["a", "b"]}, {"tlsCipherSuites": ["c"]}, "tlsCipherSuites", ["c"]),
    "an empty list does not": ({"tlsCipherSuites": ["a"]}, {"tlsCipherSuites": []}, "tlsCipherSuites", ["a"]),
    "maps are joined": (
        {"evictionHard": {"a": "1", "b": "1"}},
        {"evictionHard": {"b": "", "c": "2"}},
        "evictionHard",
        {"a": "1", "b": "", "c": "2"},
    ),
    "durations are written as Go writes them": ({}, {"syncFrequency": "90s"}, "syncFrequency", "1m30s"),
    "keys match in any case": ({}, {"MAXPODS": 7}, "maxPods", 7),
    "objects are merged": (
        {"authentication": {"anonymous": {"enabled": True}}},
        {"authentication": {"webhook": {"enabled": False}}},
        "authentication",
        {"anonymous": {"enabled": True}, "webhook": {"cacheTTL": "0s", "enabled": False}, "x509": {}},
    ),
    "a whole that may be absent comes as it is": (
        {},
        {"tracing": {"samplingRatePerMillion": 0}},
        "tracing",
        {"samplingRatePerMillion": 0},
    ),
    "an interval of logging is kept as it was written": (
        {},
        {"logging": {"flushFrequency": "5s", "options": {"json": {"infoBufferSize": "1Mi", "splitStream": True}}}},
        "logging",
        {
            "flushFrequency": "5s",
            "options": {
                "json": {"infoBufferSize": "0", "splitStream": True},
                "text": {"infoBufferSize": "0"},
            },
            "verbosity": 0,
        },
    ),
}


@pytest.mark.parametrize("name", MERGES)
def test_what_is_said_is_laid_over_the_templates(name: str) -> None:
    base, over, field, expected = MERGES[name]
    assert encode(merge(decode(base), decode(over)))[field] == expected


def test_every_zero_that_go_does_not_omit_is_written() -> None:
    assert encode({}) == encode(decode({"nonsense": {"deep": [1]}}))
    assert encode({})["containerRuntimeEndpoint"] == ""
    assert encode({})["memorySwap"] == {}
    assert "maxPods" not in encode({})


def test_numbers_stand_for_texts_as_in_yaml() -> None:
    """A configuration that is refused as JSON is read as YAML, which takes a number where a text is wanted."""
    found = decode({"tlsCipherSuites": [1, True], "evictionHard": {"a": 5}, "resolvConf": 7, "maxPods": 3})
    assert found == {"tlsCipherSuites": ["1", "true"], "evictionHard": {"a": "5"}, "resolvConf": "7", "maxPods": 3}
