"""Table 2 of optimal scaling: the fewest steps an update with which a network trains."""

from discrax.bench.papers.optimal_scaling import energy_models
from discrax.bench.report.grid import make_grid

from .fake_rows import cell as fake_cell
from .fake_rows import rows as fake_rows


def likelihoods(sampler, **by_K):
    return [
        row
        for K, value in by_K.items()
        for row in fake_rows(
            {"num_updates": 10} | ({} if value is None else {"log_likelihood": value}),
            fake_cell(sampler, "sqrt(t)", task="deep-ebm-pcd", dataset="caltech", K=K[1:]),
        )
    ]


def test_the_fewest_steps_that_train():
    found = likelihoods("ALBP_2", K5=-104.0, K10=-101.0, K40=-100.0)
    found += likelihoods("LBP_2-1", K5=None, K10=-150.0, K40=-105.1)
    found += likelihoods("ALBP_1", K5=3.0, K10=-120.0, K40=-102.0)  # above 0: log Z missed the mass
    derived = {row["labels"]["sampler"]: row for row in energy_models.fewest_as_good(found)}
    assert derived["ALBP_2"]["value"] == 5
    assert derived["ALBP_1"]["value"] == 40
    assert derived["LBP_2-1"]["status"] == "failed"
    assert "No K up to 40 trains" in derived["LBP_2-1"]["error"]
    table = energy_models.table02.exhibits[1]
    grid = make_grid(table, found)
    entries = {line.head: line.entries[grid.columns.index(("caltech",))] for line in grid.lines}
    assert entries["ALBP_2", "sqrt(t)"].ratio == 6.0  # 30 in print
    assert entries["LBP_2-1", "sqrt(t)"].status == "failed"


def test_the_fewest_steps_that_do_not_diverge():
    """However good it is; a training that diverges at every K is a failure."""
    found = []
    for sampler, diverged in (("ALBP_2", {"5": 1.0, "10": 0.0, "40": 0.0}), ("ALBP_1", {"5": 1.0, "40": 1.0})):
        for K, value in diverged.items():
            cell = fake_cell(sampler, "sqrt(t)", task="deep-ebm-pcd", dataset="caltech", K=K)
            found += fake_rows({"num_updates": 10, "diverged": value}, cell)
    derived = {row["labels"]["sampler"]: row for row in energy_models.fewest_stable(found)}
    assert derived["ALBP_2"]["value"] == 10
    assert derived["ALBP_1"]["error"] == "No K up to 40 trains without diverging."
