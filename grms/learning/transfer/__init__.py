"""Evolution of transfer policies as rule bases, judged by replays of a federation (paper 003)."""
