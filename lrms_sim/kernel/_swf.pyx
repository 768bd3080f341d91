"""Compiled reading and writing of job lines of the Standard Workload Format.

The text passed in always ends with a line end, which stops every scan: no loop below checks a
length.
"""

import re

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memchr

from lrms_sim.kernel._digits cimport put_real, put_whole

cdef enum:
    FIELDS = 18
    REAL = 0
    LONG = 1
    INT = 2
    # 18 decimal digits always fit 64 bits.
    DIGITS_MAX = 18
    # The longest number repr() writes has 24 characters.
    NUMBER_CHARACTERS_MAX = 26
    FAULT_NONE = 0
    FAULT_NOT_A_NUMBER = 1
    FAULT_NOT_WHOLE = 2
    FAULT_TOO_LARGE = 3
    FAULT_TOO_FEW = 4

NOT_A_NUMBER = FAULT_NOT_A_NUMBER
NOT_WHOLE = FAULT_NOT_WHOLE
TOO_LARGE = FAULT_TOO_LARGE
TOO_FEW = FAULT_TOO_FEW

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TOKEN_BYTES_MAX = 400

cdef uint64_t[19] POWERS_OF_TEN
cdef int _power
POWERS_OF_TEN[0] = 1
for _power in range(1, 19):
    POWERS_OF_TEN[_power] = POWERS_OF_TEN[_power - 1] * 10

cdef double REAL_EXACT_MAX = 9007199254740992.0  # 2**53


cdef struct Number:
    # What a plain run of digits says: (-1)**negative * mantissa / 10**decimals.
    uint64_t mantissa
    int decimals
    bint negative


cdef inline bint is_gap(unsigned char c) noexcept nogil:
    return c == 32 or (9 <= c <= 13 and c != 10)


cdef inline bint ends_token(unsigned char c) noexcept nogil:
    return c == 32 or 9 <= c <= 13 or c == 59  # 59 is ';'


cdef inline const unsigned char* scan_fast(const unsigned char* at, Number* number) noexcept nogil:
    """Reads `[-]digits[.digits]`; returns its end, or NULL if the text is anything else."""
    cdef uint64_t mantissa = 0
    cdef int digits = 0
    cdef int decimals = 0
    cdef unsigned char digit
    number.negative = at[0] == 45  # '-'
    if number.negative:
        at += 1
    while True:
        digit = at[0] - 48
        if digit > 9:
            break
        mantissa = mantissa * 10 + digit
        digits += 1
        at += 1
        if digits > DIGITS_MAX:
            return NULL
    if at[0] == 46:  # '.'
        at += 1
        while True:
            digit = at[0] - 48
            if digit > 9:
                break
            mantissa = mantissa * 10 + digit
            digits += 1
            decimals += 1
            at += 1
            if digits > DIGITS_MAX:
                return NULL
    if digits == 0 or not ends_token(at[0]):
        return NULL
    number.mantissa = mantissa
    number.decimals = decimals
    return at


cdef inline bint to_real(const Number* number, double* value) noexcept nogil:
    """Converts correctly rounded; False if that needs more than one division."""
    cdef double result = <double> number.mantissa
    if number.decimals:
        # One correctly rounded division of two exact doubles (Clinger 1990).
        if result > REAL_EXACT_MAX:
            return False
        result = result / <double> POWERS_OF_TEN[number.decimals]
    value[0] = -result if number.negative else result
    return True


cdef inline bint to_whole(const Number* number, int64_t* value) noexcept nogil:
    """Converts a whole number; False if it has nonzero decimals."""
    cdef uint64_t mantissa = number.mantissa
    if number.decimals:
        if mantissa % POWERS_OF_TEN[number.decimals] != 0:
            return False
        mantissa = mantissa // POWERS_OF_TEN[number.decimals]
    value[0] = -(<int64_t> mantissa) if number.negative else <int64_t> mantissa
    return True


