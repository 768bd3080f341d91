# A site's account of itself: what exchange has brought its own users, held against a shadow in
# which their jobs are alone on the machine. grms/federation/own_account.py says what it is for.
#
# The shadow learns a run time when the job has really ended; until then it runs there for ever,
# and the shadow goes no further than where it might end. All columns are by job and belong to the
# owner.
from lrms_sim.kernel._machine cimport JobColumns, MachineCore
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport DisciplineOps

cdef struct AccountRules:
    seconds_t period             # looked at at its multiples
    double allowance             # part of `base` that exchange may cost beyond what it has brought
    double cap                   # part of `base` up to which gain is saved
    double decay                 # of all sums, per look

cdef struct OwnAccount:
    MachineCore shadow
    AccountRules rules
    const seconds_t* real_start  # by job, nan while it does not run
    const seconds_t* real_end    # by job; read of ended jobs alone
    seconds_t* known_run         # by job; infinity until it has ended
    seconds_t* start             # by job, in the shadow; nan before
    job_index_t* arrived         # own jobs in order of arrival
    Py_ssize_t count
    Py_ssize_t capacity
    Py_ssize_t next              # the first of them that the shadow does not know yet
    seconds_t first_arrival
    seconds_t last               # time of the shadow's last event
    job_index_t* early           # run there since before their real starts, of unknown run time
    Py_ssize_t early_count
    Py_ssize_t early_capacity
    bint early_known             # else they are looked for; a job has lost its real start
    double gain                  # Σ w·(end in the shadow − end), fading
    double saved                 # the same, never more than `cap`·base
    double base                  # Σ w·(end in the shadow − submit time), fading
    double booked                # number of jobs in these sums, fading likewise
    double weight                # Σ w of these
    double ran                   # Σ w·run time of these
    double work                  # Σ p·m of ended own jobs
    double asked                 # Σ requested time·m of these
    bint in_credit
    seconds_t since              # of the last turn

cdef int account_open(
    OwnAccount* account, processors_t processors, DisciplineOps ops, void* notes,
    AccountRules rules,
) except -1
cdef void account_close(OwnAccount* account) noexcept
cdef void account_bind(
    OwnAccount* account, JobColumns columns, seconds_t* known_run,
    const seconds_t* real_start, const seconds_t* real_end,
) noexcept nogil
cdef int account_submitted(OwnAccount* account, job_index_t job) except -1 nogil
cdef int account_ended(OwnAccount* account, job_index_t job, seconds_t run_time) except -1 nogil
cdef int account_look(OwnAccount* account, seconds_t now) except -1 nogil


cdef inline double account_ratio(const OwnAccount* account) noexcept nogil:
    # How much of their requests own users' jobs use.
    return account.work / account.asked if account.asked > 0.0 else 1.0


cdef inline double account_owed(
    const OwnAccount* account, job_index_t job, double ratio, seconds_t now
) noexcept nogil:
    # What a waiting job has lost by now, by what the shadow knows.
    cdef seconds_t since = account.start[job]
    if since != since:
        since = account.shadow.view.submit_time[job]
        if account.last > since:
            since = account.last
    if since >= now:
        return 0.0
    return (
        ratio * account.shadow.view.requested_time[job]
        * account.shadow.view.job_processors[job] * (now - since)
    )


cdef inline int account_turn(OwnAccount* account, double owed, seconds_t now) noexcept nogil:
    # Whether the site is in credit until the next look: -1 it has lost it, 1 regained it, else 0.
    cdef bint before = account.in_credit
    account.in_credit = account.saved + account.rules.allowance * account.base - owed >= 0.0
    if account.in_credit == before:
        return 0
    account.since = now
    return 1 if account.in_credit else -1
