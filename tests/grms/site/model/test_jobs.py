import math
from collections.abc import Sequence

import pytest

from grms.lrms.base import LrmsPhase
from grms.site.model.jobs import (
    NO_EXIT,
    STORY_MAX,
    Completion,
    Exit,
    GuestJob,
    HomeJob,
    Load,
    OfferId,
    Progress,
    Request,
    full_job_id,
    lrms_key,
    next_lrms_key,
)
from grms.site.model.lifecycle import IllegalMove, JobState, Outcome
from lrms_sim.workload.requests import Gpus
from lrms_sim.workload.requests import Request as Needs


def home_job() -> HomeJob:
    """Returns a job that was just received."""
    return HomeJob(
        job=1,
        job_id="a-1",
        lrms_key=lrms_key("a", 1, 1),
        user="ann",
        idempotency_key="k",
        name="",
        request=Request(1, 10.0),
        payload=b"",
        submit_time=0.0,
    )


def test_a_new_job_is_at_home_and_nothing_has_happened_to_it() -> None:
    """All that it has is what its user has said."""
    job = home_job()
    said = (job.job, job.job_id, job.lrms_key, job.user, job.idempotency_key, job.name)
    assert said == (1, "a-1", "a/1/1", "ann", "k", "")
    assert (job.request, job.payload, job.submit_time) == (Request(1, 10.0), b"", 0.0)
    assert (job.state, job.story, job.revision) == (JobState.RECEIVED, [JobState.RECEIVED], 1)
    assert (job.asked, job.remaining, job.questions_left, job.weighed) == ((), None, -1, None)
    assert (job.partner, job.offer, job.question, job.attempts) == ("", OfferId(0, 0), 0, 0)
    assert (job.outcome, job.exit, job.reason) == (None, Exit(), "")
    for name in ("decision", "offer", "accept", "start", "end", "kept"):
        assert math.isnan(getattr(job, f"{name}_time")), name
    no = ("cancel_requested", "cancel_told", "confirms", "take_back", "overdue")
    for name in (*no, "leaving", "begun"):
        assert getattr(job, name) is False, name
    assert job.lost == 0


def test_a_job_that_leaves_its_partner_has_nothing_of_the_offer() -> None:
    """What it was asked or told there is nothing to the next; all else is as it was."""
    job = home_job()
    job.user, job.asked = "bob", ("b",)
    names = ("partner", "offer_epoch", "offer_number", "offer_time", "accept_time", "question")
    for name in (*names, "confirms", "take_back", "overdue", "attempts"):
        setattr(job, name, 7)
    job.leave_partner()
    new = home_job()
    changed = {"user", "asked"}
    for name in HomeJob.__struct_fields__:
        assert (repr(getattr(job, name)) == repr(getattr(new, name))) == (name not in changed), name


@pytest.mark.parametrize(
    ("accept_time", "since", "start_time", "shown"),
    [
        (math.nan, 30.0, 25.0, (30.0, 25.0)),
        (math.nan, 5.0, 6.0, (10.0, 10.0)),  # no sooner than it was offered
        (20.0, 15.0, 25.0, (20.0, 25.0)),  # or accepted
        (20.0, 45.0, 50.0, (40.0, 40.0)),  # and no later than it was said
        (20.0, 30.0, math.nan, (30.0, math.nan)),
    ],
)
def test_moments_of_a_partners_clock_are_as_far_as_can_be(
    accept_time: float, since: float, start_time: float, shown: tuple[float, float]
) -> None:
    """Offered at 10 s, and said at 40 s of the own clock."""
    job = home_job()
    job.state, job.offer_time, job.accept_time = JobState.DELEGATED, 10.0, accept_time
    job.progress = Progress(OfferId(1, 1), LrmsPhase.RUNNING, since, start_time)
    job.progress_time = 40.0
    assert job.standing == (LrmsPhase.RUNNING, shown[0])
    assert job.begun_time == pytest.approx(shown[1], nan_ok=True)


@pytest.mark.parametrize(
    ("processors", "requested_time", "message"),
    [
        (0, 1.0, r"^processors is 0; it must be at least 1$"),
        (-1, 1.0, r"^processors is -1; it must be at least 1$"),
        (2**31, 1.0, r"^processors is 2147483648; it must be at least 1$"),
        (1, 0.0, r"^requested_time is 0\.0; it must be finite and more than 0$"),
        (1, -1.0, r"^requested_time is -1\.0; it must be finite and more than 0$"),
        (1, math.inf, r"^requested_time is inf; it must be finite and more than 0$"),
        (1, math.nan, r"^requested_time is nan; it must be finite and more than 0$"),
    ],
)
def test_a_request_has_bounds(processors: int, requested_time: float, message: str) -> None:
    """What cannot be asked for is refused with the value."""
    with pytest.raises(ValueError, match=message):
        Request(processors, requested_time)


