"""Budgets, by clocks that the tests turn: what counts, how long blocks are, what is kept for the end."""

import itertools
import time

import jax
import numpy as np
import pytest

from discrax.core.interrupts import Interrupts
from discrax.problems import MIS
from discrax.problems.generators import erdos_renyi
from discrax.solving import annealing, tempering
from discrax.solving.clock import Block, Blocks, Clock, Reports, SearchBudget, _Compilations
from discrax.solving.engine import Report
from discrax.solving.finishing import Candidate, Finish
from discrax.solving.schedules import BetaSchedule

from .clocks import Hands


def test_compilation_counts_where_the_budget_says_so():
    hands = Hands()
    apart, counted = hands.clock(10.0), hands.clock(10.0, counts_compilation=True)
    hands.time += 2
    hands.compile(3)
    assert (apart.seconds(), counted.seconds(), apart.compile_seconds()) == (2, 5, 3)
    with apart.compiling():
        hands.time += 1
        hands.compile(0.5)
    assert (apart.seconds(), apart.compile_seconds()) == (2, 4.5)
    assert (apart.affords_compilation(100), counted.affords_compilation(2)) == (True, False)


def test_no_program_is_begun_late_where_compilation_counts_though_the_last_one_was_short():
    hands = Hands()
    clock = hands.clock(10.0, counts_compilation=True)
    hands.time = 4.0
    assert clock.affords_compilation(0.1)
    assert not clock.affords_compilation(2.5)
    hands.time = 6.0
    assert not clock.affords_compilation(0.1)


