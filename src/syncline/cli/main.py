"""``syncline``: the command line. Commands are imported when called, so ``--help`` is fast."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from typing import Any

import click

from syncline import __version__
from syncline.cli.frame.failure import ARGOCD, GENERAL, USAGE, CommandFailed, exit_code
from syncline.cli.frame.lazy import CONTEXT, LazyGroup, command_words
from syncline.cli.frame.terminal import clean_output

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a write to standard output other than a closed pipe."""

COMMANDS: dict[str, tuple[str, str]] = {
    "admin": ("admin.group:admin", "Exports, checks of settings and manifests, with the verbs of argocd admin."),
    "apiserver": ("serving.apiserver:apiserver", "Serve the bare embedded cluster until stopped."),
    "agent": ("fleet.agent:agent", "Run the agents of what was joined here: one for each hub."),
    "ansible": ("ansible.capture:ansible", "Playbooks as machine configs, and on the nodes of a pool."),
    "app": ("app.group:app", "Everything about Applications, with the verbs of argocd."),
    "appset": ("appset.group:appset", "Sets that make the Applications of a fleet, with the verbs of argocd."),
    "butane": ("files.butane:butane", "Translate Butane into Ignition or MachineConfigs, as the butane program does."),
    "backup": ("serving.backup:backup", "Write a cluster's data to a file, while it serves."),
    "cluster": (
        "remotes.cluster:cluster",
        "Destinations of Applications, and clusters that join a hub.",
    ),
    "completion": ("completion:completion", "Print the completion script of a shell."),
    "context": ("remotes.context:context", "List the contexts of the kubeconfig."),
    "controller": ("serving.controller:controller", "Run the GitOps controllers against any cluster."),
    "demo": ("serving.demo:demo", "Show the main job: a Git repository becomes a running cluster."),
    "drift": (
        "rehearse.drift:drift",
        "Compare an operation with the rehearsal of its plan; hold its pools.",
    ),
    "explain": ("explain:explain", "Say in a few lines what blocks an object, down to the cause."),
    "fleet": ("fleet.status:fleet", "Show the clusters of a hub in one table."),
    "health": ("files.health:health", "Say how healthy the objects of a file are, as a sync would judge them."),
    "hub": ("fleet.hub:hub", "Let clusters join this hub."),
    "ignition": ("files.ignition:ignition", "Judge, convert and merge Ignition configurations."),
    "inventory": ("inventory:show_inventory", "List nodes, pools, clusters and Placements in one document, for plays."),
    "join": ("fleet.join:join", "Join this cluster to a hub, and run its agent."),
    "kustomize": ("files.kustomize:kustomize", "Build kustomizations without any binary."),
    "leave": ("fleet.leave:leave", "Leave a hub: clean up on both sides, and forget it."),
    "mc": ("machines.mc:mc", "Show MachineConfigs, render pools, and say what a change does to nodes."),
    "node": ("machines.node:node", "List nodes with their pools, drain them; add and remove simulated ones."),
    "node-agent": ("machines.nodeagent:node_agent", "Bring this machine to the MachineConfig of its node."),
    "pattern": ("pattern.group:pattern", "Validated Patterns: render the values of a cluster group."),
    "placement": ("fleet.placement:placement", "Show which clusters a Placement selects and why; plan changes."),
    "plan": ("plan:plan", "Print what a sync would do, from the function that will do it."),
    "policy": ("fleet.policy:policy", "Show policies of a hub, which clusters comply, and why others do not."),
    "pool": ("machines.pool:pool", "List machine config pools; pause and resume them by Holds."),
    "proj": ("proj.group:proj", "What Applications may read and write, with the verbs of argocd."),
    "record": ("rehearse.record:record", "Record what happens on a cluster, for replay and drift."),
    "report": ("fleet.setreport:report", "Show how the Applications of a set fare in each cluster, and why."),
    "rehearse": (
        "rehearse.command:rehearse_command",
        "Say what a commit would do, in virtual time, before it touches anything.",
    ),
    "render": ("files.render:render", "Print the manifests that a folder stands for, without a cluster."),
    "replay": ("rehearse.replay:replay", "Play a recorded operation with the code of today, and say where it differs."),
    "repocreds": ("remotes.repocreds:repocreds", "List, add and remove credentials that repositories share."),
    "repo": ("remotes.repo:repo", "List, add and remove repositories and their credentials."),
    "restore": ("serving.backup:put_back", "Put a backup into an empty data directory."),
    "rollout": ("fleet.rollout:rollout", "Show and steer the order over clusters: waves, stop, skip, roll back."),
    "server": ("serving.server:server", "Serve argocd's API for a cluster, with its accounts and rights."),
    "snapshot": ("rehearse.snapshot:snapshot", "Write a cluster to a file for rehearsals, without Secrets' values."),
    "test": ("rehearse.testing:test_command", "Play the scenarios that stand beside manifests, in virtual time."),
    "up": ("serving.up:up", "Run the embedded cluster and the GitOps controllers on this machine."),
    "version": ("version:version", "Print the version."),
    "work": ("fleet.work:work", "Show what clusters of a hub get, how it is there, and why it is not."),
}
"""Name → (module:command, one line for ``--help``)."""