cdef int read_slowly(bytes token, bint whole, double* real, int64_t* value) except -1:
    """Reads any spelling of a number, with sign, exponent or many digits; returns a fault."""
    cdef object number
    if len(token) > _TOKEN_BYTES_MAX or _NUMBER.fullmatch(token) is None:
        return FAULT_NOT_A_NUMBER
    number = float(token)
    if number - number != 0:  # infinite
        return FAULT_TOO_LARGE
    if not whole:
        real[0] = number
        return FAULT_NONE
    if not number.is_integer():
        return FAULT_NOT_WHOLE
    number = int(token) if token.lstrip(b"+-").isdigit() else int(number)
    if not -(2**63) <= number < 2**63:
        return FAULT_TOO_LARGE
    value[0] = number
    return FAULT_NONE


cdef const unsigned char* token_end(const unsigned char* at) noexcept nogil:
    while not ends_token(at[0]):
        at += 1
    return at


cdef int parse_number(
    const unsigned char** cursor, bint whole, double* real, int64_t* value
) except -1 nogil:
    """Reads one field and moves past it; if it is no number, returns a fault and does not move."""
    cdef const unsigned char* at = cursor[0]
    cdef const unsigned char* stop
    cdef Number number
    cdef int fault
    stop = scan_fast(at, &number)
    if stop != NULL and whole:
        if not to_whole(&number, value):
            return FAULT_NOT_WHOLE
    elif stop == NULL or not to_real(&number, real):
        stop = token_end(at)
        with gil:
            fault = read_slowly(
                PyBytes_FromStringAndSize(<const char*> at, stop - at), whole, real, value
            )
        if fault != FAULT_NONE:
            return fault
    cursor[0] = stop
    return FAULT_NONE


cdef int parse_row(
    const unsigned char** cursor,
    int* field,
    const unsigned char[::1] kinds,
    const unsigned char[::1] slots,
    double[:, ::1] reals,
    int64_t[:, ::1] longs,
    int32_t[:, ::1] ints,
    int64_t row,
) except -1 nogil:
    """Reads the fields of one line into a row; returns a fault, located by cursor and field."""
    cdef const unsigned char* at = cursor[0]
    cdef unsigned char kind
    cdef double real = 0.0
    cdef int64_t value = 0
    cdef int fault = FAULT_NONE
    cdef int index
    for index in range(FIELDS):
        field[0] = index
        cursor[0] = at
        if at[0] == 10 or at[0] == 59:
            return FAULT_TOO_FEW
        kind = kinds[index]
        fault = parse_number(&at, kind != REAL, &real, &value)
        if fault != FAULT_NONE:
            return fault
        if kind == REAL:
            reals[slots[index], row] = real
        elif kind == LONG:
            longs[slots[index], row] = value
        elif -2147483648 <= value <= 2147483647:
            ints[slots[index], row] = <int32_t> value
        else:
            return FAULT_TOO_LARGE
        while is_gap(at[0]):
            at += 1
    cursor[0] = at
    return FAULT_NONE


cdef int check_shapes(
    const unsigned char[::1] kinds, const unsigned char[::1] slots, Py_ssize_t* rooms
) except -1:
    cdef int field
    if kinds.shape[0] != FIELDS or slots.shape[0] != FIELDS:
        raise ValueError(f"kinds and slots need {FIELDS} entries")
    for field in range(FIELDS):
        if kinds[field] > INT or slots[field] >= rooms[kinds[field]]:
            raise ValueError(f"no row for field {field}")
    return 0


cdef tuple describe_fault(int fault, int64_t line, int field, const unsigned char* at):
    cdef const unsigned char* stop
    if fault == FAULT_NONE:
        return None
    if fault == FAULT_TOO_FEW:
        return fault, line, field, field
    stop = token_end(at)
    return fault, line, field, PyBytes_FromStringAndSize(<const char*> at, stop - at)


