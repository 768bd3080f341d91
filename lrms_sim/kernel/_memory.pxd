# Memory of the kernels: one place where it can run out.
from libc.stdlib cimport calloc, realloc


cdef inline void* safe_realloc(
    void* block, Py_ssize_t count, size_t item_size, const char* what
) except NULL nogil:
    # `block` with room for `count` items, at least one; it stays as it was where there is none.
    cdef void* grown = NULL
    if <size_t> count <= <size_t> -1 // item_size:
        grown = realloc(block, <size_t> count * item_size)
    if grown == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} {what.decode()}")
    return grown


cdef inline void* safe_calloc(
    Py_ssize_t count, size_t item_size, const char* what
) except NULL nogil:
    # New memory for `count` items, all bits zero; for one where it is asked for none.
    cdef void* block = calloc(count if count > 0 else 1, item_size)
    if block == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} {what.decode()}")
    return block


cdef inline Py_ssize_t doubled(Py_ssize_t capacity, Py_ssize_t least) noexcept nogil:
    # The next capacity of an array that grows by appending.
    return capacity * 2 if capacity >= least else least
