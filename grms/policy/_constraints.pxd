# ExchangeConstraints: what an exchange has to keep to, whatever a transfer policy would like.
#
# A site knows its local users' completed jobs, what it has taken from a partner and given to it,
# and how the partner has kept its promise: nothing else is used here. docs/fair-exchange.md gives
# the purpose of each rule.
from libc.math cimport INFINITY

from lrms_sim.kernel._types cimport processors_t, seconds_t

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


cdef inline bint takes_guest_fast(
    const ConstraintNumbers* rails,
    processors_t width,
    seconds_t request,
    processors_t processors,
    const Books* books,
) noexcept nogil:
    # Whether a site of that size may take such a job of a partner, by its books.
    if books.own_work > 0.0 and request > (
        rails.guest_length * (books.own_requested / books.own_work)
    ):
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
