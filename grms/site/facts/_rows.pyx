"""Reads the rows of a journal, of which a start of the daemon has some hundred thousand.

A body is the JSON object that `grms.site.facts.codec.encode` writes: the fields of one kind in
their order, without blanks, of numbers, texts without escapes, and rows of these. `Form` reads
such a body in one pass. Whatever looks otherwise it leaves to the decoder of the standard library,
so that what is accepted, and what comes of it, is the same.
"""

import json
import zlib

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeASCII
from libc.math cimport INFINITY
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy, strlen, strncmp

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char code, int precision, int flags, int* kind) \
        except NULL
    double PyOS_string_to_double(const char* text, char** end, PyObject* overflow) except? -1.0
    bint PyUnicode_IS_ASCII(object text)
    int Py_DTSF_ADD_DOT_0

cdef enum:
    DIGITS_MAX = 18     # of a whole number that surely fits into 64 bits
    NUMBER_BYTES = 24   # room for one, and a blank
    MOMENT_BYTES = 32   # room for any number with a fraction

cdef object _decode = json.JSONDecoder().scan_once
cdef object _crc32 = zlib.crc32
cdef object _NOT_FLAT = object()


cdef inline bint is_digit(char c) noexcept:
    return c'0' <= c <= c'9'


cdef object read_text(const char** at, str before):
    # The text that begins behind a quotation mark; the same object as before where it is the same.
    cdef const char* first = at[0]
    cdef const char* last = first
    cdef Py_ssize_t length, known
    cdef const char* other
    while last[0] != c'"':
        if last[0] == c'\\' or <unsigned char> last[0] < 0x20:
            return _NOT_FLAT
        last += 1
    length = last - first
    at[0] = last + 1
    if before is not None:
        other = PyUnicode_AsUTF8AndSize(before, &known)
        if known == length and memcmp(other, first, length) == 0:
            return before
    return PyUnicode_DecodeASCII(first, length, NULL)


cdef object read_number(const char** at):
    # A whole number of few digits, or any other number as JSON has them.
    cdef const char* first = at[0]
    cdef const char* last = first
    cdef char* end
    cdef bint negative = last[0] == c'-'
    cdef long long whole = 0
    last += negative
    if not is_digit(last[0]) or (last[0] == c'0' and is_digit(last[1])):
        return _NOT_FLAT
    while is_digit(last[0]):
        if last - first >= DIGITS_MAX:
            return _NOT_FLAT
        whole = 10 * whole + (last[0] - c'0')
        last += 1
    if last[0] != c'.' and last[0] != c'e' and last[0] != c'E':
        at[0] = last
        return -whole if negative else whole
    if last[0] == c'.':
        last += 1
        if not is_digit(last[0]):
            return _NOT_FLAT
        while is_digit(last[0]):
            last += 1
    if last[0] == c'e' or last[0] == c'E':
        last += 1
        last += last[0] == c'-' or last[0] == c'+'
        if not is_digit(last[0]):
            return _NOT_FLAT
        while is_digit(last[0]):
            last += 1
    # Without an error of its own, what is beyond all numbers is infinite, as in the library.
    value = PyOS_string_to_double(first, &end, NULL)
    if end != last:
        return _NOT_FLAT
    at[0] = last
    return value


cdef object read_scalar(const char** at, object before):
    cdef char c = at[0][0]
    # What compares up to the zero behind a text does not read beyond it.
    if c == c'"':
        at[0] += 1
        return read_text(at, <str> before if type(before) is str else None)
    if c == c't' and strncmp(at[0], b"true", 4) == 0:
        at[0] += 4
        return True
    if c == c'f' and strncmp(at[0], b"false", 5) == 0:
        at[0] += 5
        return False
    if c == c'n' and strncmp(at[0], b"null", 4) == 0:
        at[0] += 4
        return None
    return read_number(at)


cdef object read_value(const char** at, object before):
    cdef list several
    cdef char behind
    if at[0][0] != c'[':
        return read_scalar(at, before)
    several = []
    at[0] += 1
    if at[0][0] == c']':
        at[0] += 1
        return several
    while True:
        value = read_scalar(at, None)
        if value is _NOT_FLAT:
            return _NOT_FLAT
        several.append(value)
        behind = at[0][0]
        at[0] += 1
        if behind == c']':
            return several
        if behind != c',':
            return _NOT_FLAT


