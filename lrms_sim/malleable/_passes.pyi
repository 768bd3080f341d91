# Best fit, preemption and squeezing, used from compiled code alone.
