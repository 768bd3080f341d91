"""Exchange constraints around a transfer policy, compiled; the values are in
`grms.policy.constraints`."""

from libc.math cimport INFINITY
from libc.string cimport memset

from lrms_sim.kernel._types cimport processors_t


cdef class CompiledConstraints:
    def __cinit__(
        self,
        *,
        bint start_now=True,
        double guest_length=INFINITY,
        double balance=INFINITY,
        double balance_weight=1.0,
        promise=None,
        account=None,
    ):
        cdef ConstraintNumbers* rails = &self.rails
        rails.start_now = start_now
        rails.guest_length = guest_length
        rails.balance = balance
        rails.balance_weight = balance_weight
        rails.promise = promise is not None
        if promise is not None:
            rails.tolerance, rails.trust, rails.suspension, rails.doublings = promise
        rails.account = NO_ACCOUNT
        if account is not None:
            (
                preempts, rails.allowance, rails.memory, rails.cap, rails.account_period,
                rails.lost_work, rails.empty_returns, rails.protects, rails.favors,
            ) = account
            rails.account = GUESTS_PREEMPTED if preempts else GUESTS_RUN

    @property
    def start_now(self):
        return bool(self.rails.start_now)

    @property
    def promise(self):
        return bool(self.rails.promise)

    @property
    def account(self):
        return self.rails.account != NO_ACCOUNT

    def may_offer(
        self,
        processors_t job_processors,
        double requested_time,
        *,
        processors_t processors,
        double now,
        double credit,
        double open_work,
        Py_ssize_t open_count,
        double suspended_until,
    ):
        cdef Trust trust
        memset(&trust, 0, sizeof(Trust))
        trust.credit = credit
        trust.open_work = open_work
        trust.open_count = open_count
        trust.suspended_until = suspended_until
        return not self.rails.promise or bool(
            may_offer_fast(&self.rails, &trust, now, job_processors, requested_time, processors)
        )

    def late(self, double delegated, double lasted, double ended):
        return bool(late_fast(&self.rails, delegated, lasted, ended))

    def overdue(self, double delegated, double requested_time, double now):
        return bool(overdue_fast(&self.rails, delegated, requested_time, now))

    def broken(self, double now, *, int breaches, double suspended_until):
        cdef Trust trust
        memset(&trust, 0, sizeof(Trust))
        trust.breaches = breaches
        trust.suspended_until = suspended_until
        broken_fast(&self.rails, &trust, now)
        return trust.breaches, trust.suspended_until

    def handing(
        self,
        processors_t job_processors,
        double requested_time,
        double checkpoint,
        *,
        processors_t processors,
        double own_work,
        double own_requested,
        double taken,
        double given,
        bint in_credit,
        bint starts_now,
    ):
        cdef Books books
        books.own_work = own_work
        books.own_requested = own_requested
        books.taken = taken
        books.given = given
        return <int> handing_fast(
            &self.rails, job_processors, requested_time, checkpoint, processors, &books,
            in_credit, starts_now,
        )

    def lost(
        self,
        double lost,
        double now,
        *,
        processors_t processors,
        double debt,
        double credit,
        int breaches,
        double suspended_until,
    ):
        cdef Trust trust
        memset(&trust, 0, sizeof(Trust))
        trust.debt = debt
        trust.credit = credit
        trust.breaches = breaches
        trust.suspended_until = suspended_until
        lost_fast(&self.rails, &trust, lost, processors, now)
        return trust.debt, trust.credit, trust.breaches, trust.suspended_until


def kept(double elapsed, double checkpoint, double run_left):
    return kept_fast(elapsed, checkpoint, run_left)


def favored(double favor, double received, double done):
    return favored_fast(favor, received, done)
