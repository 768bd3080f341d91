"""What a decision may look at and what sites may say: docs/information-policy.md, held to.

The federation kernel has every site's state in one memory. That each party uses its own alone is
a promise of the source, so the source is read here. What crosses between daemons is in the
messages of one service, so every field of them is held against the list.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, ServiceDescriptor

from grms.v1 import partner_pb2

ROOT = Path(__file__).resolve().parents[1]
KERNEL = Path("grms/federation/_replay.pyx")
ORDER = Path("grms/federation/_order.pxd")
SITES = Path("grms/federation/_sites.pxd")
HEADER = Path("grms/policy/_decisions.pxd")
POLICY = Path("docs/information-policy.md")

# --- the data ------------------------------------------------------------------------------------

OWN_LOAD = {
    *("processors", "processors_free", "processors_waiting", "starts_now"),
    *("fits", "nodes"),  # whether there is room, and on a machine of nodes what follows
}
"""What a site knows of itself when it decides; the document lists the same."""

OF_NODES = {"job_memory", "job_gpus", "memory", "gpus"}
"""On a machine of nodes: of the job's request, and what the nodes have in all; the document lists the same."""

OWN_BOOKS = {"own_work", "own_requested", "taken", "given"}
"""What it has noted of its users' jobs and of one partner; the document lists the same."""

KNOWN_OF_A_JOB = {
    "processors",
    "requested_time",
    "number",  # by which a replay finds the request, which says on which nodes it fits
}
"""What is known of a job when one decides."""

READ_OF_HOME = {
    "home.down_count",  # whether it is away itself, as `is_down` says
    "home.partners_asked",  # how many it asks at most
    "home.asked_now",  # whom it asks in this decision
    "home.asked_count",
    "home.offers",  # counted, and looked at by nobody
    "home.rounds",  # who has declined which of its waiting jobs
    "home.rounds.left",
    "home.tells",  # whether it can tell partners what such a job needs
    "home.cheapest",  # what the job would cost at its partners, whose tariffs are public
    "home.cheapest.only",  # whether it asks no others
}
READ_OF_JOB = {"job.processors", "job.requested_time"}
READ_OF_OWN_SITE = {
    "site.core",  # for the questions whether its own machine has room for the job, and would start it
    "site.shape",  # the job's request
    "site.memory",
    "site.gpus",
    "site.totals",  # what its own nodes have, and the job asks for
    "site.totals.job_memory",
    "site.totals.job_gpus",
    "site.core.view",
    "site.core.view.now",
    "site.own_work",
    "site.own_requested",
}
READ_OF_POLICIES = {
    "site.met",  # in replays of many sites: records of those partners alone that it has met
    "site.policy",  # that of such a site, which is the same for all partners
    "site.transfer",
    "site.takes",  # the same, but at a Byzantine partner of a replay
}
READ_OF_BOOKS = {
    "site.met",
    "site.met.dealt",
    "site.met.books",
    "site.ledger.books",  # the work that it has done for the partner, and of own users' jobs that the partner has completed
}
READ_OF_PROMISES = {
    "site.met",
    "site.met.dealt",
    "site.met.dealings.promises",
    "site.met.promises",
    "site.ledger",  # what became of own users' jobs at the partner
}
OF_THE_MET = (
    *("rank", "learn_of_met", "place_from", "first_place", "asking_begins", "next_of_met"),
    *("next_partner", "take_turns_of_met", "take_all_turns"),
)
READ_TO_ENTRUST = {"home.core.view.processors"}
READ_TO_ORDER = {
    "home.by_awrt",
    "home.partners",
    "home.partner_count",
    "home.consumption",  # of own users' jobs that a partner has run and reported
    "home.weighted_response",  # same
    "home.count_open",
}
READ_OF_STANDING = {
    "home.standing",  # what the two sums make, and how often home has asked the partner
    "home.standing.awrt",
}
READ_OF_PLACES = {
    "home.settled",  # the order of partners that have none of home's jobs open
    "home.settled_count",
    "home.opened",  # the others
    "home.opened_count",
    "home.standing",
}
READ_TO_TAKE_TURNS = {
    "home.asked_count",
    "home.asked_now",
    "home.turn_place",
    "home.standing",
    "home.standing.asked",
    "home.open_jobs",
    "home.settled",
    "home.settled_count",
    "home.partners",
    "home.partner_count",
    "home.count_open",
}
READ_OF_OPEN_JOBS = {
    "home.open_consumption",  # what own users' jobs that a partner has have asked for
    "home.open_submitted",
    "home.open_jobs",
    "jobs.requested_time",
    "jobs.processors",
    "jobs.submit_time",
}
READ_TO_ORDER_NOW = {
    "home.consumption",
    "home.weighted_response",
    "home.open_consumption",
    "home.open_submitted",
    "home.opened",
    "home.opened_count",
    "home.merged",
    "home.settled_merged",
}
READ_TO_MERGE = {
    "home.partners",
    "home.count_open",
    "home.merged",
    "home.settled_merged",
}
READ_OF_PARTNER = {
    "partner.down_count",  # one that is away does not answer
}
READ_OF_ALL = {
    "federation.sites",
    "federation.processors",  # sizes, which are public
    "federation.shape",  # the job's request
}