def parse_block(
    const unsigned char[::1] text,
    int64_t line,
    const unsigned char[::1] kinds,
    const unsigned char[::1] slots,
    double[:, ::1] reals,
    int64_t[:, ::1] longs,
    int32_t[:, ::1] ints,
    list comments,
):
    """Reads whole lines into columns.

    Args:
        text: bytes ending with a line end.
        line: number of lines before this block.
        kinds: shape (18,), 0 for a real field, 1 for a 64-bit, 2 for a 32-bit whole number.
        slots: shape (18,), the row of `reals`, `longs` or `ints` that takes the field.
        reals: shape (fields of kind 0, rows); rows at least the number of job lines.
        longs: shape (fields of kind 1, rows).
        ints: shape (fields of kind 2, rows).
        comments: takes the comment lines, as bytes without the line end.

    Returns:
        The number of rows filled; the number of lines before the next block; `None` or the first
        fault as `(code, line, field from 0, token)`, `token` being the number of fields found
        for TOO_FEW; and how many of the rows continue beyond field 18.

    Raises:
        ValueError: a shape does not fit, or the text does not end with a line end.
    """
    cdef const unsigned char* at
    cdef const unsigned char* end
    cdef const unsigned char* stop
    cdef int64_t row = 0
    cdef int64_t rows_max = reals.shape[1]
    cdef int64_t longer = 0
    cdef int field = 0
    cdef int fault = FAULT_NONE
    check_shapes(kinds, slots, [reals.shape[0], longs.shape[0], ints.shape[0]])
    if longs.shape[1] != rows_max or ints.shape[1] != rows_max:
        raise ValueError("reals, longs and ints differ in length")
    if text.shape[0] == 0:
        return 0, line, None, 0
    at = &text[0]
    end = at + text.shape[0]
    if (end - 1)[0] != 10:
        raise ValueError("the text does not end with a line end")
    with nogil:
        while at < end:
            line += 1
            while is_gap(at[0]):
                at += 1
            if at[0] == 59:
                stop = <const unsigned char*> memchr(at, 10, end - at)
                with gil:
                    comments.append(PyBytes_FromStringAndSize(<const char*> at, stop - at))
            elif at[0] != 10:
                if row == rows_max:
                    with gil:
                        raise ValueError(f"no room for more than {rows_max} rows")
                fault = parse_row(&at, &field, kinds, slots, reals, longs, ints, row)
                if fault != FAULT_NONE:
                    break
                longer += at[0] != 10 and at[0] != 59
                row += 1
            at = <const unsigned char*> memchr(at, 10, end - at) + 1
    return row, line, describe_fault(fault, line, field, at), longer


def format_block(
    const unsigned char[::1] kinds,
    const unsigned char[::1] slots,
    const double[:, ::1] reals,
    const int64_t[:, ::1] wholes,
):
    """Formats rows as lines of bytes, fields separated by one blank, lines ended by line feeds.

    Args:
        kinds: shape (18,), 0 for a real field, 1 for a whole number.
        slots: shape (18,), the row of `reals` or `wholes` that holds the field.
        reals: shape (real fields, rows), finite.
        wholes: shape (whole fields, rows).

    Raises:
        ValueError: a shape does not fit.
    """
    cdef int64_t rows = reals.shape[1]
    cdef int64_t row
    cdef int field
    cdef char* buffer
    cdef char* at
    check_shapes(kinds, slots, [reals.shape[0], wholes.shape[0], 0])
    if wholes.shape[1] != rows:
        raise ValueError("reals and wholes differ in length")
    buffer = <char*> PyMem_Malloc(rows * FIELDS * NUMBER_CHARACTERS_MAX + 1)
    if buffer == NULL:
        raise MemoryError
    try:
        at = buffer
        for row in range(rows):
            for field in range(FIELDS):
                if field:
                    at[0] = 32
                    at += 1
                if kinds[field] == REAL:
                    at = put_real(at, reals[slots[field], row])
                else:
                    at = put_whole(at, wholes[slots[field], row])
            at[0] = 10
            at += 1
        return PyBytes_FromStringAndSize(buffer, at - buffer)
    finally:
        PyMem_Free(buffer)
