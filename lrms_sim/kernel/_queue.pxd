# The waiting queue of one machine, in order of arrival.
#
# Slots are appended at the tail and never move while a discipline looks at them. A job that
# starts leaves a hole, which keeps its number as ~job, so that the slots stay sorted by job:
# width and request of a hole are larger than any machine, so a scan passes over it without a test
# of its own. Each block of 64 slots keeps lower bounds of its widths and
# requests; a scan for a job that fits skips a block that cannot hold one. A queue of a hundred
# thousand jobs is thereby searched in about a microsecond, which a saturated machine needs.
from libc.math cimport INFINITY
from libc.stdlib cimport free

from lrms_sim.kernel._branches cimport unlikely
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t

cdef enum:
    BLOCK_SHIFT = 6
    BLOCK_SIZE = 64
    WIDTH_OF_HOLE = 0x7FFFFFFF

cdef struct WaitingQueue:
    Py_ssize_t head                  # no job waits in a slot before this one
    Py_ssize_t tail                  # one past the last slot in use
    Py_ssize_t capacity              # slots allocated, a multiple of BLOCK_SIZE
    Py_ssize_t count                 # jobs waiting
    job_index_t* job                 # by slot, ascending; ~job, less than 0, in a hole
    processors_t* width              # by slot
    seconds_t* request               # by slot, requested time
    processors_t* block_width_min    # by block, lower bound
    seconds_t* block_request_min     # by block, lower bound


cdef inline void queue_clear(WaitingQueue* queue) noexcept nogil:
    queue.head = 0
    queue.tail = 0
    queue.count = 0


cdef inline void queue_free(WaitingQueue* queue) noexcept nogil:
    free(queue.job)
    free(queue.width)
    free(queue.request)
    free(queue.block_width_min)
    free(queue.block_request_min)
    queue.job = NULL
    queue.width = NULL
    queue.request = NULL
    queue.block_width_min = NULL
    queue.block_request_min = NULL
    queue.capacity = 0
    queue_clear(queue)


cdef inline int _queue_reserve(WaitingQueue* queue, Py_ssize_t capacity) except -1 nogil:
    cdef Py_ssize_t blocks = capacity >> BLOCK_SHIFT
    queue.job = <job_index_t*> safe_realloc(
        queue.job, capacity, sizeof(job_index_t), b"waiting jobs"
    )
    queue.width = <processors_t*> safe_realloc(
        queue.width, capacity, sizeof(processors_t), b"waiting jobs"
    )
    queue.request = <seconds_t*> safe_realloc(
        queue.request, capacity, sizeof(seconds_t), b"waiting jobs"
    )
    queue.block_width_min = <processors_t*> safe_realloc(
        queue.block_width_min, blocks, sizeof(processors_t), b"blocks of waiting jobs"
    )
    queue.block_request_min = <seconds_t*> safe_realloc(
        queue.block_request_min, blocks, sizeof(seconds_t), b"blocks of waiting jobs"
    )
    queue.capacity = capacity
    return 0


cdef inline void _queue_put(
    WaitingQueue* queue, job_index_t job, processors_t width, seconds_t request
) noexcept nogil:
    cdef Py_ssize_t slot = queue.tail
    cdef Py_ssize_t block = slot >> BLOCK_SHIFT
    queue.job[slot] = job
    queue.width[slot] = width
    queue.request[slot] = request
    if slot & (BLOCK_SIZE - 1) == 0:
        queue.block_width_min[block] = width
        queue.block_request_min[block] = request
    else:
        if width < queue.block_width_min[block]:
            queue.block_width_min[block] = width
        if request < queue.block_request_min[block]:
            queue.block_request_min[block] = request
    queue.tail += 1


cdef inline void _queue_compact(WaitingQueue* queue) noexcept nogil:
    # Closes the holes. _queue_put writes at or before the slot that is read, so one array serves.
    cdef Py_ssize_t slot
    cdef Py_ssize_t first = queue.head
    cdef Py_ssize_t last = queue.tail
    queue.head = 0
    queue.tail = 0
    for slot in range(first, last):
        if queue.job[slot] >= 0:
            _queue_put(queue, queue.job[slot], queue.width[slot], queue.request[slot])


cdef inline int _queue_make_room(WaitingQueue* queue) except -1 nogil:
    # Amortised constant: compaction happens when half the slots are holes, else the room doubles.
    if queue.capacity > 0 and queue.count * 2 <= queue.capacity:
        _queue_compact(queue)
        return 0
    return _queue_reserve(queue, doubled(queue.capacity, BLOCK_SIZE))


cdef inline int queue_push(
    WaitingQueue* queue, job_index_t job, processors_t width, seconds_t request
) except -1 nogil:
    if unlikely(queue.tail == queue.capacity):
        _queue_make_room(queue)
    _queue_put(queue, job, width, request)
    queue.count += 1
    return 0


