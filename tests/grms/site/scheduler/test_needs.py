"""Jobs that ask for more than processors, and those that this site cannot run at all."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from grms.policy.location import AwrtLocation
from grms.policy.transfer import AcceptWhenFit
from grms.site.model.commands import AnswerOffer, LrmsSubmit, Refusal, Refuse, SendOffer
from grms.site.model.events import (
    Cancel,
    OfferAnswered,
    OfferReceived,
    PartnerUp,
    PoliciesChanged,
    Restarted,
    TimePassed,
)
from grms.site.model.jobs import Load, OfferId, Request
from grms.site.model.lifecycle import JobState, Outcome
from grms.site.model.records import GuestAccepted
from grms.site.model.settings import PartnerSettings
from grms.site.model.translation import Translation
from grms.site.scheduler.outgoing_offers import UNPLACED_AT_ONCE
from lrms_sim.machine.node_kinds import NodeKind
from lrms_sim.workload.requests import Gpus, Memory
from lrms_sim.workload.requests import Request as Needs
from tests.grms.site.conversation import FREE, FULL, Conversation, kinds, offer, one, settings

WIDE = Request(20, 100.0)
LARGE = {"partners": (PartnerSettings("b", 32), PartnerSettings("c", 4))}
B1 = {"partner": "b", "offer": offer(1)}


class Cluster:
    """What a batch system with one node of eight cores and some GPUs says of it."""

    def __init__(
        self, gpus: int, free: int | None = None, shut: str = "", account: str = ""
    ) -> None:
        self.gpus = gpus
        self.account = account  # whose jobs it takes; empty for all
        self.free = gpus if free is None else free
        self.shut = shut
        self.asked: list[Needs] = []

    guarded_features = frozenset(["secret"])

    def named(self, needs: Needs, *, guest: bool) -> Needs:
        """Has partners' jobs that name no account charged to `grid`, where accounts count."""
        return (
            replace(needs, account="grid")
            if guest and self.account and not needs.account
            else needs
        )

    def lacks(self, needs: Needs) -> str:
        """Counts GPUs."""
        self.asked.append(needs)
        if self.account and needs.account not in {"", self.account}:
            return f"main takes no jobs of account {needs.account}"
        wanted = 0 if needs.gpus is None else needs.gpus.count
        return f"{self.gpus} GPUs are all there are" if wanted > self.gpus else ""

    def why_not(self, needs: Needs) -> str:
        """Says whether it is shut."""
        return self.shut or self.lacks(needs)

    def starts_now(self, needs: Needs, *, before: Sequence[Needs] = ()) -> bool:
        """Counts free GPUs, and what others take of them that are coming."""
        taken = sum(each.gpus.count for each in (*before, needs) if each.gpus is not None)
        return taken <= self.free


def with_gpus(gpus: int, free: int | None = None, shut: str = "") -> Load:
    """Returns the load of an idle machine with GPUs."""
    return Load(8, 8, 0, nodes=Cluster(gpus, free, shut))


GPU = Request.of(Needs(tasks=2, gpus=Gpus(1), wall_time=100.0))

# --- at home -------------------------------------------------------------------------------------


def test_a_job_that_is_wider_than_home_goes_to_who_has_the_room() -> None:
    """Whatever home's policy is, and however free it is."""
    site = Conversation(settings(**LARGE))
    commands = site.submit(load=FREE, request=WIDE)
    assert kinds(commands) == ["ReplyJob", "SendOffer"]
    assert one(commands, SendOffer).partner == "b"
    site(OfferAnswered, load=FREE, accepted=True, **B1)
    assert site.job().state is JobState.DELEGATED


