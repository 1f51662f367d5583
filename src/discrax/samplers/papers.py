"""The papers that methods come from, and which of them each row of the registry rests on.

Samplers that are nobody's in particular have none (`local_search`).
"""

from typing import Any, NamedTuple

from discrax.samplers.registry import REGISTRY


class Paper(NamedTuple):
    """A paper as BibTeX wants it."""

    kind: str  # article, inproceedings or misc
    author: str
    title: str
    year: int
    where: dict[str, str]  # the journal or the proceedings, volume, pages

    def bibtex(self, key: str) -> str:
        """Its entry."""
        fields = {"author": self.author, "title": f"{{{self.title}}}", "year": str(self.year), **self.where}
        return f"@{self.kind}{{{key},\n" + "".join(f"  {name} = {{{each}}},\n" for name, each in fields.items()) + "}"


def _of(kind: str, **where: str) -> dict[str, str]:
    return {{"article": "journal", "inproceedings": "booktitle"}[kind]: where.pop("name"), **where}


_JASA = "Journal of the American Statistical Association"
_ICML = "International Conference on Machine Learning"
_ICLR = "International Conference on Learning Representations"
_NEURIPS = "Advances in Neural Information Processing Systems"

PAPERS = {
    "metropolis1953": Paper(
        "article",
        "Metropolis, Nicholas and Rosenbluth, Arianna W. and Rosenbluth, Marshall N. and Teller, Augusta H. and "
        "Teller, Edward",
        "Equation of state calculations by fast computing machines",
        1953,
        _of("article", name="The Journal of Chemical Physics", volume="21", number="6", pages="1087--1092"),
    ),
    "hastings1970": Paper(
        "article",
        "Hastings, W. Keith",
        "Monte Carlo sampling methods using Markov chains and their applications",
        1970,
        _of("article", name="Biometrika", volume="57", number="1", pages="97--109"),
    ),
    "geman1984": Paper(
        "article",
        "Geman, Stuart and Geman, Donald",
        "Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of images",
        1984,
        _of(
            "article",
            name="IEEE Transactions on Pattern Analysis and Machine Intelligence",
            volume="PAMI-6",
            number="6",
            pages="721--741",
        ),
    ),
    "zhang2012": Paper(
        "inproceedings",
        "Zhang, Yichuan and Ghahramani, Zoubin and Storkey, Amos J. and Sutton, Charles",
        "Continuous relaxations for discrete Hamiltonian Monte Carlo",
        2012,
        _of("inproceedings", name=_NEURIPS, volume="25"),
    ),
    "titsias2017": Paper(
        "article",
        "Titsias, Michalis K. and Yau, Christopher",
        "The Hamming ball sampler",
        2017,
        _of("article", name=_JASA, volume="112", number="520", pages="1598--1611"),
    ),
    "zanella2020": Paper(
        "article",
        "Zanella, Giacomo",
        "Informed proposals for local MCMC in discrete spaces",
        2020,
        _of("article", name=_JASA, volume="115", number="530", pages="852--865"),
    ),
    "grathwohl2021": Paper(
        "inproceedings",
        "Grathwohl, Will and Swersky, Kevin and Hashemi, Milad and Duvenaud, David and Maddison, Chris J.",
        "Oops I took a gradient: scalable sampling for discrete distributions",
        2021,
        _of("inproceedings", name=_ICML, note="arXiv:2102.04509"),
    ),
    "sun2022path": Paper(
        "inproceedings",
        "Sun, Haoran and Dai, Hanjun and Xia, Wei and Ramamurthy, Arun",
        "Path auxiliary proposal for MCMC in discrete space",
        2022,
        _of("inproceedings", name=_ICLR),
    ),
    "zhang2022": Paper(
        "inproceedings",
        "Zhang, Ruqi and Liu, Xingchao and Liu, Qiang",
        "A Langevin-like sampler for discrete distributions",
        2022,
        _of("inproceedings", name=_ICML, pages="26375--26396"),
    ),
    "rhodes2022": Paper(
        "article",
        "Rhodes, Benjamin and Gutmann, Michael U.",
        "Enhanced gradient-based MCMC in discrete spaces",
        2022,
        _of(
            "article",
            name="Transactions on Machine Learning Research",
            url="https://openreview.net/forum?id=j2Mid5hFUJ",
        ),
    ),
    "sun2022scaling": Paper(
        "inproceedings",
        "Sun, Haoran and Dai, Hanjun and Schuurmans, Dale",
        "Optimal scaling for locally balanced proposals in discrete spaces",
        2022,
        _of("inproceedings", name=_NEURIPS, note="arXiv:2209.08183"),
    ),
    "sun2023langevin": Paper(
        "inproceedings",
        "Sun, Haoran and Dai, Hanjun and Dai, Bo and Zhou, Haomin and Schuurmans, Dale",
        "Discrete Langevin samplers via Wasserstein gradient flow",
        2023,
        _of(
            "inproceedings",
            name="International Conference on Artificial Intelligence and Statistics",
            note="arXiv:2206.14897",
        ),
    ),
    "sun2023any": Paper(
        "inproceedings",
        "Sun, Haoran and Dai, Bo and Sutton, Charles and Schuurmans, Dale and Dai, Hanjun",
        "Any-scale balanced samplers for discrete space",
        2023,
        _of("inproceedings", name=_ICLR),
    ),
    "sgdld2023": Paper(
        "misc",
        "Anonymous",  # as the paper has it that this was built from
        "Stochastic gradient discrete Langevin dynamics",
        2023,
        {"note": "Under double-blind review"},
    ),
    "andrieu2009": Paper(
        "article",
        "Andrieu, Christophe and Roberts, Gareth O.",
        "The pseudo-marginal approach for efficient Monte Carlo computations",
        2009,
        _of("article", name="The Annals of Statistics", volume="37", number="2", pages="697--725"),
    ),
    "swendsen1987": Paper(
        "article",
        "Swendsen, Robert H. and Wang, Jian-Sheng",
        "Nonuniversal critical dynamics in Monte Carlo simulations",
        1987,
        _of("article", name="Physical Review Letters", volume="58", number="2", pages="86--88"),
    ),
    "wolff1989": Paper(
        "article",
        "Wolff, Ulli",
        "Collective Monte Carlo updating for spin systems",
        1989,
        _of("article", name="Physical Review Letters", volume="62", number="4", pages="361--364"),
    ),
    "lecun1998": Paper(
        "article",
        "LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick",
        "Gradient-based learning applied to document recognition",
        1998,
        _of("article", name="Proceedings of the IEEE", volume="86", number="11", pages="2278--2324"),
    ),
    "xiao2017": Paper(
        "misc",
        "Xiao, Han and Rasul, Kashif and Vollgraf, Roland",
        "Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms",
        2017,
        {"note": "arXiv:1708.07747"},
    ),
}

