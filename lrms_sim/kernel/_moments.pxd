# A sorted list of moments with a number each, in blocks: found by halving, changed in one block.
#
# Two uses: the steps of a profile (moment, processors free from there on), and the windows in which
# at least so many processors are free (beginning, end). `most` is kept for windows only: no
# window of the block lasts longer, so that a search passes over the block at one look.
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free
from libc.string cimport memcpy, memmove

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport seconds_t

cdef enum:
    BLOCK_ITEMS = 32

cdef struct Block:
    Block* next                    # of the spare ones
    Py_ssize_t count
    seconds_t time[BLOCK_ITEMS]    # ascending
    double value[BLOCK_ITEMS]

cdef struct Leaf:
    seconds_t first                # of the block's moments
    double most                    # upper bound of value - time over the block
    Block* block                   # never empty

cdef struct Moments:
    Leaf* leaf                     # in use from head up to tail
    Py_ssize_t head
    Py_ssize_t tail
    Py_ssize_t capacity

cdef struct Place:
    Py_ssize_t leaf
    Py_ssize_t item                # -1 before the first one of all


cdef inline Block* block_new(Block** spare) except NULL nogil:
    cdef Block* block = spare[0]
    if block != NULL:
        spare[0] = block.next
    else:
        block = <Block*> safe_realloc(NULL, 1, sizeof(Block), b"blocks of a profile")
    block.count = 0
    return block


cdef inline void block_drop(Block** spare, Block* block) noexcept nogil:
    block.next = spare[0]
    spare[0] = block


cdef inline void moments_clear(Moments* moments, Block** spare) noexcept nogil:
    cdef Py_ssize_t leaf
    for leaf in range(moments.head, moments.tail):
        block_drop(spare, moments.leaf[leaf].block)
    moments.head = 0
    moments.tail = 0


cdef inline void moments_free(Moments* moments, Block** spare) noexcept nogil:
    moments_clear(moments, spare)
    free(moments.leaf)
    moments.leaf = NULL
    moments.capacity = 0


cdef inline double longest_stay(seconds_t from_time, seconds_t to_time) noexcept nogil:
    # No duration above this one has from_time + duration <= to_time, however the sum is rounded.
    return (to_time - from_time) + (fabs(to_time) + fabs(from_time)) * 1e-15


cdef inline void leaf_measure(Leaf* leaf) noexcept nogil:
    cdef const Block* block = leaf.block
    cdef double most = -INFINITY
    cdef double stay
    cdef Py_ssize_t item
    for item in range(block.count):
        stay = longest_stay(block.time[item], block.value[item])
        if stay > most:
            most = stay
    leaf.most = most


cdef inline Py_ssize_t leaf_insert(
    Moments* moments, Py_ssize_t leaf, Block** spare
) except -1 nogil:
    # Makes a leaf with an empty block at this number; returns the number it has in the end.
    cdef Py_ssize_t capacity
    cdef Block* block
    if moments.tail == moments.capacity:
        if moments.head > moments.capacity >> 1:
            moments.tail -= moments.head
            leaf -= moments.head
            memmove(moments.leaf, &moments.leaf[moments.head], moments.tail * sizeof(Leaf))
            moments.head = 0
        else:
            capacity = doubled(moments.capacity, 16)
            moments.leaf = <Leaf*> safe_realloc(
                moments.leaf, capacity, sizeof(Leaf), b"blocks of a profile"
            )
            moments.capacity = capacity
    block = block_new(spare)
    memmove(&moments.leaf[leaf + 1], &moments.leaf[leaf], (moments.tail - leaf) * sizeof(Leaf))
    moments.tail += 1
    moments.leaf[leaf].block = block
    moments.leaf[leaf].most = -INFINITY
    return leaf


cdef inline void leaf_erase(Moments* moments, Py_ssize_t leaf, Block** spare) noexcept nogil:
    block_drop(spare, moments.leaf[leaf].block)
    if leaf == moments.head:
        moments.head += 1
        return
    moments.tail -= 1
    memmove(&moments.leaf[leaf], &moments.leaf[leaf + 1], (moments.tail - leaf) * sizeof(Leaf))


