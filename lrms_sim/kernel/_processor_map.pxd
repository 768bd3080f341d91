# Which processors of a machine are free: a bit for each, and the lowest are taken first.
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc

from lrms_sim.kernel._memory cimport doubled, safe_realloc
from lrms_sim.kernel._types cimport processors_t

cdef extern from *:
    int lowest_bit "__builtin_ctzll" (unsigned long long word) noexcept nogil

cdef enum:
    ALL_BITS = 0xFFFFFFFFFFFFFFFF

cdef struct Interval:
    processors_t first
    processors_t last

cdef struct Intervals:
    Interval* interval
    Py_ssize_t capacity

cdef struct ProcessorMap:
    processors_t processors
    processors_t processors_free
    int64_t first_number    # of the machine's processors in the file
    Py_ssize_t words
    Py_ssize_t lowest       # no word below has a free processor
    uint64_t* busy          # one bit for each processor


cdef inline int map_open(ProcessorMap* machine, int64_t processors, int64_t first) except -1:
    machine.processors = <processors_t> processors
    machine.processors_free = machine.processors
    machine.first_number = first
    machine.words = <Py_ssize_t> (processors + 63) >> 6
    # Zeroed by the system page by page when touched, so a huge machine costs nothing before it is
    # used.
    machine.busy = <uint64_t*> calloc(max(machine.words, 1), sizeof(uint64_t))
    if machine.busy == NULL:
        raise MemoryError(f"no memory for {processors} processors")
    if processors & 63:
        machine.busy[machine.words - 1] = <uint64_t> ALL_BITS << (processors & 63)
    return 0


cdef inline Py_ssize_t take_lowest(
    ProcessorMap* machine, processors_t width, Intervals* taken
) except -1:
    # Marks the lowest free processors busy; returns the number of their intervals, in `taken`.
    cdef Py_ssize_t word = machine.lowest
    cdef Py_ssize_t count = 0
    cdef uint64_t free_bits, shifted, mask
    cdef processors_t bit, run, first
    machine.processors_free -= width
    while width > 0:
        free_bits = ~machine.busy[word]
        while free_bits != 0 and width > 0:
            bit = lowest_bit(free_bits)
            shifted = ~(free_bits >> bit)
            run = lowest_bit(shifted) if shifted != 0 else 64
            if run > width:
                run = width
            mask = (<uint64_t> ALL_BITS >> (64 - run)) << bit
            free_bits &= ~mask
            machine.busy[word] |= mask
            width -= run
            first = <processors_t> (word << 6) + bit
            if count and taken.interval[count - 1].last == first - 1:
                taken.interval[count - 1].last = first + run - 1
                continue
            if count == taken.capacity:
                taken.capacity = doubled(count, 256)
                taken.interval = <Interval*> safe_realloc(
                    taken.interval, taken.capacity, sizeof(Interval), b"intervals"
                )
            taken.interval[count] = Interval(first, first + run - 1)
            count += 1
        if free_bits == 0:
            word += 1
    machine.lowest = word
    return count


cdef inline void mark_free(uint64_t* busy, processors_t first, processors_t last) noexcept nogil:
    cdef Py_ssize_t word = first >> 6
    cdef Py_ssize_t last_word = last >> 6
    cdef uint64_t low = <uint64_t> ALL_BITS << (first & 63)
    cdef uint64_t high = <uint64_t> ALL_BITS >> (63 - (last & 63))
    if word == last_word:
        busy[word] &= ~(low & high)
        return
    busy[word] &= ~low
    for word in range(word + 1, last_word):
        busy[word] = 0
    busy[last_word] &= ~high


cdef inline void give_back(
    ProcessorMap* machine, const Interval* intervals, Py_ssize_t count
) noexcept nogil:
    cdef Py_ssize_t index
    for index in range(count):
        machine.processors_free += intervals[index].last - intervals[index].first + 1
        mark_free(machine.busy, intervals[index].first, intervals[index].last)
    machine.lowest = min(machine.lowest, intervals[0].first >> 6)
