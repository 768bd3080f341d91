# The waiting jobs of a machine by user group: five lanes, each in order of arrival.
#
# An order of groups is lane after lane. For a criterion that changes with time each block of 64
# slots keeps the extremes of its jobs, from which a bound of all their values is made: where many
# jobs wait, a search looks into the few blocks that can hold the best one and passes over the
# rest. The extremes of a block out of which a job was taken are too wide, which is still right;
# they are made tight again after several have left.
from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.stdlib cimport free

from lrms_sim._criteria cimport GROUPS, Criterion, Spread, criterion_bound, value_of_kind
from lrms_sim._memory cimport safe_realloc
from lrms_sim._queue cimport (
    BLOCK_SHIFT,
    BLOCK_SIZE,
    WaitingQueue,
    queue_free,
    queue_push,
    queue_remove,
)
from lrms_sim._types cimport job_index_t, processors_t, seconds_t

cdef enum:
    FEW = 4                      # slots that are looked at without asking whether it is worth it
    MANY_LEFT = 8                # jobs that leave a block before its extremes are made tight

cdef struct LaneBlock:
    seconds_t request_max
    double ratio_min
    double ratio_max
    double area_min
    double area_max
    int32_t left                 # jobs that have left since the extremes were made tight

cdef struct Lane:
    WaitingQueue queue
    LaneBlock* block

cdef struct Room:
    # Whom a search looks for: who fits, and ends by the shadow time or fits beside the head then.
    processors_t free
    processors_t extra
    seconds_t now
    seconds_t shadow_time

cdef struct Best:
    # The best job found so far; job is -1 for none.
    double value
    job_index_t job
    processors_t width
    seconds_t request


cdef inline void room_for_all(
    Room* room, processors_t processors, seconds_t now
) noexcept nogil:
    # Every job there is, so that a search finds the head.
    room.free = processors
    room.extra = processors
    room.now = now
    room.shadow_time = INFINITY


cdef inline bint room_admits(
    const Room* room, processors_t width, seconds_t request
) noexcept nogil:
    return width <= room.free and (
        width <= room.extra or room.now + request <= room.shadow_time
    )


cdef inline void lane_free(Lane* lane) noexcept nogil:
    queue_free(&lane.queue)
    free(lane.block)
    lane.block = NULL


cdef inline void block_clear(LaneBlock* block) noexcept nogil:
    block.request_max = 0.0
    block.ratio_min = INFINITY
    block.ratio_max = 0.0
    block.area_min = INFINITY
    block.area_max = 0.0
    block.left = 0


cdef inline void block_add(
    LaneBlock* block, processors_t width, seconds_t request
) noexcept nogil:
    cdef double ratio = request / width
    cdef double area = request * width
    if request > block.request_max:
        block.request_max = request
    if ratio < block.ratio_min:
        block.ratio_min = ratio
    if ratio > block.ratio_max:
        block.ratio_max = ratio
    if area < block.area_min:
        block.area_min = area
    if area > block.area_max:
        block.area_max = area


cdef inline void lane_tighten(Lane* lane, Py_ssize_t number) noexcept nogil:
    # Makes the extremes of a block those of its jobs.
    cdef WaitingQueue* queue = &lane.queue
    cdef Py_ssize_t slot
    cdef Py_ssize_t last = (number + 1) << BLOCK_SHIFT
    block_clear(&lane.block[number])
    for slot in range(number << BLOCK_SHIFT, last if last < queue.tail else queue.tail):
        if queue.job[slot] >= 0:
            block_add(&lane.block[number], queue.width[slot], queue.request[slot])


cdef inline int lane_push(
    Lane* lane, job_index_t job, processors_t width, seconds_t request, bint by_value
) except -1 nogil:
    # `by_value`: keeps the extremes of blocks, without which a lane is only gone through in order.
    cdef WaitingQueue* queue = &lane.queue
    cdef Py_ssize_t capacity = queue.capacity
    cdef bint full = queue.tail == capacity
    cdef Py_ssize_t number
    queue_push(queue, job, width, request)
    if not by_value:
        return 0
    if queue.capacity != capacity:
        lane.block = <LaneBlock*> safe_realloc(
            lane.block, queue.capacity >> BLOCK_SHIFT, sizeof(LaneBlock), b"blocks of a lane"
        )
    elif full:
        # The holes were closed, and every job has another slot.
        for number in range(((queue.tail - 1) >> BLOCK_SHIFT) + 1):
            lane_tighten(lane, number)
        return 0
    number = (queue.tail - 1) >> BLOCK_SHIFT
    if (queue.tail - 1) & (BLOCK_SIZE - 1) == 0:
        block_clear(&lane.block[number])
    block_add(&lane.block[number], width, request)
    return 0


cdef inline void lane_remove(Lane* lane, Py_ssize_t slot) noexcept nogil:
    if lane.block != NULL:
        lane.block[slot >> BLOCK_SHIFT].left += 1
    queue_remove(&lane.queue, slot)