NAME = "a site's name"
SIZE = "its size in processors"
VERSION = "its endpoint and protocol version"
INSTANCE = "a number that its daemon draws by chance when it starts"
REQUEST = "a job's request: processors, requested time, what it needs besides, and whether it has a script"
NODES = "its nodes, where its own file says so"
PROGRAM = "what a job runs"
OWNER = "whose job it is, by a pseudonym"
OWNER_NAME = "whose job it is, by name, where both sites' files say so"
NUMBER = "the number of an offer"
ANSWER = "yes or no"
END = "the completion of a job one has delegated"
PRINTED = "what a job one has delegated has printed so far"
PROGRESS = "where a job one has delegated stands"
USAGE = "what a job one has delegated has used"
LEFT = "the files that a job one has delegated has left"
CLOCK = "the clock of a replay"
RERUN = "whether a job may be run again"
LEFT_OF_IT = "how often such a job writes its state, and what is left of its requested time where it goes on from it"
STATE = "of a job that was ended for another one: how long it had run when it last wrote its state, and the files of that"
STILL_THERE = "whether the home site has the job still"

NEVER_FILLED = {
    *("JobRequest.home", "HomeRun.folder", "HomeRun.environment", "HomeRun.options"),
    *(
        "JobRequest.streams",
        "WrittenStreams.output",
        "WrittenStreams.error",
        "WrittenStreams.append",
    ),
    *("ResultFile.written_as", "ResultList.append"),
}
"""Fields of messages that partners share with users, which no message to a partner has: the wire takes them out."""

