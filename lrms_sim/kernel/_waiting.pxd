# The waiting jobs of a machine, in all orders in which strategies may look at them.
from lrms_sim.kernel._criteria cimport GROUPS
from lrms_sim.kernel._keyed cimport KEY_KINDS, Keyed
from lrms_sim.kernel._lines cimport Lines
from lrms_sim.kernel._profile cimport Profile
from lrms_sim.kernel._queue cimport WaitingQueue
from lrms_sim.kernel._releases cimport Releases
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef struct Planned:
    # A waiting job on its way into the plan of a conservative pass.
    double key
    seconds_t request
    job_index_t job
    processors_t width

cdef struct Waiting:
    WaitingQueue lanes[GROUPS]   # by group, in order of arrival; in use where `by_lane`
    bint by_lane
    Lines* lines                 # for each order by criteria
    Py_ssize_t lines_count
    Keyed keyed[KEY_KINDS]       # each in use where `used`
    bint by_key                  # one of them is
    Releases releases            # in use where `by_release`
    bint by_release
    double work[GROUPS]          # Σ requested_time · processors of those that wait, by group
    Py_ssize_t count[GROUPS]     # of those that wait, by group
    bint by_work
    Profile profile
    Planned* planned
    Py_ssize_t planned_capacity

cdef void waiting_free(Waiting* waiting) noexcept nogil
cdef int waiting_submitted(Waiting* waiting, View* view, job_index_t job) except -1 nogil
cdef void waiting_withdrawn(Waiting* waiting, View* view, job_index_t job) noexcept nogil
cdef int waiting_ended(Waiting* waiting, View* view, job_index_t job) except -1 nogil
cdef int waiting_outlived(
    Waiting* waiting, View* view, job_index_t job, seconds_t estimate
) except -1 nogil
cdef int waiting_start(Waiting* waiting, View* view, job_index_t job) except -1 nogil
