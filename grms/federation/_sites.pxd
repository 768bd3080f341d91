# What a replay keeps of its sites and of all of them together.
from libc.stdint cimport int32_t, int64_t

from grms.federation._ledger cimport Delegated, PartnerNotes
from grms.policy._decisions cimport TransferPolicy, site_index_t
from lrms_sim._machine cimport JobColumns, MachineCore
from lrms_sim._types cimport seconds_t

cdef struct SiteRun:
    MachineCore core
    site_index_t* partners           # in the order in which they are asked
    Py_ssize_t partner_count
    bint by_awrt                     # else the order is fixed
    void* chooser                    # a function in Python that orders them; NULL for none
    bint count_open                  # open jobs count for the order, which is then of each moment
    double* consumption              # by partner: Σ p·m of own jobs completed there
    double* weighted_response        # by partner: Σ p·m·(C−r) of these
    double* open_consumption         # by partner: Σ of requested p·m of own jobs open there
    double* open_submitted           # by partner: Σ of the same times r
    double* consumption_now          # by partner: what the two above make of `consumption` now,
    double* weighted_response_now    # and of `weighted_response`
    int32_t* open_jobs               # by partner: how many are open there
    const TransferPolicy** transfer  # by partner
    PartnerNotes* ledger             # by partner; NULL where no policy has rails
    double own_work                  # see Books; kept where anybody has rails
    double own_requested
    seconds_t reoffer                # waiting jobs are offered again at its multiples; 0 for never
    seconds_t next_round
    int64_t offers                   # questions that have reached partners

cdef struct Federation:
    SiteRun* sites
    seconds_t* next_time             # by site: when its machine next does something by itself
    Py_ssize_t count
    JobColumns jobs
    const site_index_t* submitted_to
    site_index_t* executed_on
    void* failures                   # a list: what choosers have raised
    bint railed                      # some policy has rails
    bint rounds                      # some site offers again
    Delegated delegated              # where `railed`
