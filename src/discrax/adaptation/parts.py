"""Tuning of a kernel that is made of others: each part by a rule of its own, from what its own steps were like."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx

from discrax.core.kernel import Info, Kernel, State
from discrax.core.target import Target


class PartsReport(NamedTuple):
    """What warm-up did to each part that was tuned."""

    reports: tuple[tuple[str, Any], ...]  # the name of a part, and the report of its rule

    def __str__(self) -> str:
        return "; ".join(f"{name}: {report}" for name, report in self.reports)


class OneByOne(eqx.Module):
    """A rule for each part of a kernel such as `discrax.samplers.cycle`; None leaves a part as it is."""

    rules: tuple[Any, ...]

    def __init__(self, rules: Sequence[Any]):
        if isinstance(rules, str) or not isinstance(rules, Sequence) or all(rule is None for rule in rules):
            raise TypeError(f"rules must be a list with one rule or None for each part, but got {rules!r}.")
        self.rules = tuple(rules)

    def plan(self, target: Target, kernel: Kernel, num_steps: int) -> "OneByOne":
        """With every rule laid out; a ValueError where a kernel has not as many parts."""
        if len(kernel.parts) != len(self.rules):
            raise ValueError(
                f"There must be a rule or None for each part, but {type(kernel).__name__} has {len(kernel.parts)} "
                f"parts and there are {len(self.rules)} rules; adaptation='auto' finds them."
            )
        pairs = zip(self.rules, kernel.parts, strict=True)
        return OneByOne([None if rule is None else rule.plan(target, part, num_steps) for rule, part in pairs])

    def init(self, target: Target, kernel: Kernel) -> tuple[Any, ...]:
        """What each rule remembers before the first step."""
        pairs = zip(self.rules, kernel.parts, strict=True)
        return tuple(None if rule is None else rule.init(target, part) for rule, part in pairs)

    def update(
        self, target: Target, kernel: Any, memory: tuple[Any, ...], states: State, info: Info
    ) -> tuple[Any, tuple[Any, ...]]:
        """The kernel with its next parts; each rule sees the statistics of its own part."""
        parts, memories = [], []
        found = zip(self.rules, kernel.parts, memory, states.cache.caches, states.cache.infos, strict=True)
        for rule, part, of_rule, cache, of_part in found:
            if rule is not None:
                part, of_rule = rule.update(target, part, of_rule, states._replace(cache=cache), of_part)
            parts.append(part)
            memories.append(of_rule)
        return kernel.with_parts(parts), tuple(memories)

    def freeze(self, target: Target, kernel: Any, memory: tuple[Any, ...]) -> tuple[Any, PartsReport]:
        """The kernel to draw with, and what was done."""
        parts, reports = [], []
        for rule, part, of_rule in zip(self.rules, kernel.parts, memory, strict=True):
            if rule is not None:
                part, report = rule.freeze(target, part, of_rule)
                reports.append((type(part).__name__, report))
            parts.append(part)
        return kernel.with_parts(parts), PartsReport(tuple(reports))