cdef inline Place moments_find(const Moments* moments, seconds_t time) noexcept nogil:
    # The last item at or before a moment.
    cdef Place place
    cdef const Block* block
    cdef Py_ssize_t low = moments.head
    cdef Py_ssize_t high = moments.tail
    cdef Py_ssize_t middle, item
    place.leaf = low
    place.item = -1
    if low == high or moments.leaf[low].first > time:
        return place
    while high - low > 1:
        middle = (low + high) >> 1
        if moments.leaf[middle].first <= time:
            low = middle
        else:
            high = middle
    place.leaf = low
    block = moments.leaf[low].block
    # Counting is faster than halving: it waits for no comparison, and takes several at a time.
    for item in range(block.count):
        place.item += block.time[item] <= time
    return place


cdef inline bint moments_next(const Moments* moments, Place* place) noexcept nogil:
    # Goes to the next item; false, and beyond the last one, where there is none.
    place.item += 1
    if place.leaf < moments.tail and place.item == moments.leaf[place.leaf].block.count:
        place.leaf += 1
        place.item = 0
    return place.leaf < moments.tail


cdef inline int moments_insert(
    Moments* moments, Place* place, Block** spare, seconds_t time, double value
) except -1 nogil:
    # Puts an item behind the one at a place, which becomes the place of the new one.
    cdef Leaf* leaf
    cdef Block* block
    cdef Block* upper
    cdef Py_ssize_t number = place.leaf
    cdef Py_ssize_t item = place.item + 1
    if moments.head == moments.tail:
        number = leaf_insert(moments, moments.tail, spare)
        item = 0
    elif moments.leaf[number].block.count == BLOCK_ITEMS:
        number = leaf_insert(moments, number + 1, spare)
        if item == BLOCK_ITEMS:
            item = 0
        else:
            block = moments.leaf[number - 1].block
            upper = moments.leaf[number].block
            upper.count = BLOCK_ITEMS // 2
            block.count -= upper.count
            memcpy(upper.time, &block.time[block.count], upper.count * sizeof(seconds_t))
            memcpy(upper.value, &block.value[block.count], upper.count * sizeof(double))
            moments.leaf[number].first = upper.time[0]
            leaf_measure(&moments.leaf[number - 1])
            leaf_measure(&moments.leaf[number])
            if item <= block.count:
                number -= 1
            else:
                item -= block.count
    leaf = &moments.leaf[number]
    block = leaf.block
    memmove(&block.time[item + 1], &block.time[item], (block.count - item) * sizeof(seconds_t))
    memmove(&block.value[item + 1], &block.value[item], (block.count - item) * sizeof(double))
    block.count += 1
    block.time[item] = time
    block.value[item] = value
    if item == 0:
        leaf.first = time
    place.leaf = number
    place.item = item
    return 0


cdef inline void moments_erase(Moments* moments, Place place, Block** spare) noexcept nogil:
    # Places before this one stay what they are.
    cdef Leaf* leaf = &moments.leaf[place.leaf]
    cdef Block* block = leaf.block
    cdef Block* upper
    block.count -= 1
    if block.count == 0:
        leaf_erase(moments, place.leaf, spare)
        return
    memmove(
        &block.time[place.item], &block.time[place.item + 1],
        (block.count - place.item) * sizeof(seconds_t),
    )
    memmove(
        &block.value[place.item], &block.value[place.item + 1],
        (block.count - place.item) * sizeof(double),
    )
    leaf.first = block.time[0]
    if block.count <= BLOCK_ITEMS // 4 and place.leaf + 1 < moments.tail:
        upper = moments.leaf[place.leaf + 1].block
        if block.count + upper.count <= BLOCK_ITEMS // 4 * 3:
            memcpy(&block.time[block.count], upper.time, upper.count * sizeof(seconds_t))
            memcpy(&block.value[block.count], upper.value, upper.count * sizeof(double))
            block.count += upper.count
            if moments.leaf[place.leaf + 1].most > leaf.most:
                leaf.most = moments.leaf[place.leaf + 1].most
            leaf_erase(moments, place.leaf + 1, spare)
