# Partners by what a job would cost there. A tariff is what it costs at a site to have a processor
# busy, by time; like the site's size it is known to all, and no load follows from it.
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport calloc, free

from grms.policy._decisions cimport KnownJob, site_index_t
from lrms_sim.kernel._rate_steps cimport (
    Deferral,
    RateSteps,
    cheapest_start,
    rate_duration,
    rate_sum,
)
from lrms_sim.kernel._types cimport seconds_t

cdef struct TariffNotes:
    # What a site keeps that prefers partners where a job costs less.
    Deferral deferral            # how long own jobs wait for cheap hours, and what saving counts
    bint only                    # other partners are not asked
    double bound                 # the job of this decision costs less at partners below it
    double* cost                 # of that job, by site


cdef inline TariffNotes* tariffs_open(Py_ssize_t sites) noexcept:
    # NULL where there is no memory.
    cdef TariffNotes* notes = <TariffNotes*> calloc(1, sizeof(TariffNotes))
    if notes != NULL:
        notes.cost = <double*> calloc(sites, sizeof(double))
        if notes.cost == NULL:
            free(notes)
            return NULL
    return notes


cdef inline void tariffs_close(TariffNotes* notes) noexcept:
    if notes != NULL:
        free(notes.cost)
    free(notes)


cdef inline double tariff_cost(
    const RateSteps* tariff, const Deferral* deferral, seconds_t start, seconds_t request
) noexcept nogil:
    # Of one processor, as far as it is looked at; infinite where there is no tariff.
    if tariff.count == 0:
        return INFINITY
    return rate_sum(tariff, start, rate_duration(deferral, request))


cdef inline void tariff_bound(
    TariffNotes* notes, const RateSteps* own, KnownJob job, seconds_t now, seconds_t submit_time
) noexcept nogil:
    # What a partner has to be cheaper than: the cost at home, when the job is planned to start.
    cdef seconds_t start = cheapest_start(
        own, &notes.deferral, now, submit_time + notes.deferral.delay_max, job.requested_time
    )
    cdef double cost = tariff_cost(own, &notes.deferral, start, job.requested_time)
    cdef double noise = 1e-9 * own.scale * rate_duration(&notes.deferral, job.requested_time)
    notes.bound = cost - notes.deferral.saving * fabs(cost) - noise


cdef inline bint costs_less(const TariffNotes* notes, site_index_t index) noexcept nogil:
    return notes != NULL and notes.cost[index] < notes.bound


cdef inline bint comes_first(
    const TariffNotes* notes, site_index_t left, site_index_t right
) noexcept nogil:
    # A total order.
    return notes.cost[left] < notes.cost[right] or (
        notes.cost[left] == notes.cost[right] and left < right
    )


cdef inline void order_by_cost(
    const TariffNotes* notes, site_index_t* partners, Py_ssize_t count
) noexcept nogil:
    # From one decision to the next the order hardly changes.
    cdef Py_ssize_t i, place
    cdef site_index_t index
    for i in range(1, count):
        index = partners[i]
        place = i
        while place > 0 and comes_first(notes, index, partners[place - 1]):
            partners[place] = partners[place - 1]
            place -= 1
        partners[place] = index
