"""Whether exchange hurts a site: policies, grids, disciplines and windows, Byzantine partners, months, chance.

An independent study measured the same rules on the same logs with a program of its own; its figures stand
beside these.
"""
