"""Strategies that ask and are told, over vectors of genes; pure: no clock, no files, no problem."""
