"""FCFS, LIST, EASY and conservative backfilling on any order of the waiting jobs.

What each does and how it breaks ties: docs/disciplines.md. None remembers anything from pass to
pass, so that one may follow the other at any time.

A pass that goes through the sorted queue once is made as a search for the best job that may
start, again and again: what a start takes away is never given back within a pass, so whoever was
passed over stays passed over.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport qsort

from lrms_sim.kernel._criteria cimport GROUPS, criterion_in_force
from lrms_sim.kernel._keyed cimport Keyed, key_now, keyed_search, search_shortest
from lrms_sim.kernel._lines cimport Lines, lines_follow, lines_head, lines_search, value_now
from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._profile cimport (
    Profile,
    profile_append,
    profile_begin,
    profile_earliest,
    profile_fits,
    profile_take,
)
from lrms_sim.kernel._queue cimport WaitingQueue, queue_next_backfill, queue_next_fit
from lrms_sim.kernel._releases cimport Releases, Shadow, releases_shadow
from lrms_sim.kernel._room cimport Best, Room, room_for_all
from lrms_sim.kernel._types cimport processors_t, seconds_t
from lrms_sim.kernel._view cimport View
from lrms_sim.kernel._waiting cimport Planned, Waiting, waiting_start


# --- the best job that may start ----------------------------------------------------------

cdef inline void take(Best* best, const WaitingQueue* queue, Py_ssize_t slot) noexcept nogil:
    if slot >= 0:
        best.job = queue.job[slot]
        best.width = queue.width[slot]
        best.request = queue.request[slot]


cdef inline Py_ssize_t first_admitted(
    const WaitingQueue* queue, const Room* room
) noexcept nogil:
    return queue_next_backfill(
        queue, queue.head, room.free, room.extra, room.now, room.shadow_time
    )


cdef void search_narrowest(
    const WaitingQueue* queue, const Room* room, Best* best
) noexcept nogil:
    # The narrowest job, the first of these; in order of arrival the first one found wins a tie.
    cdef processors_t least = room.free
    cdef Py_ssize_t slot = queue.head
    cdef Py_ssize_t found = -1
    while True:
        slot = queue_next_backfill(
            queue, slot, least, room.extra, room.now, room.shadow_time
        )
        if slot < 0:
            break
        found = slot
        least = queue.width[slot] - 1
        slot += 1
    take(best, queue, found)


cdef inline Lines* lines_in_force(
    Waiting* waiting, View* view, Alternative* how
) noexcept nogil:
    cdef Lines* lines = &waiting.lines[how.lines]
    lines_follow(lines, view, criterion_in_force(&how.priority, view.now))
    return lines


cdef Best search(
    Waiting* waiting, View* view, Alternative* how, OrderKind order, const Room* room
) noexcept nogil:
    # The first job in an order, with the groups and criteria of a strategy, that the room admits.
    cdef Best best
    cdef Py_ssize_t place, group
    best.job = -1
    best.value = 0.0
    best.width = 0
    best.request = 0.0
    if order == ORDER_CRITERION:
        lines_search(lines_in_force(waiting, view, how), view, room, &best)
    elif order == ORDER_GROUP:
        for place in range(GROUPS):
            group = how.groups[place]
            if waiting.lanes[group].count > 0:
                take(
                    &best, &waiting.lanes[group], first_admitted(&waiting.lanes[group], room)
                )
                if best.job >= 0:
                    break
    elif order == ORDER_PROCESSORS:
        search_narrowest(&view.queue, room, &best)
    elif order == ORDER_REQUEST:
        search_shortest(&view.queue, room, &best)
    elif order >= ORDER_KEY:
        keyed_search(&waiting.keyed[order - ORDER_KEY], view.submit_time, room, &best)
    else:
        take(&best, &view.queue, first_admitted(&view.queue, room))
    return best


# --- passes -------------------------------------------------------------------------------

cdef int start_heads(Waiting* waiting, View* view, Alternative* how, Best* head) \
        except -1 nogil:
    # Starts heads as long as they fit; `head` becomes the one that does not, job -1 for none.
    cdef Room room
    room_for_all(&room, view)
    head.job = -1
    while view.queue.count > 0:
        if how.order == ORDER_CRITERION:
            head[0] = lines_head(lines_in_force(waiting, view, how), view)
        else:
            head[0] = search(waiting, view, how, how.order, &room)
        if head.width > view.processors_free:
            return 0
        waiting_start(waiting, view, head.job)
        head.job = -1
    return 0


cdef int greedy_pass(Waiting* waiting, View* view, Alternative* how) except -1 nogil:
    # FCFS on a criterion.
    cdef Lines* lines = lines_in_force(waiting, view, how)
    cdef Best best
    while True:
        best = lines_head(lines, view)
        if best.width > view.processors_free:
            return 0
        waiting_start(waiting, view, best.job)
        if (
            view.queue.count == 0
            or queue_next_fit(&view.queue, view.queue.head, view.processors_free) < 0
        ):
            return 0


cdef int list_pass(Waiting* waiting, View* view, Alternative* how) except -1 nogil:
    cdef Room room
    cdef Best best
    room_for_all(&room, view)
    while view.queue.count > 0 and view.processors_free > 0:
        room.free = view.processors_free
        room.extra = view.processors_free
        best = search(waiting, view, how, how.order, &room)
        if best.job < 0:
            break
        waiting_start(waiting, view, best.job)
    return 0


cdef int easy_pass(Waiting* waiting, View* view, Alternative* how) except -1 nogil:
    cdef Room room
    cdef Best head, best
    cdef Shadow shadow
    start_heads(waiting, view, how, &head)
    # Most passes end here: nobody behind the blocked head fits at all.
    if (
        view.queue.count < 2
        or view.processors_free == 0
        or queue_next_fit(&view.queue, view.queue.head, view.processors_free) < 0
    ):
        return 0
    shadow = releases_shadow(&waiting.releases, view.processors_free, head.width)
    room_for_all(&room, view)
    room.shadow_time = shadow.time
    while view.processors_free > 0:
        room.free = view.processors_free
        room.extra = shadow.extra
        best = search(waiting, view, how, how.backfill, &room)
        if best.job < 0:
            break
        waiting_start(waiting, view, best.job)
        if view.now + best.request > shadow.time:
            shadow.extra -= best.width
    return 0


cdef int before(const void* left, const void* right) noexcept nogil:
    cdef const Planned* one = <const Planned*> left
    cdef const Planned* other = <const Planned*> right
    if one.key != other.key:
        return -1 if one.key < other.key else 1
    return -1 if one.job < other.job else 1


cdef Py_ssize_t plan_queue(
    Waiting* waiting, const WaitingQueue* queue, OrderKind order, Py_ssize_t count
) noexcept nogil:
    # Appends the jobs of a queue to the plan, with what they are sorted by.
    cdef Planned* planned
    cdef Py_ssize_t slot
    for slot in range(queue.head, queue.tail):
        if queue.job[slot] < 0:
            continue
        planned = &waiting.planned[count]
        planned.job = queue.job[slot]
        planned.width = queue.width[slot]
        planned.request = queue.request[slot]
        planned.key = 0.0
        if order == ORDER_PROCESSORS:
            planned.key = planned.width
        elif order == ORDER_REQUEST:
            planned.key = planned.request
        count += 1
    return count


cdef void plan_lines(Waiting* waiting, View* view, const Lines* lines) noexcept nogil:
    # Writes all jobs into the plan, with their values.
    cdef Planned* planned
    cdef Py_ssize_t place
    for place in range(lines.count):
        planned = &waiting.planned[place]
        planned.job = lines.job[place]
        planned.width = lines.width[place]
        planned.request = lines.request[place]
        planned.key = -value_now(lines, view, planned.job, planned.width, planned.request)


cdef void plan_keyed(Waiting* waiting, View* view, const Keyed* keyed) noexcept nogil:
    # Appends the jobs with the keys that they have now.
    cdef const Planned* last = waiting.planned + plan_queue(
        waiting, &keyed.queue, ORDER_KEY, 0
    )
    cdef Planned* planned = waiting.planned
    while planned < last:
        planned.key = key_now(keyed, view, planned.job, planned.request, planned.width)
        planned += 1


cdef int plan_jobs(Waiting* waiting, View* view, Alternative* how) except -1 nogil:
    # Writes down the waiting jobs in the order.
    cdef Py_ssize_t count = view.queue.count
    cdef Py_ssize_t place
    cdef Py_ssize_t done = 0
    if count > waiting.planned_capacity:
        place = doubled(count, 256)
        waiting.planned = <Planned*> safe_realloc(
            waiting.planned, place, sizeof(Planned), b"waiting jobs in a plan"
        )
        waiting.planned_capacity = place
    if how.order == ORDER_GROUP:
        for place in range(GROUPS):
            done = plan_queue(waiting, &waiting.lanes[how.groups[place]], how.order, done)
    elif how.order == ORDER_CRITERION:
        plan_lines(waiting, view, lines_in_force(waiting, view, how))
    elif how.order >= ORDER_KEY:
        plan_keyed(waiting, view, &waiting.keyed[how.order - ORDER_KEY])
    else:
        plan_queue(waiting, &view.queue, how.order, done)
    if how.order != ORDER_GROUP and how.order != ORDER_ARRIVAL:
        qsort(waiting.planned, count, sizeof(Planned), before)
    return 0


cdef int promise_running(Profile* profile, View* view, const Releases* releases) \
        except -1 nogil:
    # The profile of the running jobs alone: more is free after each estimated end.
    cdef processors_t available = view.processors
    cdef Py_ssize_t first = releases.count
    cdef Py_ssize_t place
    while first > 0 and releases.release[first - 1].time > view.now:
        first -= 1
        available -= releases.release[first].processors
    profile_begin(profile, view.now, available)
    for place in range(first, releases.count):
        available += releases.release[place].processors
        if releases.release[place].time == profile.time[profile.count - 1]:
            profile.free[profile.count - 1] = available
        else:
            profile_append(profile, releases.release[place].time, available)
    return 0


cdef inline Py_ssize_t last_to_start(
    const Profile* profile, const View* view, const Planned* planned, Py_ssize_t first,
    Py_ssize_t last,
) noexcept nogil:
    # The last of the planned jobs, from `first` up to `last`, that could start now; below `first`
    # for none.
    cdef processors_t available = profile.free[0]
    while last >= first and (
        planned[last].width > available
        or not profile_fits(
            profile, planned[last].width, view.now, view.now + planned[last].request
        )
    ):
        last -= 1
    return last


cdef int conservative_pass(Waiting* waiting, View* view, Alternative* how) except -1 nogil:
    # Every waiting job gets a reservation anew, in the order; those that begin now start. Promises
    # are only ever added within a pass, so who cannot start now cannot later in it, and what comes
    # behind the last who can is promised nothing that anybody would know of.
    cdef Profile* profile = &waiting.profile
    cdef Planned* planned
    cdef seconds_t start_time
    cdef Py_ssize_t place, last
    # Most passes end here: nobody fits at all.
    if (
        view.queue.count == 0
        or queue_next_fit(&view.queue, view.queue.head, view.processors_free) < 0
    ):
        return 0
    last = view.queue.count - 1
    plan_jobs(waiting, view, how)
    promise_running(profile, view, &waiting.releases)
    place = 0
    start_time = view.now
    while True:
        # A promise beyond the end of the last one's run does not touch it.
        if start_time < view.now + waiting.planned[last].request:
            last = last_to_start(profile, view, waiting.planned, place, last)
        if last < place:
            return 0
        planned = &waiting.planned[place]
        start_time = profile_earliest(profile, planned.width, planned.request, INFINITY)
        profile_take(profile, start_time, start_time + planned.request, planned.width)
        if start_time <= view.now:
            waiting_start(waiting, view, planned.job)
        place += 1


cdef int waiting_pass(Waiting* waiting, View* view, Alternative* how) except -1 nogil:
    cdef Best head
    if how.algorithm == ALGORITHM_EASY:
        return easy_pass(waiting, view, how)
    if how.algorithm == ALGORITHM_CONSERVATIVE:
        return conservative_pass(waiting, view, how)
    if how.algorithm == ALGORITHM_LIST:
        return list_pass(waiting, view, how)
    if how.order == ORDER_CRITERION:
        return greedy_pass(waiting, view, how)
    return start_heads(waiting, view, how, &head)
