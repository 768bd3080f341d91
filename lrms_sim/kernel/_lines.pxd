# The waiting jobs of a machine, each with a value that is a straight line over time.
#
# A criterion f1 to f4 is linear in the moment at which it is taken, so of each job two numbers
# are kept, base + slope · now. That is not the value as it is written, but differs from it by
# rounding alone (`doubt`). Lines say who may be the best; of those the value itself is computed,
# and decides, to the last bit.
#
# Jobs lie in blocks of 64, of each of which there is a bound (`_line_blocks`). A search passes over
# a block whose bound is below the best value found so far, so that a queue of thousands costs a
# look at each block and into very few.
#
# Jobs lie in no order: the last one takes the place of one that leaves.
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int8_t, int32_t
from libc.stdlib cimport free

from lrms_sim.kernel._criteria cimport Criterion, criterion_value
from lrms_sim.kernel._line_blocks cimport (
    LineBlock,
    block_add,
    block_bound,
    block_clear,
    block_doubt,
)
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._room cimport Best, Room, room_admits, room_for_all
from lrms_sim.kernel._types cimport job_index_t, processors_t, seconds_t
from lrms_sim.kernel._view cimport View

cdef enum:
    LINES_SHIFT = 6
    LINES_SIZE = 64
    MANY_LEFT = 8                # jobs that leave a block before its extremes are made tight

cdef struct Line:
    double base
    double slope
    double still

cdef struct Lines:
    const Criterion* criterion   # what the lines were made of
    job_index_t aside            # waits, and no bound holds for it; -1 for none
    Py_ssize_t count
    Py_ssize_t capacity
    job_index_t* job
    processors_t* width
    seconds_t* request
    double* base
    double* slope
    LineBlock* block
    int32_t* place               # by job
    Py_ssize_t places


cdef inline void lines_free(Lines* lines) noexcept nogil:
    free(lines.job)
    free(lines.width)
    free(lines.request)
    free(lines.base)
    free(lines.slope)
    free(lines.block)
    free(lines.place)


cdef inline Py_ssize_t group_of(const int8_t* job_group, job_index_t job) noexcept nogil:
    # 0 to 4; where groups are not known, and nobody asks for them, all are in one.
    return 0 if job_group == NULL else job_group[job] - 1


cdef inline double value_now(
    const Lines* lines, const View* view, job_index_t job, processors_t width, seconds_t request
) noexcept nogil:
    # The value itself.
    return criterion_value(
        lines.criterion, group_of(view.job_group, job), view.now - view.submit_time[job],
        request, width,
    )


cdef inline Line line_of(
    const Criterion* criterion, const View* view, job_index_t job, processors_t width,
    seconds_t request,
) noexcept nogil:
    cdef Py_ssize_t group = group_of(view.job_group, job)
    cdef double weight = criterion.weight[group]
    cdef double area = request * width
    cdef double size = 0.0
    cdef Line line
    if weight == 0.0 or criterion.waiting == 0.0:
        line.base = criterion_value(criterion, group, 0.0, request, width)
        line.slope = 0.0
        line.still = 0.0
        return line
    line.slope = weight * criterion.waiting
    if criterion.kind == 1:
        line.slope = line.slope / request
    elif criterion.kind == 3:
        line.slope = line.slope / area
    if line.slope == 0.0:
        line.slope = 1e-300      # 0 says that the value never changes
    if criterion.size != 0.0:
        size = criterion.size * (area if criterion.kind == 2 else request / width)
    line.base = weight * (criterion.constant[group] + size) - line.slope * view.submit_time[job]
    line.still = fabs(weight) * (fabs(criterion.constant[group]) + fabs(size)) + fabs(
        line.slope * view.submit_time[job]
    )
    return line


cdef inline void lines_measure(Lines* lines, const View* view, Py_ssize_t number) noexcept nogil:
    # Makes the lines and the extremes of a block anew.
    cdef LineBlock* block = &lines.block[number]
    cdef Py_ssize_t last = (number + 1) << LINES_SHIFT
    cdef Py_ssize_t place
    cdef Line line
    block_clear(block, view.now)
    for place in range(number << LINES_SHIFT, last if last < lines.count else lines.count):
        line = line_of(
            lines.criterion, view, lines.job[place], lines.width[place], lines.request[place]
        )
        lines.base[place] = line.base
        lines.slope[place] = line.slope
        block_add(
            block, lines.job[place], lines.width[place], lines.request[place], line.base,
            line.slope, line.still,
        )


