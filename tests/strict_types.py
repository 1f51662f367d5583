"""beartype as the tests use it: an int is also a float, as in Python's own annotations."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
