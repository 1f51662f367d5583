"""How many steps warm-up needs: both rules, every tunable sampler, from a path of one site (and from a bad start).

`python benchmarks/adaptation.py [--out docs/adaptation.png]` prints the acceptance around step 300 and saves a picture.
"""

import argparse
from pathlib import Path

import jax
import numpy as np

import discrax as dx
from discrax.bench.papers.rules import PaperRate
from discrax.core.kernel import rated_knob
from step_cost import tasks

STEPS, AROUND = 400, slice(280, 320)
RULES = {"robust": dx.AcceptanceRate(), "paper": PaperRate()}


def rates(target: dx.Target, kernel: dx.Kernel, rule: str) -> np.ndarray:
    """The mean acceptance probability of 100 chains at each step of warm-up."""
    result = dx.sample(
        jax.random.key(0), target, kernel, num_chains=100, num_warmup=STEPS, num_samples=1, keep="moments",
        adaptation=RULES[rule], progress=False,
    )  # fmt: skip
    return result.warmup_stats["accept_prob"].mean(axis=0)


def steps_until(curve: np.ndarray, rate: float, within: float = 0.03, window: int = 20) -> str:
    """The first step from which the mean over a window stays within 0.03 of the rate."""
    means = np.convolve(curve, np.ones(window) / window, mode="valid")
    outside = np.flatnonzero(np.abs(means - rate) > within)
    first = 0 if not outside.size else int(outside[-1]) + 1
    return str(first) if first < len(means) else f"> {len(curve)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/adaptation.png"))
    out = parser.parse_args().out
    starts = {
        "rwm": dx.samplers.rwm(),
        "gwg": dx.samplers.gwg(),
        "pas": dx.samplers.pas(),
        "dmala": dx.samplers.dmala(),
        "pas from 500": dx.samplers.pas(path_length=500.0),
    }
    print(f"{'task':15} {'sampler':13} {'rule':7} {'rate asked':>10} {'steps 280-320':>14} {'steps needed':>13}")
    curves = {}
    for task, target in tasks().items():
        for name, kernel in starts.items():
            for rule in RULES:
                if name == "dmala" and rule == "paper":
                    continue  # the paper's rule is for path lengths
                curve = curves[task, name, rule] = rates(target, kernel, rule)
                rate = rated_knob(kernel, target)[1].rate or 0.0  # ty: ignore[not-subscriptable]
                needed = steps_until(curve, rate)
                print(
                    f"{task:15} {name:13} {rule:7} {rate:10.3f} {curve[AROUND].mean():14.3f} {needed:>13}", flush=True
                )

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
    for axes, name in zip(panels, ("pas", "pas from 500"), strict=True):
        for rule, colour in (("robust", "C0"), ("paper", "C1")):
            axes.plot(curves["Ising 50x50", name, rule], colour, label=f"{rule} rule")
        axes.axhline(0.574, color="black", linewidth=0.8, linestyle="--")
        start = "1" if name == "pas" else "500"
        axes.set(title=f"PAS on Ising 50x50, path length starts at {start}", xlabel="step of warm-up")
    panels[0].set_ylabel("acceptance, mean of 100 chains")
    panels[0].legend()
    figure.savefig(out, dpi=130)
    print(f"saved {out}")


if __name__ == "__main__":
    main()
