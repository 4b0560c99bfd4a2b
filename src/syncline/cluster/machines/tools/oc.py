"""The tool's entry point, from an argument list to steps and an exit code.

The program for hooks that are processes calls it (over HTTPS), and the script runtime in virtual time (in process). Its
requests and output are like kubectl's; unsupported features are refused.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.cluster.machines.tools import reading, rollouts, writing
from syncline.cluster.machines.tools.arguments import Arguments, parse
from syncline.cluster.machines.tools.steps import CommandError, Output, Session, Steps, refusal_text
from syncline.kube.errors import ApiError

Command = Callable[[Session, Arguments, list[str]], Steps[int]]

COMMANDS: dict[str, Command] = {
    "annotate": writing.annotate,
    "apply": writing.apply,
    "create": writing.create,
    "delete": writing.delete,
    "extract": reading.extract,
    "get": reading.get,
    "label": writing.label,
    "logs": reading.logs,
    "patch": writing.patch,
    "rollout": rollouts.rollout,
    "scale": writing.scale,
    "version": reading.version,
    "wait": reading.wait,
    "whoami": reading.whoami,
}


def run(argv: list[str], session: Session) -> Steps[int]:
    """Run ``argv`` (without the program's name); return the exit code. Any exception is a bug."""
    try:
        arguments = parse(argv)
        name, *words = arguments.words or ["help"]
        if name == "help" or arguments.on("help"):
            yield Output(f"{session.program} knows: {', '.join(sorted(COMMANDS))}\n")
            return 0
        command = COMMANDS.get(name)
        if command is None:
            known = ", ".join(sorted(COMMANDS))
            raise CommandError(f'error: unknown command "{name}" for "{session.program}"; this tool knows {known}')
        return (yield from command(session, arguments, words))
    except CommandError as error:
        yield Output(f"{error}\n", error=True)
    except ApiError as error:
        yield Output(refusal_text(error) + "\n", error=True)
    return 1
