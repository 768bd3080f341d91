"""Users' deputies: whose orders they get, and what is believed of what they say."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grms.lrms.base import LrmsRefusedError, NoDeputyError, UserAwayError
from grms.lrms.batch.deputies import (
    ANSWERS_FORGIVEN,
    ORDERS_AT_ONCE,
    PAUSE_FIRST_S,
    PAUSE_MOST_S,
    SLEEPS,
    WAITS,
    Deputies,
    Deputy,
    DeputyOrder,
    NotKnown,
    NotRun,
    boot_time,
)
from grms.lrms.batch.subprocesses import Answer, Programs
from tests.grms.hand_clock import Clock
from tests.waiting import until

NUMBERS: Mapping[str, int] = {"ann": 1001, "bob": 1002}


def number_of(account: str) -> int:
    """Returns the number of an account."""
    if account not in NUMBERS:
        raise LrmsRefusedError(f"{account} is a stranger")
    return NUMBERS[account]


def new(timeout_s: float = 600.0) -> tuple[Deputies, Clock]:
    """Returns a place where nobody is."""
    clock = Clock()
    return Deputies(timeout_s, {"SLURM_CONF": "/c"}, clock, number_of), clock


async def asked(deputies: Deputies, account: str, *words: str) -> Answer:
    """Returns the answer to a program."""
    return await deputies.run(account, "sbatch", words, also={"A": "1"}, folder="/", umask=0o27)


async def taken(deputy: Deputy) -> DeputyOrder:
    """Returns the next order of a deputy."""
    async for order in deputy.orders():
        return order
    raise AssertionError("it was sent away")


async def test_an_order_goes_to_its_users_deputy_alone() -> None:
    """With all that is to be run; the answer is known to be a user's."""
    deputies, _ = new()
    ann, bob = deputies.come(1001), deputies.come(1002)
    asking = asyncio.ensure_future(asked(deputies, "ann", "--hold", "x y"))
    order = await taken(ann)
    assert (order.program, order.arguments) == ("sbatch", ("--hold", "x y"))
    assert (order.environment, order.folder, order.umask) == (
        {"SLURM_CONF": "/c", "A": "1"},
        "/",
        0o27,
    )
    assert 0 < order.until_s - boot_time() <= 600.0
    assert not deputies.answered(1002, order.order_id, Answer(0, b"1", ""))
    assert not deputies.answered(1001, "0" * 32, Answer(0, b"1", ""))
    assert deputies.answered(1001, order.order_id, Answer(0, b"7", ""))
    assert not deputies.answered(1001, order.order_id, Answer(0, b"8", ""))  # once
    assert await asking == Answer(0, b"7", "", theirs=True)
    assert not deputies.answered(1001, order.order_id, Answer(0, b"9", ""))
    waiting = asyncio.ensure_future(taken(bob))
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()


async def test_without_a_deputy_nothing_is_run() -> None:
    """That is certain, and passes; who may run no jobs at all is told so."""
    deputies, _ = new()
    deputies.come(1002)
    assert (deputies.waits_for("ann"), deputies.waits_for("bob")) == (WAITS, "")
    assert deputies.waits_for("eve") == "eve is a stranger"
    with pytest.raises(NoDeputyError, match="waits for its user's deputy") as error:
        await asked(deputies, "ann")
    assert error.value.passing
    with pytest.raises(LrmsRefusedError, match="stranger"):
        await asked(deputies, "eve")


async def test_programs_of_other_accounts_are_the_deputies() -> None:
    """Neither is sudo looked for, nor the program here; this process's own run as ever."""
    deputies, _ = new()
    programs = Programs({}, others=deputies)
    assert (programs.waits_for(""), programs.waits_for("ann")) == ("", WAITS)
    with pytest.raises(NoDeputyError):
        await programs.run("sbatch-that-is-nowhere", account="ann")
    assert (await programs.run("echo", "x")).output == b"x\n"


@pytest.mark.parametrize("begun", [True, False])
async def test_a_deputy_that_goes_may_have_done_it(begun: bool) -> None:
    """Whether it had begun the site cannot know; the next one is asked anew."""
    deputies, _ = new()
    ann = deputies.come(1001)
    asking = asyncio.ensure_future(asked(deputies, "ann"))
    if begun:
        await taken(ann)
    else:
        await asyncio.sleep(0)
    deputies.leave(ann)
    with pytest.raises(UserAwayError, match="it has gone before it answered"):
        await asking
    assert deputies.waits_for("ann") == WAITS
    deputies.come(1001)
    assert deputies.waits_for("ann") == ""


async def test_a_later_deputy_takes_the_place_of_an_earlier_one() -> None:
    """What that one has begun it may answer still; it is given nothing more, and its end takes nothing from the other."""
    deputies, _ = new()
    came: list[int] = []
    deputies.on_came.append(came.append)
    first = deputies.come(1001)
    asking = asyncio.ensure_future(asked(deputies, "ann"))
    order = await taken(first)
    second = deputies.come(1001)
    assert first.replaced
    assert [each async for each in first.orders()] == []
    deputies.leave(first)
    assert deputies.answered(1001, order.order_id, NotRun("no"))
    with pytest.raises(NoDeputyError, match="no"):
        await asking
    again = asyncio.ensure_future(asked(deputies, "ann"))
    order = await taken(second)
    assert deputies.answered(1001, order.order_id, Answer(0, b"", ""))
    await again
    assert came == [1001, 1001]
    assert deputies.present() == [(1001, "")]