OF_SAMPLERS = {
    "rwm": ("metropolis1953",),
    "mh_uniform": ("hastings1970", "rhodes2022"),
    "gibbs": ("geman1984",),
    "block_gibbs": ("geman1984",),
    "hamming_ball": ("titsias2017",),
    "lb": ("zanella2020",),
    "pas_exact": ("zanella2020", "sun2022path"),
    "gwg": ("zanella2020", "grathwohl2021"),
    "gwg_ordinal": ("zanella2020", "grathwohl2021", "rhodes2022"),
    "pas": ("zanella2020", "sun2022path"),
    "dmala": ("zhang2022", "rhodes2022"),
    "dula": ("zhang2022",),
    "dlp_trace": ("zhang2022", "sun2023any"),
    "dlmc": ("sun2023langevin",),
    "dlmcf": ("sun2023langevin",),
    "avg": ("zhang2012", "rhodes2022"),
    "pavg": ("zhang2012", "rhodes2022"),
    "ab_first": ("sun2023any",),
    "ab_diagonal": ("sun2023any",),
    "ab_shift": ("zhang2012", "sun2023any"),
    "ab_max": ("zhang2012", "sun2023any"),
    "ab_trace": ("zhang2012", "sun2023any"),
    "swap": ("zanella2020",),
    "swap_uniform": ("metropolis1953",),
    "swendsen_wang": ("swendsen1987",),
    "wolff": ("swendsen1987", "wolff1989"),
    "global_flip": ("metropolis1953",),
    "sgdld": ("sgdld2023",),
    "minibatch_gibbs": ("sgdld2023",),
    "pseudo_marginal": ("andrieu2009",),
    "local_search": (),
}
_OTHER_SCANS = dict.fromkeys(("ChromaticGibbs", "EliminationGibbs", "LayerGibbs"), "gibbs")  # which it builds


def papers_of(kernel: Any) -> tuple[str, ...]:
    """The keys of the papers that a kernel rests on, all of them where its class has several rows of the registry.

    A kernel of somebody else has none.
    """
    cls = type(kernel)
    if kernel.parts:
        return tuple(dict.fromkeys(paper for part in kernel.parts for paper in papers_of(part)))
    if cls.__name__ in _OTHER_SCANS:
        return OF_SAMPLERS[_OTHER_SCANS[cls.__name__]]
    rows = [name for name, row in REGISTRY.items() if type(row.build()) is cls]
    return tuple(dict.fromkeys(paper for name in rows for paper in OF_SAMPLERS[name]))
