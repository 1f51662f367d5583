"""The benchmark: cells, suites of them, a run that survives, and a report beside the printed numbers."""
