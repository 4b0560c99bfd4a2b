"""Requests that nobody should send: made from valid ones by a seeded source of chance.

``Inputs(seed).request()`` gives one HTTP-shaped request with encoded body and headers, as a server would have read it.
Everything comes from the seed, so that a failure names all that is needed to see it again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncline.kube.client import Request
from syncline.kube.objects import Obj

__all__ = ["Inputs", "valid_objects"]

OBJECTS = Path(__file__).with_name("objects.json")

HUGE = "9" * 400
STRINGS = [
    "",
    " ",
    "a",
    "A",
    "-",
    ".",
    "..",
    "/",
    "//",
    "a/b",
    "*",
    "%",
    "%00",
    "\0",
    "\x7f",
    "\u2028",
    "é",
    "𝔘",
    "\ud800",
    "a" * 64,
    "a" * 254,
    "x" * 70_000,
    "true",
    "null",
    "0",
    "-1",
    "1e400",
    "NaN",
    "Infinity",
    "1.5",
    "0x10",
    "１",
    "🦀" * 300,
    "a\nb",
    "a\r\nX: y",
    "{}",
    "[]",
    "${x}",
    "{{.}}",
    "$(A)",
    "'",
    '"',
    "\\",
    "`",
    "<b>",
    "a=b",
    "a in (b)",
    "kubernetes.io/x",
    "example.com/" + "a" * 300,
    "system:masters",
    "system:serviceaccount:a:b",
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "1Gi",
    "1Ei",
    "9" * 40,
    "-1m",
    "1e1000",
    "1" + "0" * 4000,
    "1E-9999",
    "50%",
    "101%",
    "-1%",
    "PT1S",
    "1h",
    "9" * 30 + "h",
    "127.0.0.1",
    "::1",
    "1.2.3.4/33",
    "fe80::1%eth0",
    "::ffff:1.2.3.4",
    "https://x/",
    "http://[::1",
    "a:b",
    "(a+)+$",
    "[",
    "(?P<x",
    "\\",
    "a{1001}",
    "(" * 1200,
    "self" + ".x" * 500,
    "self.all(x, self.all(y, self.all(z, x+y+z>0)))",
    "[1,2,3].map(x,[1,2,3].map(y,x*y))",
    "size('a'*3)",
    "1/0==1",
    "'a'.matches('" + "(a*)*" * 30 + "')",
    "((((((((" * 100,
    "0 0 30 2 *",
    "* * * * *",
    "@every 1s",
    "TZ=UTC * * * * *",
    "*/0 * * * *",
    "0-99999999999 * * * *",
    "RollingUpdate",
    "Recreate",
    "Always",
    "ClusterIP",
    "ExternalName",
    "None",
]
NUMBERS: list[Any] = [
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    1.5,
    -0.0,
    1e308,
    1e-320,
    10**30,
]
RAW_NUMBERS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e400",
    HUGE,
    "1e-400",
    "0.1e+5",
    "01",
    "+1",
    "1.",
    ".5",
    "0x1",
    "1_0",
]
ACCEPTS = [
    "application/json",
    "*/*",
    "",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;as=Table;v=v9;g=meta.k8s.io",
    "application/json;as=;v=;g=",
    "a/b;q=nan,*/*;q=-1",
    ";;;,,,=",
    "application/json;q=1e999",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch,application/json",
    "é",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
]
CONTENTS = [
    "application/json",
    "",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "text/plain",
    "application/json; charset=utf-16",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "a",
    ";",
    "application/json;;;",
]
PATCHES = CONTENTS[7:11]
SELECTORS = [
    "",
    "a=b",
    "a==b",
    "a!=b",
    "a",
    "!a",
    "a in (b,c)",
    "a notin (b)",
    "a in ()",
    "a in",
    "(a)",
    "a=b,c=d",
    "a=b,,c",
    "a,b,c",
    "!",
    "!!a",
    "a=",
    "=b",
    "a in (" + ",".join(map(str, range(5000))) + ")",
    ",".join(f"k{i}=v" for i in range(5000)),
    "a>1",
    "a<x",
    "a>9" + "9" * 50,
    "a=b=c",
    "metadata.name=x",
    "metadata.name!=x",
    "metadata.namespace=x,metadata.name=y",
    "status.phase=Running",
    "spec.nodeName=",
    "spec.x=1",
    "metadata.name in (a)",
    "a\\=b=c",
    "metadata.name=\\",
    "metadata.name=a\\,b",
    "é=ü",
    "\0=\0",
    "a=" + "b" * 100_000,
    "x/y/z=1",
    "-a=b",
]
QUERIES: dict[str, list[str]] = {
    "labelSelector": SELECTORS,
    "fieldSelector": SELECTORS,
    "limit": ["0", "1", "-1", "500", HUGE, "x", "1.5", "", "9223372036854775808", "１"],
    "continue": [
        "",
        "x",
        "e30",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4In0",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vLi4ifQ",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5OTk5OTk5OTk5OTksInN0YXJ0IjoieCJ9",
        "/w",
        "A" * 10_000,
        "====",
        "bnVsbA",
        "W10",
        "é",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MS41LCJzdGFydCI6IngifQ",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6dHJ1ZSwic3RhcnQiOiJ4In0",
    ],
    "resourceVersion": [
        "",
        "0",
        "1",
        "2",
        "999999999",
        HUGE,
        "-1",
        "x",
        "1.0",
        "１",
        "²",
        "0x1",
        " 1",
        "18446744073709551616",
    ],
    "resourceVersionMatch": ["", "Exact", "NotOlderThan", "x"],
    "watch": ["", "1", "true", "0", "false", "x"],
    "sendInitialEvents": ["true", "false", "", "x"],
    "allowWatchBookmarks": ["true", "x"],
    "timeoutSeconds": ["0", "1", "-1", HUGE, "x", "1e3"],
    "dryRun": ["All", "", "None", "all", "All,All", "\0"],
    "fieldManager": ["", "me", "x" * 128, "x" * 129, "\0", "é" * 100, "a\nb", "\ud800"],
    "fieldValidation": ["", "Strict", "Warn", "Ignore", "x"],
    "force": ["true", "false", "", "x"],
    "propagationPolicy": ["", "Orphan", "Background", "Foreground", "x"],
    "gracePeriodSeconds": ["0", "-1", "x", HUGE, "30"],
    "orphanDependents": ["true", "x"],
    "includeObject": ["", "None", "Metadata", "Object", "x"],
    "pretty": ["true", "x"],
    "container": STRINGS[:30],
    "tailLines": ["0", "-1", "x", HUGE],
    "sinceSeconds": ["0", "-1", "x", HUGE],
    "limitBytes": ["0", "-1", "x", HUGE],
    "command": ["sh"],
    "timeout": ["1s", "x", "-1s", HUGE],
    "\0": ["\0"],
}
AGENTS = ["kubectl/v1", "", "x" * 500, "é/1", "\udcff\udc80", "/", "\0"]
METHODS = (
    ["GET"] * 8 + ["POST"] * 10 + ["PUT"] * 6 + ["PATCH"] * 12 + ["DELETE"] * 3 + ["HEAD", "OPTIONS", "TRACE", "X", ""]
)


def valid_objects() -> list[tuple[str, Obj]]:
    """(path of the collection, object): kinds with much to check, custom definitions and policies with expressions."""
    return [(each["path"], each["object"]) for each in json.loads(OBJECTS.read_text())]


class Inputs:
    """One stream of requests."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.valid = valid_objects()
        self._encoders: list[Callable[[Any], bytes]] = [self._json] * 30 + [
            self._yaml,
            self._broken,
            self._noise,
            self._repeated,
        ]

    def request(self) -> Request:
        chance = self.chance
        path, obj = chance.choice(self.valid)
        method = chance.choice(METHODS)
        if method == "POST" and "metadata" in obj and chance.random() < 0.7:
            obj = {**obj, "metadata": {**obj["metadata"], "name": f"n{chance.randrange(10**6)}"}}
        headers: dict[str, str] = {}
        if chance.random() < 0.15:
            headers["accept"] = chance.choice(ACCEPTS)
        if chance.random() < 0.3:
            headers["user-agent"] = chance.choice(AGENTS)
        body: bytes | None = None
        if method in ("POST", "PUT", "PATCH") or chance.random() < 0.2:
            changed = self.changed(obj, chance.choice((0, 0, 1, 1, 1, 1, 2, 4)))
            if method == "PATCH":
                content = chance.choice(PATCHES) if chance.random() < 0.9 else chance.choice(CONTENTS)
                value = (
                    self.operations(obj) if content == PATCHES[0] and chance.random() < 0.9 else self.partial(changed)
                )
            else:
                content = "application/json" if chance.random() < 0.8 else chance.choice(CONTENTS)
                value = changed if method != "DELETE" else self.delete_options()
            headers["content-type"] = content
            body = chance.choice(self._encoders)(value)
        return Request(method, self.path(path, obj, method), self.query(), headers, body)

    # -- addresses ------------------------------------------------------------------------------------------------

    def path(self, path: str, obj: Obj, method: str) -> str:
        chance = self.chance
        single = method in ("PUT", "PATCH", "DELETE") or (method in ("GET", "HEAD") and chance.random() < 0.5)
        if single and "/default/token" not in path:
            path = f"{path}/{obj.get('metadata', {}).get('name', 'x')}"
            if chance.random() < 0.25:
                sub = chance.choice(
                    [
                        "status",
                        "scale",
                        "finalize",
                        "approval",
                        "token",
                        "log",
                        "exec",
                        "proxy",
                        "attach",
                        "ephemeralcontainers",
                        "resize",
                        "x",
                        "binding",
                        "eviction",
                    ]
                )
                path = f"{path}/{sub}"
        if chance.random() < 0.08:
            parts = path.split("/")
            at = chance.randrange(len(parts))
            match chance.randrange(5):
                case 0:
                    parts[at] = chance.choice(STRINGS)[:5000]
                case 1:
                    parts.insert(at, chance.choice(STRINGS)[:5000])
                case 2:
                    del parts[at]
                case 3:
                    parts.insert(min(at, 4), "watch")
                case 4:
                    parts += [chance.choice(STRINGS)[:50]] * chance.choice((1, 3, 300))
            path = "/" + "/".join(parts).lstrip("/")
        if chance.random() < 0.01:
            path = chance.choice(
                [
                    "/",
                    "",
                    "/api",
                    "/apis",
                    "/openapi/v2",
                    "/openapi/v3",
                    "/openapi/v3/apis/apps/v1",
                    "/version",
                    "/metrics",
                    "/healthz/x",
                    "/logs",
                    "/.well-known/openid-configuration",
                    "/openid/v1/jwks",
                    "*",
                ]
            )
        return path

    def query(self) -> dict[str, str]:
        chance = self.chance
        if chance.random() < 0.75:
            return {}
        names = chance.sample(sorted(QUERIES), chance.choice((1, 1, 2, 3, 6)))
        return {name: chance.choice(QUERIES[name] if chance.random() < 0.9 else STRINGS) for name in names}

    # -- values ---------------------------------------------------------------------------------------------------

    def changed(self, value: Any, times: int) -> Any:
        """A copy with some parts replaced, removed, doubled or moved."""
        value = json.loads(json.dumps(value))
        for _ in range(times):
            places = list(_places(value))
            if not places:
                return self.odd()
            parent, key = self.chance.choice(places)
            match self.chance.randrange(9):
                case 0 if isinstance(parent, dict):
                    del parent[key]
                case 1 if isinstance(parent, dict):
                    parent[self.chance.choice(STRINGS)] = parent[key]
                case 2 if isinstance(parent, list):
                    parent.append(parent[key])
                case 3:
                    parent[key] = [parent[key]]
                case 4:
                    parent[key] = {"x": parent[key]}
                case _:
                    parent[key] = self.odd()
        return value

    def odd(self) -> Any:
        chance = self.chance
        match chance.randrange(12):
            case 0:
                return None
            case 1:
                return chance.choice([True, False])
            case 2 | 3 | 4:
                return chance.choice(NUMBERS)
            case 5:
                return []
            case 6:
                return {}
            case 7:
                return [chance.choice(STRINGS), None, 1]
            case 8:
                return {chance.choice(STRINGS): chance.choice(STRINGS)}
            case 9 if chance.random() < 0.1:
                return _nested(chance.choice((30, 150, 900, 5000)), chance.random() < 0.5)
            case _:
                return chance.choice(STRINGS)

    def partial(self, value: Any) -> Any:
        """Only some of the fields, with directives of strategic patches among them."""
        if not isinstance(value, dict) or self.chance.random() < 0.3:
            return value
        kept = {key: part for key, part in value.items() if self.chance.random() < 0.7}
        if self.chance.random() < 0.3:
            places = [parent for parent, _ in _places(kept) if isinstance(parent, dict)] or [kept]
            directive = self.chance.choice(
                [
                    "$patch",
                    "$retainKeys",
                    "$setElementOrder/containers",
                    "$deleteFromPrimitiveList/finalizers",
                    "$x",
                    "$setElementOrder/x",
                ]
            )
            self.chance.choice(places)[directive] = self.chance.choice(
                ["delete", "replace", "merge", "x", ["a"], [{"name": "c"}], None, 1, {}]
            )
        return kept

    def operations(self, value: Any) -> Any:
        chance = self.chance
        pointers = [
            *_pointers(value),
            "",
            "/",
            "/x/y",
            "/metadata/name",
            "/metadata/labels/-",
            "/spec/-1",
            "//",
            "x",
            "/~",
            "/~2",
            "/metadata/~1",
            "/" * 900,
        ]
        made: list[Any] = []
        for _ in range(chance.choice((0, 1, 1, 2, 5, 40))):
            step: dict[str, Any] = {
                "op": chance.choice(["add", "remove", "replace", "test", "copy", "move", "x", "", None, 1])
            }
            step["path"] = chance.choice(pointers)
            if chance.random() < 0.8:
                step["value"] = self.odd()
            if chance.random() < 0.4:
                step["from"] = chance.choice(pointers)
            if chance.random() < 0.1:
                del step[chance.choice(sorted(step))]
            made.append(step)
        if chance.random() < 0.02:
            made = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 500}}] + [
                {"op": "copy", "from": "/metadata", "path": "/metadata/annotations/b"}
            ] * chance.choice((30, 200, 10_001))
        return made if chance.random() < 0.95 else self.odd()

    def delete_options(self) -> Any:
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "dryRun": ["All"],
            "preconditions": {"uid": "x", "resourceVersion": "1"},
            "gracePeriodSeconds": 1,
            "orphanDependents": True,
        }
        return self.changed({key: part for key, part in options.items() if self.chance.random() < 0.5}, 1)

    # -- bytes ----------------------------------------------------------------------------------------------------

    def _json(self, value: Any) -> bytes:
        text = json.dumps(value, ensure_ascii=self.chance.random() < 0.7)
        if self.chance.random() < 0.05:
            text = (
                text.replace(":", ":" + self.chance.choice(RAW_NUMBERS) + ",", 1)
                if self.chance.random() < 0.3
                else text
            )
            for number in ("1", "2", "5", "80"):
                text = text.replace(f": {number}", f": {self.chance.choice(RAW_NUMBERS)}", 1)
        return text.encode("utf-8", "surrogatepass")

    def _yaml(self, value: Any) -> bytes:
        text = json.dumps(value)
        odd = self.chance.choice(
            [
                "{0}",
                "---\n{0}\n---\n{0}",
                "a: &a [x]\nb: *a\n",
                "x: &x [*x]",
                "? {0}\n: 1",
                "!!python/object:os.system [x]",
                "!!binary |\n  ////",
                "a: !!int x",
                "<<: {0}\nkind: Pod",
                "\t{0}",
                "a: 1\na: 2",
                "%YAML 9.9\n---\n{0}",
                "a: |\n  x\n b",
                "[" * 3000,
                "{{" * 500,
                "a: 0o17\nb: 0x_\nc: 1:30\nd: .inf\ne: .nan\nf: 2026-01-01\ng: ~",
                "a: &a [a,a,a,a,a,a,a,a]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
                "d: &d [*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\n"
                "g: [*f,*f,*f,*f,*f]",
            ]
        )
        return odd.replace("{0}", text).encode("utf-8", "surrogatepass")

    def _broken(self, value: Any) -> bytes:
        raw = bytearray(json.dumps(value).encode())
        for _ in range(self.chance.choice((1, 1, 3, 20))):
            if not raw:
                break
            at = self.chance.randrange(len(raw))
            match self.chance.randrange(4):
                case 0:
                    del raw[at:]
                case 1:
                    raw[at] = self.chance.randrange(256)
                case 2:
                    raw[at:at] = self.chance.randbytes(3)
                case 3:
                    raw[at:at] = self.chance.choice(
                        [b"\\ud800", b"\\u0000", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"}", b'"', b"[", b",,"]
                    )
        return bytes(raw)

    def _noise(self, value: Any) -> bytes:
        head = self.chance.choice(
            [
                b"",
                b"k8s\0",
                b"k8s\0\n\x0c\n\x02v1\x12\x03Pod\x12",
                b"\xd9\xd9\xf7",
                b"{",
                b"null",
                b"[]",
                b"\x1f\x8b\x08",
                b"k8s\0\x0a\xff\xff\xff\xff\x0f",
            ]
        )
        return head + self.chance.randbytes(self.chance.choice((0, 1, 10, 300)))

    def _repeated(self, value: Any) -> bytes:
        text = json.dumps(value)
        if isinstance(value, dict) and value:
            key = self.chance.choice(sorted(value))
            text = text[:-1] + ", " + json.dumps(key) + ": " + json.dumps(value[key]) + "}"
        return text.encode()


def _nested(depth: int, lists: bool) -> Any:
    value: Any = 1
    for _ in range(min(depth, 900)):
        value = [value] if lists else {"a": value}
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 2_000:
        one = waiting.pop()
        pairs = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, part in pairs:
            found.append((one, key))
            waiting.append(part)
    return found


def _pointers(value: Any) -> list[str]:
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting and len(found) < 500:
        at, one = waiting.pop()
        pairs = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, part in pairs:
            where = f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}"
            found.append(where)
            waiting.append((where, part))
    return found
