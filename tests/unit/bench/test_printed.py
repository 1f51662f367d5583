import pytest

from discrax.bench.plan.printed import find_printed, printed_rows, printed_tables


def test_all_tables_are_there():
    expected = [("any-scale", table) for table in range(1, 6)]
    expected += [("discs", table) for table in (1, 2, 5, 6, 7, 8, 9)]
    expected += [("enhanced-gradient-mcmc", table) for table in (1, 2, 3, 4)]
    expected += [("optimal-scaling", table) for table in range(1, 17)]
    expected += [("sgdld", table) for table in (1, 2, 3)]
    assert printed_tables() == expected
    rows = sum(len(printed_rows(*table)) for table in expected)
    assert rows == 64 + 4 * 42 + (48 + 88 + 112 + 32 + 176 + 120 + 136) + (
        30 + 20 + 18 + 19
    ) + 72 + 16 + 2 * 4 + 9 * 135 + 3 * 45 + (30 + 24 + 12)


def test_values_are_numbers_and_labels_are_text():
    first = printed_rows("optimal-scaling", 5)[0]
    assert first["value"] == 0.75
    assert first["std"] is None
    assert first["N"] == "100"
    assert first["table"] == 5


def test_what_is_returned_is_a_copy():
    printed_rows("any-scale", 2)[0]["value"] = -1.0
    assert printed_rows("any-scale", 2)[0]["value"] == 4.5


def test_labels_find_their_number():
    labels = {"task": "bernoulli", "N": "100", "config": "C1", "sampler": "ALBP", "weight_fn": "sqrt(t)", "rate": "0.5"}
    found = find_printed("optimal-scaling", 5, "EJD", labels)
    assert found is not None
    assert found["value"] == 23.40
    assert find_printed("optimal-scaling", 5, "ESS", labels) is None
    assert find_printed("optimal-scaling", 5, "EJD", labels | {"N": "101"}) is None


def test_no_weight_in_print_is_no_weight_in_the_labels():
    walk = {"N": "800", "config": "C2", "sampler": "ARWM"}
    for labels in (walk, walk | {"weight_fn": ""}):
        found = find_printed("optimal-scaling", 5, "EJD", labels)
        assert found is not None
        assert found["value"] == 1.70
    assert find_printed("optimal-scaling", 5, "EJD", walk | {"weight_fn": "sqrt(t)"}) is None
    assert find_printed("optimal-scaling", 5, "EJD", walk | {"sampler": "ALBP"}) is None


def test_numbers_agree_as_numbers():
    found = find_printed("any-scale", 2, "ESS_n", {"J": "0.3", "sampler": "AB-trace"})
    assert found is not None
    assert found["value"] == 182.91


def test_labels_that_fit_several_rows_are_refused():
    with pytest.raises(ValueError, match="fit 9 rows of optimal-scaling table 5"):
        find_printed("optimal-scaling", 5, "EJD", {"sampler": "ARWM"})


def test_an_unknown_table_is_a_sentence():
    with pytest.raises(ValueError, match="Table 99 of 'any-scale' is not among the printed ones: any-scale 1"):
        printed_rows("any-scale", 99)
