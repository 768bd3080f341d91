"""The compiled decisions against plain Python."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.policy._decisions import CompiledTransfer, MembershipTable, order_by_awrt
from grms.policy.constraints import START_NOW, ExchangeConstraints
from grms.policy.transfer import Gaussian, Rule, RuleBase

finite = st.floats(-200, 200)
sigmas = st.floats(-150, 150).filter(lambda sigma: abs(sigma) > 1e-3)
gaussians = st.builds(Gaussian, finite, sigmas)
rules = st.lists(st.builds(Rule, gaussians, gaussians, st.booleans()), min_size=1, max_size=12).map(
    tuple
)


def plain_membership(x: float, gaussian: Gaussian) -> float:
    distance = (x - gaussian.gamma) / gaussian.sigma
    return math.exp(-(distance * distance))


def plain_output(rules: tuple[Rule, ...], nwp: float, njp: float) -> float:
    total = 0.0
    for rule in rules:
        degree = plain_membership(nwp, rule.nwp) * plain_membership(njp, rule.njp)
        total += degree if rule.accept else -degree
    return total


@given(rules, st.floats(0, 100), st.floats(0, 100))
def test_output_is_the_numerator_of_equation_2(
    rules: tuple[Rule, ...], nwp: float, njp: float
) -> None:
    """The compiled output equals the plain one to the last bit."""
    assert RuleBase(rules).compiled.output(nwp, njp) == plain_output(rules, nwp, njp)


@given(rules, st.integers(1, 64), st.integers(1, 64), st.integers(0, 10_000), st.booleans())
def test_decision_is_the_sign_of_the_output(
    rules: tuple[Rule, ...], width: int, extra: int, waiting: int, own: bool
) -> None:
    """A rule base wants a job iff its output at (NWP, NJP in percent) is above zero."""
    processors = width + extra
    wanted = RuleBase(rules).compiled.accept(
        width,
        processors=processors,
        processors_free=0,
        processors_waiting=waiting,
        own=own,
    )
    output = plain_output(rules, waiting / processors, 100.0 * width / processors)
    assert wanted == (output > 0)


def test_vanishing_memberships_decline() -> None:
    """Where every membership underflows to zero the answer is no."""
    far = RuleBase((Rule(Gaussian(1e6, 1e-3), Gaussian(1e6, 1e-3), accept=True),))
    assert far.compiled.output(0, 50) == 0
    assert not far.compiled.accept(
        5, processors=10, processors_free=10, processors_waiting=0, own=True
    )


def test_balanced_rules_decline() -> None:
    """Two rules that cancel out give zero, and zero is a decline."""
    here = Gaussian(0, 1), Gaussian(50, 1)
    balanced = RuleBase((Rule(*here, accept=True), Rule(*here, accept=False)))
    assert not balanced.compiled.accept(
        5, processors=10, processors_free=10, processors_waiting=0, own=True
    )


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 500), st.booleans())
def test_accept_when_fit_looks_at_free_processors_only(
    width: int, free: int, waiting: int, own: bool
) -> None:
    """AWF wants a job iff it fits now, whoever asks and however long the queue is."""
    wanted = CompiledTransfer.accept_when_fit().accept(
        width, processors=50, processors_free=free, processors_waiting=waiting, own=own
    )
    assert wanted == (width <= free)


@pytest.mark.parametrize("own", [True, False])
def test_always_keep_wants_own_jobs_only(own: bool) -> None:
    """The isolated site keeps its own jobs and takes no other."""
    wanted = CompiledTransfer.always_keep().accept(
        3, processors=4, processors_free=0, processors_waiting=9, own=own
    )
    assert wanted is own


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"job_processors": 0}, r"^job_processors is 0; it must be between 1 and the site's 10$"),
        ({"job_processors": 11}, r"^job_processors is 11; it must be between 1 and the site's 10$"),
        ({"processors_free": -1}, r"^processors_free is -1; it must be between 0 and 10$"),
        ({"processors_free": 11}, r"^processors_free is 11; it must be between 0 and 10$"),
        ({"processors_waiting": -1}, r"^processors_waiting is -1; it must be at least 0$"),
    ],
)
def test_the_plain_face_checks_its_arguments(arguments: dict[str, int], complaint: str) -> None:
    """What no site can be in is refused, with the value in the text."""
    usual = {"job_processors": 5, "processors_free": 5, "processors_waiting": 0} | arguments
    with pytest.raises(ValueError, match=complaint):
        CompiledTransfer.accept_when_fit().accept(
            usual["job_processors"],
            processors=10,
            processors_free=usual["processors_free"],
            processors_waiting=usual["processors_waiting"],
            own=True,
        )


def test_only_rule_bases_have_an_output() -> None:
    """Asking another policy for an output is an error."""
    with pytest.raises(ValueError, match=r"^only a rule base has an output$"):
        CompiledTransfer.accept_when_fit().output(0, 0)


def test_an_empty_rule_base_is_refused() -> None:
    """There is no decision without a rule."""
    with pytest.raises(ValueError, match=r"^a rule base needs at least one rule$"):
        CompiledTransfer.rule_base([])


sums = st.floats(0, 1e12)


@given(st.lists(st.tuples(sums, sums), max_size=20))
def test_partners_are_asked_in_ascending_awrt(history: list[tuple[float, float]]) -> None:
    """Order is by AWRT; no history counts 0; ties keep site order."""
    consumption = [pair[0] for pair in history]
    weighted = [pair[1] for pair in history]
    awrt = [w / c if c > 0 else 0.0 for c, w in history]
    expected = sorted(range(len(history)), key=lambda site: (awrt[site], site))
    assert order_by_awrt(consumption, weighted) == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=20))
def test_partners_of_the_same_awrt_take_turns(history: list[tuple[int, int, int]]) -> None:
    """Where it counts, the one that has been asked less often comes before its equals."""
    consumption, weighted, asked = ([row[column] for row in history] for column in range(3))
    awrt = [w / c if c > 0 else 0.0 for c, w, _ in history]
    expected = sorted(range(len(history)), key=lambda site: (awrt[site], asked[site], site))
    assert order_by_awrt(consumption, weighted, asked) == expected


def test_histories_of_two_lengths_are_refused() -> None:
    """Each partner needs both sums."""
    with pytest.raises(ValueError, match=r"^2 consumptions, but 1 weighted responses$"):
        order_by_awrt([1, 2], [1])
    with pytest.raises(
        ValueError, match=r"^2 consumptions, but 2 weighted responses, and 1 times asked$"
    ):
        order_by_awrt([1, 2], [1, 2], [3])


# Memberships computed once each.


def compiled(rules: tuple[Rule, ...], table: MembershipTable | None = None) -> CompiledTransfer:
    return CompiledTransfer.rule_base(
        [
            (
                rule.nwp.gamma,
                rule.nwp.sigma,
                rule.njp.gamma,
                rule.njp.sigma,
                1.0 if rule.accept else -1.0,
            )
            for rule in rules
        ],
        table,
    )


def answer(policy: CompiledTransfer, processors: int, width: int, waiting: int) -> bool:
    return policy.accept(
        width, processors=processors, processors_free=0, processors_waiting=waiting, own=True
    )


@given(
    st.lists(rules, min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 120)), min_size=1, max_size=30),
)
def test_a_table_changes_no_decision(
    bases: list[tuple[Rule, ...]],
    processors: int,
    waiting_max: int,
    states: list[tuple[int, int]],
) -> None:
    """One rule base after the other, at the table's site and another, at any length of queue."""
    count = len(bases[0])
    table = MembershipTable(processors, count, waiting_max)
    for base in bases:
        same_size = (base * count)[:count]
        fast, plain = compiled(same_size, table), compiled(same_size)
        for width, waiting in [*states, *states]:
            for size in (processors, processors + 20):
                if width <= size:
                    assert answer(fast, size, width, waiting) == answer(plain, size, width, waiting)