cdef inline void lines_follow(
    Lines* lines, const View* view, const Criterion* criterion
) noexcept nogil:
    # Makes the lines those of the criterion in force.
    cdef Py_ssize_t number
    if lines.criterion != criterion:
        lines.criterion = criterion
        for number in range((lines.count + LINES_SIZE - 1) >> LINES_SHIFT):
            lines_measure(lines, view, number)


cdef inline int _lines_reserve(Lines* lines, Py_ssize_t capacity) except -1 nogil:
    lines.job = <job_index_t*> safe_realloc(
        lines.job, capacity, sizeof(job_index_t), b"lines of waiting jobs"
    )
    lines.width = <processors_t*> safe_realloc(
        lines.width, capacity, sizeof(processors_t), b"lines of waiting jobs"
    )
    lines.request = <seconds_t*> safe_realloc(
        lines.request, capacity, sizeof(seconds_t), b"lines of waiting jobs"
    )
    lines.base = <double*> safe_realloc(
        lines.base, capacity, sizeof(double), b"lines of waiting jobs"
    )
    lines.slope = <double*> safe_realloc(
        lines.slope, capacity, sizeof(double), b"lines of waiting jobs"
    )
    lines.block = <LineBlock*> safe_realloc(
        lines.block, capacity >> LINES_SHIFT, sizeof(LineBlock), b"blocks of lines"
    )
    lines.capacity = capacity
    return 0


cdef inline int lines_push(Lines* lines, const View* view, job_index_t job) except -1 nogil:
    cdef processors_t width = view.job_processors[job]
    cdef seconds_t request = view.requested_time[job]
    cdef Py_ssize_t place = lines.count
    cdef Py_ssize_t places
    cdef Line line
    if place == lines.capacity:
        _lines_reserve(lines, doubled(lines.capacity, 16 * LINES_SIZE))
    if job >= lines.places:
        places = doubled(lines.places, 1024)
        if places <= job:
            places = <Py_ssize_t> job + 1
        lines.place = <int32_t*> safe_realloc(
            lines.place, places, sizeof(int32_t), b"places of waiting jobs"
        )
        lines.places = places
    line = line_of(lines.criterion, view, job, width, request)
    lines.place[job] = <int32_t> place
    lines.job[place] = job
    lines.width[place] = width
    lines.request[place] = request
    lines.base[place] = line.base
    lines.slope[place] = line.slope
    if place & (LINES_SIZE - 1) == 0:
        block_clear(&lines.block[place >> LINES_SHIFT], view.now)
    block_add(
        &lines.block[place >> LINES_SHIFT], job, width, request, line.base, line.slope, line.still
    )
    lines.count += 1
    return 0


cdef inline void _count_in(Lines* lines, Py_ssize_t place) noexcept nogil:
    # Lets the bound of a block hold for the job in a place as well.
    block_add(
        &lines.block[place >> LINES_SHIFT], lines.job[place], lines.width[place],
        lines.request[place], lines.base[place], lines.slope[place], 0.0,
    )


cdef inline void lines_remove(Lines* lines, job_index_t job) noexcept nogil:
    cdef Py_ssize_t place = lines.place[job]
    cdef Py_ssize_t last = lines.count - 1
    cdef double still
    cdef LineBlock* block = &lines.block[place >> LINES_SHIFT]
    lines.count = last
    block.left += 1
    if job == lines.aside:
        lines.aside = -1
    if place == last:
        return
    lines.place[lines.job[last]] = <int32_t> place
    lines.job[place] = lines.job[last]
    lines.width[place] = lines.width[last]
    lines.request[place] = lines.request[last]
    lines.base[place] = lines.base[last]
    lines.slope[place] = lines.slope[last]
    if place >> LINES_SHIFT != last >> LINES_SHIFT:
        still = lines.block[last >> LINES_SHIFT].still
        if still > block.still:
            block.still = still
        _count_in(lines, place)


