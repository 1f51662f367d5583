"""The command line: `discrax demo | samplers | data | solve | train | sample | infill | stochastic | bench`."""

import dis
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import TracebackType

from discrax.core.interrupts import Interrupts
from discrax.core.program_cache import keep_programs

COMMANDS = {  # where each one is, and what it does; "+" has commands of its own
    "demo": ("discrax.demo:demo", "Samples an Ising model with every sampler, prints a table and saves a picture."),
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
        with Interrupts(raises=True):
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
        raise ImportError("The command line needs its extra: pip install 'discrax[cli]'.") from error
    subcommands = tyro.extras.subcommand_cli_from_dict
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if name == "bench":
        _load("discrax.bench.commands:main")(rest or ["--help"])
    elif name == "stochastic":
        applications = {each: _load(place) for each, place in STOCHASTIC.items()}
        subcommands(applications, prog="discrax stochastic", args=rest or ["--help"])
    elif name in COMMANDS:
        options_as_they_are = (tyro.conf.OmitArgPrefixes,)  # --out, though it is a field of a group of options
        tyro.cli(_load(COMMANDS[name][0]), prog=f"discrax {name}", args=rest, config=options_as_they_are)
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


def samplers() -> None:
    """Lists the samplers there are."""
    from rich.console import Console
    from rich.table import Table

    from discrax.samplers import REGISTRY

    table = Table("name", "what it is", "spaces", "weight functions")
    for row in REGISTRY.values():
        spaces = ", ".join(space.__name__ for space in row.spaces)
        table.add_row(row.name, row.about, spaces, "yes" if row.takes_balancing else "")
    Console().print(table)


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
