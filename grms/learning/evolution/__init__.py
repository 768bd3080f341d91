"""Ask-and-tell strategies over vectors of genes; pure: no clock, no files, no problem."""