MAY_CROSS = {
    "DescribeRequest.site": NAME,
    "DescribeRequest.processors": SIZE,
    "DescribeRequest.protocol_version": VERSION,
    "DescribeResponse.site": NAME,
    "DescribeResponse.processors": SIZE,
    "DescribeResponse.protocol_version": VERSION,
    "DescribeResponse.offer_seen": NUMBER,
    **dict.fromkeys(("DescribeRequest.instance", "DescribeResponse.instance"), INSTANCE),
    "DescribeResponse.nodes": NODES,
    "NodeKind.nodes": NODES,
    "NodeKind.cores": NODES,
    "NodeKind.memory_mib": NODES,
    "NodeKind.gpus": NODES,
    "OfferId.epoch": NUMBER,
    "OfferId.number": NUMBER,
    "OfferRequest.site": NAME,
    "OfferRequest.offer": NUMBER,
    "OfferRequest.settled_below": NUMBER,
    "OfferRequest.job": REQUEST,
    "OfferRequest.replay_time_s": CLOCK,
    "OfferRequest.reserve": STILL_THERE,
    "OfferRequest.rerun": RERUN,
    "OfferRequest.checkpoint_s": LEFT_OF_IT,
    "OfferRequest.left_s": LEFT_OF_IT,
    "JobRequest.processors": REQUEST,
    "JobRequest.requested_time_s": REQUEST,
    "JobRequest.needs": REQUEST,
    "Needs.tasks": REQUEST,
    "Needs.cores_per_task": REQUEST,
    "Needs.nodes_min": REQUEST,
    "Needs.nodes_max": REQUEST,
    "Needs.tasks_per_node": REQUEST,
    "Needs.memory": REQUEST,
    "Memory.mib": REQUEST,
    "Memory.per": REQUEST,
    "Needs.gpus": REQUEST,
    "Gpus.count": REQUEST,
    "Gpus.per": REQUEST,
    "Gpus.type": REQUEST,
    "Needs.features": REQUEST,
    "Needs.exclusive": REQUEST,
    "Needs.licences": REQUEST,
    "Licence.name": REQUEST,
    "Licence.count": REQUEST,
    "Needs.image": REQUEST,
    "Needs.signal": REQUEST,
    "Needs.signal_before_s": REQUEST,
    "Needs.requeue": REQUEST,
    "Needs.partition": REQUEST,  # names of the home site, which the partner's file translates
    "Needs.account": REQUEST,
    "Needs.qos": REQUEST,
    "Needs.modules": REQUEST,
    "JobRequest.program": PROGRAM,  # by users alone; an offer has `to_fetch`
    "JobRequest.to_fetch": REQUEST,
    "JobRequest.simulated": REQUEST,
    "Program.script": PROGRAM,
    "Program.name": PROGRAM,
    "Program.arguments": PROGRAM,
    "Program.environment": PROGRAM,
    "Program.EnvironmentEntry.key": PROGRAM,
    "Program.EnvironmentEntry.value": PROGRAM,
    "Program.outputs": PROGRAM,
    "Program.merged": PROGRAM,
    "Program.truncated": PROGRAM,
    "Program.checkpoint": PROGRAM,
    "Checkpoint.every_s": PROGRAM,
    "Checkpoint.files": PROGRAM,
    "Program.inputs": PROGRAM,
    "InputFile.name": PROGRAM,
    "InputFile.size_bytes": PROGRAM,
    "InputFile.sha256": PROGRAM,
    "InputFile.shared_path": PROGRAM,
    "InputFile.written": PROGRAM,
    "InputFile.mode": PROGRAM,
    "FetchInputRequest.site": NAME,
    "FetchInputRequest.offer": NUMBER,
    "FetchInputRequest.name": PROGRAM,
    "FetchInputRequest.offset_bytes": PROGRAM,
    "FetchProgramRequest.site": NAME,
    "FetchProgramRequest.offer": NUMBER,
    "FetchProgramResponse.program": PROGRAM,
    "FetchProgramResponse.owner": OWNER,
    "FetchProgramResponse.user": OWNER_NAME,
    "SimulatedProgram.run_time_s": REQUEST,
    "SimulatedProgram.user_group": REQUEST,
    "SimulatedProgram.place": REQUEST,
    "OfferResponse.answer": ANSWER,
    "ResolveRequest.site": NAME,
    "ResolveRequest.offer": NUMBER,
    "ResolveRequest.confirm": STILL_THERE,
    "WithdrawRequest.site": NAME,
    "WithdrawRequest.offer": NUMBER,
    "WithdrawRequest.cancel": REQUEST,
    "OfferStatus.state": ANSWER,
    "OfferStatus.completion": END,
    "Completion.offer": NUMBER,
    "Completion.outcome": END,
    "Completion.end_time_s": END,
    "Completion.run_time_s": END,
    "Completion.exit_code": END,
    "Completion.outcome_text": END,
    "Completion.kept_s": STATE,
    "Completion.signal": END,
    "ReportRequest.site": NAME,
    "ReportRequest.completions": END,
    "ProgressRequest.site": NAME,
    "ProgressRequest.offers": NUMBER,
    "ProgressResponse.jobs": PROGRESS,
    "JobProgress.offer": NUMBER,
    "JobProgress.phase": PROGRESS,
    "JobProgress.start_time_s": PROGRESS,
    "JobProgress.since_s": PROGRESS,
    "ListUsageRequest.site": NAME,
    "ListUsageRequest.log": USAGE,
    "ListUsageRequest.after": USAGE,
    "ListUsageResponse.log": USAGE,
    "ListUsageResponse.records": USAGE,
    "ListUsageResponse.more": USAGE,
    "GuestUsage.number": USAGE,  # among those of the asker's jobs
    "GuestUsage.offer": NUMBER,
    "GuestUsage.owner": OWNER,
    "GuestUsage.processors": USAGE,
    "GuestUsage.memory_mib": USAGE,
    "GuestUsage.gpus": USAGE,
    "GuestUsage.requested_time_s": USAGE,
    "GuestUsage.accept_time_s": USAGE,
    "GuestUsage.start_time_s": USAGE,
    "GuestUsage.end_time_s": USAGE,
    "GuestUsage.run_time_s": USAGE,
    "GuestUsage.outcome": USAGE,
    "GuestUsage.exit_code": USAGE,
    "GuestUsage.signal": USAGE,
    "ListGuestResultsRequest.site": NAME,
    "ListGuestResultsRequest.offer": NUMBER,
    "ListGuestResultsRequest.checkpoint": STATE,
    "FetchGuestResultRequest.site": NAME,
    "FetchGuestResultRequest.offer": NUMBER,
    "FetchGuestResultRequest.checkpoint": STATE,
    "FetchGuestResultRequest.name": LEFT,
    "FetchGuestResultRequest.offset_bytes": LEFT,
    "ReadGuestOutputRequest.site": NAME,
    "ReadGuestOutputRequest.offer": NUMBER,
    "ReadGuestOutputRequest.error": PRINTED,
    "ReadGuestOutputRequest.offset_bytes": PRINTED,
    "ReadGuestOutputResponse.content": PRINTED,
    "ReadGuestOutputResponse.offset_bytes": PRINTED,
    "DropGuestResultsRequest.site": NAME,
    "DropGuestResultsRequest.offer": NUMBER,
    "DropGuestResultsRequest.checkpoint": STATE,
    "DropGuestResultsRequest.files": LEFT,
    "ResultList.files": LEFT,
    "ResultList.complete": LEFT,
    "ResultList.problem": LEFT,
    "ResultList.folder": LEFT,
    "ResultList.kept_until_s": LEFT,
    "ResultList.other_files": LEFT,
    "ResultList.other_bytes": LEFT,
    "ResultList.left_out": LEFT,
    "ResultFile.name": LEFT,
    "ResultFile.size_bytes": LEFT,
    "ResultFile.sha256": LEFT,
    "ResultFile.problem": LEFT,
    "ResultFile.mode": LEFT,
    "ResultChunk.content": LEFT,  # of `FetchInput`: what the job is given
}
"""Every field of every message between sites, with the line of the document that allows it."""

