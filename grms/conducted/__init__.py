"""Replays of federations through the states of their sites, on one virtual clock."""
