# Messages between very many sites that take their time, and questions that are lost.
#
# A message between two sites takes half their round trip, drawn for each pair from a log-normal
# distribution. Of the questions a part is lost, drawn for each job and partner; who has asked it
# goes on after a time-out. Draws are functions of the seed and of numbers of sites and jobs, so
# that nothing is kept of a pair, and a draw does not depend on what happened before.
from libc.math cimport INFINITY, cos, exp, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free

from grms.policy._decisions cimport site_index_t
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport job_index_t, seconds_t

cdef enum:
    A_REPORT = -1

cdef struct Message:
    seconds_t time               # of its arrival, or when an answer is no longer waited for
    int64_t number               # in order of sending
    job_index_t job
    int32_t asking               # row in `asking`; A_REPORT: of the end of the job

cdef struct AskingJob:
    # A job about which partners are asked, one after the other, in the order in which they were
    # when it was submitted. It is in no queue meanwhile.
    bint arrives                 # the next message is the question at the last partner asked
    int32_t listed               # of the partners
    int32_t next_one             # of these to be asked
    int32_t spare                # of a row that is not in use: the next such row

cdef struct WideArea:
    bint used
    uint64_t seed
    seconds_t median             # of round trips
    double spread                # standard deviation of their logarithms
    double lost                  # part of the questions
    seconds_t timeout
    Message* heap                # under way, least (time, number) first
    Py_ssize_t count
    Py_ssize_t capacity
    int64_t sent
    AskingJob* asking
    int32_t asking_count         # rows that have ever been in use
    int32_t asking_capacity
    int32_t spare                # the first row that is not in use; -1 for none
    site_index_t* listed         # by row of `asking`, `most` each
    Py_ssize_t most              # partners asked about a job


cdef inline void wide_area_close(WideArea* wide) noexcept nogil:
    free(wide.heap)
    free(wide.asking)
    free(wide.listed)


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    # splitmix64 (Steele, Lea and Flood 2014, *Fast splittable pseudorandom number generators*).
    value += <uint64_t> 0x9E3779B97F4A7C15
    value = (value ^ (value >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    value = (value ^ (value >> 27)) * <uint64_t> 0x94D049BB133111EB
    return value ^ (value >> 31)


cdef inline double draw(uint64_t seed, int32_t one, int32_t other, int kind) noexcept nogil:
    # Uniform, above 0 and below 1.
    cdef uint64_t pair = (<uint64_t> one << 32) | <uint64_t> other
    return (<double> (mixed(mixed(seed + <uint64_t> kind) ^ pair) >> 11) + 0.5) / 9007199254740992.0


cdef inline seconds_t one_way(
    const WideArea* wide, site_index_t one, site_index_t other
) noexcept nogil:
    # How long a message between two sites takes, either way.
    cdef site_index_t first = one if one < other else other
    cdef site_index_t second = other if one < other else one
    cdef double normal
    if wide.spread == 0.0:
        return 0.5 * wide.median
    # Box and Muller.
    normal = sqrt(-2.0 * log(draw(wide.seed, first, second, 0))) * cos(
        6.283185307179586 * draw(wide.seed, first, second, 1)
    )
    return 0.5 * wide.median * exp(wide.spread * normal)


cdef inline bint question_is_lost(
    const WideArea* wide, job_index_t job, site_index_t partner
) noexcept nogil:
    return wide.lost > 0.0 and draw(wide.seed, job, partner, 2) < wide.lost


cdef inline bint comes_before(const Message* left, const Message* right) noexcept nogil:
    return left.time < right.time or left.time == right.time and left.number < right.number


cdef inline int message_send(
    WideArea* wide, seconds_t time, job_index_t job, int32_t asking
) except -1 nogil:
    cdef Message message
    cdef Py_ssize_t place = wide.count
    cdef Py_ssize_t above
    if wide.count == wide.capacity:
        wide.capacity = doubled(wide.capacity, 64)
        wide.heap = <Message*> safe_realloc(
            wide.heap, wide.capacity, sizeof(Message), b"messages"
        )
    message.time = time
    message.number = wide.sent
    message.job = job
    message.asking = asking
    wide.sent += 1
    wide.count += 1
    while place > 0:
        above = (place - 1) >> 1
        if not comes_before(&message, &wide.heap[above]):
            break
        wide.heap[place] = wide.heap[above]
        place = above
    wide.heap[place] = message
    return 0


cdef inline seconds_t next_message(const WideArea* wide) noexcept nogil:
    # When the next message arrives; infinity where none is under way.
    return wide.heap[0].time if wide.count > 0 else INFINITY


cdef inline Message message_take(WideArea* wide) noexcept nogil:
    # The next message, which there is.
    cdef Message found = wide.heap[0]
    cdef Message last
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t below = 1
    wide.count -= 1
    last = wide.heap[wide.count]
    while below < wide.count:
        if below + 1 < wide.count and comes_before(&wide.heap[below + 1], &wide.heap[below]):
            below += 1
        if not comes_before(&wide.heap[below], &last):
            break
        wide.heap[place] = wide.heap[below]
        place = below
        below = 2 * place + 1
    wide.heap[place] = last
    return found


cdef inline int32_t asking_new(WideArea* wide) except -1 nogil:
    # A row for a job that is to be asked about.
    cdef int32_t row = wide.spare
    if row >= 0:
        wide.spare = wide.asking[row].spare
    else:
        row = wide.asking_count
        if row == wide.asking_capacity:
            wide.asking_capacity = <int32_t> doubled(wide.asking_capacity, 64)
            wide.asking = <AskingJob*> safe_realloc(
                wide.asking, wide.asking_capacity, sizeof(AskingJob), b"jobs that are offered"
            )
            wide.listed = <site_index_t*> safe_realloc(
                wide.listed, wide.asking_capacity * wide.most, sizeof(site_index_t),
                b"jobs that are offered",
            )
        wide.asking_count += 1
    wide.asking[row].listed = wide.asking[row].next_one = 0
    return row


cdef inline void asking_done(WideArea* wide, int32_t row) noexcept nogil:
    wide.asking[row].spare = wide.spare
    wide.spare = row
