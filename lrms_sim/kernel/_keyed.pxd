# The waiting jobs of a machine with a key each: the order in which they are looked at.
#
# A key is fixed at the submission (SAF, LJF, F1 to F4, that of the user) or grows while a job waits
# (WFP3). The slots
# stay in order of arrival, so that the first one found wins a tie. Each block of 64 slots keeps a
# bound of its keys, and a search looks into the few blocks that can hold the best job.
from libc.math cimport INFINITY, log10, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free

from lrms_sim.kernel._room cimport Best, Room, room_admits
from lrms_sim.kernel._memory cimport safe_realloc
from lrms_sim.kernel._queue cimport (
    BLOCK_SHIFT,
    BLOCK_SIZE,
    WaitingQueue,
    queue_free,
    queue_push,
    queue_remove,
)
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef enum KeyKind:
    KEY_LONGEST                  # LJF
    KEY_AREA                     # SAF
    KEY_WFP3
    KEY_F1
    KEY_F2
    KEY_F3
    KEY_F4
    KEY_USER                     # a number for each user
    KEY_KINDS

cdef struct Keyed:
    WaitingQueue queue
    double* key                  # by slot, the least is served first; not used by WFP3
    double* block_key_min        # by block, lower bound
    processors_t* block_width_max    # by block, upper bound
    KeyKind kind
    bint used
    const double* user_key       # for KEY_USER: by number of the user
    Py_ssize_t users


cdef inline double wfp3_key(
    seconds_t age, seconds_t request, processors_t width
) noexcept nogil:
    cdef double ratio = age / request
    return -(ratio * ratio * ratio * width)


cdef inline double fixed_key(
    KeyKind kind, seconds_t submit_time, seconds_t request, processors_t width
) noexcept nogil:
    # docs/disciplines.md has the formulas; each is computed as it stands there.
    cdef seconds_t since
    if kind == KEY_LONGEST:
        return -request
    if kind == KEY_AREA:
        return request * width
    since = submit_time if submit_time > 1.0 else 1.0
    if kind == KEY_F1:
        return log10(request) * width + 870.0 * log10(since)
    if kind == KEY_F2:
        return sqrt(request) * width + 25600.0 * log10(since)
    if kind == KEY_F3:
        return request * width + 6860000.0 * log10(since)
    return request * sqrt(<double> width) + 530000.0 * log10(since)


cdef inline double submitted_key(
    const Keyed* keyed,
    const View* view,
    job_index_t job,
    seconds_t request,
    processors_t width,
) noexcept nogil:
    # The key that a job has for good. Whoever has no key of his own comes last.
    cdef int32_t user
    if keyed.kind != KEY_USER:
        return fixed_key(keyed.kind, view.submit_time[job], request, width)
    user = -1 if view.job_user == NULL else view.job_user[job]
    return keyed.user_key[user] if 0 <= user < keyed.users else INFINITY


cdef inline double key_now(
    const Keyed* keyed,
    const View* view,
    job_index_t job,
    seconds_t request,
    processors_t width,
) noexcept nogil:
    if keyed.kind == KEY_WFP3:
        return wfp3_key(view.now - view.submit_time[job], request, width)
    return submitted_key(keyed, view, job, request, width)


cdef inline void keyed_free(Keyed* keyed) noexcept nogil:
    queue_free(&keyed.queue)
    free(keyed.key)
    free(keyed.block_key_min)
    free(keyed.block_width_max)
    keyed.key = NULL
    keyed.block_key_min = NULL
    keyed.block_width_max = NULL


cdef inline void keyed_bound(Keyed* keyed, Py_ssize_t block) noexcept nogil:
    # Makes the bounds of a block those of its jobs.
    cdef WaitingQueue* queue = &keyed.queue
    cdef Py_ssize_t last = (block + 1) << BLOCK_SHIFT
    cdef double least = INFINITY
    cdef processors_t widest = 0
    cdef Py_ssize_t slot
    for slot in range(block << BLOCK_SHIFT, last if last < queue.tail else queue.tail):
        if queue.job[slot] >= 0:
            if keyed.key[slot] < least:
                least = keyed.key[slot]
            if queue.width[slot] > widest:
                widest = queue.width[slot]
    keyed.block_key_min[block] = least
    keyed.block_width_max[block] = widest


