"""Copies of objects with slots, made at once.

A daemon copies a job at every step of it, and begins a new one as the copy of a blank one: it would
take ten times as long to do it field by field.
"""

from types import MemberDescriptorType

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XINCREF

cdef extern from "Python.h":
    object PyType_GenericAlloc(PyTypeObject* kind, Py_ssize_t items)
    ctypedef struct _Layout "PyTypeObject":
        Py_ssize_t tp_basicsize
        Py_ssize_t tp_itemsize
        Py_ssize_t tp_dictoffset
        Py_ssize_t tp_weaklistoffset


cdef class Copier:
    """Copies the objects of one class, whose fields are all slots; the copy shares their values.

    Args:
        kind: the class.

    Raises:
        TypeError: its objects have more than slots, so that a copy would lack something.
    """

    cdef readonly type kind
    cdef Py_ssize_t slots

    def __init__(self, type kind not None):
        cdef _Layout* layout = <_Layout*> <PyObject*> kind
        self.slots = sum(
            isinstance(member, MemberDescriptorType)
            for each in kind.__mro__
            for member in vars(each).values()
        )
        if (
            layout.tp_itemsize != 0
            or layout.tp_dictoffset != 0
            or layout.tp_weaklistoffset != 0
            or layout.tp_basicsize != <Py_ssize_t> (
                sizeof(PyObject) + self.slots * sizeof(PyObject*)
            )
        ):
            raise TypeError(f"objects of {kind.__name__} have more than slots")
        self.kind = kind

    def __call__(self, thing):
        """Returns a copy of an object of that class.

        Raises:
            TypeError: it is of another class.
        """
        cdef PyObject** source
        cdef PyObject** target
        cdef Py_ssize_t slot
        if type(thing) is not self.kind:
            raise TypeError(f"this is no {self.kind.__name__} but a {type(thing).__name__}")
        copy = PyType_GenericAlloc(<PyTypeObject*> <PyObject*> self.kind, 0)
        # All that is behind the head of such an object is references, of which some may be empty.
        source = <PyObject**> (<char*> <PyObject*> thing + sizeof(PyObject))
        target = <PyObject**> (<char*> <PyObject*> copy + sizeof(PyObject))
        for slot in range(self.slots):
            Py_XINCREF(source[slot])
            target[slot] = source[slot]
        return copy
