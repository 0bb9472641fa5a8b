"""The program `escala`: its verbs, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from difflib import get_close_matches
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated

import typer

from escala.cli import elsewhere, terminal
from escala.cli.interrupt import INTERRUPTED, TERMINATED, Stopped, ended, listen_for_termination, lost, work_is_over
from escala.cli.verbs import HELP, Verbs
from escala.errors import EscalaError
from escala.extras import missing
from escala.reading import READ, is_full
from escala.writing import left

if TYPE_CHECKING:
    from escala.engines.again import Share

OK, FAILED, REFUSED = 0, 1, 2

app = typer.Typer(
    name="escala",
    cls=Verbs,
    help="Learn scheduling and power policies for batch clusters: replay a job log exactly, compare policies, train "
    "one, judge it on days it has not seen.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import escala

        sys.stdout.write(f"escala {escala.__version__}\n")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="show the version and end")
    ] = False,
) -> None:
    pass


def _usage(error: Exception) -> str:
    """The message of an error of usage, with the near names of options and the way to the help."""
    message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    wrong = getattr(error, "option_name", None)
    if wrong is not None:
        message = message.partition(" (Possible options")[0]
        known = [name for parameter in context.command.get_params(context) for name in parameter.opts]
        near = get_close_matches(wrong, known, n=2)
        message += f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{message.rstrip('?')}{'?' if message.endswith('?') else ''} (see {context.command_path} --help)"


def _of_system(error: Exception) -> str:
    """What the system says of a file or a disk."""
    named = getattr(error, "filename", None)
    where = f"{named}: " if named else ""
    if is_full(error):
        return f"{where}no space left on device: make room on that disk{'' if named else f' (of {gettempdir()}, too)'}"
    return f"{where}{(getattr(error, 'strerror', None) or str(error)).lower()}"


def act(arguments: list[str], share: Share | None = None) -> int:
    """Do what the arguments say; returns the exit status. What fails after a signal that was lost ends as the signal
    does. share: of the command, in a task that does some of its pieces (`escala.engines.again.Share`)."""
    elsewhere.begin(arguments if share is None else share)
    try:
        status = app(arguments, prog_name="escala", standalone_mode=False)
    except Exception:
        if (stopped := lost()) is None:
            raise
        raise stopped from None
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    return status if isinstance(status, int) else OK


def run(arguments: list[str]) -> int:
    """Run the program on its arguments; returns the exit status. Bad input and bad usage are one line on stderr."""
    left.watch()
    READ.clear()  # of an earlier run in this process
    if arguments[:1] == [HELP]:
        arguments = [*arguments[1:], "--help"]
    try:
        with terminal.remarking():
            return act(arguments)
    except EscalaError as error:
        terminal.fail(str(error))
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        terminal.fail(_of_system(error))
    except (KeyboardInterrupt, typer.Abort):
        terminal.fail(ended(INTERRUPTED))
        return INTERRUPTED
    except Stopped as stopped:
        terminal.fail(stopped.message or ended(stopped.status))
        return stopped.status
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and missing(error):
            terminal.fail(str(missing(error)))
            return REFUSED
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stdout.write(f"{error.ctx.get_help()}\n")  # type: ignore[attr-defined]
            return OK
        if hasattr(error, "format_message") or is_full(error):
            terminal.fail(_of_system(error) if is_full(error) else _usage(error))
            return REFUSED
        if os.environ.get("ESCALA_TRACEBACK"):
            traceback.print_exc()
        first = next(iter(str(error).splitlines()), "")
        terminal.fail(
            f"{type(error).__name__}: {first} (a fault of Escala, please report it; ESCALA_TRACEBACK=1 shows where)"
        )
        return FAILED
    return REFUSED


UNTRACKED = "ignore:resource_tracker:UserWarning"
"""What Python's helper would print, beside the one line, where Ctrl-C ends a verb that works in processes; it tidies up
all the same."""


def main() -> None:
    """Run on `sys.argv` and end the process."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # closed by whoever called us: nobody wants to read it
    if sys.stdout is None:
        terminal.fail("standard output is closed: send it somewhere, such as > /dev/null")
        sys.exit(REFUSED)
    listen_for_termination()
    sys.warnoptions.append(UNTRACKED)  # of the processes that this one starts
    status = run(sys.argv[1:])
    work_is_over()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = status or FAILED
    sys.stderr.flush()
    if threading.active_count() > 1 and status in (INTERRUPTED, TERMINATED):
        os._exit(status)  # abandoned compiled work would be waited for otherwise
    sys.exit(status)
