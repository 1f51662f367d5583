"""The command line: `discrax demo | samplers | solve | train | sample | infill | stochastic | bench`."""

import sys
from pathlib import Path


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
        import tyro
    except ImportError:
        sys.exit("The command line needs its extra: pip install 'discrax[cli]'.")
    try:
        if sys.argv[1:2] == ["bench"]:
            from discrax.bench.commands import main as bench_main

            bench_main(sys.argv[2:] or ["--help"])
            return
        if sys.argv[1:2] == ["solve"]:
            from discrax.solving.commands import solve_file

            tyro.cli(solve_file, prog="discrax solve", args=sys.argv[2:])
            return
        if sys.argv[1:2] == ["train"]:
            from discrax.learn.commands import train as train_model

            tyro.cli(train_model, prog="discrax train", args=sys.argv[2:])
            return
        if sys.argv[1:2] == ["sample"]:
            from discrax.learn.commands import sample_model

            tyro.cli(sample_model, prog="discrax sample", args=sys.argv[2:])
            return
        if sys.argv[1:2] == ["infill"]:
            from discrax.text.commands import infill_sentence

            tyro.cli(infill_sentence, prog="discrax infill", args=sys.argv[2:])
            return
        if sys.argv[1:2] == ["stochastic"]:
            from discrax.solving import stochastic_commands as by_batches
            from discrax.text.prompts import tune_prompt

            applications = {
                "law": by_batches.law,
                "regression": by_batches.regression,
                "facilities": by_batches.facilities,
                "circuit": by_batches.circuit,
                "prompt": tune_prompt,
            }
            tyro.extras.subcommand_cli_from_dict(
                applications, prog="discrax stochastic", args=sys.argv[2:] or ["--help"]
            )
            return
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
        tyro.extras.subcommand_cli_from_dict(commands, prog="discrax")
    except (ValueError, ImportError, ConnectionError) as error:
        sys.exit(f"discrax: {error}")
    except KeyboardInterrupt:
        sys.exit("discrax: interrupted.")
