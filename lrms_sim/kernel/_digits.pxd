# Numbers as text, written where a pointer is; each returns where the next character goes.
from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, strlen

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char code, int precision, int flags, int* kind) \
        except NULL


cdef inline char* put_whole(char* at, int64_t value) noexcept nogil:
    cdef char[20] reverse
    cdef int digits = 0
    # Negating the smallest number overflows as signed, not as unsigned.
    cdef uint64_t rest = (<uint64_t> 0) - (<uint64_t> value) if value < 0 else <uint64_t> value
    if value < 0:
        at[0] = 45
        at += 1
    while True:
        reverse[digits] = <char> (48 + rest % 10)
        rest = rest // 10
        digits += 1
        if rest == 0:
            break
    while digits:
        digits -= 1
        at[0] = reverse[digits]
        at += 1
    return at


cdef inline char* put_real(char* at, double value) except NULL:
    # A whole value as digits, any other in the fewest digits that read back the same.
    cdef char* text
    cdef size_t length
    # Python writes larger ones the same or with an exponent.
    if -1e15 < value < 1e15 and value == <double> <int64_t> value:
        return put_whole(at, <int64_t> value)
    text = PyOS_double_to_string(value, b"r", 0, 0, NULL)
    length = strlen(text)
    memcpy(at, text, length)
    PyMem_Free(text)
    return at + length