def test_compilation_that_is_told_twice_counts_once(monkeypatch):
    now = iter([1.0, 2.0, 3.0, 10.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    told = _Compilations()
    told.add(0.5)  # 0.5 to 1
    told.add(0.5)  # 1.5 to 2, traced for what follows
    told.add(1.8)  # 1.2 to 3, in which the second happened
    assert told.total == pytest.approx(0.5 + 1.8)
    told.add(1.0)
    assert told.total == pytest.approx(0.5 + 1.8 + 1.0)


def test_what_is_kept_for_the_end_is_not_the_searches():
    hands = Hands()
    clock = hands.clock(10.0)
    clock.reserve(2.0)
    hands.time = 4.0
    assert clock.fraction(0) == 0.5
    assert (clock.seconds_left(), clock.seconds_left(of_all=True)) == (4, 6)
    hands.time = 8.0
    assert clock.is_over(0)


class Slow:
    """Stands for a population whose steps take the time they are said to take."""

    cost, compilation = 1.0, 0.0
    hands: Hands
    blocks: list[int]

    def __init__(self, *_):
        self.num_steps, self.betas = 0, np.array([1.0, 2.0])
        self.hands.time += self.cost
        self.seconds, self.last_compile_seconds = self.cost, self.compilation
        self.values = self.best_values = np.zeros((2, 3))
        self.best_states = np.zeros((2, 3, 4), np.int8)
        self.lengths = set()

    def temper(self, turns, steps, *, resize):
        if steps not in self.lengths:
            self.lengths.add(steps)
            self.hands.compile(self.compilation)
        self.hands.time += turns * steps * self.cost
        self.seconds += turns * steps * self.cost
        self.num_steps += turns * steps
        self.blocks.append((turns, steps))

    def anneal(self, betas, steps, *, resize):
        assert (np.diff(betas[:, 0]) > -1e-12).all()
        self.temper(len(betas), steps, resize=resize)


@pytest.mark.parametrize("cost", [1e-5, 1e-3, 0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("module", [annealing, tempering])
def test_seconds_are_kept_whatever_a_step_costs(monkeypatch, as_a_user, module, cost):
    hands = Hands()
    monkeypatch.setattr(module, "Places", type("Slow1", (Slow,), {"cost": cost, "hands": hands, "blocks": []}))
    clock, x, schedule = hands.clock(10.0), np.zeros((2, 3, 4), np.int8), BetaSchedule(1.0, 2.0)
    key = jax.random.key(0)
    if module is annealing:
        *_, last = module.anneal(key, [None, None], "pas", x, [schedule] * 2, clock)
        last = last[0]
    else:
        *_, last = module.temper(key, None, "pas", x, schedule, clock)
    # What is begun is the first evaluation of the chains, whatever it costs, and no step that is sure not to fit.
    assert clock.seconds() <= max(10.0 + 0.55 * cost, cost)
    assert last.num_steps > 0 or cost > 5


def _blocks(clock):
    return Blocks(clock, count=1000, longest=256, most_turns=64, first_guess=0.0)


def test_the_first_blocks_are_short_and_later_turns_a_share_of_the_budget():
    hands = Hands()
    blocks, taken, done = _blocks(hands.clock(100.0)), [], 0
    for _ in range(4):
        taken.append(block := blocks.next_block(done))
        steps = block.num_turns * block.num_steps
        hands.time += steps * 0.01
        done += steps
        blocks.note(block, steps * 0.01, 0.0)
    assert [block[:2] for block in taken] == [
        (1, 1),
        (1, 1),
        (3, 8),
        (3, 8),
    ]  # 0.1 s a turn, a quarter of a second a block
    blocks.note(Block(1, 8), 8.0, 0.0)  # steps have become a hundred times as dear
    assert blocks.next_block(0)[:2] == (1, 1)


def test_the_shares_of_turns_go_on_from_block_to_block():
    hands = Hands()
    blocks, done, shares = _blocks(hands.clock(10.0)), 0, []
    while block := blocks.next_block(done):
        steps = block.num_turns * block.num_steps
        shares += blocks.fractions(block, done)
        hands.time += steps * 0.01
        done += steps
        blocks.note(block, steps * 0.01, 0.0)
    assert np.allclose(shares, np.arange(1000) / 1000, atol=1e-6)


@pytest.mark.parametrize("cost", [1e-5, 1e-3, 0.1])
def test_steps_are_exact_and_resized_at_the_same_ones_whatever_they_cost(cost):
    blocks, done, resized, count = _blocks(Clock(SearchBudget(num_steps=2503))), 0, [], 0
    while block := blocks.next_block(done):
        resized += [done] if block.resizes else []
        assert block.num_steps == (2 if done < 2502 else 1)
        done, count = done + block.num_turns * block.num_steps, count + 1
        blocks.note(block, cost * block.num_turns * block.num_steps, 0.0)
    assert done == 2503
    assert resized == list(range(0, 2500, 156))
    assert count < 50 or cost > 1e-3


def test_a_program_is_not_compiled_when_that_is_all_the_time_left():
    hands = Hands()
    blocks = _blocks(hands.clock(10.0, counts_compilation=True))
    for _ in range(2):
        hands.time += 3.0
        blocks.note(Block(1, 1), 1e-5, 3.0)
    assert blocks.next_block(2).num_steps == 1


def test_reports_that_take_long_come_seldom():
    hands = Hands()
    reports = Reports(hands.clock(100.0))
    assert reports.is_due()
    for _ in reports.emit(lambda: 0):
        hands.time += 1.0
    hands.time = 20.0
    assert not reports.is_due()
    hands.time = 22.0
    assert reports.is_due()


def report_of(states, fraction=1.0):
    values = np.arange(len(states), dtype=np.float64)
    return Report(1, fraction, 1.0, values, values, states)


def test_repair_is_within_the_budget():
    hands = Hands()
    problem = MIS(erdos_renyi(6, 0.3, seed=0))

    class Laborious(MIS):
        def repair(self, x):
            hands.time += 0.3
            return problem.repair(x)

    states = np.ones((40, 6), np.int8)
    clock = hands.clock(10.0)
    finish = Finish([Laborious(problem.graph)], [states], clock)
    hands.time = 3.0
    finish.take([report_of(states, 0.3)])
    finish.prepare(0.0)
    assert hands.time == 3.3  # one was tried
    hands.time += clock.seconds_left()  # the search goes on until it is over
    (found,) = finish.choose(Interrupts())
    assert found.is_feasible
    assert 9.5 < hands.time <= 10.0


def test_after_an_interruption_one_repair_a_problem_is_made():
    hands = Hands()
    graph = erdos_renyi(6, 0.3, seed=0)

    class Laborious(MIS):
        def repair(self, x):
            hands.time += 5.0
            return super().repair(x)

    interrupts = Interrupts()
    interrupts.requested = True
    states = np.ones((4, 6), np.int8)
    finish = Finish(
        [Laborious(graph), Laborious(graph)], [states, states], Clock(SearchBudget(num_steps=5), now=lambda: hands.time)
    )
    found = finish.choose(interrupts)
    assert hands.time == 10.0
    assert all(one.is_feasible for one in found)


def test_what_is_feasible_comes_before_what_is_better():
    problem, state = MIS(erdos_renyi(4, 0.5, seed=0)), np.zeros(4, np.int8)
    worst_to_best = [
        Candidate(state, 9.0, False, np.nan),
        Candidate(state, np.nan, False, 0.0),
        Candidate(state, 9.0, False, 2.0),
        Candidate(state, 5.0, False, 1.0),
        Candidate(state, 2.0, True, 0.0),
        Candidate(state, 3.0, True, 0.0),
    ]
    ranked = [worst_to_best[1], worst_to_best[0], *worst_to_best[2:]]
    for worse, better in itertools.pairwise(ranked):
        assert worse.is_worse_than(better, problem)
        assert not better.is_worse_than(worse, problem)


def test_a_repair_that_fails_loses_nothing():
    class Broken(MIS):
        def repair(self, x):
            raise RuntimeError("out of glue")

    states = np.zeros((2, 5), np.int8)
    finish = Finish([Broken(erdos_renyi(5, 0.3, seed=0))], [states], Clock(SearchBudget(num_steps=1)))
    with pytest.warns(UserWarning, match="left as it was found, for its repair failed: out of glue"):
        (found,) = finish.choose(Interrupts())
    assert found.is_feasible