@pytest.mark.parametrize(
    ("end_time", "run_time", "message"),
    [
        (math.nan, 1.0, r"^end_time is nan; it must be finite$"),
        (math.inf, 1.0, r"^end_time is inf; it must be finite$"),
        (1.0, math.nan, r"^run_time is nan; it must be finite and at least 0$"),
        (1.0, math.inf, r"^run_time is inf; it must be finite and at least 0$"),
        (1.0, -0.1, r"^run_time is -0\.1; it must be finite and at least 0$"),
    ],
)
def test_a_partners_word_has_bounds(end_time: float, run_time: float, message: str) -> None:
    """A completion that would spoil the sums is refused."""
    with pytest.raises(ValueError, match=message):
        Completion(OfferId(1, 1), Outcome.COMPLETED, end_time, run_time)


def test_a_legal_move_is_counted() -> None:
    """A change of state is a new revision, and part of the job's story."""
    job = home_job()
    job.move(JobState.SUBMITTING)
    job.move(JobState.RUNNING)
    assert (job.state, job.revision) == (JobState.RUNNING, 3)
    assert job.story == [JobState.RECEIVED, JobState.SUBMITTING, JobState.RUNNING]


def test_an_illegal_move_changes_nothing() -> None:
    """A job that ended stays as it is."""
    job = home_job()
    job.move(JobState.ENDED)
    with pytest.raises(
        IllegalMove, match=r"^job a-1 cannot become RUNNING; so far: RECEIVED → ENDED$"
    ):
        job.move(JobState.RUNNING)
    assert (job.state, job.revision) == (JobState.ENDED, 2)
    guest = GuestJob(
        partner="b",
        offer=OfferId(1, 1),
        lrms_key=lrms_key("b", 1, 1),
        request=Request(1, 10.0),
        payload=b"",
        accept_time=0.0,
        kept_time=0.0,
    )
    with pytest.raises(
        IllegalMove, match=r"^job b/1/1 cannot become DELEGATED; so far: SUBMITTING$"
    ):
        guest.move(JobState.DELEGATED)
    guest.move(JobState.ENDED)
    assert guest.state is JobState.ENDED


def test_a_story_does_not_grow_without_end() -> None:
    """A job that goes to and fro remembers its last states only."""
    job = home_job()
    for _ in range(STORY_MAX):
        job.move(JobState.OFFERING)
        job.move(JobState.RECEIVED)
    assert len(job.story) == STORY_MAX
    assert job.revision == 2 * STORY_MAX + 1


def test_keys_of_different_jobs_differ() -> None:
    """Site, journal and number all count."""
    keys = {
        lrms_key(site, epoch, number) for site in "ab" for epoch in (1, 17) for number in (1, 7)
    }
    assert len(keys) == 8


def test_a_job_that_comes_home_has_another_key() -> None:
    """The batch system has ended the one that it had, and takes no key twice."""
    keys = [lrms_key("a", 255, 7)]
    for _ in range(3):
        keys.append(next_lrms_key(keys[-1]))
    assert keys == ["a/ff/7", "a/ff/7/2", "a/ff/7/3", "a/ff/7/4"]


@pytest.mark.parametrize(("code", "signal"), [(0, None), (255, 127), (None, 1), (None, None)])
def test_an_exit_has_a_code_and_a_signal(code: int | None, signal: int | None) -> None:
    """Zero is a code like others."""
    assert Exit(code, signal) == Exit(code=code, signal=signal)


@pytest.mark.parametrize(
    ("code", "signal", "problem"),
    [
        (-1, None, "exit_code is -1; it must be from 0 to 255"),
        (256, 9, "exit_code is 256; it must be from 0 to 255"),
        (None, 0, "signal is 0; it must be from 1 to 127"),
        (3, 128, "signal is 128; it must be from 1 to 127"),
    ],
)
def test_an_exit_out_of_its_bounds_is_refused(
    code: int | None, signal: int | None, problem: str
) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        Exit(code, signal)


def test_loads_with_the_same_numbers_are_equal_whoever_answers_for_them() -> None:
    """What a batch system can be asked is no part of what it has said."""
    asked = Load(8, 4, 2, asked=lambda _width, _time: True, waits=lambda _key: True)
    assert asked == Load(8, 4, 2)


@pytest.mark.parametrize(
    ("code", "signal", "left"),
    [
        (None, 9, Exit(None, 9)),
        (3, None, Exit(3)),
        (None, None, NO_EXIT),
        (-1, 9, Exit(None, 9)),
        (256, 128, NO_EXIT),
    ],
)
def test_what_is_out_of_bounds_is_not_known_of_an_exit(
    code: int | None, signal: int | None, left: Exit
) -> None:
    """A job may leave an exit code, a signal, both or neither."""
    assert Exit.known(code, signal) == left


