"""Every order of events of a few sites and jobs: the real states of sites, on a network that may do anything.

`encoding` has what a site knows as a value; `batch` a batch system as one; `steps` what a site does at an event, once
for each state and event; `space` the states of the whole, breadth first; `bounds` how much may go wrong.
`python -m benchmarks.exhaustive` runs it, docs/exhaustive.md explains it.
"""
