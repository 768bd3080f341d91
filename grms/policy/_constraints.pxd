# ExchangeConstraints: what an exchange has to keep to, whatever a transfer policy would like.
#
# A site knows its local users' completed jobs, what it has taken from a partner and given to it,
# and how the partner has kept its promise: nothing else is used here. docs/fair-exchange.md gives
# the purpose of each rule.
from libc.math cimport INFINITY, floor

from lrms_sim.kernel._types cimport processors_t, seconds_t

cdef enum Account:
    NO_ACCOUNT = 0
    GUESTS_PREEMPTED = 1         # own jobs may take their processors
    GUESTS_RUN = 2               # they run to their end

cdef enum Handing:
    # How a site takes a guest.
    DECLINED = 0
    PREEMPTIBLE = 1              # own jobs may take its processors at any time
    PROTECTED = 2                # while the site is in credit they may not

cdef struct ConstraintNumbers:
    bint start_now               # offer what would not start at once, take what would
    double guest_length          # a guest's request over that of own jobs, at most; infinity: any
    seconds_t balance            # work taken beyond what was given, in seconds of the whole machine
    double balance_weight        # what was given counts so many times
    bint promise                 # the rest is in force
    seconds_t tolerance          # a promise is broken by more than so much
    seconds_t trust              # work a new partner may hold, in seconds of the whole machine
    seconds_t suspension         # of a partner that has broken its promise once
    int doublings                # of the suspension, at most
    Account account              # kept; else the rest says nothing
    double allowance             # see AccountRules
    seconds_t memory
    double cap
    seconds_t account_period
    seconds_t lost_work
    int empty_returns
    bint protects                # guests may be protected in credit
    bint favors                  # guests of partners with less favor give way to others

cdef struct Books:
    # A site's own records when it decides, which it keeps private.
    double own_work              # Σ p·m of its users' jobs that are completed, wherever they ran
    double own_requested         # Σ p·m·requested time of the same
    double taken                 # of the partner's jobs: Σ p·m, of those open Σ requested time·m
    double given                 # Σ p·m of its users' jobs that the partner has completed

cdef struct Trust:
    # A site's record of a partner's promise to start accepted jobs at once.
    double credit                # Σ requested time·m of jobs that were done as promised
    double open_work             # Σ requested time·m of the jobs that are there
    Py_ssize_t open_count
    int breaches
    seconds_t suspended_until
    double debt                  # Σ of work lost there, processor seconds


cdef inline bint short_guest_fast(
    const ConstraintNumbers* rails, seconds_t request, const Books* books
) noexcept nogil:
    # Whether a guest is no longer than it may, by own users' jobs; any is before one has ended.
    return not (
        books.own_work > 0.0
        and request > rails.guest_length * (books.own_requested / books.own_work)
    )


cdef inline Handing handing_fast(
    const ConstraintNumbers* rails,
    processors_t width,
    seconds_t request,
    seconds_t checkpoint,
    processors_t processors,
    const Books* books,
    bint in_credit,
    bint starts_now,
) noexcept nogil:
    # How a site whose batch system can preempt takes such a job of a partner, for which enough
    # processors are idle. A guest that keeps its state every `checkpoint` seconds (0: never) stands
    # to lose no more than these.
    if rails.protects and in_credit and starts_now and takes_guest_fast(
        rails, width, request, processors, books
    ):
        return PROTECTED
    if checkpoint > 0.0 and checkpoint < request:
        request = checkpoint
    return PREEMPTIBLE if short_guest_fast(rails, request, books) else DECLINED


cdef inline seconds_t kept_fast(
    seconds_t elapsed, seconds_t checkpoint, seconds_t run_left
) noexcept nogil:
    # What a job has kept that is sent home so long after its start. There is something left to do.
    cdef seconds_t kept
    if checkpoint <= 0.0:
        return 0.0
    kept = floor(elapsed / checkpoint) * checkpoint
    if kept > run_left - 1.0:
        kept = run_left - 1.0
    return kept if kept > 0.0 else 0.0


cdef inline double favored_fast(double favor, double received, double done) noexcept nogil:
    # What a site owes a partner, in processor seconds, after the partner has done so much for it
    # and it so much for the partner. Nobody owes less than nothing, or a new name would pay.
    favor += received - done
    return favor if favor > 0.0 else 0.0


cdef inline bint lost_fast(
    const ConstraintNumbers* rails, Trust* trust, double lost, processors_t processors,
    seconds_t now,
) noexcept nogil:
    # A partner has sent a job home and its work of so many processor seconds is lost. Whether that
    # is too much by now, which counts as a broken promise; `processors` is the home's size.
    trust.debt += lost
    if trust.debt <= rails.lost_work * processors + trust.credit:
        return False
    trust.debt = 0.0
    broken_fast(rails, trust, now)
    return True


cdef inline bint takes_guest_fast(
    const ConstraintNumbers* rails,
    processors_t width,
    seconds_t request,
    processors_t processors,
    const Books* books,
) noexcept nogil:
    # Whether a site of that size may take such a job of a partner, by its books.
    if not short_guest_fast(rails, request, books):
        return False
    return not (
        books.taken + request * width - rails.balance_weight * books.given
        > rails.balance * processors
    )


cdef inline bint may_offer_fast(
    const ConstraintNumbers* rails,
    const Trust* trust,
    seconds_t now,
    processors_t width,
    seconds_t request,
    processors_t processors,
) noexcept nogil:
    # Whether a site of that size entrusts such a job to a partner.
    if now < trust.suspended_until:
        return False
    return trust.open_count == 0 or (
        trust.open_work + request * width <= rails.trust * processors + trust.credit
    )


cdef inline bint late_fast(
    const ConstraintNumbers* rails, seconds_t delegated, seconds_t lasted, seconds_t ended
) noexcept nogil:
    # Whether a job that has ended was not started as promised.
    return ended - delegated - lasted > rails.tolerance


cdef inline bint overdue_fast(
    const ConstraintNumbers* rails, seconds_t delegated, seconds_t request, seconds_t now
) noexcept nogil:
    # Whether a job that has not ended should have, by its request.
    return now > delegated + request + rails.tolerance


cdef inline void broken_fast(
        const ConstraintNumbers* rails, Trust* trust, seconds_t now) noexcept nogil:
    # A promise was broken; a site notices before its next offer.
    cdef seconds_t until
    trust.credit = 0.0
    if now >= trust.suspended_until:
        trust.breaches += 1
    until = now + rails.suspension * (
        1 << (trust.breaches - 1 if trust.breaches - 1 < rails.doublings else rails.doublings)
    )
    if until > trust.suspended_until:
        trust.suspended_until = until


cdef class CompiledConstraints:
    cdef ConstraintNumbers rails