GPU = Request.of(Needs(tasks=2, gpus=Gpus(1), wall_time=60.0))


class OneGpu:
    """A batch system with one GPU, which is free, and whose account is `proj`."""

    guarded_features = frozenset[str]()

    def named(self, needs: Needs, *, guest: bool) -> Needs:
        """Charges partners' jobs that name no account to another."""
        return Needs(wall_time=needs.wall_time, account="grid") if guest else needs

    def lacks(self, needs: Needs) -> str:
        """Says no to more, and to other accounts."""
        if needs.account not in {"", "proj"}:
            return f"no jobs of {needs.account}"
        return "" if needs.gpus is None or needs.gpus.count == 1 else "one GPU is all there is"

    why_not = lacks

    def starts_now(self, needs: Needs, *, before: Sequence[Needs] = ()) -> bool:
        """Says yes as long as nobody before takes it."""
        return not self.lacks(needs) and all(each.gpus is None for each in before)


def test_needs_are_those_of_the_request() -> None:
    """Whoever decides by processors and time decides about the same job."""
    assert (GPU.processors, GPU.requested_time, GPU.needs) == (2, 60.0, GPU.asked)
    assert Request(3, 60.0).asked == Needs.of_processors(3, 60.0)
    with pytest.raises(
        ValueError,
        match=r"^needs are 2 processors for 60\.0 s; they must be those of the request, 2 for 61\.0 s$",
    ):
        Request(2, 61.0, GPU.needs)


def test_what_is_more_than_processors_is_asked_of_the_nodes() -> None:
    """Where the batch system says nothing of them it is not known to run there, and where it does it decides."""
    blind, sees = Load(4, 4, 0), Load(4, 4, 0, nodes=OneGpu())
    assert not blind.starts_now(GPU)
    assert "nothing of its nodes" in blind.refusal(GPU)
    assert sees.starts_now(GPU)
    assert sees.refusal(GPU) == ""
    assert sees.refusal(Request.of(Needs(gpus=Gpus(2), wall_time=1.0))) == "one GPU is all there is"
    # Of processors alone nobody else is asked, whatever else is said of them.
    plain = Request.of(Needs(tasks=4, account="proj", wall_time=1.0))
    assert blind.starts_now(plain)
    assert blind.refusal(plain) == ""
    # Of an account the nodes are asked, where there are some.
    other = Request.of(Needs(tasks=4, account="other", wall_time=1.0))
    assert blind.refusal(other) == sees.refusal(plain) == ""
    assert sees.refusal(other) == "no jobs of other"
    assert sees.starts_now(plain)
    assert not sees.starts_now(other)
    assert (sees.room_for(plain), sees.room_for(other)) == (4, 3)
    # Not every batch system has these.
    for word in ("partition", "qos", "image", "signal"):
        asks = Request.of(Needs(**{word: "USR1"}, wall_time=1.0))  # type: ignore[arg-type]  # one word
        assert "nothing of its nodes" in blind.refusal(asks)


def test_free_processors_count_where_the_job_could_have_them() -> None:
    """A policy that looks at them finds too few where its GPU is taken, by one that is on the way as well."""
    assert Load(4, 3, 0, nodes=OneGpu()).room_for(GPU) == 3
    assert Load(4, 3, 0, nodes=OneGpu(), coming=[Request(1, 1.0)]).room_for(GPU) == 3
    assert Load(4, 3, 0, nodes=OneGpu(), coming=[GPU]).room_for(GPU) == 1
    assert Load(4, 1, 0, nodes=OneGpu()).room_for(GPU) == 1
    assert Load(4, 3, 9).room_for(Request(2, 1.0)) == 3


def test_a_request_is_asked_about_under_the_account_that_it_would_have() -> None:
    """It is another request only where that counts, and a batch system without nodes has none."""
    request = Request(1, 60.0)
    load = Load(8, 8, 0, nodes=OneGpu())
    assert load.named(request, guest=False) is request
    asked = load.named(request, guest=True)
    assert load.refusal(asked) == load.lacks(asked) == "no jobs of grid"
    assert load.lacks(request) == ""
    assert Load(8, 8, 0).named(request, guest=True) is request


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("12", "riga-12"),
        ("12_3", "riga-12_3"),
        ("12_[1-5]", "riga-12_[1-5]"),
        ("riga-12", "riga-12"),
        ("riga-12_3", "riga-12_3"),
        ("x_3", "x_3"),
        ("", ""),
    ],
)
def test_a_number_alone_is_that_of_a_job_of_this_site(word: str, name: str) -> None:
    """Of an array, too, or of elements of it; any other word is taken as it is."""
    assert full_job_id("riga", word) == name
