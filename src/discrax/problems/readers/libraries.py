"""GraphML and GML, as networkx reads them, and matrices of scipy.sparse; their faults are looked for afterwards."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from discrax.problems.graph import Graph
from discrax.problems.readers.lines import Text, shorten


def read_graphml(text: Text) -> Graph:
    """XML; the attribute "weight" of edges and nodes counts."""
    from xml.etree.ElementTree import ParseError

    import networkx

    try:
        return Graph.of(networkx.parse_graphml("\n".join(text.lines)))
    except ParseError as error:
        raise text.error(error.position[0], f"This is not the XML of a GraphML file: {error}.") from None
    except Exception as error:  # networkx raises many kinds
        _find_fault_in_graphml(text)
        raise ValueError(f"{text.path}: This is not a graph in GraphML: {error}") from None


def _find_fault_in_graphml(text: Text) -> None:
    """Raises for the first loop, or weight that is not a finite number."""
    from xml.parsers import expat

    weight_keys: set[str] = set()
    weight: dict[str, Any] = {}
    parser = expat.ParserCreate()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        tag, number = tag.split(":")[-1], parser.CurrentLineNumber
        if tag == "key" and attributes.get("attr.name") == "weight":
            weight_keys.add(attributes.get("id", ""))
        elif tag == "edge":
            source, target = attributes.get("source", ""), attributes.get("target", "")
            if source == target:
                raise text.error(number, f"Node {source} is joined to itself, but a graph has no self-loops here.")
        elif tag == "data" and attributes.get("key") in weight_keys:
            weight.update(number=number, text="")

    def characters(more: str) -> None:
        if weight:
            weight["text"] += more

    def end(tag: str) -> None:
        tag = tag.split(":")[-1]
        if tag == "data" and weight:
            try:
                number = float(weight["text"])
            except ValueError:
                number = np.nan
            if not np.isfinite(number):
                raise text.error(weight["number"], f"A weight is a finite number, but got {shorten(weight['text'])}.")
            weight.clear()

    parser.StartElementHandler, parser.CharacterDataHandler, parser.EndElementHandler = begin, characters, end
    parser.Parse("\n".join(text.lines), True)


def read_gml(text: Text) -> Graph:
    """As networkx reads it; the attribute "weight" of edges and nodes counts."""
    import networkx

    has_labels = any(line.split()[:1] == ["label"] for line in text.lines)
    try:
        return Graph.of(networkx.parse_gml(text.lines, label="label" if has_labels else "id"))
    except Exception as error:  # networkx raises many kinds
        for edge in re.finditer(r"source\s+(\S+)\s+target\s+(\S+)", whole := "\n".join(text.lines)):
            if edge[1] == edge[2]:
                number = whole.count("\n", 0, edge.start()) + 1
                raise text.error(
                    number, f"Node {edge[1]} is joined to itself, but a graph has no self-loops here."
                ) from None
        said = re.search(r"\((\d+), \d+\)", str(error))
        number = min(int(said[1]), len(text.lines)) if said else 1
        raise text.error(number, f"This is not a graph in GML: {error}") from None


def read_npz(path: Path, data: bytes) -> Graph:
    """A square matrix from `scipy.sparse.save_npz`."""
    import scipy.sparse

    try:
        matrix = scipy.sparse.load_npz(io.BytesIO(data))
    except Exception:  # of many kinds, for a file that is anything else
        raise ValueError(f"{path} is not a matrix as scipy.sparse.save_npz writes it.") from None
    try:
        return Graph.of(matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
