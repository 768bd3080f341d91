# In which order partners are asked: one compiled function each, for every host that decides.
from libc.stdint cimport int16_t, int32_t

from lrms_sim._types cimport seconds_t

ctypedef int16_t site_index_t

cdef void order_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
) noexcept nogil
cdef Py_ssize_t move_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
    Py_ssize_t place,
    Py_ssize_t near,
) noexcept nogil
cdef Py_ssize_t place_by_awrt_fast(
    const site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
    const int32_t* asked,
    site_index_t site,
) noexcept nogil


cdef inline void count_open_fast(
    double* consumption,
    double* weighted_response,
    double open_consumption,
    double open_submitted,
    seconds_t now,
) noexcept nogil:
    # What the jobs that are open at a partner add to its sums: nothing until they have waited
    # longer on average than the completed ones took; then they count as if they ended now.
    cdef double waited = now * open_consumption - open_submitted
    cdef double completed = 0.0
    if open_consumption <= 0.0:
        return
    if consumption[0] > 0.0:
        completed = weighted_response[0] / consumption[0]
    if waited / open_consumption > completed:
        consumption[0] += open_consumption
        weighted_response[0] += waited
