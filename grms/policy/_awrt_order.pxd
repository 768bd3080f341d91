# In which order partners are asked: one compiled function each, for every host that decides.
from libc.stdint cimport int32_t

from lrms_sim.kernel._types cimport seconds_t

ctypedef int32_t site_index_t

cdef struct Standing:
    # What decides when a partner is asked: side by side, as searches look at many partners.
    double awrt                  # of what was delegated to it
    int32_t asked                # how often it has been asked; 0 where that does not count
    site_index_t site            # whose standing this is; records need not be numbered as sites are

cdef void order_by_awrt_fast(
    site_index_t* partners, Py_ssize_t count, const Standing* standing
) noexcept nogil
cdef Py_ssize_t move_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const Standing* standing,
    Py_ssize_t place,
    Py_ssize_t near,
) noexcept nogil
cdef Py_ssize_t place_by_awrt_fast(
    const site_index_t* partners,
    Py_ssize_t count,
    const Standing* standing,
    site_index_t site,
) noexcept nogil


cdef inline double delegated_awrt(double consumption, double weighted_response) noexcept nogil:
    # No history counts as 0: such a partner comes first and can build one.
    return weighted_response / consumption if consumption > 0.0 else 0.0


cdef inline bint asked_before(
    site_index_t one, site_index_t other, const Standing* standing
) noexcept nogil:
    # Whether one of two partners is asked before the other: by AWRT; ties go to the one asked less
    # often, if that counts, then by site order.
    if standing[one].awrt != standing[other].awrt:
        return standing[one].awrt < standing[other].awrt
    if standing[one].asked != standing[other].asked:
        return standing[one].asked < standing[other].asked
    return standing[one].site < standing[other].site


cdef inline void count_open_fast(
    double* consumption,
    double* weighted_response,
    double open_consumption,
    double open_submitted,
    seconds_t now,
) noexcept nogil:
    # The contribution of open jobs to a partner's sums: nothing until they have waited longer on
    # average than the completed ones took; then they count as if they ended now.
    cdef double waited = now * open_consumption - open_submitted
    cdef double completed = 0.0
    if open_consumption <= 0.0:
        return
    if consumption[0] > 0.0:
        completed = weighted_response[0] / consumption[0]
    if waited / open_consumption > completed:
        consumption[0] += open_consumption
        weighted_response[0] += waited