def test_what_nobody_takes_waits_and_is_offered_again() -> None:
    """Home cannot run it: it is never handed to its batch system. The pauses double."""
    site = Conversation(settings(**LARGE, probe_first_s=10.0, probe_most_s=900.0))
    site.submit(load=FREE, request=WIDE)
    assert kinds(site(OfferAnswered, load=FREE, accepted=False, **B1)) == []
    job = site.job()
    assert (job.state, job.asked) == (JobState.RECEIVED, ())
    assert job.reason == "processors is 20; this site has 8; no partner has taken it so far"
    assert site.state.why_stuck(job, site.now) == job.reason
    site.now = 5.0
    assert kinds(site(TimePassed, load=FREE)) == []
    site.now = 10.0
    assert kinds(site(TimePassed, load=FREE)) == ["SendOffer"]
    assert kinds(site(OfferAnswered, load=FREE, accepted=False, partner="b", offer=offer(2))) == []
    site.now = 25.0
    assert kinds(site(TimePassed, load=FREE)) == []
    site.now = 30.0
    assert kinds(site(TimePassed, load=FREE)) == ["SendOffer"]
    site(OfferAnswered, load=FREE, accepted=True, partner="b", offer=offer(3))
    assert (job.state, job.reason) == (JobState.DELEGATED, "")
    assert site.state.why_stuck(job, site.now) == ""
    assert kinds(site(TimePassed, load=FREE)) == []


def test_very_many_that_nobody_takes_are_not_decided_all_at_once() -> None:
    """Whoever waits for an answer of the site does not wait for all of them, and each has its turn."""
    site = Conversation(settings(**LARGE, probe_first_s=10.0, probe_most_s=900.0), up="")
    many = UNPLACED_AT_ONCE + 50
    for _ in range(many):
        site.submit(load=FREE, request=WIDE)
    jobs = list(site.state.memory.jobs.values())
    assert [job.unplaced for job in jobs] == [1] * many
    site.now = 10.0
    site(TimePassed, load=FREE)
    assert sum(job.unplaced == 2 for job in jobs) == UNPLACED_AT_ONCE
    site(TimePassed, load=FREE)
    assert [job.unplaced for job in jobs] == [2] * many


def test_after_a_restart_it_is_offered_again() -> None:
    """It is in the journal that all are to be asked anew."""
    site = Conversation(settings(**LARGE))
    site.submit(load=FREE, request=WIDE)
    site(OfferAnswered, load=FREE, accepted=False, **B1)
    site.restart()
    site.come_up()
    assert kinds(site(Restarted, load=FREE)) == ["SendOffer"]


def test_its_user_may_cancel_it_while_it_waits() -> None:
    """It is nowhere."""
    site = Conversation(settings(**LARGE))
    site.submit(load=FREE, request=WIDE)
    site(OfferAnswered, load=FREE, accepted=False, **B1)
    site(Cancel, load=FREE, job_id="a-1", user="ann")
    assert site.job().outcome is Outcome.CANCELLED
    site.now = 1000.0
    assert kinds(site(TimePassed, load=FREE)) == []


def test_what_no_partner_could_run_is_refused() -> None:
    """Of one that has not told its size nobody knows."""
    refused = one(Conversation().submit(request=WIDE), Refuse)
    assert (refused.refusal, refused.field) == (Refusal.INVALID, "request.processors")
    assert refused.reason == (
        "processors is 20; this site has 8, and no partner of this site is known that could run it"
    )
    unknown = settings(partners=(PartnerSettings("b", 0),), transfer={"b": AcceptWhenFit()})
    site = Conversation(unknown, up="")
    assert kinds(site.submit(request=WIDE)) == ["ReplyJob"]
    assert site.job().state is JobState.RECEIVED


def test_what_the_batch_system_has_said_it_cannot_run_never_gets_there() -> None:
    """Its user's own command has asked it."""
    site = Conversation()
    assert kinds(site.submit(load=FREE, request=GPU, unfit="Invalid gres")) == [
        "ReplyJob",
        "SendOffer",
    ]
    site(OfferAnswered, load=FREE, accepted=False, **B1)
    site(OfferAnswered, load=FREE, accepted=False, partner="c", offer=offer(1))
    assert site.job().state is JobState.RECEIVED
    assert (
        site.job().reason
        == "the batch system of this site cannot run it: Invalid gres; no partner has taken it so far"
    )
    alone = Conversation(settings(partners=(), transfer={}), up="")
    assert one(alone.submit(load=FREE, request=GPU, unfit="x"), Refuse).field == "request.needs"