cdef inline void _search_slots(
    int32_t kind,
    const WaitingQueue* queue,
    Py_ssize_t first,
    Py_ssize_t last,
    const seconds_t* submit_time,
    const Criterion* criterion,
    Py_ssize_t group,
    const Room* room,
    Best* best,
) noexcept nogil:
    cdef double weight = criterion.weight[group]
    cdef double constant = criterion.constant[group]
    cdef double waiting = criterion.waiting
    cdef double size = criterion.size
    cdef processors_t fitting = room.free
    cdef processors_t extra = room.extra
    cdef seconds_t now = room.now
    cdef seconds_t shadow_time = room.shadow_time
    cdef job_index_t best_job = best.job
    cdef double best_value = best.value
    cdef Py_ssize_t found = -1
    cdef Py_ssize_t slot
    cdef processors_t width
    cdef seconds_t request
    cdef job_index_t job
    cdef double value
    for slot in range(first, last):
        width = queue.width[slot]
        if width > fitting:
            continue
        request = queue.request[slot]
        if width > extra and now + request > shadow_time:
            continue
        job = queue.job[slot]
        value = value_of_kind(
            kind, weight, constant, waiting, size, now - submit_time[job], request, width
        )
        # Within a lane jobs come in order, so only between lanes a tie can be a smaller number.
        if best_job < 0 or value > best_value or (value == best_value and job < best_job):
            best_value = value
            best_job = job
            found = slot
    if found >= 0:
        best.value = best_value
        best.job = best_job
        best.width = queue.width[found]
        best.request = queue.request[found]


cdef inline void search_slots(
    const WaitingQueue* queue,
    Py_ssize_t first,
    Py_ssize_t last,
    const seconds_t* submit_time,
    const Criterion* criterion,
    Py_ssize_t group,
    const Room* room,
    Best* best,
) noexcept nogil:
    if criterion.kind == 1:
        _search_slots(1, queue, first, last, submit_time, criterion, group, room, best)
    elif criterion.kind == 2:
        _search_slots(2, queue, first, last, submit_time, criterion, group, room, best)
    elif criterion.kind == 3:
        _search_slots(3, queue, first, last, submit_time, criterion, group, room, best)
    else:
        _search_slots(4, queue, first, last, submit_time, criterion, group, room, best)


cdef inline bint _lane_block_matters(
    const Lane* lane,
    Py_ssize_t number,
    const seconds_t* submit_time,
    const Criterion* criterion,
    Py_ssize_t group,
    const Room* room,
    const Best* best,
) noexcept nogil:
    # Whether a block can hold a job that is admitted and better than the best so far.
    cdef const WaitingQueue* queue = &lane.queue
    cdef const LaneBlock* block = &lane.block[number]
    cdef Py_ssize_t first = number << BLOCK_SHIFT
    cdef Py_ssize_t last = first + BLOCK_SIZE
    cdef Spread spread
    cdef job_index_t earliest, latest
    cdef double bound
    if queue.block_width_min[number] > room.free or (
        queue.block_width_min[number] > room.extra
        and room.now + queue.block_request_min[number] > room.shadow_time
    ):
        return False
    if best.job < 0:
        return True
    if first < queue.head:
        first = queue.head
    if last > queue.tail:
        last = queue.tail
    earliest = queue.job[first]
    latest = queue.job[last - 1]
    if earliest < 0:
        earliest = ~earliest
    if latest < 0:
        latest = ~latest
    spread.age_max = room.now - submit_time[earliest]
    spread.age_min = room.now - submit_time[latest]
    spread.request_min = queue.block_request_min[number]
    spread.request_max = block.request_max
    spread.ratio_min = block.ratio_min
    spread.ratio_max = block.ratio_max
    spread.area_min = block.area_min
    spread.area_max = block.area_max
    bound = criterion_bound(criterion, group, &spread)
    return bound > best.value or (bound == best.value and earliest < best.job)


cdef inline void lane_search(
    Lane* lane,
    const seconds_t* submit_time,
    const Criterion* criterion,
    Py_ssize_t group,
    const Room* room,
    Best* best,
) noexcept nogil:
    # Takes the best job of a lane that is admitted, if it is better than the best so far.
    cdef WaitingQueue* queue = &lane.queue
    cdef Py_ssize_t number, first, last
    if queue.tail - queue.head <= FEW:
        # A bound costs as much as a few values.
        search_slots(
            queue, queue.head, queue.tail, submit_time, criterion, group, room, best
        )
        return
    for number in range(queue.head >> BLOCK_SHIFT, ((queue.tail - 1) >> BLOCK_SHIFT) + 1):
        if not _lane_block_matters(lane, number, submit_time, criterion, group, room, best):
            continue
        if lane.block[number].left >= MANY_LEFT:
            lane_tighten(lane, number)
            if not _lane_block_matters(lane, number, submit_time, criterion, group, room, best):
                continue
        first = number << BLOCK_SHIFT
        last = first + BLOCK_SIZE
        search_slots(
            queue,
            first if first > queue.head else queue.head,
            last if last < queue.tail else queue.tail,
            submit_time,
            criterion,
            group,
            room,
            best,
        )


cdef inline void lanes_search(
    Lane* lanes,
    const seconds_t* submit_time,
    const Criterion* criterion,
    const Room* room,
    Best* best,
) noexcept nogil:
    cdef Py_ssize_t group
    for group in range(GROUPS):
        if lanes[group].queue.count > 0:
            lane_search(&lanes[group], submit_time, criterion, group, room, best)
