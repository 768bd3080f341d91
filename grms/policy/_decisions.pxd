# Transfer and location decisions: one compiled function each, for every host that decides.
from libc.stdint cimport int16_t

from lrms_sim._types cimport processors_sum_t, processors_t, seconds_t

ctypedef int16_t site_index_t

cdef enum TransferKind:
    NO_POLICY          # partners that do not deal with each other
    ALWAYS_KEEP
    ACCEPT_WHEN_FIT
    RULE_BASE

cdef struct TskRule:
    double nwp_gamma
    double nwp_sigma
    double njp_gamma
    double njp_sigma
    double output      # +1 accept, -1 decline

cdef struct TransferPolicy:
    TransferKind kind
    const TskRule* rules
    Py_ssize_t count

cdef struct SiteLoad:
    # What a site knows of itself when it decides, and tells nobody.
    processors_t processors
    processors_t processors_free
    processors_sum_t processors_waiting

cdef double membership_fast(double x, double gamma, double sigma) noexcept nogil
cdef double tsk_output_fast(
    const TransferPolicy* policy, double nwp, double njp
) noexcept nogil
cdef bint accept_fast(
    const TransferPolicy* policy, processors_t job_processors, SiteLoad load, bint own
) noexcept nogil
cdef void order_by_awrt_fast(
    site_index_t* partners,
    Py_ssize_t count,
    const double* consumption,
    const double* weighted_response,
) noexcept nogil

cdef class CompiledTransfer:
    cdef TransferPolicy policy
    cdef TskRule* owned_rules
