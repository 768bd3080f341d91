# What a site keeps of its rounds of offers if it spares questions: the order in which waiting jobs
# are offered, who has declined which of them, and when that partner is asked again.
#
# During a round only placements happen, so that a partner's room only shrinks. One that has
# declined a job because it does not start at once, or by its width, request or their product,
# declines each job at least as wide and as long, too: it is not asked about that one in this
# round.
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memcpy, memmove, memset

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport processors_t, seconds_t

cdef enum:
    REFUSALS_MAX = 16            # so many are remembered of one partner, for one round

cdef struct Pause:
    seconds_t until              # it is not asked before
    seconds_t length             # how long it was; 0 before the first no

cdef struct Declined:
    # A refusal in this round.
    processors_t width
    seconds_t request

cdef struct WaitingJob:
    Py_ssize_t slot              # in the queue
    Py_ssize_t row               # of its pauses
    processors_t width
    seconds_t request

cdef struct RoundNotes:
    Py_ssize_t partners          # pauses of one job
    Py_ssize_t questions         # most of one round
    Py_ssize_t left              # of this round
    seconds_t period             # a first pause
    seconds_t pause_max          # the longest pause; 0 for none
    bint widest                  # the widest first; else in the order of the queue
    WaitingJob* waiting
    Pause* pauses                # by row, then by partner
    Pause* pauses_before         # of the round before
    Py_ssize_t capacity          # rows
    Py_ssize_t count
    Py_ssize_t row               # of the job whose turn it is
    Declined* refusals            # by partner, REFUSALS_MAX of each
    int32_t* refused             # how many these are, by partner


cdef inline RoundNotes* rounds_open(
    Py_ssize_t partners, seconds_t period, Py_ssize_t questions, seconds_t pause_max, bint widest
) except NULL:
    cdef RoundNotes* rounds = <RoundNotes*> calloc(1, sizeof(RoundNotes))
    if rounds == NULL:
        raise MemoryError("no memory for rounds of offers")
    rounds.partners = partners
    rounds.questions = questions
    rounds.period = period
    rounds.pause_max = pause_max
    rounds.widest = widest
    rounds.refusals = <Declined*> calloc(partners * REFUSALS_MAX, sizeof(Declined))
    rounds.refused = <int32_t*> calloc(partners, sizeof(int32_t))
    if rounds.refusals == NULL or rounds.refused == NULL:
        rounds_close(rounds)
        raise MemoryError(f"no memory for offers to {partners} partners")
    return rounds


cdef inline void rounds_close(RoundNotes* rounds) noexcept nogil:
    if rounds != NULL:
        free(rounds.waiting)
        free(rounds.pauses)
        free(rounds.pauses_before)
        free(rounds.refusals)
        free(rounds.refused)
        free(rounds)


cdef inline int rounds_begin(RoundNotes* rounds, Py_ssize_t most) except -1 nogil:
    # Begins a round with at most `most` jobs: nothing is kept of the one before but pauses.
    cdef Py_ssize_t capacity = rounds.capacity
    cdef Pause* before
    rounds.left = rounds.questions
    rounds.count = 0
    memset(rounds.refused, 0, rounds.partners * sizeof(int32_t))
    if most > capacity:
        while most > capacity:
            capacity = doubled(capacity, 64)
        rounds.waiting = <WaitingJob*> safe_realloc(
            rounds.waiting, capacity, sizeof(WaitingJob), b"jobs to be offered again"
        )
        rounds.pauses = <Pause*> safe_realloc(
            rounds.pauses, capacity * rounds.partners, sizeof(Pause), b"pauses"
        )
        rounds.pauses_before = <Pause*> safe_realloc(
            rounds.pauses_before, capacity * rounds.partners, sizeof(Pause), b"pauses"
        )
        rounds.capacity = capacity
    before = rounds.pauses_before
    rounds.pauses_before = rounds.pauses
    rounds.pauses = before
    return 0


cdef inline void rounds_add(
    RoundNotes* rounds, Py_ssize_t slot, processors_t width, seconds_t request, int32_t* row
) noexcept nogil:
    # A waiting job; `row` is that of its pauses in the round before plus 1, and becomes its own.
    cdef Pause* pauses = &rounds.pauses[rounds.count * rounds.partners]
    cdef WaitingJob* one = &rounds.waiting[rounds.count]
    if row[0] > 0:
        memcpy(
            pauses, &rounds.pauses_before[(row[0] - 1) * rounds.partners],
            rounds.partners * sizeof(Pause),
        )
    else:
        memset(pauses, 0, rounds.partners * sizeof(Pause))
    one.slot = slot
    one.row = rounds.count
    one.width = width
    one.request = request
    rounds.count += 1
    row[0] = <int32_t> rounds.count


cdef inline int by_width(const void* one, const void* other) noexcept nogil:
    # The widest first; ties keep the order of the queue.
    cdef const WaitingJob* a = <const WaitingJob*> one
    cdef const WaitingJob* b = <const WaitingJob*> other
    if a.width != b.width:
        return -1 if a.width > b.width else 1
    return -1 if a.row < b.row else 1


cdef inline void rounds_order(RoundNotes* rounds) noexcept nogil:
    # The widest first, after the narrowest, and of these the shortest: a partner that declines it
    # is hardly asked about any other.
    cdef WaitingJob easiest
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t i
    if not rounds.widest or rounds.count < 2:
        return
    qsort(rounds.waiting, rounds.count, sizeof(WaitingJob), by_width)
    for i in range(1, rounds.count):
        easiest = rounds.waiting[place]
        if rounds.waiting[i].width < easiest.width or (
            rounds.waiting[i].width == easiest.width
            and rounds.waiting[i].request < easiest.request
        ):
            place = i
    easiest = rounds.waiting[place]
    memmove(&rounds.waiting[1], rounds.waiting, place * sizeof(WaitingJob))
    rounds.waiting[0] = easiest


cdef inline bint rounds_spare(
    const RoundNotes* rounds,
    Py_ssize_t partner,
    processors_t width,
    seconds_t request,
    seconds_t now,
) noexcept nogil:
    # Whether a partner is not asked about the present job: the questions of the round are used up,
    # or the partner has declined the job recently, or in this round one that is neither wider nor
    # longer.
    cdef const Declined* refusal = &rounds.refusals[partner * REFUSALS_MAX]
    cdef Py_ssize_t i
    if rounds.left == 0 or now < rounds.pauses[rounds.row * rounds.partners + partner].until:
        return True
    for i in range(rounds.refused[partner]):
        if refusal[i].width <= width and refusal[i].request <= request:
            return True
    return False


cdef inline void rounds_declined(
    RoundNotes* rounds, Py_ssize_t partner, processors_t width, seconds_t request, seconds_t now
) noexcept nogil:
    cdef Pause* pause = &rounds.pauses[rounds.row * rounds.partners + partner]
    cdef Declined* refusal = &rounds.refusals[partner * REFUSALS_MAX]
    cdef int32_t count = rounds.refused[partner]
    cdef int32_t kept = 0
    cdef int32_t i
    if rounds.pause_max > 0.0:
        pause.length = 2.0 * pause.length if pause.length > 0.0 else rounds.period
        if pause.length > rounds.pause_max:
            pause.length = rounds.pause_max
        pause.until = now + pause.length
    # Drop refusals that this one makes redundant.
    for i in range(count):
        if refusal[i].width < width or refusal[i].request < request:
            refusal[kept] = refusal[i]
            kept += 1
    if kept < REFUSALS_MAX:
        refusal[kept].width = width
        refusal[kept].request = request
        kept += 1
    rounds.refused[partner] = kept