cdef inline int queue_insert(
    WaitingQueue* queue, job_index_t job, processors_t width, seconds_t request
) except -1 nogil:
    # Puts a job before the first waiting one with a greater number; the jobs from there to the
    # tail move on by one slot, over the first hole.
    cdef Py_ssize_t slot, last, block
    cdef processors_t width_min
    cdef seconds_t request_min
    if unlikely(queue.tail == queue.capacity):
        _queue_make_room(queue)
    slot = queue.head
    # Holes, too, keep the order of the numbers.
    while slot < queue.tail and (
        queue.job[slot] if queue.job[slot] >= 0 else ~queue.job[slot]
    ) < job:
        slot += 1
    queue.count += 1
    if slot == queue.tail:
        _queue_put(queue, job, width, request)
        return 0
    last = slot
    while last < queue.tail and queue.job[last] >= 0:
        last += 1
    if last == queue.tail:
        queue.tail += 1
    for block in range(last, slot, -1):
        queue.job[block] = queue.job[block - 1]
        queue.width[block] = queue.width[block - 1]
        queue.request[block] = queue.request[block - 1]
    queue.job[slot] = job
    queue.width[slot] = width
    queue.request[slot] = request
    for block in range(slot >> BLOCK_SHIFT, (last >> BLOCK_SHIFT) + 1):
        width_min = WIDTH_OF_HOLE
        request_min = INFINITY
        slot = block << BLOCK_SHIFT
        while slot < queue.tail and slot < (block + 1) << BLOCK_SHIFT:
            if queue.width[slot] < width_min:
                width_min = queue.width[slot]
            if queue.request[slot] < request_min:
                request_min = queue.request[slot]
            slot += 1
        queue.block_width_min[block] = width_min
        queue.block_request_min[block] = request_min
    return 0


cdef inline void queue_remove(WaitingQueue* queue, Py_ssize_t slot) noexcept nogil:
    cdef Py_ssize_t first, last, block, other
    cdef processors_t width_min = WIDTH_OF_HOLE
    cdef seconds_t request_min = INFINITY
    queue.job[slot] = ~queue.job[slot]
    queue.width[slot] = WIDTH_OF_HOLE
    queue.request[slot] = INFINITY
    queue.count -= 1
    if queue.count == 0:
        queue.head = 0
        queue.tail = 0
        return
    if slot == queue.head:
        # The bounds of this block stay too low, which costs a look and nothing else.
        while queue.job[queue.head] < 0:
            queue.head += 1
        return
    block = slot >> BLOCK_SHIFT
    first = block << BLOCK_SHIFT
    last = first + BLOCK_SIZE
    if last > queue.tail:
        last = queue.tail
    for other in range(first, last):
        if queue.width[other] < width_min:
            width_min = queue.width[other]
        if queue.request[other] < request_min:
            request_min = queue.request[other]
    queue.block_width_min[block] = width_min
    queue.block_request_min[block] = request_min


cdef inline Py_ssize_t queue_slot(const WaitingQueue* queue, job_index_t job) noexcept nogil:
    # The slot of a job that waits here; that of another one if it does not.
    cdef Py_ssize_t low = queue.head
    cdef Py_ssize_t high = queue.tail - 1
    cdef Py_ssize_t middle
    cdef job_index_t other
    # A guest that comes later than its number stands at the tail, and leaves a hole there.
    if queue.job[high] == job:
        return high
    while low < high:
        middle = (low + high) >> 1
        other = queue.job[middle]
        if other < 0:
            other = ~other
        if other < job:
            low = middle + 1
        else:
            high = middle
    if queue.job[low] != job:
        for middle in range(queue.head, queue.tail):
            if queue.job[middle] == job:
                return middle
    return low


cdef inline Py_ssize_t queue_next_fit(
    const WaitingQueue* queue, Py_ssize_t slot, processors_t processors_free
) noexcept nogil:
    # First slot from `slot` on whose job fits; -1 where none does.
    if slot < queue.tail and queue.block_width_min[slot >> BLOCK_SHIFT] > processors_free:
        slot = ((slot >> BLOCK_SHIFT) + 1) << BLOCK_SHIFT
    while slot < queue.tail:
        if (
            slot & (BLOCK_SIZE - 1) == 0
            and queue.block_width_min[slot >> BLOCK_SHIFT] > processors_free
        ):
            slot += BLOCK_SIZE
        elif queue.width[slot] <= processors_free:
            return slot
        else:
            slot += 1
    return -1


cdef inline Py_ssize_t queue_next_backfill(
    const WaitingQueue* queue,
    Py_ssize_t slot,
    processors_t processors_free,
    processors_t extra_processors,
    seconds_t now,
    seconds_t shadow_time,
) noexcept nogil:
    # First slot from `slot` on whose job fits and does not delay the head; -1 where none does.
    # Rounding is monotone, so `now + bound > shadow` excludes a block exactly.
    cdef Py_ssize_t block
    while slot < queue.tail:
        block = slot >> BLOCK_SHIFT
        if slot & (BLOCK_SIZE - 1) == 0 and (
            queue.block_width_min[block] > processors_free
            or (
                queue.block_width_min[block] > extra_processors
                and now + queue.block_request_min[block] > shadow_time
            )
        ):
            slot += BLOCK_SIZE
        elif queue.width[slot] <= processors_free and (
            queue.width[slot] <= extra_processors
            or now + queue.request[slot] <= shadow_time
        ):
            return slot
        else:
            slot += 1
    return -1
