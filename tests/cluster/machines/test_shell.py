"""The small shell: what it prints and how it ends, compared with what POSIX says (and with the machine's own sh)."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from syncline.base.clock import EPOCH
from syncline.cluster.machines.shell.check import unknown_in
from syncline.cluster.machines.shell.interpreter import Shell
from syncline.cluster.machines.shell.parser import parse
from syncline.cluster.machines.shell.programs import BUILTIN
from syncline.cluster.machines.shell.syntax import ShellError
from syncline.cluster.machines.tools.steps import Output, Sleep

BASH = shutil.which("bash")


def run(text: str, **variables: str) -> tuple[str, int, float]:
    """Output, exit code, seconds slept."""
    steps = Shell(BUILTIN, {"PATH": "/bin"} | variables, lambda: EPOCH).main(parse(text))
    out, slept = "", 0.0
    try:
        while True:
            step = next(steps)
            if isinstance(step, Sleep):
                slept += step.seconds
            elif isinstance(step, Output) and not step.error:
                out += step.text
    except StopIteration as stop:
        return out, stop.value, slept


SCRIPTS = [
    "echo a b  c",
    "echo -n a; echo b",
    "echo 'a  $X' \"b  $X\" $X",
    "echo ${X:-none} ${Y:-none} ${Y:=set} $Y ${X:+there}",
    "X='a b'; for i in $X \"$X\"; do echo [$i]; done",
    "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
    "i=0; until test $i -ge 2; do i=$((i + 1)); done; echo $i",
    'if [ -z "$NONE" ]; then echo empty; elif true; then echo no; else echo never; fi',
    "true && echo yes || echo no; false && echo yes || echo no",
    "false; echo $?",
    "exit 3",
    "set -e; false; echo never",
    "set -e; if false; then echo a; fi; false || true; echo b",
    "set -eo pipefail; false | cat; echo never",
    "echo $(echo one; echo two)",
    'echo "$(printf "a\\nb\\n")"',
    "echo abc | grep -q b && echo found",
    "printf 'a\\nb\\nab\\n' | grep -c a",
    "printf 'x=%s n=%d\\n' one 2",
    "case abc in a*) echo starts;; *) echo no;; esac",
    "case $X in (one|hello) echo yes;; esac",
    "(Y=1; exit 4); echo $? [$Y]",
    "{ echo a; echo b; } | wc -l | tr -d ' '",
    "cat <<EOF\nhello $X\n  $((1+2))\nEOF\necho after",
    "cat <<'EOF'\nhello $X\nEOF",
    "! false; echo $?",
    "for i in 1 2 3; do [ $i = 2 ] && continue; [ $i = 3 ] && break; echo $i; done",
    "A=1 B=2; echo $A$B",
    "echo a >/dev/null 2>&1; echo b",
    "f=/tmp/syncline-test-file; echo one > $f; echo two >> $f; cat $f; rm $f",
    "x=file.tar.gz; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${#x}",
    "echo a; # a comment\necho b # another",
    "echo a \\\n b",
    "seq 3 | tail -1",
    'export A=1; echo "$A"',
    "sh -c 'echo inner $0 $1' zero one",
    "[ a = a ] && [ a != b ] && [ 1 -eq 01 ] && echo same",
    "test -n x -a -z '' && echo both",
    "echo `echo old`",
    "echo \"a\"'b'c\\ d",
    "echo $((7 / 2 * 2 - 1 % 3)) $((2 > 1))",
    "echo oops >&2; echo fine",
    "X=$(exit 5); echo $?",
    "set -- a 'b c'; for i in \"$@\"; do echo [$i]; done; echo $#",
    "[[ $X == hel* ]] && echo pattern",
]


@pytest.mark.skipif(BASH is None, reason="no bash on this machine to compare with")
@pytest.mark.parametrize("text", SCRIPTS)
def test_it_does_what_bash_does(text: str) -> None:
    assert BASH is not None
    real = subprocess.run(
        [BASH, "-c", text], env={"X": "hello", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    out, code, _ = run(text, X="hello")
    if text.startswith("sh -c"):
        assert out == real.stdout.replace("zero", "sh")
    else:
        assert (out, code) == (real.stdout, real.returncode)


def test_sleeping_takes_time() -> None:
    assert run("sleep 1m 2; for i in 1 2 3; do sleep 0.5; done")[2] == 63.5


@pytest.mark.parametrize(
    "text",
    [
        "curl http://x",
        "if true; then jq . ; fi",
        "echo $(python3 -c 1)",
        "x=$(curl a) && echo $x",
        "sleep 5 &",
        "f() { echo a; }",
        "[[ a = a && b = b ]]",
        "echo 'open",
        "if true; then",
        "echo ${X//a/b}",
    ],
)
def test_what_it_does_not_know_it_says_before_anything_ran(text: str) -> None:
    try:
        assert unknown_in(parse(text), BUILTIN)
    except ShellError as error:
        assert str(error)


def test_a_script_without_end_is_ended() -> None:
    with pytest.raises(ShellError, match="without coming to an end"):
        run("while true; do :; done")


def test_output_that_is_held_is_bounded() -> None:
    with pytest.raises(ShellError, match="characters of output"):
        run("x=aaaaaaaaaaaaaaaa; while true; do x=$x$x; y=$(echo $x); done")
