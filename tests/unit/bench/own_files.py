"""A suite, kernels and targets as users write them into files of their own."""

SUITE = """
from discrax.bench.plan.cell import Budget, Cell, call
from discrax.bench.plan.suite import figure, suite


@suite("small/lattice", "two samplers on two lattices", figure("Jump distance", "bars", metric="EJD"))
def cells(size):
    for side in (2, 3):
        for name in ("RWM", "PAS"):
            yield Cell(
                labels=(("task", "ising"), ("side", str(side)), ("sampler", name)),
                target=call("discrax.bench.papers.discs.targets:tempered_grid", side=side, beta=0.2),
                sampler=call(f"discrax.samplers:{name.lower()}"),
                budget=Budget(4, 40, 30 * side),
                init=call("discrax.bench.papers.discs.targets:all_up"),
            )
"""
OWN = """
import jax.numpy as jnp
import discrax as dx
from discrax.extend import decide, log_prob, random, scalar_info, select, temper


class FirstAxis(dx.Kernel):
    def init(self, target, x):
        return dx.State(x, log_prob(target, x), ())

    def step(self, key, target, state):
        for_site, for_decision = random.split(key, 2)
        site = random.integers(for_site, 1, target.space.num_sites)[0]
        y = state.x.at[site].set(1 - state.x[site])
        there = dx.State(y, log_prob(target, y), ())
        decision = decide(for_decision, temper(target, there.log_prob - state.log_prob))
        jump = decision.is_accepted.astype(jnp.float32)
        info = scalar_info(decision.accept_prob, decision.is_accepted, jump, 1, decision.is_invalid)
        return select(decision.is_accepted, there, state), info


class Uncounted(dx.samplers.rwm):
    def step(self, key, target, state):
        state, info = super().step(key, target, state)
        return state, info._replace(evals=0 * info.evals)


class RWM(dx.samplers.rwm):
    pass


class Near(dx.samplers.rwm):
    is_exact = False


class Biased(dx.samplers.rwm):
    def step(self, key, target, state):
        return super().step(key, dx.Tempered(target, 0.5), state)


def grid():
    return dx.targets.Ising.lattice((2, 2), 0.1)


def nothing():
    pass


def needs(side):
    return dx.targets.Ising.lattice((side, side), 0.1)
"""
