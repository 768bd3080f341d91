# One block of memory for all arrays of a kernel.
#
# The same function lays out a struct twice: first without memory, to sum the sizes, then after
# `arena_open`, to set the pointers. So each array has one name and one size.

cdef struct Arena:
    char* memory      # NULL while sizes are added up
    Py_ssize_t used   # bytes


cdef inline void* cut(Arena* arena, Py_ssize_t count, size_t item_size) noexcept nogil:
    # The next array, of at least one item; the one after it begins at a multiple of 16.
    cdef Py_ssize_t begin = arena.used
    arena.used += (max(<Py_ssize_t> 1, count) * <Py_ssize_t> item_size + 15) & ~<Py_ssize_t> 15
    return NULL if arena.memory == NULL else arena.memory + begin


cdef inline void arena_open(Arena* arena, unsigned char[::1] memory) noexcept:
    # Cuts anew, in zeroed memory of `arena.used` bytes. The owner of the pointers keeps it alive.
    arena.memory = <char*> &memory[0]
    arena.used = 0
