"""The command line: `discrax demo | samplers | solve | train | sample | infill | stochastic | bench`."""

import dis
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from discrax.core.interrupts import Interrupts


def demo(
    side: int = 16,
    coupling: float = 0.3,
    num_chains: int = 16,
    num_warmup: int = 300,
    num_samples: int = 700,
    seed: int = 0,
    out: Path = Path("demo"),
) -> None:
    """Samples an Ising model with every sampler, prints a table and saves a picture.

    Args:
        side: The lattice has side x side spins.
        coupling: The strength of the bonds; 0.4407 is critical.
        num_chains: Chains per sampler.
        num_warmup: Steps of warm-up.
        num_samples: Draws per chain.
        seed: Of the random numbers.
        out: The folder for the picture.
    """
    from discrax.demo import run

    run(side, coupling, num_chains, num_warmup, num_samples, seed, out)


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


def solve() -> None:
    """Solves a problem on a graph from a file: `discrax solve --help`."""
    sys.exit("Say what to solve: discrax solve mis | clique | maxcut | partition | qubo FILE.")


def train() -> None:
    """Trains an energy model on images: `discrax train --help`."""


def sample() -> None:
    """Draws from a trained model: `discrax sample --help`."""


def infill() -> None:
    """Fills the [MASK]s of a sentence: `discrax infill --help`."""


def stochastic() -> None:
    """Samples and searches by mini-batches: `discrax stochastic --help`."""


def bench() -> None:
    """Runs the papers' experiments: `discrax bench --help`."""
    sys.exit("Say what to do: discrax bench list | run | report | compare.")


def main() -> None:
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


def run(arguments: list[str]) -> None:
    """Runs the command that the arguments name."""
    try:
        import tyro
    except ImportError as error:
        raise ImportError("The command line needs its extra: pip install 'discrax[cli]'.") from error
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if name == "bench":
        from discrax.bench.commands import main as bench_main

        bench_main(rest or ["--help"])
    elif name == "solve":
        from discrax.solving.commands import solve_file

        tyro.cli(solve_file, prog="discrax solve", args=rest)
    elif name == "train":
        from discrax.learn.commands import train as train_model

        tyro.cli(train_model, prog="discrax train", args=rest)
    elif name == "sample":
        from discrax.learn.commands import sample_model

        tyro.cli(sample_model, prog="discrax sample", args=rest)
    elif name == "infill":
        from discrax.text.commands import infill_sentence

        tyro.cli(infill_sentence, prog="discrax infill", args=rest)
    elif name == "stochastic":
        from discrax.solving import stochastic_commands as by_batches
        from discrax.text.prompts import tune_prompt

        applications = {
            "law": by_batches.law,
            "regression": by_batches.regression,
            "facilities": by_batches.facilities,
            "circuit": by_batches.circuit,
            "prompt": tune_prompt,
        }
        tyro.extras.subcommand_cli_from_dict(applications, prog="discrax stochastic", args=rest or ["--help"])
    else:
        commands = {
            "demo": demo,
            "samplers": samplers,
            "solve": solve,
            "train": train,
            "sample": sample,
            "infill": infill,
            "stochastic": stochastic,
            "bench": bench,
        }
        tyro.extras.subcommand_cli_from_dict(commands, prog="discrax", args=arguments)


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
