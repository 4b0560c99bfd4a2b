"""Secrets of plays: read by the agent at the run, absent and forbidden apart, and in no other object."""

from __future__ import annotations

import base64
import json

import pytest
from tests.machineconfig.ansible.world import AnsibleWorld

from syncline.kube.client import Response
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.steps import RunPlays
from syncline.machineconfig.ansible.play import PLAY, ROOT, Play
from syncline.machineconfig.ansible.secrets import Secrets, read_secrets
from syncline.machineconfig.generating.making import file_of, made_config
from syncline.machineconfig.render.rendering import Release

TREASURE = "correct-horse-battery"
NAMESPACES = "/api/v1/namespaces"
PLAYS = Play("motd", "0" * 64, "site.yml", secrets=(("ansible", "vars"),), vault=("ansible", "vault", "password"))


def answered(*answers: Response) -> Secrets:
    files = [file_of(f"{ROOT}/motd/{PLAY}", PLAYS.text)]
    config = made_config("rendered-worker-a", "worker", Release("1", "1"), files=files)
    asking = read_secrets(RunPlays("worker-0", config, ("motd",), "test"))
    next(asking)
    for answer in answers:
        try:
            asking.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
    raise AssertionError("it asks for more")


def secret(**data: bytes) -> Response:
    return Response(200, {"data": {key: base64.b64encode(value).decode() for key, value in data.items()}})


def status(code: int, reason: str) -> Response:
    return Response(code, {"kind": "Status", "code": code, "reason": reason, "message": reason})


def test_variables_and_the_password_of_the_vault_are_wrapped() -> None:
    variables, vault = answered(secret(token=TREASURE.encode()), secret(password=b"open"))(PLAYS)
    assert variables is not None and vault is not None
    assert json.loads(variables.reveal()) == {"token": TREASURE} and vault.reveal() == "open"
    assert TREASURE not in f"{variables!r} {variables}"


def test_what_is_absent_forbidden_or_no_text_are_three_sentences() -> None:
    with pytest.raises(UpdateError, match=r"spec\.variablesFrom: Secret ansible/vars does not exist"):
        answered(status(404, "NotFound"))
    with pytest.raises(UpdateError, match="may not be read by this node; grant group system:nodes"):
        answered(status(403, "Forbidden"))
    with pytest.raises(UpdateError, match="has a value that is no text"):
        answered(secret(token=b"\xff"))
    with pytest.raises(UpdateError, match=r"spec\.vaultPasswordFrom: .* has no key password; it has other"):
        answered(secret(token=b"x"), secret(other=b"x"))


def test_a_missing_secret_is_said_before_the_node_is_cordoned_and_its_value_is_in_no_other_object() -> None:
    world = AnsibleWorld(nodes=1)
    world.ask(variablesFrom=[{"secretRef": {"namespace": "default", "name": "vars"}}])
    world.driver.until(lambda: "Secret default/vars does not exist" in world.reason("worker-0"), limit_s=900)
    assert world.events("Cordon") == []
    data = {"token": base64.b64encode(TREASURE.encode()).decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vars"}, "data": data}
    world.send("POST", f"{NAMESPACES}/default/secrets", body)
    world.until_applied(1)
    shown = [world.get(path) for path in ("/api/v1/nodes", "/api/v1/events", "/api/v1/configmaps")]
    shown += [world.get("/apis/syncline.dev/v1alpha1/ansibleconfigs"), world.get_machine_configs()]
    assert TREASURE not in json.dumps(shown) and data["token"] not in json.dumps(shown)
