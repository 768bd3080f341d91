"""The profile of promises of a machine with a long queue, searched by classes of widths.

A plan with thousands of reservations is full of gaps, and nearly all of them are too short for the
job that looks for an earlier start. So each class of widths keeps its windows, the maximal times in
which at least so many processors are free, in blocks that know their longest one. A search for
a job looks at the windows of its class; where the class has just its width, the first window that
lasts is the answer, else the steps inside the window are.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t
from libc.stdlib cimport free
from libc.string cimport memmove

from lrms_sim.kernel._moments cimport (
    Block,
    Leaf,
    Moments,
    Place,
    leaf_erase,
    leaf_measure,
    longest_stay,
    moments_clear,
    moments_erase,
    moments_find,
    moments_free,
    moments_insert,
    moments_next,
)
from lrms_sim.kernel._profile cimport Profile, profile_append
from lrms_sim.kernel._types cimport processors_t, seconds_t


cdef extern from *:
    int leading_zeros "__builtin_clz"(unsigned int number) nogil
    int trailing_zeros "__builtin_ctz"(unsigned int number) nogil


cdef inline Py_ssize_t bit_length(processors_t number) noexcept nogil:
    return 32 - leading_zeros(<unsigned int> number) if number > 0 else 0


cdef Py_ssize_t width_class(processors_t width) noexcept nogil:
    # The widest class that a job of this width has to look at.
    return bit_length(width) - 1


cdef inline void window_grew(Moments* windows, Place place) noexcept nogil:
    cdef Leaf* leaf = &windows.leaf[place.leaf]
    cdef double most = longest_stay(
        leaf.block.time[place.item], leaf.block.value[place.item]
    )
    if most > leaf.most:
        leaf.most = most


cdef int windows_add(
    Moments* windows, Block** spare, seconds_t from_time, seconds_t to_time
) except -1 nogil:
    # No part of the time is in a window so far.
    cdef Place left = moments_find(windows, from_time)
    cdef Place right = left
    cdef Block* block = NULL
    cdef Block* upper = NULL
    cdef bint has_right = moments_next(windows, &right)
    if left.item >= 0:
        block = windows.leaf[left.leaf].block
        if block.value[left.item] != from_time:
            block = NULL
    if has_right:
        upper = windows.leaf[right.leaf].block
        if upper.time[right.item] != to_time:
            upper = NULL
    if block != NULL:
        block.value[left.item] = to_time
        if upper != NULL:
            block.value[left.item] = upper.value[right.item]
            moments_erase(windows, right, spare)
        window_grew(windows, left)
    elif upper != NULL:
        upper.time[right.item] = from_time
        windows.leaf[right.leaf].first = upper.time[0]
        window_grew(windows, right)
    else:
        moments_insert(windows, &left, spare, from_time, to_time)
        window_grew(windows, left)
    return 0


cdef int windows_remove(
    Moments* windows, Block** spare, seconds_t from_time, seconds_t to_time
) except -1 nogil:
    # All of the time is in one window.
    cdef Place place = moments_find(windows, from_time)
    cdef Leaf* leaf = &windows.leaf[place.leaf]
    cdef Block* block = leaf.block
    cdef seconds_t begin = block.time[place.item]
    cdef seconds_t end = block.value[place.item]
    cdef bint longest = longest_stay(begin, end) == leaf.most
    if begin == from_time and end == to_time:
        longest = longest and block.count > 1
        moments_erase(windows, place, spare)
    elif begin == from_time:
        block.time[place.item] = to_time
        leaf.first = block.time[0]
    else:
        block.value[place.item] = from_time
        if end != to_time:
            moments_insert(windows, &place, spare, to_time, end)
            leaf = &windows.leaf[place.leaf]
            window_grew(windows, place)
    if longest:
        leaf_measure(leaf)
    return 0


cdef inline int split(LongProfile* profile, seconds_t time, Place* place) except -1 nogil:
    # Makes a step begin at a moment and says where.
    cdef const Block* block
    place[0] = moments_find(&profile.steps, time)
    block = profile.steps.leaf[place.leaf].block
    if block.time[place.item] != time:
        moments_insert(&profile.steps, place, &profile.spare, time, block.value[place.item])
    return 0


cdef inline void join(LongProfile* profile, Place place) noexcept nogil:
    # Drops a step that promises what the one before it promises.
    cdef const Moments* steps = &profile.steps
    cdef const Block* block = steps.leaf[place.leaf].block
    cdef const Block* before = block
    cdef Py_ssize_t item = place.item - 1
    if item < 0:
        if place.leaf == steps.head:
            return
        before = steps.leaf[place.leaf - 1].block
        item = before.count - 1
    if before.value[item] == block.value[place.item]:
        moments_erase(&profile.steps, place, &profile.spare)


cdef inline uint32_t classes_between(processors_t less, processors_t more) noexcept nogil:
    # One bit for each class that is open to `more` processors and closed to `less`.
    return (<uint32_t> 1 << bit_length(more)) - (<uint32_t> 1 << bit_length(less))


cdef int change_windows(
    LongProfile* profile, uint32_t classes, const seconds_t* from_time, seconds_t to_time,
    bint closed,
) except -1 nogil:
    cdef Py_ssize_t number
    while classes != 0:
        number = trailing_zeros(classes)
        classes &= classes - 1
        if closed:
            windows_remove(&profile.windows[number], &profile.spare, from_time[number], to_time)
        else:
            windows_add(&profile.windows[number], &profile.spare, from_time[number], to_time)
    return 0


cdef int long_take(
    LongProfile* profile, seconds_t from_time, seconds_t to_time, processors_t width
) except -1 nogil:
    # Takes processors (gives them back where `width` is negative) between two moments.
    cdef seconds_t since[WIDTH_CLASSES]    # by class: it has changed hands from here on
    cdef uint32_t changing = 0
    cdef uint32_t changes, bits
    cdef processors_t before, after
    cdef processors_t most = 0
    cdef Place first, place
    cdef Block* block
    cdef seconds_t time
    cdef Py_ssize_t number
    if from_time >= to_time:
        return 0
    split(profile, to_time, &place)
    split(profile, from_time, &first)
    place = first
    while True:
        block = profile.steps.leaf[place.leaf].block
        time = block.time[place.item]
        changes = 0
        if time < to_time:
            before = <processors_t> block.value[place.item]
            after = before - width
            block.value[place.item] = after
            if width > 0:
                changes = classes_between(after, before)
            else:
                changes = classes_between(before, after)
                if after > most:
                    most = after
        change_windows(profile, changing & ~changes, since, time, width > 0)
        bits = changes & ~changing
        while bits != 0:
            since[trailing_zeros(bits)] = time
            bits &= bits - 1
        changing = changes
        if time >= to_time:
            break
        moments_next(&profile.steps, &place)
    join(profile, place)
    join(profile, first)
    for number in range(bit_length(most)):
        profile.grown[number] = profile.stamp
    return 0


cdef void long_forget(LongProfile* profile, seconds_t now) noexcept nogil:
    # Drops what lies before now; windows keep it until they are searched.
    cdef Moments* steps = &profile.steps
    cdef Place place = moments_find(steps, now)
    cdef Block* block
    while steps.head < place.leaf:
        leaf_erase(steps, steps.head, &profile.spare)
    block = steps.leaf[steps.head].block
    if place.item > 0:
        block.count -= place.item
        memmove(block.time, &block.time[place.item], block.count * sizeof(seconds_t))
        memmove(block.value, &block.value[place.item], block.count * sizeof(double))
    block.time[0] = now
    steps.leaf[steps.head].first = now


cdef void long_forget_windows(LongProfile* profile, seconds_t now) noexcept nogil:
    # Every class has a last window, that of the empty machine.
    cdef Moments* windows
    cdef Place first
    cdef Block* block
    cdef Py_ssize_t number
    for number in range(profile.classes):
        windows = &profile.windows[number]
        while True:
            first.leaf = windows.head
            first.item = 0
            block = windows.leaf[windows.head].block
            if block.value[0] > now:
                break
            moments_erase(windows, first, &profile.spare)
        if block.time[0] < now:
            block.time[0] = now
            windows.leaf[windows.head].first = now
            leaf_measure(&windows.leaf[windows.head])


cdef seconds_t earliest_within(
    const LongProfile* profile, processors_t width, seconds_t duration, seconds_t reserved,
    seconds_t from_time, seconds_t to_time,
) noexcept nogil:
    # The same as long_earlier inside one window; `reserved` where there is none.
    cdef const Moments* steps = &profile.steps
    cdef Place place = moments_find(steps, from_time)
    cdef const Block* block
    cdef seconds_t time
    cdef seconds_t start_time = INFINITY
    cdef seconds_t last = to_time if to_time < reserved else reserved
    while True:
        block = steps.leaf[place.leaf].block
        time = block.time[place.item]
        if start_time < INFINITY and (start_time + duration <= time or reserved <= time):
            return start_time
        if time >= last:
            return reserved
        if block.value[place.item] < width:
            start_time = INFINITY
        elif start_time == INFINITY:
            start_time = time
        if not moments_next(steps, &place):
            return start_time if start_time < reserved else reserved


cdef bint long_fits(
    const LongProfile* profile, processors_t width, seconds_t from_time, seconds_t to_time
) noexcept nogil:
    # Whether so many processors are free at a moment, and from it on until another one.
    cdef const Moments* steps = &profile.steps
    cdef Place place = moments_find(steps, from_time)
    while steps.leaf[place.leaf].block.value[place.item] >= width:
        if (
            not moments_next(steps, &place)
            or steps.leaf[place.leaf].block.time[place.item] >= to_time
        ):
            return True
    return False


cdef seconds_t long_earlier(
    const LongProfile* profile, processors_t width, seconds_t duration, seconds_t reserved
) noexcept nogil:
    # Earliest start of what is in the profile at `reserved`, where its own processors are free to
    # it; of what is not yet in it, with infinity.
    cdef Py_ssize_t number = width_class(width)
    cdef const Moments* windows = &profile.windows[number]
    cdef bint exact = width == <processors_t> 1 << number
    cdef const Block* block
    cdef seconds_t begin, end, start_time
    cdef Py_ssize_t leaf, item
    for leaf in range(windows.head, windows.tail):
        if windows.leaf[leaf].first >= reserved:
            break
        # Where all windows are too short, only one that reaches the job's own place can do.
        if (
            windows.leaf[leaf].most < duration
            and leaf + 1 < windows.tail
            and windows.leaf[leaf + 1].first < reserved
        ):
            continue
        block = windows.leaf[leaf].block
        for item in range(block.count):
            begin = block.time[item]
            end = block.value[item]
            if begin >= reserved:
                break
            if begin + duration <= end or reserved <= end:
                if exact:
                    return begin
                start_time = earliest_within(profile, width, duration, reserved, begin, end)
                if start_time < reserved:
                    return start_time
    return reserved


cdef int long_begin(LongProfile* profile, const Profile* other) except -1 nogil:
    # Becomes what the other profile is.
    cdef Place place
    cdef Py_ssize_t i, number
    cdef seconds_t begin
    profile.classes = bit_length(other.free[other.count - 1])
    moments_clear(&profile.steps, &profile.spare)
    place.leaf = 0
    place.item = -1
    for i in range(other.count):
        moments_insert(&profile.steps, &place, &profile.spare, other.time[i], other.free[i])
    for number in range(profile.classes):
        moments_clear(&profile.windows[number], &profile.spare)
        profile.grown[number] = profile.stamp
        place.leaf = 0
        place.item = -1
        begin = INFINITY
        for i in range(other.count):
            if other.free[i] >= <processors_t> 1 << number:
                if begin == INFINITY:
                    begin = other.time[i]
            elif begin < INFINITY:
                moments_insert(
                    &profile.windows[number], &place, &profile.spare, begin, other.time[i]
                )
                window_grew(&profile.windows[number], place)
                begin = INFINITY
        moments_insert(&profile.windows[number], &place, &profile.spare, begin, INFINITY)
        window_grew(&profile.windows[number], place)
    return 0


cdef int long_finish(LongProfile* profile, Profile* other) except -1 nogil:
    # Makes the other profile what this one is.
    cdef const Block* block
    cdef Py_ssize_t leaf, item
    other.count = 0
    for leaf in range(profile.steps.head, profile.steps.tail):
        block = profile.steps.leaf[leaf].block
        for item in range(block.count):
            profile_append(other, block.time[item], <processors_t> block.value[item])
    return 0


cdef void long_close(LongProfile* profile) noexcept nogil:
    cdef Block* block
    cdef Py_ssize_t number
    moments_free(&profile.steps, &profile.spare)
    for number in range(WIDTH_CLASSES):
        moments_free(&profile.windows[number], &profile.spare)
    while profile.spare != NULL:
        block = profile.spare
        profile.spare = block.next
        free(block)