@given(rules, rules, st.integers(1, 30), st.integers(0, 90))
def test_a_table_belongs_to_the_rule_base_compiled_last(
    first: tuple[Rule, ...], second: tuple[Rule, ...], width: int, waiting: int
) -> None:
    """The one before decides on as ever, without it."""
    count = len(first)
    second = (second * count)[:count]
    table = MembershipTable(30, count)
    old = compiled(first, table)
    before = answer(old, 30, width, waiting)
    new = compiled(second, table)
    assert answer(new, 30, width, waiting) == answer(compiled(second), 30, width, waiting)
    assert answer(old, 30, width, waiting) == before


@pytest.mark.parametrize("arguments", [(0, 1, 5), (5, 0, 5), (5, 1, -1)])
def test_tables_that_cannot_be_are_refused(arguments: tuple[int, int, int]) -> None:
    """A site has a processor, a rule base a rule, a queue no negative length."""
    with pytest.raises(ValueError, match="cannot be"):
        MembershipTable(*arguments)


def test_a_table_of_another_size_is_refused() -> None:
    """Both numbers are in the text."""
    with pytest.raises(ValueError, match=r"^2 rules for a table of 3$"):
        compiled((Rule(Gaussian(0, 1), Gaussian(0, 1), accept=True),) * 2, MembershipTable(5, 3))


