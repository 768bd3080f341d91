# What of one resource is taken, and the search for a time in which it is free.
from libc.stdint cimport int32_t

from broker.planner._types cimport seconds_t, units_t

cdef struct Timetable:
    units_t capacity
    int32_t count              # rows in use
    int32_t room               # rows there is memory for
    seconds_t* begin
    seconds_t* end             # capacity 1: each row is a busy span
    units_t* used              # more: units in use from this row's begin to the next one's
    # Weekly opening hours; none means always.
    int32_t openings
    const seconds_t* opening_from
    const seconds_t* opening_until
    seconds_t shift
    seconds_t shortest         # no task takes less; 0 where that is not known

cdef struct Span:
    # The span around a moment in which no task can start or run.
    seconds_t begin
    seconds_t end
    seconds_t fresh_begin      # from where on that is new, about
    seconds_t fresh_end

cdef int timetable_open(Timetable* table, units_t capacity) except -1 nogil
cdef void timetable_close(Timetable* table) noexcept nogil
cdef int timetable_copy(Timetable* table, const Timetable* source) except -1 nogil
cdef seconds_t timetable_fit_fast(
    const Timetable* table, seconds_t earliest, seconds_t duration, units_t units
) noexcept nogil
cdef int timetable_occupy_fast(
    Timetable* table, seconds_t begin, seconds_t end, units_t units, Span* full
) except -1 nogil
