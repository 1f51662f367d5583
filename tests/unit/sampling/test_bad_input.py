"""Bad input: one sentence, before sampling is compiled, with what was expected and what came.

Runtime type checks are off here, as they are for users: what is tested is what they would read.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import discrax
from discrax import AcceptanceRate, Binary, Categorical, Ordinal, Target, samplers, targets
from discrax.bench.papers.rules import PaperRate
from discrax.sampling.together import sample_together
from discrax.targets import Quadratic, Uncoupled

pytestmark = pytest.mark.usefixtures("as_a_user")

KEY = jax.random.key(0)
TARGET = targets.Bernoulli(np.full(4, 0.4))


@pytest.fixture(autouse=True)
def nothing_is_sampled(monkeypatch, run_module):
    """The error must come before the sampler is compiled, let alone run."""

    def drive(*_, **__):
        pytest.fail("sampling began")

    monkeypatch.setattr(run_module, "drive", drive)


def says(build, *parts: str, error=ValueError) -> None:
    """`build` raises one readable line that holds all the parts."""
    with pytest.raises(error) as caught:
        build()
    assert type(caught.value) is error  # not a subclass from elsewhere, such as a Unicode or linear-algebra error
    message = str(caught.value)
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"
    assert "\n" not in message
    assert len(message) < 500
    assert message.endswith("."), message


def by_name(table: dict):
    """Runs a test for every `name: (build, parts)` of a table."""
    return pytest.mark.parametrize(("build", "parts"), list(table.values()), ids=list(table))


def sample(target=TARGET, sampler="rwm", **settings):
    return discrax.sample(KEY, target, sampler, **{"num_chains": 3, "num_warmup": 0, "num_samples": 5} | settings)


def function(log_prob, space=None):
    return Target.from_log_prob(log_prob, Binary(4) if space is None else space)


# --- where chains start ---


@pytest.mark.parametrize(
    ("init", "parts"),
    [
        (np.zeros(5, int), ["(4,)", "(5,)"]),
        (np.zeros((2, 4), int), ["(4,)", "(3, 4)", "(2, 4)"]),
        (np.zeros((1, 3, 4), int), ["(4,)", "(3, 4)", "(1, 3, 4)"]),
        (np.array([0, 1, 2, 0]), ["0..1", "the state holds 2"]),
        (np.array([0, 1, -1, 0]), ["0..1", "the state holds -1"]),
        (np.zeros(4), ["integer codes 0..1", "float64", "not the values"]),
        (np.zeros((3, 4), bool), ["integer codes 0..1", "bool"]),
    ],
    ids=["sites", "chains", "rank", "above", "below", "float", "bool"],
)
def test_states(init, parts):
    says(lambda: sample(init=init), *parts)


def test_frozen_sites_of_a_start():
    space = Binary(4, frozen=np.array([True, False, False, True]), frozen_codes=np.array([1, 0, 0, 1]))
    target = Quadratic(space, Uncoupled((4,)))
    says(lambda: sample(target, init=np.zeros(4, int)), "2 frozen sites", "differ from the space's frozen codes")


# --- log-probabilities ---


def fails(e):
    return e @ jnp.ones(5)


@pytest.mark.parametrize(
    ("log_prob", "parts"),
    [
        (lambda e: e, ["must return a scalar", "(4,)", "it returns shape (4,)"]),
        (lambda e: e.sum(keepdims=True), ["must return a scalar", "it returns shape (1,)"]),
        (lambda e: (e.sum(), 1.0), ["must return a scalar", "tuple"]),
        (lambda e: e.sum().astype(jnp.int32), ["must return a float", "it returns int32"]),
        (lambda e: None, ["must return a scalar", "NoneType"]),
        (fails, ["log_prob cannot be evaluated", "shape (4,) of a Binary space", "TypeError"]),
    ],
    ids=["vector", "one-element", "tuple", "integer", "none", "raises"],
)
def test_log_probabilities(log_prob, parts):
    says(lambda: sample(function(log_prob)), *parts)


@pytest.mark.parametrize(
    ("log_prob", "value"),
    [
        (lambda e: jnp.log(e.sum() - 10), "nan"),
        (lambda e: e.sum() + jnp.inf, "inf"),
    ],
    ids=["nan", "inf"],
)
def test_log_probabilities_at_the_start(log_prob, value):
    says(
        lambda: sample(function(log_prob)), "must be finite where a chain starts", f"it is {value} for 3 of 3", "`init`"
    )


def test_only_the_bad_chains_are_counted():
    def log_prob(e):
        return jnp.where(e.sum() > 3.5, -jnp.inf, 0.0)

    init = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 1]])
    says(lambda: sample(function(log_prob), init=init), "-inf for 1 of 3 chains", "the first is chain 1")


def by_callback(e):
    return jax.pure_callback(lambda v: np.float32(v.sum()), jax.ShapeDtypeStruct((), jnp.float32), e)


def by_while_loop(e):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + e.sum()), (0, 0.0))[1]


def by_integers(e):
    return 0.3 * jnp.sum(e.astype(jnp.int32)).astype(jnp.float32)


@pytest.mark.parametrize("sampler", ["pas", "dmala"])
@pytest.mark.parametrize("log_prob", [by_callback, by_while_loop, by_integers], ids=lambda f: f.__name__)
def test_gradient_samplers_need_a_gradient(log_prob, sampler):
    kernel = type(samplers.build_kernel(sampler, TARGET)).__name__
    says(lambda: sample(function(log_prob), sampler), kernel, "gradient", "'rwm' or 'gibbs'")


@pytest.mark.parametrize(
    "log_prob",
    [lambda e: jnp.sum(jnp.where(e > 0, jnp.log(e), 0.0)), lambda e: jnp.sum(jnp.sqrt(e))],
    ids=["nan", "inf"],
)
def test_gradients_at_the_start(log_prob):
    """A gradient of +inf is as useless as NaN: every proposal is then rejected."""
    says(
        lambda: sample(function(log_prob), "dmala", init=np.zeros(4, int)),
        "gradient of log_prob",
        "where a chain starts",
    )


# --- counts ---


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("num_chains", 0, 1),
        ("num_warmup", -1, 0),
        ("num_samples", 0, 1),
        ("num_samples", -3, 1),
        ("thinning", 0, 1),
        ("chunk_size", 0, 1),
    ],
)
def test_counts_are_large_enough(name, value, least):
    says(lambda: sample(**{name: value}), f"{name} must be at least {least}, but got {value}")


@pytest.mark.parametrize("name", ["num_chains", "num_warmup", "num_samples", "thinning", "chunk_size"])
@pytest.mark.parametrize("value", [2.0, "3", True], ids=["float", "text", "bool"])
def test_counts_are_whole_numbers(name, value):
    says(lambda: sample(**{name: value}), f"{name} must be a whole number, but got {value!r}", error=TypeError)


def test_numpy_integers_are_whole_numbers(monkeypatch, run_module):
    monkeypatch.setattr(run_module, "drive", lambda *_, **__: iter(()))
    assert sample(num_chains=np.int64(2)).num_chains == 2


# --- samplers ---


UNKNOWN = {
    "sampler": (
        lambda: sample(sampler="pass"),
        ["Unknown sampler 'pass'", "Did you mean 'pas'", "Known: ab_diagonal, ab_first, ab_max"],
    ),
    "capitals": (lambda: sample(sampler="DMALA"), ["Unknown sampler 'DMALA'", "dmala"]),
    "weight": (
        lambda: samplers.pas(balancing="sqr"),
        ["Unknown weight function 'sqr'", "Did you mean 'sqrt'", "Known: max, min"],
    ),
    "unlike-any": (
        lambda: samplers.dmala(balancing="barker"),
        ["Unknown weight function 'barker'", "Known: max, min, power, ratio, sqrt"],
    ),
    "scan": (
        lambda: samplers.gibbs("chromtic"),
        ["Unknown scan 'chromtic'", "Did you mean 'chromatic'", "Known: chromatic, elimination, layers, random"],
    ),
}


@by_name(UNKNOWN)
def test_unknown_names(build, parts):
    says(build, *parts)


def test_samplers_of_the_wrong_type():
    says(lambda: sample(sampler=3), "A sampler is a name", "rwm, mh_uniform, gibbs", "but got int", error=TypeError)


def test_a_sampler_that_was_not_built():
    """`samplers.pas` instead of `samplers.pas()`: the message should name it, not its metaclass."""
    says(
        lambda: sample(sampler=samplers.pas),
        "A sampler is a name",
        "samplers.pas()",
        "but got the class",
        error=TypeError,
    )


def test_a_weight_function_of_the_wrong_type():
    says(lambda: samplers.pas(balancing=3), "weight function", "3", error=TypeError)


def test_a_sampler_that_the_target_cannot_take():
    says(
        lambda: sample(function(jnp.sum), samplers.gibbs("chromatic")),
        "ChromaticGibbs needs a colouring of the sites",
        "FunctionTarget does not offer",
        "use another sampler",
    )


def test_a_sampler_for_other_spaces(monkeypatch):
    monkeypatch.setattr(type(samplers.gibbs()), "spaces", (Ordinal, Categorical))
    says(lambda: sample(sampler="gibbs"), "Gibbs takes Ordinal or Categorical spaces, but the target's is Binary")


@pytest.mark.parametrize("build", [samplers.rwm, samplers.gwg, samplers.pas], ids=["rwm", "gwg", "pas"])
@pytest.mark.parametrize("length", [0, 0.5, -3, np.nan, np.inf])
def test_path_lengths(build, length):
    says(lambda: build(length), "path_length must be ", f"{length}")


@pytest.mark.parametrize("step_size", [0, -1, np.nan, np.inf])
def test_step_sizes(step_size):
    says(lambda: samplers.dmala(step_size), "step_size must be ", f"{step_size}")


# --- the other arguments of sample ---


@pytest.mark.parametrize("keep", ["drawz", 3, None], ids=repr)
def test_what_to_keep(keep):
    says(lambda: sample(keep=keep), f"keep is 'draws', 'moments' or a function of the codes, but got {keep!r}")


@pytest.fixture
def nothing_is_started(monkeypatch, run_module):
    """The error must come before the first states are evaluated, which takes a program too, and before a pilot."""
    monkeypatch.setattr(run_module, "start", lambda *_: pytest.fail("chains were started"))


@pytest.mark.usefixtures("nothing_is_started")
@pytest.mark.parametrize("sampler", ["pas", "auto"])
@pytest.mark.parametrize("adaptation", ["always", 0.5, True], ids=repr)
def test_adaptation(adaptation, sampler):
    says(
        lambda: sample(sampler=sampler, adaptation=adaptation, num_warmup=10),
        "adaptation must be 'auto', None, or one or more rules",
        f"but got {adaptation!r}",
        error=TypeError,
    )


def test_adaptation_is_checked_without_warm_up_too():
    """A typing mistake must not pass because it happens to have no effect."""
    says(lambda: sample(sampler="pas", adaptation="always", num_warmup=0), "adaptation must be 'auto'", error=TypeError)


@pytest.mark.usefixtures("nothing_is_started")
def test_adaptation_of_a_kernel_without_a_scale():
    says(
        lambda: sample(sampler="gibbs", adaptation=AcceptanceRate(), num_warmup=10),
        "Gibbs has no scale to tune to a rate; pass adaptation=None",
    )
    counts = {"num_chains": 2, "num_warmup": 10, "num_samples": 10}
    says(
        lambda: sample_together([KEY], [TARGET], ["gibbs"], adaptation=[AcceptanceRate()], **counts),
        "Gibbs has no scale to tune to a rate; pass adaptation=None",
    )


@pytest.mark.usefixtures("nothing_is_started")
def test_the_papers_rule_needs_a_path():
    says(
        lambda: sample(sampler=samplers.dlp_trace(diagonal=np.ones(4)), adaptation=PaperRate()),
        "tunes a path length, a radius or the time of rates, which DLPTrace has not; use discrax.adaptation",
    )


@pytest.mark.parametrize("rate", [0, 1, 1.5, -0.1])
def test_acceptance_rates(rate):
    says(lambda: AcceptanceRate(rate), f"rate must be greater than 0 and less than 1, but got {rate}")


def test_unknown_rule():
    says(lambda: AcceptanceRate(rule="papr"), "rule must be 'robust' or 'steady', but got 'papr'")


def test_a_function_is_no_target():
    says(
        lambda: discrax.sample(KEY, lambda e: e.sum()),
        "target must be a discrax Target, but got function",
        "discrax.Target.from_log_prob(function, space)",
        error=TypeError,
    )


def test_a_number_is_no_key():
    says(lambda: discrax.sample(0, TARGET), "key must be one JAX key", "jax.random.key", "but got 0", error=TypeError)
