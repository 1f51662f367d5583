"""Energy models: their shapes, their log-ratios, and which of their leaves are trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax import exact, targets
from discrax.core.space import Binary, Categorical
from discrax.core.target import FunctionTarget, evaluate, exact_evaluation, log_prob
from discrax.learn import NetworkModel, PairwisePotts, convnet, from_function, random_couplings, resnet
from discrax.learn.models import log_odds, trained_parts
from discrax.learn.networks import ConvNet, initialised

KEY = jax.random.key(0)


def mean_of_image(image):
    return jnp.mean(image)


@pytest.mark.parametrize("num_levels", [2, 4])
def test_a_residual_network_on_independent_pixels(num_levels):
    frequencies = np.full((6, 5) if num_levels == 2 else (6, 5, num_levels), 1 / num_levels)
    model = resnet(KEY, (6, 5), num_levels=num_levels, width=4, num_blocks=3, frequencies=frequencies)
    assert isinstance(model.space, Binary if num_levels == 2 else Categorical)
    x = model.space.random(KEY)
    value, gradient = jax.value_and_grad(model.log_prob)(model.space.embed(x))
    assert np.isfinite(value)
    assert np.abs(gradient).min() > 0  # every pixel matters, through both halvings


@pytest.mark.parametrize("variance", [2.0, 1 / 3])
def test_first_weights_have_the_variance_that_is_asked_for(variance):
    network = resnet(KEY, (8, 8), width=32, num_blocks=2, variance=variance).network
    weights = np.asarray(network.blocks[1].first.weight)  # ty: ignore[unresolved-attribute]
    assert np.var(weights) == pytest.approx(variance / (32 * 9), rel=0.05)
    with pytest.raises(ValueError, match="variance must be"):
        resnet(KEY, (8, 8), variance=0.0)


def test_the_convolutional_network_ends_in_one_pixel():
    network = initialised(KEY, ConvNet, 1)
    weights = np.asarray(network.layers[1].weight)
    bound = np.sqrt(6 / (16 * 16))  # uniform with the variance 2 / inputs
    assert 0.9 * bound < np.abs(weights).max() <= bound
    assert np.abs(network.layers[1].bias).max() <= 1 / np.sqrt(16 * 16)
    assert [layer.out_channels for layer in network.layers] == [16, 32, 32, 64, 64, 128, 128]
    assert network.head.in_features == 128
    with pytest.raises(ValueError, match="at least 16x16"):
        initialised(KEY, ConvNet, 1, (8, 8))


def test_terms_of_a_network_model_add_up():
    base, bias, J = np.full((2, 2), 0.3), np.arange(4.0).reshape(2, 2), np.asarray(random_couplings(KEY, 4, 1.0))
    model = NetworkModel(mean_of_image, Binary((2, 2)), base=base, bias=bias, couplings=J)
    x = np.array([[1, 0], [0, 1]])
    s = 2.0 * x.reshape(-1) - 1
    expected = s.mean() + (base * x).sum() + (bias * x).sum() + s @ J @ s / 2
    assert log_prob(model, jnp.asarray(x, jnp.int8)) == pytest.approx(expected, rel=1e-5)
    assert not np.diag(J).any()
    np.testing.assert_array_equal(J, J.T)


def test_what_is_trained():
    model = convnet(KEY, quadratic=True)
    model = NetworkModel(
        model.network, model.space, base=np.zeros((16, 16)), bias=model.bias, couplings=model.couplings
    )
    spec = trained_parts(model)
    assert spec.base is False
    assert spec.bias is True
    assert spec.couplings is True
    assert all(jax.tree.leaves(spec.network.layers[0].weight))
    ising = trained_parts(targets.Ising.dense(np.ones((3, 3)) - np.eye(3)))
    assert (ising.coupling.matrix, ising.linear) == (True, True)
    frozen = NetworkModel(mean_of_image, Binary((2, 2), frozen=np.eye(2, dtype=bool)))
    assert not any(jax.tree.leaves(trained_parts(frozen)))


@pytest.mark.parametrize("num_levels", [2, 3])
def test_pairs_of_levels(num_levels):
    """Exact log-ratios equal differences of log_prob, whatever the antisymmetric part and the tables J_ii are."""
    rng = np.random.default_rng(0)
    model = PairwisePotts(rng.normal(size=(4, num_levels, 4, num_levels)), rng.normal(size=(4, num_levels)))
    x = model.space.random(KEY)
    function = FunctionTarget(model.log_prob, model.space)
    ours, slow = evaluate(model, x), exact_evaluation(function, x)
    np.testing.assert_allclose(ours.log_prob, slow.log_prob, rtol=1e-5)
    np.testing.assert_allclose(ours.ratios, slow.ratios, rtol=1e-4, atol=1e-5)


def test_untrained_pairs_are_the_frequencies():
    p = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    law = exact.law(PairwisePotts.untrained(p)).reshape(3, 3)
    np.testing.assert_allclose(law.sum(axis=1), 0.98 * p[0] + 0.02 / 3, rtol=1e-5)


def test_any_function_of_parameters_is_a_model():
    model = from_function(lambda p, e: jnp.sum(p["w"] * e), {"w": np.ones(3)}, Binary(3))
    assert log_prob(model, jnp.array([1, 1, 0], jnp.int8)) == 2
    assert eqx.filter(model, trained_parts(model)).parameters["w"].shape == (3,)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: NetworkModel(mean_of_image, Binary(4)), r"sites \(height, width\), but the space has shape \(4,\)"),
        (lambda: NetworkModel(mean_of_image, Binary((2, 2)), base=np.ones(3)), r"base must have shape \(2, 2\)"),
        (lambda: NetworkModel(mean_of_image, Categorical((2, 2), 3), couplings=np.eye(4)), "for binary images"),
        (lambda: PairwisePotts(np.zeros((2, 3, 2, 2)), np.zeros((2, 3))), r"couplings must have shape \(2, 3, 2, 3\)"),
        (lambda: PairwisePotts(np.zeros(3), np.zeros(3)), r"fields must have shape \(sites, levels\)"),
        (lambda: log_odds(np.full(3, 2.0), Binary(3)), "must be probabilities"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