cdef inline int keyed_push(
    Keyed* keyed,
    const View* view,
    job_index_t job,
    processors_t width,
    seconds_t request,
) except -1 nogil:
    cdef WaitingQueue* queue = &keyed.queue
    cdef Py_ssize_t capacity = queue.capacity
    cdef bint full = queue.tail == capacity
    cdef Py_ssize_t slot, block
    queue_push(queue, job, width, request)
    if queue.capacity != capacity:
        block = queue.capacity >> BLOCK_SHIFT
        keyed.key = <double*> safe_realloc(
            keyed.key, queue.capacity, sizeof(double), b"keys of waiting jobs"
        )
        keyed.block_key_min = <double*> safe_realloc(
            keyed.block_key_min, block, sizeof(double), b"blocks of waiting jobs"
        )
        keyed.block_width_max = <processors_t*> safe_realloc(
            keyed.block_width_max, block, sizeof(processors_t), b"blocks of waiting jobs"
        )
    elif full:
        # The holes were closed, and every job has another slot.
        for slot in range(queue.tail):
            keyed.key[slot] = submitted_key(
                keyed, view, queue.job[slot], queue.request[slot], queue.width[slot]
            )
        for block in range(((queue.tail - 1) >> BLOCK_SHIFT) + 1):
            keyed_bound(keyed, block)
        return 0
    slot = queue.tail - 1
    block = slot >> BLOCK_SHIFT
    keyed.key[slot] = submitted_key(keyed, view, job, request, width)
    if slot & (BLOCK_SIZE - 1) == 0:
        keyed.block_key_min[block] = INFINITY
        keyed.block_width_max[block] = 0
    if keyed.key[slot] < keyed.block_key_min[block]:
        keyed.block_key_min[block] = keyed.key[slot]
    if width > keyed.block_width_max[block]:
        keyed.block_width_max[block] = width
    return 0


cdef inline void keyed_remove(Keyed* keyed, Py_ssize_t slot) noexcept nogil:
    queue_remove(&keyed.queue, slot)
    keyed_bound(keyed, slot >> BLOCK_SHIFT)


cdef inline bint _block_matters(
    const Keyed* keyed,
    Py_ssize_t block,
    const seconds_t* submit_time,
    const Room* room,
    const Best* best,
) noexcept nogil:
    # Whether a block can hold a job that is admitted and has a lesser key than the best so far.
    cdef const WaitingQueue* queue = &keyed.queue
    cdef Py_ssize_t first = block << BLOCK_SHIFT
    cdef job_index_t earliest
    if queue.block_width_min[block] > room.free or (
        queue.block_width_min[block] > room.extra
        and room.now + queue.block_request_min[block] > room.shadow_time
    ):
        return False
    if best.job < 0:
        return True
    if keyed.kind != KEY_WFP3:
        return keyed.block_key_min[block] < best.value
    # Rounding is monotone: of the longest wait, the least request and the largest width comes a
    # key below all of the block.
    earliest = queue.job[first if first > queue.head else queue.head]
    if earliest < 0:
        earliest = ~earliest
    return wfp3_key(
        room.now - submit_time[earliest],
        queue.block_request_min[block],
        keyed.block_width_max[block],
    ) < best.value


cdef inline void keyed_search(
    const Keyed* keyed, const seconds_t* submit_time, const Room* room, Best* best
) noexcept nogil:
    # The admitted job with the least key, the first of these; job -1 where there is none.
    cdef const WaitingQueue* queue = &keyed.queue
    cdef Py_ssize_t block, slot, last
    cdef double key
    best.job = -1
    if queue.count == 0:
        return
    for block in range(queue.head >> BLOCK_SHIFT, ((queue.tail - 1) >> BLOCK_SHIFT) + 1):
        if not _block_matters(keyed, block, submit_time, room, best):
            continue
        slot = block << BLOCK_SHIFT
        last = slot + BLOCK_SIZE
        for slot in range(
            slot if slot > queue.head else queue.head, last if last < queue.tail else queue.tail
        ):
            # The width of a hole is larger than any machine.
            if not room_admits(room, queue.width[slot], queue.request[slot]):
                continue
            key = keyed.key[slot]
            if keyed.kind == KEY_WFP3:
                key = wfp3_key(
                    room.now - submit_time[queue.job[slot]], queue.request[slot],
                    queue.width[slot],
                )
            if best.job < 0 or key < best.value:
                best.value = key
                best.job = queue.job[slot]
                best.width = queue.width[slot]
                best.request = queue.request[slot]


cdef inline void search_shortest(
    const WaitingQueue* queue, const Room* room, Best* best
) noexcept nogil:
    # The admitted job with the least requested time, the first of these; job -1 for none.
    cdef seconds_t least = INFINITY
    cdef Py_ssize_t slot = queue.head
    cdef Py_ssize_t found = -1
    cdef Py_ssize_t block
    best.job = -1
    while slot < queue.tail:
        block = slot >> BLOCK_SHIFT
        if slot & (BLOCK_SIZE - 1) == 0 and (
            queue.block_request_min[block] >= least or queue.block_width_min[block] > room.free
        ):
            slot += BLOCK_SIZE
            continue
        if queue.request[slot] < least and room_admits(
            room, queue.width[slot], queue.request[slot]
        ):
            least = queue.request[slot]
            found = slot
        slot += 1
    if found >= 0:
        best.job = queue.job[found]
        best.width = queue.width[found]
        best.request = queue.request[found]