WORDS_THAT_CROSS = {
    "Answer": {"UNSPECIFIED", "ACCEPTED", "DECLINED"},
    "OfferState": {"UNSPECIFIED", "UNKNOWN", "ACCEPTED", "DECLINED", "WITHDRAWN", "ENDED"},
    "Outcome": {
        "UNSPECIFIED",
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "NOT_RUN",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "LOST",
        "UNKNOWN",
        "PREEMPTED",
    },
    "FileProblem": {"UNSPECIFIED", "MISSING", "NO_FILE", "TOO_LARGE"},
    "MemoryScope": {"UNSPECIFIED", "NODE", "CORE", "GPU"},
    "GpuScope": {"UNSPECIFIED", "NODE", "TASK", "JOB"},
    "JobPhase": {"UNSPECIFIED", "WAITING", "RUNNING", "SUSPENDED", "COMPLETING"},
}
"""Every word of every enumeration in them."""

# --- the rules -----------------------------------------------------------------------------------


def function(text: str, name: str) -> str:
    """Returns the body of a Cython function, without comments."""
    begin = rf"^cdef [\w* ]*\b{name}\([^\n]*\n"
    found = re.search(begin + r".*?(?=^[^\s)]|\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{name} is not there"
    return re.sub(r"#[^\n]*", "", found.group())


def reads(body: str) -> set[str]:
    """Returns every member that a decision takes from anything."""
    return set(re.findall(r"\b[A-Za-z_]\w*(?:\.\w+)+", re.sub(r"\[[^\[\]]*\]", "", body)))


def foreign_loads(body: str) -> list[str]:
    """Returns where a site's own side is used for anything but that site's own answer."""
    rest = body
    for asked in (
        r"\bwants\(\s*home, index, job, now, ask, True, waits\s*\)",
        r"\banswers\(\s*federation, index, home_index, job, now\s*\)",
    ):
        rest = re.sub(asked, "", rest)
    return re.findall(
        r"\baccept_fast\b|\bwants\b|\banswers\b|\btakes\b|\bSiteLoad\b|\bBooks\b", rest
    )


def members(text: str, struct: str) -> set[str]:
    """Returns the member names of a struct in a Cython header."""
    found = re.search(rf"^cdef struct {struct}:\n((?:[ ]{{4}}.*\n|\n)+)", text, re.MULTILINE)
    assert found is not None, f"{struct} is not there"
    return set(
        re.findall(r"^ +[\w* ]+?(\w+)\s*$", re.sub(r"#.*", "", found.group(1)), re.MULTILINE)
    )


def messages(service: ServiceDescriptor) -> dict[str, Descriptor]:
    """Returns every message that a service can carry, at any depth, by its name in the package."""
    waiting = [
        message for method in service.methods for message in (method.input_type, method.output_type)
    ]
    found: dict[str, Descriptor] = {}
    while waiting:
        message = waiting.pop()
        name = message.full_name.removeprefix(f"{message.file.package}.")
        if name not in found:
            found[name] = message
            waiting += [field.message_type for field in message.fields if field.message_type]
    return found


def fields_that_cross(service: ServiceDescriptor) -> set[str]:
    """Returns every field of every message that a service can carry."""
    return {
        f"{name}.{field.name}"
        for name, message in messages(service).items()
        for field in message.fields
    }


def words_that_cross(service: ServiceDescriptor) -> dict[str, set[str]]:
    """Returns the words of every enumeration that a service can carry, without their prefix."""
    enums = {
        field.enum_type
        for message in messages(service).values()
        for field in message.fields
        if field.enum_type
    }
    return {enum.name: without_prefix(value.name for value in enum.values) for enum in enums}


def without_prefix(words: Iterable[str]) -> set[str]:
    """Returns words without what is the same at their beginning: the name of the enumeration."""
    words = list(words)
    (first,) = [word for word in words if word.endswith("_UNSPECIFIED")]
    return {word.removeprefix(first.removesuffix("UNSPECIFIED")) for word in words}


def policy_rows(document: str) -> set[str]:
    """Returns what the document's first table says may cross."""
    table = document.partition("## What may cross")[2].partition("\n## ")[0]
    return {
        re.sub(r"\s*\(.*\)$", "", row.split("|")[1].strip())
        for row in re.findall(r"^\|[^\n]*\|$", table, re.MULTILINE)[2:]
    }


# --- the tree ------------------------------------------------------------------------------------


def decision(*names: str) -> str:
    """Returns functions of the federation kernel, first of all what decides where a job runs."""
    source = (ROOT / KERNEL).read_text(encoding="utf-8")
    return "".join(function(source, name) for name in names or ("ask_partners", "offer"))


def test_a_decision_reads_what_the_policy_lists_and_no_more() -> None:
    """Of home: its order and its policies; of a partner: its size, its answer."""
    allowed = READ_OF_HOME | READ_OF_PARTNER | READ_OF_ALL | READ_OF_JOB
    assert reads(decision()) == allowed | {"policy.rails.start_now"}
    # A policy of a partner's, for home's offers, is asked by that partner itself: the question and the answer.
    assert re.findall(r"(?:giving|taking)\([^)]*\)", decision()) == [
        "giving(home, index)",
        "giving(partner, home_index)",
    ]
    # What a partner's nodes could hold if they were empty is public like its size.
    assert reads(decision("partner_holds")) == {"partner.holds"}
    # By costs they are put in order with nothing of a partner but its tariff, which is public.
    assert reads(decision("order_by_tariff")) == {
        "home.cheapest",
        "home.cheapest.cost",
        "home.cheapest.deferral",
        "home.tariff",
        "home.partners",
        "home.partner_count",
        "federation.sites.tariff",
        "federation.jobs.submit_time",
        "job.requested_time",
    }
    # Before it the partners are put in order, and after it those that were asked change places.
    assert reads(decision("decide")) == {
        "federation.sites",
        "home.cheapest",
        "home.chooser",
        "home.count_open",
        "home.asked_count",
        "home.strict",  # a job that came back too often is not offered any more
        "home.strict.empty_returns",
        "federation.empty_returns",
    }
    assert reads(decision("order_partners")) == {"home.cheapest", "home.chooser"}


def test_a_site_that_can_preempt_answers_by_its_own_machine_books_and_account() -> None:
    """Besides what any site looks at: idle processors, its account, how often the job keeps its state."""
    body = decision("takes")
    assert {name for name in reads(body) if name.startswith("site.")} == {
        "site.core",
        "site.core.view.now",
        "site.account.in_credit",
    }
    assert not re.search(r"\b(federation|home|partner)\b", body)
    # A partner's answer is made of that partner; of the federation go with it three columns by job. A home
    # that is Byzantine may hide that a job keeps its state.
    answer = decision("answers")
    assert {name for name in reads(answer) if name.startswith("federation.")} == {
        "federation.sites",
        "federation.sites.rogue",
        "federation.submitted_to",
        "federation.checkpoint",
        "federation.handing",
    }


def test_a_site_answers_by_its_own_machine_and_books_alone() -> None:
    """The answer is made of members of one site, which has no way to another one's."""
    body = decision("wants", "wants_within", "know_load", "know_books")
    of_site = {name for name in reads(body) if name.startswith("site.")}
    assert {re.sub(r"\.view\.\w+$", ".view", name) for name in of_site} == {
        re.sub(r"\.view\.\w+$", ".view", name) for name in READ_OF_OWN_SITE
    }
    roots = {name.partition(".")[0] for name in reads(body)}
    assert roots == {"site", "policy", "view", "load", "books", "job", "seen"}
    assert not re.search(r"\b(federation|home|partner)\b", body)


def test_policies_and_books_are_those_of_one_site() -> None:
    """Where they are looked up there is one site, and the number of another one."""
    source = (ROOT / SITES).read_text(encoding="utf-8")
    for name, found in {
        "giving": READ_OF_POLICIES - {"site.takes"},
        "taking": READ_OF_POLICIES - {"site.transfer"},
        "keeps_notes": {"site.met", "site.met.constrained", "site.ledger"},
        "books_seen": READ_OF_BOOKS,
        "notes_seen": READ_OF_PROMISES,
        "is_down": {"site.down", "site.down_count", "site.down_next"},
    }.items():
        body = function(source, name)
        assert reads(body) == found, name
        assert not re.search(r"\b(federation|home|partner)\.", body)


def test_trust_rests_on_what_became_of_own_jobs() -> None:
    """Home looks at its own notes of the partner, and at nothing of the partner's."""
    body = decision("entrusts")
    found = reads(body)
    assert {name for name in found if name.startswith("home.")} == READ_TO_ENTRUST
    assert {name.partition(".")[0] for name in found} == {
        "home",
        "policy",
        "ledger",
        "job",
        "federation",
    }
    assert {name for name in found if name.startswith("federation.")} == {
        "federation.delegated",
        "federation.jobs",
    }


def test_partners_are_ordered_by_what_the_policy_lists_and_no_more() -> None:
    """What became of own users' jobs at a partner; learned when such a job is given to it, and completed."""
    kernel = (ROOT / KERNEL).read_text(encoding="utf-8")
    order = (ROOT / ORDER).read_text(encoding="utf-8")
    learned = READ_TO_ORDER | READ_OF_STANDING | {"home.open_jobs", "home.met"}
    assert reads(function(order, "learn")) == learned
    assert reads(function(order, "settle")) == READ_OF_PLACES
    assert reads(function(order, "unsettle")) == READ_OF_PLACES
    assert reads(function(order, "open_job")) == READ_OF_OPEN_JOBS
    assert reads(function(order, "close_job")) == READ_OF_OPEN_JOBS
    assert reads(function(order, "order_now")) == READ_TO_ORDER_NOW | READ_OF_STANDING
    assert reads(function(order, "partner_at")) == READ_TO_MERGE | READ_OF_PLACES
    assert reads(function(order, "take_turns")) == READ_TO_TAKE_TURNS
    # A site with records of those alone that it has met orders them by the same sums; of the others it knows sizes.
    for name in OF_THE_MET:
        found = reads(function(order, name))
        roots = {each.partition(".")[0] for each in found}
        assert roots <= {"home", "met", "dealing", "asking", "federation"}, name
        of_all = {each for each in found if each.startswith("federation.")}
        assert of_all <= {"federation.processors", "federation.widths"}, name
    # A policy written in Python is given the same two sums, and says an order.
    chosen = reads(function(kernel, "choose_written")) - {"failures.append"}
    assert chosen == READ_TO_ORDER - {"home.by_awrt", "home.count_open"} | {
        "home.chooser",
        "federation.count",
        "federation.failures",
    }
    # Nobody else orders partners, or writes what they are ordered by.
    rest = kernel
    for begin, end in (("cdef void choose_written(", "cdef bint offer("),):
        rest = rest.replace(rest[rest.index(begin) : rest.index(end)], "")
    written = (
        r"(?:move|order)_by_awrt_fast\(|\b(?:open_)?(?:consumption|submitted|weighted_response)\["
    )
    assert re.findall(written, rest) == []
    assert rest.count("learn(federation, home, index, consumption, ") == 1


def test_a_load_is_seen_by_its_own_site_alone() -> None:
    """A site's load goes into that site's own transfer policy and nowhere else."""
    body = decision()
    assert body.count("wants(") == 1
    assert body.count("answers(") == 1
    assert foreign_loads(body) == []


@pytest.mark.parametrize(
    "line",
    [
        "if wants(partner, index, job, now, ask, True, waits):",
        "accept_fast(home.transfer[index], job, load, &books, True)",
        "cdef SiteLoad load",
        "cdef Books books",
        "answers(federation, index, home_index, other_job, now)",
    ],
)
def test_a_look_at_a_foreign_load_is_caught(line: str) -> None:
    """A load that goes anywhere but into its own site's policy is a violation."""
    assert foreign_loads(line)


@pytest.mark.parametrize(
    "line",
    [
        "partner.core.view.processors_free",
        "partner.core.view.queue.count",
        "federation.jobs.run_time[job]",
        "federation.sites[index].core.view.processors",
        "other.next_time",
    ],
)
def test_a_forbidden_read_is_caught(line: str) -> None:
    """A partner's state and any job's true times are not on the list."""
    assert reads(f"    if {line} > 0:") - READ_OF_HOME - READ_OF_PARTNER - READ_OF_ALL


def test_a_decision_is_given_a_sites_own_load_only() -> None:
    """What a transfer policy is handed is of the deciding site, but for the job's request."""
    header = (ROOT / HEADER).read_text(encoding="utf-8")
    assert members(header, "SiteLoad") == OWN_LOAD
    assert members(header, "KnownJob") == KNOWN_OF_A_JOB
    assert members(header, "NodeTotals") == OF_NODES
    rails = (ROOT / HEADER).with_name("_constraints.pxd").read_text(encoding="utf-8")
    assert members(rails, "Books") == OWN_BOOKS


def test_another_member_of_the_load_is_caught() -> None:
    """A further number would be seen."""
    text = "cdef struct SiteLoad:\n    # Own.\n    int processors\n    double awrt  # average\n\n"
    assert members(text, "SiteLoad") == {"processors", "awrt"}


def test_the_document_lists_what_the_code_reads() -> None:
    """docs/information-policy.md names every number that a decision uses."""
    document = (ROOT / POLICY).read_text(encoding="utf-8")
    numbers = OWN_LOAD | OF_NODES | OWN_BOOKS | KNOWN_OF_A_JOB
    assert {name for name in numbers if f"`{name}`" not in document} == set()


# --- the wire ------------------------------------------------------------------------------------

PARTNER_SERVICE = partner_pb2.DESCRIPTOR.services_by_name["PartnerService"]


def test_only_what_is_listed_crosses_between_sites() -> None:
    """Every field that a partner can be sent, at any depth, is on the list, and no more."""
    assert fields_that_cross(PARTNER_SERVICE) == set(MAY_CROSS) | NEVER_FILLED
    assert words_that_cross(PARTNER_SERVICE) == WORDS_THAT_CROSS


def test_partners_are_told_nothing_but_by_this_service() -> None:
    """Questions with one answer each; files are streamed; nothing is open-ended."""
    methods = {method.name: method for method in PARTNER_SERVICE.methods}
    about_jobs = {
        "Describe",
        "Offer",
        "Resolve",
        "Withdraw",
        "Report",
        "Progress",
        "ListUsage",
        "FetchProgram",
    }
    about_files = {"FetchInput", "ListGuestResults", "FetchGuestResult", "DropGuestResults"}
    about_files |= {"ReadGuestOutput"}
    assert set(methods) == about_jobs | about_files
    streamed = {"FetchGuestResult", "FetchInput"}
    for method in methods.values():
        assert not method.client_streaming
        assert method.server_streaming == (method.name in streamed)
    for message in messages(PARTNER_SERVICE).values():
        assert message.file.package == "grms.v1"  # no Any, no Struct of another package
        assert not message.is_extendable


def test_every_field_has_its_line_in_the_document() -> None:
    """docs/information-policy.md allows what crosses, line by line, and names every field."""
    document = (ROOT / POLICY).read_text(encoding="utf-8")
    assert policy_rows(document) >= set(MAY_CROSS.values())
    entries = {field for field in (*MAY_CROSS, *NEVER_FILLED) if "Entry." not in field}
    assert {field for field in entries if f"`{field}`" not in document} == set()


@pytest.mark.parametrize("where", ["OfferResponse", "Completion", "JobRequest", "OfferId"])
def test_another_field_is_caught(where: str) -> None:
    """A field that somebody adds, in an answer or deep inside a request, is found."""
    pool = descriptor_pool.DescriptorPool()
    name, services = "", PARTNER_SERVICE.file
    for file in (*services.dependencies, services):
        text = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(text)
        for message in text.message_type:
            if message.name == where:
                message.field.add(
                    name="processors_free",
                    number=99,
                    type=descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
                    label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
                )
        pool.Add(text)
        name = text.name
    changed = pool.FindFileByName(name).services_by_name["PartnerService"]
    new = fields_that_cross(changed) - set(MAY_CROSS) - NEVER_FILLED
    assert new == {f"{where}.processors_free"}


def test_the_rows_of_the_document_are_read() -> None:
    """What is in brackets is a remark, and other tables do not count."""
    document = (
        "## What may cross\n\n| what | who |\n|---|---|\n| yes (or no) | b |\n## X\n| z | z |\n"
    )
    assert policy_rows(document) == {"yes"}