@pytest.mark.parametrize(
    ("load", "commands"),
    [
        (with_gpus(1), ["ReplyJob", "LrmsSubmit"]),
        (with_gpus(1, free=0), ["ReplyJob", "SendOffer"]),
        (with_gpus(1, shut="drained"), ["ReplyJob", "SendOffer"]),
        (with_gpus(0), ["ReplyJob", "SendOffer"]),
        (FREE, ["ReplyJob", "SendOffer"]),
    ],
)
def test_home_keeps_what_its_nodes_would_start(load: Load, commands: list[str]) -> None:
    """Eight free processors are no room where the GPU is taken, shut off, or not there."""
    assert kinds(Conversation().submit(load=load, request=GPU)) == commands


def test_jobs_that_are_coming_take_their_gpus() -> None:
    """The second finds none, though the batch system has not yet said that it has the first."""
    site = Conversation()
    assert kinds(site.submit(load=with_gpus(1), request=GPU)) == ["ReplyJob", "LrmsSubmit"]
    assert kinds(site.submit(load=with_gpus(1), request=GPU)) == ["ReplyJob", "SendOffer"]
    assert kinds(site.submit(load=with_gpus(3), request=GPU)) == ["ReplyJob", "LrmsSubmit"]


def test_what_home_can_run_some_time_is_kept_where_nobody_takes_it() -> None:
    """Only what its nodes never run waits for partners."""
    site = Conversation(settings(transfer={"b": AcceptWhenFit()}))
    site.submit(load=with_gpus(1, free=0), request=GPU)
    assert kinds(site(OfferAnswered, load=with_gpus(1, free=0), accepted=False, **B1)) == [
        "LrmsSubmit"
    ]
    site.submit(load=with_gpus(0), request=GPU)
    assert (
        kinds(site(OfferAnswered, load=with_gpus(0), accepted=False, partner="b", offer=offer(2)))
        == []
    )


def test_partners_that_have_told_their_nodes_are_not_asked_in_vain() -> None:
    """By numbers: what names mean there is theirs to say."""
    site = Conversation(settings(location=AwrtLocation(open_jobs="count")), up="")
    gpu = (NodeKind("1", 2, 4, 1024, 2),)
    thin = (NodeKind("1", 4, 2),)
    site(PartnerUp, partner="b", processors=8, nodes=thin)
    site(PartnerUp, partner="c", processors=8, nodes=gpu)
    for needs, asked in (
        (Needs(gpus=Gpus(1, "node", "a100"), features=("fast",), wall_time=1.0), "c"),
        (Needs(gpus=Gpus(1, "node"), licences=(("matlab", 1),), wall_time=1.0), "c"),
        (Needs(gpus=Gpus(3, "node"), wall_time=1.0), None),
        (Needs(cores_per_task=4, wall_time=1.0), "c"),
        (Needs(tasks=4, nodes_min=4, wall_time=1.0), "b"),
        (Needs(memory=Memory(2048, "node"), wall_time=1.0), "b"),  # it counts none
    ):
        commands = site.submit(load=FULL, request=Request.of(needs))
        assert [c.partner for c in commands if isinstance(c, SendOffer)] == [asked] * bool(asked)


# --- as a partner --------------------------------------------------------------------------------

TABLES = Translation(partitions={"batch": "std"}, accounts={"proj": ""}, gpus={"v100": "a100"})
NAMED = Request.of(
    Needs(partition="batch", account="proj", gpus=Gpus(1, "node", "v100"), wall_time=50.0)
)
HERE = Needs(partition="std", gpus=Gpus(1, "node", "a100"), wall_time=50.0)


def offered(site: Conversation, load: Load, request: Request, number: int = 1) -> bool:
    """Lets partner b offer a job, and returns the answer."""
    commands = site(
        OfferReceived,
        load=load,
        partner="b",
        offer=OfferId(3, number),
        settled_below=1,
        request=request,
        payload=b"run",
    )
    return one(commands, AnswerOffer).accepted