cdef inline bint _worth_a_look(
    const LineBlock* block, const Room* room, const Best* best
) noexcept nogil:
    # Whether a block can hold a job that is admitted and better than the best so far.
    cdef double bound
    if block.width_min > room.free or (
        block.width_min > room.extra and room.now + block.request_min > room.shadow_time
    ):
        return False
    if best.job < 0:
        return True
    bound = block_bound(block, room.now)
    return not (
        bound < best.value
        # Where nothing changes with time the bound is a value, and of equal ones the first counts.
        or (bound == best.value and block.steepest == 0.0 and block.first > best.job)
    )


cdef inline void _search_block(
    Lines* lines, const View* view, const Room* room, Py_ssize_t number, Best* best
) noexcept nogil:
    # Takes the best job of a block that is admitted, if it is better than the best so far. The
    # new bound of the block leaves out that job and the one set aside.
    cdef LineBlock* block = &lines.block[number]
    cdef const double* bases = lines.base
    cdef const double* slopes = lines.slope
    cdef seconds_t now = room.now
    cdef double doubt
    cdef double most = -INFINITY
    cdef double least = -INFINITY
    cdef double floor = -INFINITY
    cdef job_index_t first = -1
    cdef Py_ssize_t begin = number << LINES_SHIFT
    cdef Py_ssize_t end = begin + LINES_SIZE
    cdef Py_ssize_t aside = -1 if lines.aside < 0 else lines.place[lines.aside]
    cdef Py_ssize_t taken = -1 if best.job < 0 else lines.place[best.job]
    cdef Py_ssize_t place
    cdef double height, value
    cdef job_index_t job
    if block.left >= MANY_LEFT:
        lines_measure(lines, view, number)
    if end > lines.count:
        end = lines.count
    doubt = block_doubt(block, now)
    if best.job >= 0:
        least = best.value - doubt
    for place in range(begin, end):
        height = bases[place] + slopes[place] * now
        if height < floor or place == aside or place == taken:
            continue
        job = lines.job[place]
        if not height < least and room_admits(room, lines.width[place], lines.request[place]):
            value = height
            if slopes[place] != 0.0:
                value = value_now(lines, view, job, lines.width[place], lines.request[place])
            if best.job < 0 or value > best.value or (value == best.value and job < best.job):
                best.job = job
                best.value = value
                best.width = lines.width[place]
                best.request = lines.request[place]
                least = value - doubt
                # From here on the one that was the best counts as all others do.
                job = -1
                if taken >= 0:
                    if taken == aside:
                        aside = -1
                        lines.aside = -1
                    if begin <= taken < end:
                        job = lines.job[taken]
                        height = bases[taken] + slopes[taken] * now
                    else:
                        _count_in(lines, taken)
                taken = place
        if job >= 0 and (not height <= most or (height == most and job < first)):
            most = height
            first = job
        floor = most if most < least else least
    block.time = now
    block.most = most
    block.first = first


cdef inline void lines_search(
    Lines* lines, const View* view, const Room* room, Best* best
) noexcept nogil:
    # Takes the best job that is admitted, if it is better than the best so far. It must start at
    # once, or be set aside: bounds do not hold for it.
    cdef Py_ssize_t count = (lines.count + LINES_SIZE - 1) >> LINES_SHIFT
    cdef Py_ssize_t likely = -1
    cdef double most, bound
    cdef Py_ssize_t number
    if best.job < 0 and count > 1:
        # Where the best one probably is; after it there is a value to compare bounds with.
        most = -INFINITY
        for number in range(count):
            if _worth_a_look(&lines.block[number], room, best):
                bound = block_bound(&lines.block[number], room.now)
                if likely < 0 or bound > most:
                    likely = number
                    most = bound
        if likely < 0:
            return
        _search_block(lines, view, room, likely, best)
    for number in range(count):
        if number != likely and _worth_a_look(&lines.block[number], room, best):
            _search_block(lines, view, room, number, best)


cdef inline Best lines_head(Lines* lines, const View* view) noexcept nogil:
    # The best of all jobs, of which there must be one. It is set aside: who could not start last
    # time mostly is the best again, and a search that begins with a good value looks into few
    # blocks.
    cdef Room room
    cdef Best best
    room_for_all(&room, view)
    best.job = lines.aside
    best.value = 0.0
    best.width = 0
    best.request = 0.0
    if best.job >= 0:
        best.width = view.job_processors[best.job]
        best.request = view.requested_time[best.job]
        best.value = value_now(lines, view, best.job, best.width, best.request)
    lines_search(lines, view, &room, &best)
    lines.aside = best.job
    return best
