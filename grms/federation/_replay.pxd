# Arrivals of a federation replayed in order, and what is left to do after the last one.
from grms.federation._sites cimport Federation

cdef int replay(Federation* federation, Py_ssize_t row, Py_ssize_t stop) except -1 nogil
cdef int drain(Federation* federation, Py_ssize_t count) except -1 nogil
