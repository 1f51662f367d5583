"""Doors to other libraries, one file each: blackjax, dimod, networkx."""
