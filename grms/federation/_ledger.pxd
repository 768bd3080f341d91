# What each site of a replay records of its partners for its constraints
# (grms/policy/_constraints.pxd).
from libc.math cimport INFINITY
from libc.stdint cimport int8_t
from libc.stdlib cimport free
from libc.string cimport memmove

from grms.policy._constraints cimport ConstraintNumbers, Trust, broken_fast, late_fast, overdue_fast
from lrms_sim.kernel._machine cimport JobColumns
from lrms_sim.kernel._memory cimport doubled, safe_calloc, safe_realloc
from lrms_sim.kernel._types cimport job_index_t, seconds_t

cdef enum:
    MARK_ENDED = 1               # a delegated job is completed
    MARK_BROKEN = 2              # it has been counted as a broken promise
    MARK_LIED = 4                # the partner has reported another run time

cdef struct Delegated:
    # By job, of those that run elsewhere than at home.
    seconds_t* since
    int8_t* mark

cdef struct PartnerBooks:
    # What a site has done for a partner, and the partner for it.
    double taken                 # see Books
    double given                 # same
    double favor                 # what the site owes the partner; see favored_fast

cdef struct PartnerNotes:
    # A site's record of one partner.
    PartnerBooks books           # elsewhere where the site has `met`
    Trust trust
    job_index_t* open            # own jobs there, in order of delegation, until one looks again
    Py_ssize_t count
    Py_ssize_t capacity
    bint stale                   # one of them has ended since one has looked
    seconds_t overdue            # when the next of them is overdue; infinity for never
    PartnerNotes* after          # see SiteRun.delegated_to


cdef inline seconds_t reported_run_time(
    const Delegated* delegated, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    # What the home of an ended delegated job is told. A plausible lie: since it came, and no
    # longer than it may.
    cdef seconds_t lasted
    if not delegated.mark[job] & MARK_LIED:
        return jobs.run_time[job]
    lasted = jobs.end_time[job] - delegated.since[job]
    return lasted if lasted < jobs.requested_time[job] else jobs.requested_time[job]


cdef inline seconds_t misreported(
    Delegated* delegated, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    # Lets the partner lie about an ended job, and returns its report.
    delegated.mark[job] |= MARK_LIED
    return reported_run_time(delegated, jobs, job)


cdef inline int ledger_delegate(
    PartnerNotes* ledger, const ConstraintNumbers* rails, Delegated* delegated,
    const JobColumns* jobs,
    job_index_t job, seconds_t now,
) except -1 nogil:
    cdef Py_ssize_t capacity
    cdef seconds_t overdue = now + jobs.requested_time[job] + rails.tolerance
    if ledger.count == ledger.capacity:
        capacity = doubled(ledger.capacity, 4)
        ledger.open = <job_index_t*> safe_realloc(
            ledger.open, capacity, sizeof(job_index_t), b"open jobs at a partner"
        )
        ledger.capacity = capacity
    ledger.trust.open_count += 1
    ledger.trust.open_work += jobs.requested_time[job] * jobs.processors[job]
    if ledger.count == 0:
        ledger.overdue = overdue
    elif overdue < ledger.overdue:
        ledger.overdue = overdue
    ledger.open[ledger.count] = job
    ledger.count += 1
    delegated.since[job] = now
    return 0


cdef inline void ledger_review(
    PartnerNotes* ledger, const ConstraintNumbers* rails, Delegated* delegated,
    const JobColumns* jobs,
    seconds_t now,
) noexcept nogil:
    # Updates the record with all open jobs there, in order of delegation. Done before every offer;
    # nothing can have changed if it returns at once.
    cdef Py_ssize_t kept = 0
    cdef Py_ssize_t i
    cdef job_index_t job
    cdef seconds_t since, overdue
    cdef double requested
    if ledger.count == 0 or not ledger.stale and now <= ledger.overdue:
        return
    ledger.stale = False
    ledger.overdue = INFINITY
    for i in range(ledger.count):
        job = ledger.open[i]
        since = delegated.since[job]
        requested = jobs.requested_time[job] * jobs.processors[job]
        if delegated.mark[job] & MARK_ENDED:
            ledger.trust.open_count -= 1
            ledger.trust.open_work -= requested
            if not delegated.mark[job] & MARK_BROKEN:
                if late_fast(
                    rails, since, reported_run_time(delegated, jobs, job), jobs.end_time[job]
                ):
                    broken_fast(rails, &ledger.trust, now)
                else:
                    ledger.trust.credit += requested
            continue
        if not delegated.mark[job] & MARK_BROKEN:
            if overdue_fast(rails, since, jobs.requested_time[job], now):
                delegated.mark[job] |= MARK_BROKEN
                broken_fast(rails, &ledger.trust, now)
            else:
                overdue = since + jobs.requested_time[job] + rails.tolerance
                if overdue < ledger.overdue:
                    ledger.overdue = overdue
        ledger.open[kept] = job
        kept += 1
    ledger.count = kept


cdef inline void ledger_return(
    PartnerNotes* ledger, Delegated* delegated, const JobColumns* jobs, job_index_t job
) noexcept nogil:
    # The partner has sent home a job of which the requested time is still that of its handing. It
    # is struck off without credit.
    cdef Py_ssize_t place = 0
    while ledger.open[place] != job:
        place += 1
    ledger.count -= 1
    memmove(
        &ledger.open[place], &ledger.open[place + 1],
        (ledger.count - place) * sizeof(job_index_t),
    )
    ledger.trust.open_count -= 1
    ledger.trust.open_work -= jobs.requested_time[job] * jobs.processors[job]
    delegated.mark[job] &= ~MARK_BROKEN


cdef inline void ledger_free(PartnerNotes* ledger) noexcept nogil:
    free(ledger.open)
    ledger.open = NULL


cdef inline int delegated_room(Delegated* delegated, Py_ssize_t count) except -1:
    # For `count` jobs, none of which is delegated yet.
    free(delegated.since)
    free(delegated.mark)
    delegated.mark = NULL
    delegated.since = NULL
    delegated.since = <seconds_t*> safe_calloc(count, sizeof(seconds_t), b"delegated jobs")
    delegated.mark = <int8_t*> safe_calloc(count, sizeof(int8_t), b"delegated jobs")
    return 0
