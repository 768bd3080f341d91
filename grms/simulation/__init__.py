"""Sites in memory: replays on one virtual clock, and a network, batch systems and peers with faults.

`python -m grms.simulation --seed N` replays one run of the fault test and tells its story.
"""
