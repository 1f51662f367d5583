"""What an update of the ResNet energy model costs, and what it is spent on.

An update with K sampler steps evaluates the network K + 1 times at `batch_size` states with the gradient by the states
(once where the chains start, once at each proposal), and once at 2 `batch_size` states with the gradient by the
parameters. Each of these is timed alone, in a loop on the device like the update itself, and set against the update.

    python benchmarks/training_step.py                      # as in the papers: 28x28, 64 channels, 8 blocks, batch 100
    python benchmarks/training_step.py --width 16 --batch 20 --steps 5     # a minute on a laptop
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from discrax.core.target import evaluate
from discrax.learn.models import resnet, trained_parts
from discrax.learn.training import pcd


def seconds(function, *arguments, repeats: int = 5) -> float:
    """The median time of a compiled, finished call."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def pass_seconds(model, x, count: int, repeats: int) -> float:
    """One value and gradient by the states, of `count` in a loop; each depends on the one before."""

    @eqx.filter_jit
    def passes(model, x):
        def one(x, _):
            ratios = jax.vmap(lambda x: evaluate(model, x).ratios)(x)
            return jnp.where(ratios > jnp.max(ratios), 1 - x, x), None

        return jax.lax.scan(one, x, None, length=count)[0]

    return seconds(passes, model, x, repeats=repeats) / count


def parameter_seconds(model, x, count: int, repeats: int) -> float:
    """One gradient by the parameters at all states, of `count` in a loop."""
    parameters, constants = eqx.partition(model, trained_parts(model))

    @jax.jit
    def gradients(parameters, x):
        def one(parameters, _):
            def loss(parameters):
                model = eqx.combine(parameters, constants)
                return jnp.mean(jax.vmap(lambda x: model.log_prob(model.space.embed(x)))(x))

            gradient = jax.grad(loss)(parameters)
            return jax.tree.map(lambda p, g: p - 1e-12 * g, parameters, gradient), None

        return jax.lax.scan(one, parameters, None, length=count)[0]

    return seconds(gradients, parameters, x, repeats=repeats) / count


def update_seconds(model, data, sampler: str, batch: int, steps: int, count: int) -> float:
    """One update, from reports of `count` updates each; the first ones compile and tune."""
    trained = pcd(
        jax.random.key(0), model, data, sampler=sampler, num_steps=steps, num_updates=6 * count, batch_size=batch,
        buffer_size=10 * batch, optimiser=optax.adam(1e-4), every=count, progress=False,
    )  # fmt: skip
    spent = np.diff(trained.curves["seconds"])
    return float(np.median(spent[1:])) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"side": 28, "width": 64, "blocks": 8, "batch": 100, "steps": 20, "count": 20}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--sampler", default="pas")
    given = parser.parse_args()
    shape = (given.side, given.side)
    rng = np.random.default_rng(0)
    data = (rng.random((20 * given.batch, *shape)) < 0.2).astype(np.int8)
    model = resnet(jax.random.key(0), shape, width=given.width, num_blocks=given.blocks, frequencies=data.mean(axis=0))
    repeats = 5
    one_pass = pass_seconds(model, jnp.asarray(data[: given.batch]), given.steps + 1, repeats)
    by_parameters = parameter_seconds(model, jnp.asarray(data[: 2 * given.batch]), given.count, repeats)
    update = update_seconds(model, data, given.sampler, given.batch, given.steps, given.count)
    passes, rest = (given.steps + 1) * one_pass, update - (given.steps + 1) * one_pass - by_parameters
    print(f"{jax.devices()[0].device_kind}, {given.side}x{given.side}, {given.width} channels, batch {given.batch}")
    print(f"one pass (value and gradient by {given.batch} states)      {1e3 * one_pass:9.3f} ms")
    print(f"{given.steps + 1} passes: the start and {given.steps} proposals of {given.sampler}  {1e3 * passes:9.3f} ms")
    print(f"gradient by the parameters at {2 * given.batch} states           {1e3 * by_parameters:9.3f} ms")
    print(f"the rest: choosing sites, accepting, Adam, the buffer   {1e3 * rest:9.3f} ms")
    print(f"an update                                               {1e3 * update:9.3f} ms")
    print(f"an update / {given.steps + 1} passes                                 {update / passes:9.3f}")


if __name__ == "__main__":
    main()
