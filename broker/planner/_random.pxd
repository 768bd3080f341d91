# The random generator of the planner's kernels: xoshiro256** (Blackman and Vigna), one per mating.
#
# A mating's stream is a function of seed, generation and parent, so that threads and order of
# matings do not matter, and a saved run needs no generator state.
from libc.stdint cimport int32_t, uint64_t

cdef struct Random:
    uint64_t s0
    uint64_t s1
    uint64_t s2
    uint64_t s3

cdef inline uint64_t mixed(uint64_t* state) noexcept nogil:
    # splitmix64: spreads any number.
    cdef uint64_t z
    state[0] += 0x9E3779B97F4A7C15ULL
    z = state[0]
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL
    return z ^ (z >> 31)

cdef inline void random_begin(
    Random* random, uint64_t seed, uint64_t generation, uint64_t parent
) noexcept nogil:
    cdef uint64_t state = seed
    state = mixed(&state) ^ generation
    state = mixed(&state) ^ parent
    random.s0 = mixed(&state)
    random.s1 = mixed(&state)
    random.s2 = mixed(&state)
    random.s3 = mixed(&state)

cdef inline uint64_t random_bits(Random* random) noexcept nogil:
    cdef uint64_t result = random.s1 * 5
    cdef uint64_t shifted = random.s1 << 17
    result = ((result << 7) | (result >> 57)) * 9
    random.s2 ^= random.s0
    random.s3 ^= random.s1
    random.s1 ^= random.s2
    random.s0 ^= random.s3
    random.s2 ^= shifted
    random.s3 = (random.s3 << 45) | (random.s3 >> 19)
    return result

cdef inline double random_share(Random* random) noexcept nogil:
    # In [0, 1), of 53 bits.
    return (random_bits(random) >> 11) * 1.1102230246251565e-16

cdef inline bint random_chance(Random* random, double probability) noexcept nogil:
    return random_share(random) < probability

cdef inline int32_t random_below(Random* random, int32_t count) noexcept nogil:
    # From 0 to count − 1; the bias is less than count / 2⁵³.
    return <int32_t> (random_share(random) * count)

cdef inline int32_t random_between(Random* random, int32_t least, int32_t most) noexcept nogil:
    # Both included.
    return least + random_below(random, most - least + 1)
