"""What a job is worth, how fast it runs, and what a value function weighs, as plain numbers."""

from libc.stdint cimport int8_t
from libc.string cimport memset

from lrms_sim.malleable._value cimport RULES, Scales, State, memberships
from lrms_sim.malleable._view cimport Law, Speedup, View, speed, unit_utility


def unit_utility_of(double age, double plateau, double zero, double least, int shape):
    """Returns the unit utility of a job of weight 1 that completes at an age, in its requests."""
    cdef View view
    cdef double one = 1.0
    cdef double none = 0.0
    cdef int8_t kind = <int8_t> shape
    memset(&view, 0, sizeof(View))
    view.columns.submit_time = &none
    view.columns.request = &one
    view.columns.weight = &one
    view.columns.plateau = &plateau
    view.columns.zero = &zero
    view.columns.floor = &least
    view.columns.shape = &kind
    return unit_utility(&view, 0, age)


def speed_of(int processors, int width, int law, double first, double second):
    """Returns how fast a job of a width runs on so many processors, against a single one."""
    cdef Speedup speedup
    speedup.law = <Law> law
    speedup.first = first
    speedup.second = second
    return speed(&speedup, processors, width)


def rule_weights(double x1, double x2, double x3, dict scales):
    """Returns the weights of the eight rules in a state; they sum to 1."""
    cdef Scales inner
    cdef State state
    cdef double phi[RULES]
    inner.utility = scales["utility"]
    inner.time = scales["time"]
    inner.processors = scales["processors"]
    state.x1 = x1
    state.x2 = x2
    state.x3 = x3
    memberships(&inner, state, phi)
    return tuple([phi[rule] for rule in range(RULES)])
