"""The command line: `discrax demo | doctor | samplers | data | solve | train | sample | infill | stochastic | bench`.

Exit codes, of every command:

    0   it is done; of `solve` also where a signal ended the search, since the best so far is a solution
    1   it failed, or was interrupted before its end: a sentence on the error stream says why
    2   the command line cannot be read: an unknown command or option, or a value that is none

What --seed, --out, --json and --quiet mean is in `discrax.voice`. A shell completes commands and options after

    eval "$(discrax completion bash)"        in ~/.bashrc; zsh in the same way, fish by a pipe into `source`
"""

import dis
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from discrax.core.interrupts import Interrupts
from discrax.core.program_cache import keep_programs
from discrax.voice import Voice, silenced

COMMANDS = {  # where each one is, and what it does; "+" has commands of its own
    "demo": ("discrax.demo:demo", "Samples an Ising model with six samplers, prints a table and saves a picture."),
    "doctor": ("discrax.doctor:doctor", "Says what is installed and missing, and tries whether sampling works here."),
    "completion": ("discrax.cli:completion", "Prints what makes a shell complete commands and options."),
    "samplers": ("discrax.cli:samplers", "Lists the samplers there are."),
    "data": ("discrax.data.commands:data", "Lists the data sets: what is there, what is missing, where it can be had."),
    "solve": ("discrax.solving.commands:solve_file", "Solves a problem on a graph from a file."),
    "train": ("discrax.learn.commands:train", "Trains an energy model on images."),
    "sample": ("discrax.learn.commands:sample_model", "Draws from a trained model."),
    "infill": ("discrax.text.commands:infill_sentence", "Fills the [MASK]s of a sentence."),
    "stochastic": ("+", "Samples and searches by mini-batches: `discrax stochastic --help`."),
    "bench": ("+", "Runs the papers' experiments: `discrax bench --help`."),
}
STOCHASTIC = {
    "law": "discrax.solving.stochastic_commands:law",
    "regression": "discrax.solving.stochastic_commands:regression",
    "facilities": "discrax.solving.stochastic_commands:facilities",
    "circuit": "discrax.solving.stochastic_commands:circuit",
    "prompt": "discrax.text.commands:tune_prompt",
}


def main() -> None:
    """Runs the command of `sys.argv`; ends with a sentence and exit code 1 where it cannot, or was interrupted."""
    hook = sys.unraisablehook
    # A signal that falls into a callback of the garbage collector, such as JAX's, can be raised to nobody.
    sys.unraisablehook = lambda lost: None if isinstance(lost.exc_value, KeyboardInterrupt) else hook(lost)
    keep_programs()
    try:
        with Interrupts(raises=True), silenced("--quiet" in sys.argv):
            run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("discrax: interrupted.")
    except Exception as error:
        said = sentence(error)
        if said is None:  # nobody foresaw it: where it was raised is what helps
            raise
        sys.exit(f"discrax: {said}")
    finally:
        sys.unraisablehook = hook


def run(arguments: list[str]) -> None:
    """Runs the command that the arguments name."""
    if arguments == ["--version"]:
        from discrax import __version__

        print(f"discrax {__version__}")
        return
    try:
        import tyro
    except ImportError as error:
        if arguments[:1] == ["doctor"]:  # who is to say what is missing
            _load("discrax.doctor:doctor")(Voice(json="--json" in arguments, quiet="--quiet" in arguments))
            return
        raise ImportError("The command line needs its extra: pip install 'discrax[cli]'.") from error
    plain = (tyro.conf.OmitArgPrefixes,)  # --out, though it is a field of a group of options
    subcommands = tyro.extras.subcommand_cli_from_dict
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if name == "bench":
        _load("discrax.bench.commands:main")(rest or ["--help"])
    elif name == "stochastic":
        applications = {each: _load(place) for each, place in STOCHASTIC.items()}
        subcommands(applications, prog="discrax stochastic", args=rest or ["--help"], config=plain)
    elif name in COMMANDS:
        tyro.cli(_load(COMMANDS[name][0]), prog=f"discrax {name}", args=rest, config=plain)
    else:  # help, or a mistake
        subcommands({each: _stub(about) for each, (_, about) in COMMANDS.items()}, prog="discrax", args=arguments)


def _load(place: str) -> Callable[..., None]:
    """The function at a place such as "discrax.demo:demo"."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _stub(about: str) -> Callable[[], None]:
    """A command for the list of commands: a function that nobody calls, with a docstring."""

    def command() -> None: ...

    command.__doc__ = about
    return command


def samplers(voice: Voice = Voice()) -> None:  # noqa: B008
    """Lists the samplers there are.

    Args:
        voice: What is printed.
    """
    from discrax.samplers import REGISTRY

    found = [
        {
            "name": row.name,
            "about": row.about,
            "spaces": [space.__name__ for space in row.spaces],
            "takes_balancing": row.takes_balancing,
        }
        for row in REGISTRY.values()
    ]
    voice.give(found)
    rows = [(*row, ", ".join(spaces), "yes" if takes else "") for *row, spaces, takes in map(dict.values, found)]
    voice.show(("name", "what it is", "spaces", "weight functions"), rows)


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Prints what makes a shell complete commands and options: eval "$(discrax completion bash)" in ~/.bashrc.

    Args:
        shell: Whose.
    """
    from tyro.conf import OmitArgPrefixes
    from tyro.extras import SubcommandApp

    # All commands in one tree: the only time that all of them are loaded.
    tree = SubcommandApp()
    houses: dict[str, Any] = {"stochastic": STOCHASTIC, "bench": _load("discrax.bench.commands:commands")()}
    for name, (place, _) in COMMANDS.items():
        if name in houses:
            inner = SubcommandApp()
            for each, command in houses[name].items():
                made = _load(command) if isinstance(command, str) else command
                inner.command(made, name=each)  # ty: ignore[no-matching-overload]
            tree.command(inner, name=name)
        else:
            tree.command(_load(place), name=name)  # ty: ignore[no-matching-overload]
    tree.cli(prog="discrax", args=["--tyro-print-completion", shell], config=(OmitArgPrefixes,))


def sentence(error: Exception) -> str | None:
    """What an error says to a user, or None where it is a fault of the program and not of what it was given."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory: {error or 'more was asked for than there is'}."
    if isinstance(error, ValueError | TypeError | ImportError | OSError) and _is_raised_here(error):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename or 'a file'}: {error.strerror.lower()}."
    if "RESOURCE_EXHAUSTED" in str(error):  # of XLA
        return f"there is not enough memory on the device: {str(error).splitlines()[0]}"
    return None


def _is_raised_here(error: BaseException) -> bool:
    """Whether a `raise` of this package made it; what others raise is no sentence for users."""
    *_, (frame, last) = ((tb.tb_frame, tb.tb_lasti) for tb in _tracebacks(error))
    code = frame.f_code
    is_ours = Path(code.co_filename).is_relative_to(Path(__file__).parent)
    return is_ours and code.co_code[last] == dis.opmap["RAISE_VARARGS"]


def _tracebacks(error: BaseException) -> Iterator[TracebackType]:
    tb = error.__traceback__
    while tb is not None:
        yield tb
        tb = tb.tb_next
