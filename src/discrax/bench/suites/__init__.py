"""The experiments of the papers, one file a paper."""