further_rules = st.lists(
    st.builds(
        Rule, gaussians, gaussians, st.booleans(), requested_time=gaussians, starts_now=gaussians
    ),
    min_size=1,
    max_size=6,
).map(tuple)


@settings(max_examples=50)
@given(
    further_rules,
    st.integers(1, 40),
    st.integers(0, 500),
    st.sampled_from((0.0, 0.5, 1.0, 90.0, 3600.0, 7e5)),
    st.booleans(),
)
def test_further_features_multiply_the_degree(
    rules: tuple[Rule, ...], width: int, waiting: int, request: float, starts: bool
) -> None:
    """The logarithm of the request, and 1 or 0 for the start; with a table of memberships as without."""
    base = RuleBase(rules)
    total = 0.0
    for rule in rules:
        assert rule.requested_time is not None
        assert rule.starts_now is not None
        degree = plain_membership(waiting / 40, rule.nwp)
        degree *= plain_membership(100.0 * width / 40, rule.njp)
        degree *= plain_membership(
            math.log10(max(request, 1.0)), rule.requested_time
        ) * plain_membership(float(starts), rule.starts_now)
        total += degree if rule.accept else -degree
    found = base.compiled.output(
        waiting / 40, 100.0 * width / 40, requested_time=request, starts_now=starts
    )
    assert found == total
    rows = [(*rule.numbers, 1.0 if rule.accept else -1.0) for rule in rules]
    fast = CompiledTransfer.rule_base(
        rows, MembershipTable(40, len(rules)), requested_time=True, starts_now=True
    )
    # What the constraints allow is for the rules to say: an own job that waits, a guest that starts.
    for policy in (base.compiled, fast, fast):
        assert (total > 0) == policy.constrained(START_NOW.compiled).accept(
            width,
            processors=40,
            processors_free=0,
            processors_waiting=waiting,
            own=not starts,
            requested_time=request,
            starts_now=starts,
        )


def test_further_features_are_known_within_constraints_alone() -> None:
    """Elsewhere nobody asks whether a job would start: no host decides by such rules there."""
    near = Gaussian(0, 1)
    base = RuleBase((Rule(near, near, accept=True, starts_now=near),)).compiled
    assert base.needs_constraints
    with pytest.raises(
        ValueError,
        match=r"^a rule base that looks at more than queue and width decides within constraints alone$",
    ):
        base.accept(1, processors=2, processors_free=2, processors_waiting=0, own=True)
    with pytest.raises(
        ValueError,
        match=r"^rules that look at whether a job would start need constraints that ask it \(start_now\)$",
    ):
        base.constrained(ExchangeConstraints(start_now=False).compiled)
    with pytest.raises(
        ValueError, match=r"^rule 0 has 2 numbers for its further features; 4 are needed$"
    ):
        CompiledTransfer.rule_base([(0, 1, 0, 1, 0, 1, 1)], requested_time=True, starts_now=True)
    assert not base.constrained(START_NOW.compiled).needs_constraints
