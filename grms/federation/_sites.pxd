# What a replay keeps of its sites and of all of them together.
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from grms.federation._ledger cimport MARK_ENDED, Delegated, PartnerNotes, ledger_free
from grms.federation._rounds cimport RoundNotes, rounds_close
from grms.policy._decisions cimport TransferPolicy, site_index_t
from lrms_sim._machine cimport JobColumns, MachineCore, core_close
from lrms_sim._types cimport job_index_t, seconds_t

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
    RoundNotes* rounds               # NULL: every partner is asked about every job in every round
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
    bint bounded                     # and puts no more questions than it is told
    Delegated delegated              # where `railed`
    int32_t* pause_row               # by job, where a site's rounds are bounded; see rounds_add


cdef inline int site_alloc(SiteRun* site, Py_ssize_t count) except -1:
    # Room for what a site keeps of each of so many; `count_open` is set.
    cdef Py_ssize_t sums = 6 if site.count_open else 2
    site.partners = <site_index_t*> calloc(count, sizeof(site_index_t))
    site.consumption = <double*> calloc(sums * count, sizeof(double))
    if site.consumption != NULL:
        site.weighted_response = site.consumption + count
        if site.count_open:
            site.open_consumption = site.consumption + 2 * count
            site.open_submitted = site.consumption + 3 * count
            site.consumption_now = site.consumption + 4 * count
            site.weighted_response_now = site.consumption + 5 * count
            site.open_jobs = <int32_t*> calloc(count, sizeof(int32_t))
    site.transfer = <const TransferPolicy**> calloc(count, sizeof(TransferPolicy*))
    if (
        site.partners == NULL or site.consumption == NULL
        or site.transfer == NULL or (site.count_open and site.open_jobs == NULL)
    ):
        raise MemoryError(f"no memory for {count} sites")
    return 0


cdef inline void site_free(SiteRun* site, Py_ssize_t count) noexcept:
    cdef Py_ssize_t i
    core_close(&site.core)
    if site.ledger != NULL:
        for i in range(count):
            ledger_free(&site.ledger[i])
        free(site.ledger)
    rounds_close(site.rounds)
    free(site.partners)
    free(site.consumption)
    free(site.open_jobs)
    free(site.transfer)


cdef inline void book_end(
    Federation* federation, SiteRun* site, site_index_t index, job_index_t job, double consumption
) noexcept nogil:
    # What those who keep to rails note when a job has ended at site `index`.
    cdef JobColumns* jobs = &federation.jobs
    cdef site_index_t home_index = federation.submitted_to[job]
    cdef SiteRun* home = &federation.sites[home_index]
    home.own_work += consumption
    home.own_requested += consumption * jobs.requested_time[job]
    if home_index == index:
        return
    if site.ledger != NULL:
        site.ledger[home_index].taken += (
            consumption - jobs.requested_time[job] * jobs.processors[job]
        )
    if home.ledger != NULL:
        home.ledger[index].stale = True
        federation.delegated.mark[job] |= MARK_ENDED
