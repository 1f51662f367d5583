"""The networks whose graphs are cut into parts: their layers are counted."""

from collections import Counter

import networkx as nx
import pytest

from discrax.bench.papers.discs.networks import network_graph

NUM_PARAMETERS = {"mnist_conv": 8, "alexnet": 16, "vgg16": 32, "resnet50": 161, "inception_v3": 284}
NUM_CONVOLUTIONS = {"mnist_conv": 2, "alexnet": 5, "vgg16": 13, "resnet50": 53, "inception_v3": 94}


@pytest.mark.parametrize("name", NUM_PARAMETERS)
def test_networks(name):
    forward = network_graph(name, training=False)
    ops = Counter(forward.names)
    assert ops["input"] == NUM_PARAMETERS[name] + 2
    assert ops["conv_general_dilated"] == NUM_CONVOLUTIONS[name]
    assert nx.is_connected(nx.Graph(forward.edges.tolist()))
    assert (forward.degrees > 0).all()


@pytest.mark.parametrize(
    ("name", "forward", "training"), [("mnist_conv", (43, 44), (109, 130)), ("alexnet", (68, 69), (191, 229))]
)
def test_counts_of_the_small_networks(name, forward, training):
    graphs = network_graph(name, training=False), network_graph(name)
    assert [(graph.num_nodes, graph.num_edges) for graph in graphs] == [forward, training]
    # A step subtracts a slope from each parameter, and needs three convolutions for one, less one for the images.
    ops = Counter(graphs[1].names)
    assert ops["conv_general_dilated"] == 3 * NUM_CONVOLUTIONS[name] - 1


def test_an_unknown_network():
    with pytest.raises(ValueError, match=r"mnist_conv, alexnet.*'lenet'"):
        network_graph("lenet")
