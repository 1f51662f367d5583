"""python -m peers: which searches can be compared here, and in which versions."""

from peers import PEERS, missing, versions

for each in PEERS:
    print(each, versions(each), f"left out: there is no {missing(each)}" if missing(each) else "")
