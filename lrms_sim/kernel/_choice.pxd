# Which of several alternatives makes a pass: rules over the state of the machine.
#
# After Franke, Lepping, Schwiegelshohn 2007, "Genetic Fuzzy Systems applied to Online Job
# Scheduling". The state is seven features, taken after the terminations and submissions of an
# instant and before its starts.
from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

from lrms_sim.kernel._criteria cimport GROUPS

cdef enum:
    FEATURES = 7
    CLASSES = 192

cdef struct Features:
    # SD; U, percent; PRCWQ of groups 1 to 5, percent.
    double value[FEATURES]

cdef struct History:
    # Of the jobs that have ended, summed in order (end time, job).
    double response              # Σ p·m·(C - r)
    double service               # Σ p·m·p

cdef struct Choice:
    const int32_t* table         # by class, the alternative; NULL where there is none
    # By rule: 7 means, 7 reciprocal deviations, the logarithm of their product, then a
    # recommendation for each alternative.
    const double* rules
    Py_ssize_t rule_count
    Py_ssize_t stride            # numbers of one rule
    Py_ssize_t alternatives
    double* degree               # by rule, room to work in
    int64_t* visits              # by class


cdef inline Py_ssize_t class_of(const Features* features) noexcept nogil:
    # The class of a state; a value on a border belongs to the lower class.
    cdef Py_ssize_t number = 0
    cdef Py_ssize_t group
    if features.value[0] > 2.0:
        number = 3
    if features.value[1] > 75.0:
        number += 1
    if features.value[1] > 85.0:
        number += 1
    for group in range(GROUPS):
        number = 2 * number + (features.value[2 + group] > (20.0 if group < 2 else 25.0))
    return number


cdef inline Py_ssize_t choose_by_rules(Choice* choice, const Features* features) noexcept nogil:
    # argmax over k of Σ φ·Ω_k; the first of these. A common factor changes nothing, so the
    # degrees are taken relative to the largest and never all vanish.
    cdef const double* rule
    cdef double most, output, best_output, distance
    cdef Py_ssize_t i, k
    cdef Py_ssize_t best = 0
    most = 0.0
    for i in range(choice.rule_count):
        rule = &choice.rules[i * choice.stride]
        output = rule[2 * FEATURES]
        for k in range(FEATURES):
            distance = (features.value[k] - rule[k]) * rule[FEATURES + k]
            output -= 0.5 * (distance * distance)
        choice.degree[i] = output
        if i == 0 or output > most:
            most = output
    for i in range(choice.rule_count):
        choice.degree[i] = exp(choice.degree[i] - most)
    best_output = 0.0
    for k in range(choice.alternatives):
        output = 0.0
        for i in range(choice.rule_count):
            output += choice.degree[i] * choice.rules[i * choice.stride + 2 * FEATURES + 1 + k]
        if k == 0 or output > best_output:
            best = k
            best_output = output
    return best


cdef inline Py_ssize_t choose(Choice* choice, const Features* features) noexcept nogil:
    cdef Py_ssize_t number
    if choice.table != NULL:
        number = class_of(features)
        choice.visits[number] += 1
        return choice.table[number]
    return choose_by_rules(choice, features)
