"""Decentralized Grid Scheduling with Evolutionary Fuzzy Systems (paper 003), measured again.

C. Fölling, C. Grimme, J. Lepping, A. Papaspyrou; JSSPP 2009.
"""
