# Branches that hardly any machine takes: the compiler moves them, and what they need to keep, out
# of the way of all others. Every module that Cython writes has this macro.

cdef extern from *:
    bint unlikely(bint condition) noexcept nogil
