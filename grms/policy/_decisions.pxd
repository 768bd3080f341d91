# Transfer decisions, and in which order partners are asked: one compiled function each, for every
# host that decides.
from libc.stdint cimport int32_t, int64_t, uint32_t

from grms.policy._constraints cimport Books, CompiledConstraints, ConstraintNumbers
from lrms_sim.kernel._types cimport job_index_t, processors_sum_t, processors_t, seconds_t

cdef enum TransferKind:
    NO_POLICY          # partners that do not deal with each other
    ALWAYS_KEEP
    ACCEPT_WHEN_FIT
    RULE_BASE
    WRITTEN            # in Python
    # offers every job and takes every other: what constraints allow is decided by them
    ALWAYS_AGREE

cdef enum FeatureBit:
    # Features that rules may use besides the two of the paper, as bits.
    REQUESTED_TIME = 1     # decimal logarithm of the seconds
    STARTS_NOW = 2         # 1 where the site's batch system would start the job at once, else 0
    # On a machine of nodes the job's share of the site's memory and GPUs, and the largest of these
    # and its share of the processors, in percent like NJP; elsewhere 0, 0 and NJP.
    MEMORY_SHARE = 4
    GPU_SHARE = 8
    DOMINANT_SHARE = 16

cdef struct TskRule:
    double nwp_gamma
    double nwp_sigma
    double njp_gamma
    double njp_sigma
    double time_gamma  # of the requested time, where the rules look at it
    double time_sigma
    double memory_gamma    # of the shares, where the rules look at them
    double memory_sigma
    double gpu_gamma
    double gpu_sigma
    double dominant_gamma
    double dominant_sigma
    double now_gamma   # of whether the job would start now, where the rules look at it
    double now_sigma
    double output      # +1 accept, -1 decline

cdef struct MembershipCache:
    # Memberships of one rule base at one site, computed lazily. Both features take few distinct
    # values: a queue's sum of processors and a job's processors.
    processors_t processors          # of the site
    processors_sum_t waiting_max     # longest queue that is kept; longer ones are computed
    Py_ssize_t rules
    uint32_t stamp                   # of the rule base now cached; 0 is nobody's
    uint32_t* nwp_stamp              # by waiting processors
    uint32_t* njp_stamp              # by job processors
    double* nwp                      # by waiting processors, then by rule
    double* njp                      # by job processors, then by rule

cdef struct TransferPolicy:
    TransferKind kind
    uint32_t stamp                   # of this rule base in the cache
    const TskRule* rules
    Py_ssize_t count
    int further                      # features of the rules beside NWP and NJP
    MembershipCache* cache           # NULL: compute every membership anew
    void* written                    # for WRITTEN: the CompiledTransfer, which outlives this
    bint constrained                      # it decides among what the constraints allow
    ConstraintNumbers rails

cdef struct NodeTotals:
    # On a machine of nodes, besides processors: memory in MiB, 0 where it is not counted, and GPUs.
    int64_t job_memory               # that the job asks for in all
    int64_t job_gpus
    int64_t memory                   # of all nodes of the site
    int64_t gpus

cdef struct SiteLoad:
    # What a site knows of itself when it decides, and keeps private.
    processors_t processors
    processors_t processors_free
    processors_sum_t processors_waiting
    bint starts_now                  # its batch system would start this job at once
    bint fits                        # there is room for this job now
    const NodeTotals* nodes          # NULL on a machine of processors

cdef struct KnownJob:
    # What is known of a job before it runs. Small, so that it is handed on in registers.
    processors_t processors
    job_index_t number               # in the tables of a replay, which looks at nodes by it
    seconds_t requested_time

cdef struct FurtherValues:
    # Values of the further features; those at which nobody looks are 0.
    double time
    double now
    double memory
    double gpu
    double dominant

cdef double membership_fast(double x, double gamma, double sigma) noexcept nogil
cdef double tsk_output_fast(
    const TransferPolicy* policy, double nwp, double njp, const FurtherValues* values
) noexcept nogil
cdef bint rules_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load
) noexcept nogil
cdef bint accept_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load, const Books* books, bint own
) noexcept nogil

cdef bint inner_fast(
    const TransferPolicy* policy, KnownJob job, const SiteLoad* load, bint own
) noexcept nogil

cdef class MembershipTable:
    cdef MembershipCache cache
    cdef int begin(self, Py_ssize_t rules) except -1

cdef class CompiledTransfer:
    cdef TransferPolicy policy
    cdef TskRule* owned_rules
    cdef MembershipTable table
    cdef object answer               # of WRITTEN: what is asked
    cdef readonly object failure     # what it has raised, after which it is asked no more
    cdef CompiledTransfer inner      # owns the rules of a policy within constraints
    cdef readonly CompiledConstraints rails    # None: there are none


# --- location policies ----------------------------------------------------------------------------

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