class Root(LazyGroup):
    """Runs the program ``syncline-NAME`` on PATH for an unknown NAME, as argocd runs ``argocd-NAME``."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = None if args[0] in COMMANDS or ctx.resilient_parsing else plugin(args[0])
        if found is not None:
            sys.stdout.flush()
            os.execv(found, [found, *args[1:]])
        return super().resolve_command(ctx, args)


def plugin(name: str) -> str | None:
    """Return the path of a plugin, or None. Relative entries of PATH and names with a separator are ignored."""
    if not name or name.startswith("-") or os.sep in name or "\0" in name:
        return None
    folders = [one for one in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(one)]
    return shutil.which(f"syncline-{name}", path=os.pathsep.join(folders)) if folders else None


@click.command(cls=Root, table=COMMANDS, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="syncline")
def cli() -> None:
    """Syncline brings Git to clusters, nodes and fleets in one order.

    It plans, explains what is stuck and why, and runs on a real Kubernetes API or on its own embedded one.

    \b
    Start here:   syncline up            a cluster and the GitOps controllers, on this machine
                  syncline app create …  tie a Git repository to it
                  syncline app sync …    and watch its phases and waves
    \b
    Exit codes:   0 done, 1 failed, 2 usage (plan: there are changes), 3 blocked, 4 unsafe;
                  app, appset, proj, repo, repocreds, cluster as argocd: 20 error, 1 differs or sync failed
    """


def kubectl_plugin() -> int:
    """Entry point of ``kubectl syncline …``: kubectl runs the program ``kubectl-syncline`` on PATH."""
    return main(program="kubectl syncline")


def main(arguments: list[str] | None = None, program: str = "syncline") -> int:
    """Run a command; return the exit code. A refusal prints one line, never a traceback."""
    with clean_output():
        return _run(arguments, program)


def _run(arguments: list[str] | None, program: str) -> int:
    try:
        result: Any = cli.main(args=arguments, prog_name=program, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # here a failure can still be reported
        return result if isinstance(result, int) else 0
    except click.NoSuchOption as error:
        return _unknown_flag(error)
    except click.ClickException as error:
        error.show()
        return 2
    except CommandFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return exit_code(error, _group(arguments))
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _leave_output()
        return 0
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        _leave_output()
        print(f"error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _unknown_flag(error: click.NoSuchOption) -> int:
    """Report an unknown flag: for a flag of argocd, what to use instead; else a usage error."""
    from syncline.cli.frame.refused import refused_flag

    words = [] if error.ctx is None else command_words(error.ctx)
    sentence = refused_flag(words, error.option_name) if not words or words[0] in ARGOCD else ""
    if not sentence:
        error.show()
        return USAGE
    print(f"error: {sentence}", file=sys.stderr)
    return GENERAL


def _group(arguments: list[str] | None) -> str:
    """Return the first word of the command line."""
    words = sys.argv[1:] if arguments is None else arguments
    return next((word for word in words if not word.startswith("-")), "")


def _leave_output() -> None:
    """Discard buffered output, so that the interpreter does not try to write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
