"""What is measured, as plain values: cells, suites of them, tables and figures, and the printed numbers."""