cdef class Form:
    """How the records of one kind are read.

    Args:
        kind: its name.
        names: of the fields that are in the body, in order.
        convert: of few of them, what makes a field of a value of JSON, and whether it takes the
            values of a row one by one; None for the others.
        payload_at: where the payload stands among the fields behind the time; -1 for none.
    """

    cdef str kind
    cdef tuple names, convert
    cdef list heads, last
    cdef Py_ssize_t count, payload_at

    def __init__(self, str kind not None, tuple names not None, tuple convert not None, payload_at):
        if len(names) != len(convert) or not -1 <= payload_at <= len(names):
            raise ValueError(f"{kind}: {len(names)} names, {len(convert)}, {payload_at}")
        self.kind = kind
        self.names = names
        self.convert = convert
        self.count = len(names)
        self.payload_at = payload_at
        self.heads = [
            f'{"," if at else "{"}"{name}":'.encode() for at, name in enumerate(names)
        ]
        self.last = [None] * self.count

    cdef list flat(self, str body):
        # The values of a body as `encode` writes it; None where it may be another.
        cdef Py_ssize_t length, at_field, size
        cdef const char* at
        cdef const char* end
        cdef list values = []
        cdef bytes head
        if not PyUnicode_IS_ASCII(body):
            return None
        at = PyUnicode_AsUTF8AndSize(body, &length)
        # Behind the last character is a zero, which ends whatever is being read.
        end = at + length
        for at_field in range(self.count):
            head = self.heads[at_field]
            size = PyBytes_GET_SIZE(head)
            if end - at < size or memcmp(at, PyBytes_AS_STRING(head), size) != 0:
                return None
            at += size
            value = read_value(&at, self.last[at_field])
            if value is _NOT_FLAT:
                return None
            if type(value) is str:
                self.last[at_field] = value
            values.append(value)
        if end - at != 1 or at[0] != c'}':
            return None
        return values

    cdef list parsed(self, str body):
        found, end = _decode(body, 0)
        if len(found) != self.count or end != len(body):
            raise ValueError(f"a {self.kind} has not the fields {', '.join(found)}")
        return [found[name] for name in self.names]

    def values(self, str body, payload):
        """Returns the fields of a record behind the time, in the order of its class.

        Args:
            body: its text in the journal.
            payload: what runs, or None.

        Raises:
            ValueError: it is not as it is written.
        """
        return self.read(body, payload)

    cdef list read(self, str body, object payload):
        cdef list values
        cdef Py_ssize_t at
        try:
            if (payload is None) == (self.payload_at >= 0):
                raise ValueError("the payload is missing, or one too many")
            values = None if body is None else self.flat(body)
            if values is None:
                values = self.parsed(body)
            for at in range(self.count):
                convert = self.convert[at]
                if convert is not None:
                    make, spread = convert
                    values[at] = make(*values[at]) if spread else make(values[at])
        except (TypeError, AttributeError, KeyError, ValueError, StopIteration) as error:
            raise ValueError(f"this is no {self.kind}: {body!r:.200} ({error})") from error
        if payload is not None:
            values.insert(self.payload_at, bytes(payload))
        return values


cdef struct Moment:
    # A moment and how it is written; all records of one event have the same.
    double time
    Py_ssize_t length       # 0 before the first
    char text[MOMENT_BYTES]


cdef int write_moment(Moment* moment, double time) except -1:
    cdef char* text
    time += 0.0  # SQLite keeps zero without its sign
    if moment.length and time == moment.time:
        return 0
    text = PyOS_double_to_string(time, c'r', 0, Py_DTSF_ADD_DOT_0, NULL)
    try:
        moment.length = strlen(text)
        if moment.length > MOMENT_BYTES:
            raise ValueError("a moment is longer than any number is")
        memcpy(moment.text, text, moment.length)
        moment.time = time
    finally:
        PyMem_Free(text)
    return 0


cdef unsigned int checksum_of(unsigned int before, tuple row, Moment* moment) except? 0:
    # As `grms.kit.journal.row_checksum` has it, of a row (time, kind, body, payload, number, …).
    cdef Py_ssize_t kind_bytes, body_bytes, length
    cdef char number[NUMBER_BYTES]
    cdef const char* kind = PyUnicode_AsUTF8AndSize(row[1], &kind_bytes)
    cdef const char* body = PyUnicode_AsUTF8AndSize(row[2], &body_bytes)
    cdef bytes head
    cdef char* at
    write_moment(moment, row[0])
    length = snprintf(number, NUMBER_BYTES, b"%lld ", <long long> row[4])
    head = PyBytes_FromStringAndSize(NULL, length + moment.length + kind_bytes + body_bytes + 3)
    at = PyBytes_AS_STRING(head)
    memcpy(at, number, length)
    at += length
    memcpy(at, moment.text, moment.length)
    at += moment.length
    at[0] = c' '
    memcpy(at + 1, kind, kind_bytes)
    at += 1 + kind_bytes
    at[0] = c' '
    memcpy(at + 1, body, body_bytes)
    at[1 + body_bytes] = c' '
    checksum = _crc32(head, before)
    return _crc32(row[3], checksum) if row[3] else checksum


def check(list rows not None, long long expected, unsigned int checksum):
    """Returns the checksum of the last of some rows, each of which continues the one before.

    Args:
        rows: (time, kind, body, payload, number, checksum) of each.
        expected: number of the first.
        checksum: of the row before; 0 for none.

    Raises:
        ValueError: a row is missing, or not what was written.
    """
    cdef tuple row
    cdef Moment moment
    moment.length = 0
    for row in rows:
        if row[4] != expected:
            raise ValueError(f"record {expected} is missing")
        if type(row[0]) is not float or type(row[1]) is not str or type(row[2]) is not str:
            raise ValueError(f"record {expected} is not what was written")
        checksum = checksum_of(checksum, row, &moment)
        if checksum != row[5]:
            raise ValueError(f"record {expected} is not what was written")
        expected += 1
    return checksum


def hand_over(list rows not None, dict takers not None, other):
    """Hands rows to whoever takes them, in order.

    Args:
        rows: (time, kind, body, payload, number, …) of each.
        takers: by kind, the form of its records and what takes a moment and the other fields.
        other: takes a row of another kind.

    Returns:
        The latest moment of those that were handed to takers; minus infinity for none.

    Raises:
        RowError: a row is not as it is written.
        TypeError: there is no form for a kind that somebody takes.
    """
    cdef double latest = -INFINITY
    cdef tuple row
    cdef Form form
    cdef list values
    for row in rows:
        taker = takers.get(row[1])
        if taker is None:
            other(row)
            continue
        form, take = taker
        if form is None:
            raise TypeError(f"records of kind {row[1]} have no form")
        try:
            values = form.read(row[2], row[3])
        except ValueError as error:
            raise RowError(row[4], str(error)) from error
        take(row[0], *values)
        latest = max(latest, <double> row[0])
    return latest


class RowError(ValueError):
    """A row is not as it is written.

    Attributes:
        number: of the row.
    """

    def __init__(self, number, text):
        self.number = number
        super().__init__(text)
