"""How a sampler looks: one colour a family in every report, and no two names alike."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

# Text, axes and grid lines have colours of their own, which a page can exchange for those of its scheme.
INK, RULE = "#1c1d21", "#d9dade"
# Okabe and Ito's colours that are seen on white and on black, and two more.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c8c8c", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", ":", "-.")
# A family of samplers keeps its colour in every report.
_FAMILIES = {
    **dict.fromkeys(("LBP", "PAS", "AB-1ST"), 0),
    **dict.fromkeys(("GWG", "ORDINAL-GWG", "AB-SHIFT"), 1),
    **dict.fromkeys(("AVG", "DLMC", "AB-MAX"), 2),
    **dict.fromkeys(("PAVG", "DMALA", "AB-TRACE"), 3),
    **dict.fromkeys(("NCG", "DLP-TRACE", "DLMCF"), 4),
    **dict.fromkeys(("GIBBS", "BLOCK-GIBBS", "BG"), 5),
    **dict.fromkeys(("RWM", "RW", "MH-UNIFORM"), 6),
    **dict.fromkeys(("DLP", "LB", "HAMMING-BALL", "HB"), 7),
}
_WORDS = {
    "ESS_per_step": "ESS per step",
    "ESS_n": "ESS per 10,000 queries",
    "ESS_t": "ESS per second",
    "ESS_all_t": "ESS per second, all chains",
    "ESS_chain": "ESS per step",
    "ESS_chain_t": "ESS per second",
    "EJD": "jump distance (EJD)",
    "time_s": "seconds",
}


@dataclass(frozen=True)
class Style:
    """Colour, marker and dash of a line."""

    colour: str
    marker: str = "o"
    dash: str = "-"
    is_hollow: bool = False

    @property
    def fill(self) -> str:
        """The colour inside of markers."""
        return "none" if self.is_hollow else self.colour


def palette(names: Iterable[str]) -> dict[str, Style]:
    """A look for each name: known families keep their colour, others take free ones; no two names look the same."""
    styles: dict[str, Style] = {}
    names = list(dict.fromkeys(names))
    slots = _slots(dict.fromkeys(map(_family, names)))
    for name in names:
        slot = slots[_family(name)]
        is_hollow = "t/(t+1)" in name
        looks = (Style(COLOURS[slot], marker, dash, is_hollow) for marker, dash in _looks(name))
        taken = set(styles.values())
        styles[name] = next((look for look in looks if look not in taken), Style(COLOURS[slot]))
    return styles


def _slots(families: Collection[str]) -> dict[str, int]:
    """The place of each family among the colours: its own if no other has it yet, else a free one, while there are."""
    slots: dict[str, int] = {}
    for family in families:
        if family in _FAMILIES and _FAMILIES[family] not in slots.values():
            slots[family] = _FAMILIES[family]
    others = sorted(family for family in families if family not in slots)
    free = [slot for slot in range(len(COLOURS)) if slot not in slots.values()]
    for place, family in enumerate(others):
        slots[family] = free[place] if place < len(free) else _FAMILIES.get(family, place % len(COLOURS))
    return slots


def _looks(name: str) -> Iterable[tuple[str, str]]:
    """Best of a grid or search dashed, one site dotted, a variant "(of its own)" both, the weight t/(t+1) square."""
    sampler = name.split(" ")[0]
    is_best = sampler.endswith("-search") or _is_prefixed(sampler, "G")
    dash = ":" if re.fullmatch(r"[A-Za-z]+-1", sampler) else "--" if is_best else "-"
    dash = "-." if " (" in name else dash
    marker = "s" if "t/(t+1)" in name else "o"
    apart = [(MARKERS[i], DASHES[i % len(DASHES)]) for i in range(len(MARKERS))]  # seen on lines without markers, too
    return [(marker, dash), *apart, *((marker, dash) for dash in DASHES for marker in MARKERS)]


def _family(name: str) -> str:
    name = re.sub(r"(-\d+|-SEARCH)+$", "", name.split(" ")[0].upper().replace("_", "-"))  # HB-10-1 is of the family HB
    return name[1:] if name[1:] in _FAMILIES and name not in _FAMILIES else name


def _is_prefixed(sampler: str, letter: str) -> bool:
    return sampler.startswith(letter) and sampler.upper() not in _FAMILIES and sampler[1:].upper() in _FAMILIES


def name_of(labels: Mapping[str, str], hue: Sequence[str]) -> str:
    """The values of the labels that name a line; the sampler where a row has none of them."""
    return " ".join(labels[name] for name in hue if labels.get(name)) or labels.get("sampler", "-")


def words(metric: str) -> str:
    """A metric as the axis of a plot says it."""
    return _WORDS.get(metric, metric.replace("_", " "))
