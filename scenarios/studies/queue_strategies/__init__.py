"""Two papers by Franke, Lepping and Schwiegelshohn (2007), measured again on recorded logs.

"Greedy Scheduling with Custom-made Objectives" evolves priorities, "Genetic Fuzzy Systems applied to
Online Job Scheduling" rules that choose a strategy; both for one objective, 10·AWRT₁ + 4·AWRT₂.
"""