def test_a_partners_job_runs_under_the_names_of_this_site() -> None:
    """It stays the job that was offered; after a restart it is submitted as it was accepted."""
    site = Conversation(settings(translation=TABLES))
    load = with_gpus(2)
    commands = site(
        OfferReceived,
        load=load,
        partner="b",
        offer=OfferId(3, 1),
        settled_below=1,
        request=NAMED,
        payload=b"run",
    )
    assert one(commands, LrmsSubmit).request == Request.of(HERE)
    assert isinstance(load.nodes, Cluster)
    assert set(load.nodes.asked) == {HERE}
    assert [each.here for each in site.journal if isinstance(each, GuestAccepted)] == [HERE]
    assert offered(site, load, NAMED)
    site.restart(settings())  # whose file has no tables any more
    assert one(site(Restarted), LrmsSubmit).request == Request.of(HERE)
    assert offered(site, load, NAMED)


def test_what_means_nothing_here_is_declined() -> None:
    """The operator can see which name that was; the partner learns no reason."""
    site = Conversation()
    assert not offered(site, with_gpus(2), NAMED)
    assert "partition batch of b has no meaning here" in site.state.partners["b"].no_meaning
    site(
        PoliciesChanged,
        transfer=site.settings.transfer,
        location=site.settings.location,
        translation=TABLES,
    )
    assert offered(site, with_gpus(2), NAMED, 2)


def test_a_feature_that_keeps_others_away_is_not_a_partners() -> None:
    """Unless the site's file names it."""
    asks = Request.of(Needs(features=("secret",), wall_time=100.0))
    site = Conversation()
    assert not offered(site, with_gpus(0), asks)
    assert "feature secret of b has no meaning here" in site.state.partners["b"].no_meaning
    named = Conversation(settings(translation=Translation(features={"secret": "*"})))
    assert offered(named, with_gpus(0), asks)


@pytest.mark.parametrize(
    ("load", "accepted"),
    [
        (with_gpus(1), True),
        (with_gpus(1, free=0), False),
        (with_gpus(0), False),
        (with_gpus(1, shut="drained"), False),
        (FREE, False),
        (replace(FULL, nodes=Cluster(1)), False),
    ],
)
def test_a_gpu_job_is_accepted_where_a_gpu_would_start_it(load: Load, accepted: bool) -> None:
    """A batch system that says nothing of its nodes is not trusted to have one."""
    assert offered(Conversation(), load, GPU) is accepted


def test_a_guest_is_judged_by_the_account_under_which_it_would_be_submitted() -> None:
    """Also one of processors alone, and none that was accepted has that account in the journal: the file may change."""
    for taken, accepted in (("grid", True), ("bio", False)):
        load = replace(with_gpus(1), nodes=Cluster(1, account=taken))
        for request in (GPU, Request(2, 100.0)):
            site = Conversation()
            assert offered(site, load, request) is accepted
            assert all(
                each.here is None for each in site.journal if isinstance(each, GuestAccepted)
            )
    named = Translation(accounts={"proj": "bio"})
    request = Request.of(Needs(account="proj", wall_time=50.0))
    load = replace(with_gpus(1), nodes=Cluster(1, account="bio"))
    assert offered(Conversation(settings(translation=named)), load, request)
    assert not offered(
        Conversation(settings(translation=Translation(accounts={"*": ""}))), load, request
    )


def test_an_own_job_is_told_at_once_that_its_account_has_no_partition() -> None:
    """Where the batch system would refuse it; partners that could run it are asked first."""
    load = replace(with_gpus(1), nodes=Cluster(1, account="bio"))
    request = Request.of(Needs(account="chem", wall_time=50.0))
    site = Conversation()
    assert kinds(site.submit(load=load, request=request)) == ["ReplyJob", "SendOffer"]
    alone = Conversation(settings(partners=(), transfer={}), up="")
    refused = one(alone.submit(load=load, request=request), Refuse)
    assert refused.reason.startswith("main takes no jobs of account chem")
    other = Request.of(Needs(account="bio", wall_time=50.0))
    assert kinds(alone.submit(load=load, request=other)) == ["ReplyJob", "LrmsSubmit"]