async def test_one_that_does_not_answer_is_left_alone_for_a_while() -> None:
    """For longer each time; who answers well for long is forgiven. Others do not notice."""
    deputies, clock = new(timeout_s=0.01)
    deputies.come(1001)
    bob = deputies.come(1002)
    pause = PAUSE_FIRST_S
    for _ in range(7):
        with pytest.raises(UserAwayError, match="no answer within"):
            await asked(deputies, "ann")
        assert deputies.waits_for("ann") == SLEEPS
        assert deputies.present() == [(1001, SLEEPS), (1002, "")]
        deputies.come(1001)  # coming anew does not help
        with pytest.raises(NoDeputyError, match="unanswered"):
            await asked(deputies, "ann")
        clock.now += pause - 1
        assert deputies.waits_for("ann") == SLEEPS
        clock.now += 1
        assert deputies.waits_for("ann") == ""
        pause = min(2 * pause, PAUSE_MOST_S)
    assert pause == PAUSE_MOST_S
    deputies.timeout_s = 600.0
    ann = deputies.come(1001)
    for number in range(7 * ANSWERS_FORGIVEN):
        assert (1001 in deputies._records) == (number < 7 * ANSWERS_FORGIVEN)
        asking = asyncio.ensure_future(asked(deputies, "ann"))
        deputies.answered(1001, (await taken(ann)).order_id, Answer(0, b"", ""))
        await asking
    assert 1001 not in deputies._records
    asking = asyncio.ensure_future(asked(deputies, "bob"))
    deputies.answered(1002, (await taken(bob)).order_id, NotKnown("it was killed"))
    with pytest.raises(UserAwayError, match="it was killed"):
        await asking


async def test_a_deputy_has_few_orders_at_one_time() -> None:
    """Others wait, and fail for certain when it goes: they were not given to it."""
    deputies, _ = new()
    ann = deputies.come(1001)
    asking = [asyncio.ensure_future(asked(deputies, "ann", str(number))) for number in range(5)]
    await until(lambda: len(deputies._open) == ORDERS_AT_ONCE)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(deputies._open) == ORDERS_AT_ONCE
    deputies.leave(ann)
    kinds = [type(each) for each in await asyncio.gather(*asking, return_exceptions=True)]
    assert kinds == [UserAwayError] * ORDERS_AT_ONCE + [NoDeputyError] * 3
    assert deputies._open == {}


async def test_who_waits_for_less_counts_as_unanswered() -> None:
    """Else a silent deputy could be asked again and again."""
    deputies, _ = new()
    deputies.come(1001)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await asked(deputies, "ann")
    assert deputies.waits_for("ann") == SLEEPS
    assert deputies._open == {}


async def test_at_the_end_all_are_sent_away() -> None:
    """Their calls end."""
    deputies, _ = new()
    both = [deputies.come(1001), deputies.come(1002)]
    deputies.close()
    for each in both:
        assert [order async for order in each.orders()] == []


words = st.one_of(
    st.tuples(st.just("come"), st.sampled_from((1001, 1002))),
    st.tuples(st.just("leave"), st.integers(0, 5)),
    st.tuples(st.just("ask"), st.sampled_from(("ann", "bob"))),
    st.tuples(st.just("answer"), st.integers(0, 9)),
    st.tuples(st.just("lie"), st.integers(0, 9)),
)


class Story:
    """What happens at a place for deputies."""

    def __init__(self) -> None:
        self.deputies, _ = new()
        self.there: list[Deputy] = []
        self.asking: list[tuple[str, asyncio.Future[Answer]]] = []
        self.orders: list[tuple[int, DeputyOrder]] = []

    def do(self, act: str, what: int | str) -> None:
        """Does one thing of it."""
        if act == "come":
            self.there.append(self.deputies.come(int(what)))
        elif act == "leave" and self.there:
            self.deputies.leave(self.there[int(what) % len(self.there)])
        elif act == "ask":
            account = str(what)
            self.asking.append((account, asyncio.ensure_future(asked(self.deputies, account))))
        elif self.orders and act in {"answer", "lie"}:
            uid, order = self.orders[int(what) % len(self.orders)]
            said = uid if act == "answer" else sum(NUMBERS.values()) - uid
            answer = Answer(0, b"%d" % said, "")
            assert not (self.deputies.answered(said, order.order_id, answer) and act == "lie")

    async def settle(self) -> None:
        """Lets whoever can go on, and takes the orders that were given."""
        for _ in range(5):
            await asyncio.sleep(0)
        for each in self.there:
            while not each._orders.empty():
                if (order := each._orders.get_nowait()) is not None:
                    self.orders.append((each.uid, order))

    async def finish(self) -> None:
        """Lets all go, and looks at what everybody was answered."""
        for uid in NUMBERS.values():
            self.deputies.leave(self.deputies.come(uid))
        for uid, order in self.orders:
            self.deputies.answered(uid, order.order_id, NotKnown("the end"))
        for account, each in self.asking:
            with suppress(NoDeputyError, UserAwayError):
                assert (await asyncio.wait_for(each, 600)).output == b"%d" % NUMBERS[account]
        assert self.deputies._open == {}
        assert len({order.order_id for _, order in self.orders}) == len(self.orders)


@settings(max_examples=60, deadline=None)
@given(acts=st.lists(words, max_size=30))
def test_no_answer_is_anothers(acts: list[tuple[str, int | str]]) -> None:
    """Whatever comes in whatever order: each order has one result at most, and only its own user's."""

    async def scene() -> None:
        story = Story()
        for act, what in acts:
            story.do(act, what)
            await story.settle()
        await story.finish()

    asyncio.run(scene())
