"""A new sampler in the benchmark: a kernel of one's own is proved and then run beside PAS on a task of a paper."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jax.numpy as jnp

import discrax as dx
from discrax.extend import decide, log_prob, random, scalar_info, select, temper


class FlipOne(dx.Kernel):
    spaces = (dx.Binary, dx.Spin)

    def init(self, target, x):
        return dx.State(x, log_prob(target, x), ())

    def step(self, key, target, state):
        for_site, for_decision = random.split(key, 2)
        site = target.space.free_site(random.integers(for_site, 1, target.space.num_free)[0])
        x = state.x.reshape(-1)
        y = x.at[site].set(1 - x[site]).reshape(state.x.shape)
        there = dx.State(y, log_prob(target, y), ())
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob))
        jump = decision.is_accepted.astype(jnp.float32)
        info = scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)
        return select(decision.is_accepted, there, state), info


def discrax(*words):
    subprocess.run([Path(sys.executable).with_name("discrax"), *map(str, words)], check=True)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        run, table = Path(folder) / "run", Path(folder) / "rows.csv"
        asked = ["--quick", "--sampler", f"{__file__}:FlipOne", "--only", "pas", "sites=625"]
        discrax("bench", "run", "discs/ising", *asked, "--set", "steps=500", "chains=4", "warmup=200", "--out", run)
        discrax("bench", "export", run, table)
        rows = list(csv.DictReader(table.open()))
        assert (run / "report.html").exists()
    jumps = {json.loads(row["labels"])["sampler"]: float(row["value"]) for row in rows if row["metric"] == "EJD"}
    print(jumps)
    assert set(jumps) == {"PAS", "FlipOne"}
    assert 0 < jumps["FlipOne"] <= 1 < jumps["PAS"]
