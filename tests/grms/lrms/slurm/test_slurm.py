"""Where Slurm's adapter has the end of a job from: the completion log, the controller, accounting, in this order."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from grms.lrms.base import (
    LrmsEnd,
    LrmsJob,
    LrmsPhase,
    LrmsRefusedError,
    LrmsUnavailableError,
    Program,
)
from grms.lrms.batch.guests_without_room import NO_ROOM
from grms.lrms.batch.queue_snapshot import Ending, JobRow, Question
from grms.lrms.batch.subprocesses import ERROR_CHARACTERS_MAX, Answer, Programs
from grms.lrms.home_run import HomeRun
from grms.lrms.slurm.slurm import Slurm, SlurmSettings, failure
from grms.lrms.slurm.slurm_images import find_oci
from grms.lrms.slurm.slurm_preemption import GuestPartitions
from grms.util.outcomes import Outcome
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.clusters.fake_slurm import Machine, Part

NAME, NUMBER, SUBMITTED = "hanse:A:B/1/2", "12", 1795342847.0
LINE = (
    "JobId=12 UserId=grid(1000) GroupId=grid(1000) Name={} JobState={} Partition=main TimeLimit=1 "
    "StartTime=2026-11-22T10:20:48 EndTime=2026-11-22T10:20:49 NodeList=n1 NodeCnt=1 ProcCnt=1 "
    "WorkDir=/tmp/a ReservationName= Tres= Account= QOS= WcKey= Cluster=unknown SubmitTime={} "
    "EligibleTime=2026-11-22T10:20:47 DerivedExitCode=0:0 ExitCode={} \n"
)
MOMENT = "2026-11-22T10:20:47"
SHOWN = "JobId=12 JobName={} JobState={} ExitCode={} StartTime=1795342848 EndTime=1795342850 NodeList=n1\n"
ACCOUNT = "12|{}|{}|{}|1795342848|1795342851|n1|{}\n"

GONE = Answer(1, b"", "slurm_load_jobs error: Invalid job id specified")
NOTHING = Answer(0, b"", "")
DOWN = Answer(1, b"", "Unable to contact slurm controller (connect failure)")


@dataclass
class Says(Programs):
    """Slurm's programs, which say what they are told to.

    Attributes:
        shown: of `scontrol show job`.
        accounting: of `sacct`.
        asked: programs that were, in order.
    """

    shown: Answer = GONE
    accounting: Answer = NOTHING
    asked: list[str] = field(default_factory=list)

    async def run(self, program: str, *arguments: str, **how: Any) -> Answer:
        """Answers."""
        assert NUMBER in arguments
        assert how == {"also": {"SLURM_TIME_FORMAT": "%s"}, "account": ""}
        self.asked.append(program)
        return {"scontrol": self.shown, "sacct": self.accounting}[program]


def said(text: str) -> Answer:
    """Returns what a program prints."""
    return Answer(0, text.encode(), "")


LOGS = {
    "": "",
    "7": LINE.format(NAME, "FAILED", MOMENT, "7:0"),
    "7 twice": LINE.format(NAME, "FAILED", MOMENT, "7:0") * 2,
    "-contradicts itself": LINE.format(NAME, "FAILED", MOMENT, "7:0")
    + LINE.format(NAME, "FAILED", MOMENT, "6:0"),
    "-another submission": LINE.format(NAME, "FAILED", "2026-11-22T10:29:47", "7:0"),
    "-a requeue": LINE.format(NAME, "PENDING", MOMENT, "0:0"),
    "-half a line": LINE.format(NAME, "FAILED", MOMENT, "7:0")[:-1],
}
"""What the log has; what it says of the job stands first: an exit code, or nothing that counts."""
SHOWS = {
    "8": said(SHOWN.format(NAME, "FAILED", "8:0")),
    "-gone": GONE,
    "-another job of that number": said(SHOWN.format("other", "FAILED", "8:0")),
    "-runs still": said(SHOWN.format(NAME, "RUNNING", "0:0")),
    "-nothing": said("\n"),
}
ACCOUNTS = {
    "9": said(ACCOUNT.format("FAILED", "9:0", "1795342847", NAME)),
    "9 after a requeue": said(
        ACCOUNT.format("REQUEUED", "0:0", "1795342847", NAME)
        + ACCOUNT.format("FAILED", "9:0", "1795342847", NAME)
    ),
    "-another submission": said(ACCOUNT.format("FAILED", "9:0", "1795340000", NAME)),
    "-another name": said(ACCOUNT.format("FAILED", "9:0", "1795342847", f"{NAME}3")),
    "-nothing": said(""),
    "-not asked": said(ACCOUNT.format("FAILED", "9:0", "1795342847", NAME)),
}
ROW = JobRow(NAME, NUMBER, SUBMITTED, LrmsPhase.ENDED, 1, exact=False)


def question(*, in_table: bool) -> Question:
    """Returns the question about the job, which the table still shows, or not any more."""
    return Question("B/1/2", NAME, NUMBER, SUBMITTED, ROW if in_table else None, ran=True)


def slurm(folder: Path, programs: Says, *, sacct: bool, log: bool = True) -> Slurm:
    """Returns the adapter's Slurm."""
    place = str(folder / "log") if log else ""
    return Slurm(programs, SlurmSettings("A", "grid", completion_log=place, sacct=sacct))


def code(ending: Ending | None) -> str:
    """Returns the exit code that was found; empty for none."""
    return "" if ending is None else str(ending.end.exit_code)


async def test_the_first_that_knows_is_believed(tmp_path: Path) -> None:
    """The log, then the controller where the table still has the job, then accounting; nobody else is asked."""
    for log, shows, accounts in itertools.product(LOGS, SHOWS, ACCOUNTS):
        for in_table in (False, True):
            programs = Says(SHOWS[shows], ACCOUNTS[accounts])
            (tmp_path / "log").write_text(LOGS[log])
            wanted, asked = log[:1].strip("-"), []
            if not wanted and in_table:
                asked.append("scontrol")
                wanted = shows[:1].strip("-")
            if not wanted and accounts != "-not asked":
                asked.append("sacct")
                wanted = accounts[:1].strip("-")
            system = slurm(tmp_path, programs, sacct=accounts != "-not asked")
            found = await system.ending(question(in_table=in_table))
            case = (log, shows, accounts, in_table)
            assert (code(found), programs.asked) == (wanted, asked), case


async def test_the_log_has_no_reasons(tmp_path: Path) -> None:
    """The table says that a node has never launched a job; what exit code it had then is not the script's."""
    (tmp_path / "log").write_text(LOGS["7"])
    asked = question(in_table=True)
    assert asked.row is not None
    end = LrmsEnd(Outcome.FAILED, 50.0, 1.0, reason="JobLaunchFailure")
    row = replace(asked.row, phase=LrmsPhase.ENDED, end=end)
    asked = replace(asked, row=row)
    found = await slurm(tmp_path, Says(), sacct=False).ending(asked)
    assert found is not None
    assert (found.end.exit_code, found.end.reason) == (7, "JobLaunchFailure")
    end = replace(end, reason="NonZeroExitCode")  # which says less than the code
    asked = replace(asked, row=replace(row, end=end))
    found = await slurm(tmp_path, Says(), sacct=False).ending(asked)
    assert found is not None
    assert (found.end.exit_code, found.end.reason) == (7, "")


async def test_the_log_may_come_later(tmp_path: Path) -> None:
    """A line that was not whole at the first question is read at the next, and then counts."""
    (tmp_path / "log").write_text(LOGS["-half a line"])
    programs = Says()
    system = slurm(tmp_path, programs, sacct=False)
    assert await system.ending(question(in_table=False)) is None
    with (tmp_path / "log").open("a") as file:
        file.write("\n")
    assert code(await system.ending(question(in_table=False))) == "7"
    assert programs.asked == []


async def test_who_does_not_answer_is_asked_again_later(tmp_path: Path) -> None:
    """A controller or a data base that is away has not said that it knows nothing."""
    (tmp_path / "log").write_text("")
    system = slurm(tmp_path, Says(shown=DOWN), sacct=True)
    with pytest.raises(LrmsUnavailableError, match="scontrol: Unable to contact"):
        await system.ending(question(in_table=True))
    away = Answer(1, b"", "sacct: error: slurm_persist_conn_open: Connection refused")
    system = slurm(tmp_path, Says(accounting=away), sacct=True)
    with pytest.raises(LrmsUnavailableError, match="Connection refused"):
        await system.ending(question(in_table=False))
    # The log alone is enough for whoever is in it.
    (tmp_path / "log").write_text(LOGS["7"])
    system = slurm(tmp_path, Says(shown=DOWN, accounting=away), sacct=True)
    assert code(await system.ending(question(in_table=True))) == "7"


async def test_accounting_that_refuses_has_no_records(tmp_path: Path) -> None:
    """It keeps none, or shows none to this user; what else there is counts."""
    off = Answer(1, b"", "Slurm accounting storage is disabled")
    system = slurm(tmp_path, Says(accounting=off), sacct=True)
    assert await system.ending(question(in_table=False)) is None
    nobody = replace(
        question(in_table=False), number=""
    )  # its number is not known, and nobody can be asked
    programs = Says(accounting=off)
    assert await slurm(tmp_path, programs, sacct=True).ending(nobody) is None
    assert programs.asked == []


async def test_without_a_log_it_is_not_missed(tmp_path: Path) -> None:
    """None is configured, it is not there, or this user may not read it."""
    for log in (False, True):
        system = slurm(tmp_path / "none", Says(SHOWS["8"]), sacct=False, log=log)
        assert code(await system.ending(question(in_table=True))) == "8"


async def test_one_job_is_asked_for_where_no_table_shows_it(tmp_path: Path) -> None:
    """The controller says how it ended, that it has it, or that it does not know it; else it has said nothing."""
    refused = Answer(1, b"", "slurm_load_jobs error: Access/permission denied")
    asked = question(in_table=False)
    for shows, known in (
        (SHOWS["-gone"], False),
        (SHOWS["-another job of that number"], False),
        (SHOWS["-runs still"], True),
        (refused, None),
    ):
        system = slurm(tmp_path, Says(shows), sacct=False)
        assert await system.knows(asked) is known
    ending = await slurm(tmp_path, Says(SHOWS["8"]), sacct=False).knows(asked)
    assert isinstance(ending, Ending)
    assert ending.end.exit_code == 8
    assert await slurm(tmp_path, Says(), sacct=False).knows(replace(asked, number="")) is None
    with pytest.raises(LrmsUnavailableError):
        await slurm(tmp_path, Says(DOWN), sacct=False).knows(asked)


class Records(Programs):
    """Slurm's programs, which note what they are told; their answers are of no use.

    Attributes:
        words: of each call.
        shown: the name of the one job that there is.
        machine: that there is.
    """

    def __init__(self, shown: str = "") -> None:
        super().__init__({})
        self.shown = shown
        self.machine = Machine(Path("none"), {"n1": 4})
        self.words: list[tuple[str, ...]] = []

    async def run(self, program: str, *arguments: str, **how: Any) -> Answer:
        """Notes."""
        self.words.append((how.get("account", ""), program, *arguments))
        return self.answer(program, arguments)

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if program == "scontrol" and arguments[0].startswith("--all"):
            return said(self.machine.scontrol(list(arguments)))
        if program == "scontrol":
            return said(SHOWN.format(self.shown, "RUNNING", "0:0"))
        return said("")


async def test_all_jobs_are_looked_at_and_the_whole_machine() -> None:
    """Those of hidden partitions and of others than the site's too."""
    for partitions in ((), ("main", "urgent")):
        programs = Records()
        table = await Slurm(programs, SlurmSettings("A", "grid", partitions)).look()
        (squeue,) = [each for each in programs.words if each[1] == "squeue"]
        assert squeue[1:7] == ("squeue", "-h", "-r", "-a", "-t", "all")
        assert "-p" not in squeue
        shown = [each[2:] for each in programs.words if each[2].startswith("--")]
        assert {words[:3] for words in shown} == {("--all", "--oneliner", "show")}
        assert [words[3] for words in shown] == ["node", "partition", "reservation"]
        assert (table.processors, table.processors_all, table.free) == (4, 4, 4)
        assert [part.name for part in table.partitions.each] == list(partitions or ["main"])


class Tells(Records):
    """The same, of which the configuration and the licences are told too."""

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if arguments[-1] == "license":
            return said("LicenseName=matlab Total=10 Used=4 Free=6 Reserved=0 Remote=no\n")
        if arguments == ("show", "config"):
            text = self.machine.scontrol(list(arguments)) + "Licenses                = matlab:10\n"
            return said(text)
        return super().answer(program, arguments)


async def test_nodes_are_told_where_the_rules_are_known() -> None:
    """How jobs are placed is asked for seldom, and what it does not say is not guessed."""
    system = Slurm(programs := Tells(), SlurmSettings("A", "grid"))
    table = await system.look()
    await system.look()
    assert programs.words.count(("", "scontrol", "show", "config")) == 1
    nodes = table.nodes
    assert nodes is not None
    assert nodes.starts_now(Request(4, licences=(("matlab", 6),), partition="urgent"), 0.0)
    assert not nodes.starts_now(Request(licences=(("matlab", 7),)), 0.0)
    assert nodes.never(Request(licences=(("matlab", 11),)))
    assert nodes.never(Request(5)) == "the widest job in main may have 4 processors"
    silent = await Slurm(Records(), SlurmSettings("A", "grid")).look()
    assert silent.nodes is None


@pytest.mark.parametrize(
    ("said", "beside", "why"),
    [
        (None, "", "has no oci.conf"),
        (None, "at its controller", ""),
        (None, "of the site's file", ""),
        (True, "", ""),
        (False, "at its controller", "lrms.images = false"),
    ],
)
async def test_a_job_with_an_image_runs_only_where_nodes_run_images(
    tmp_path: Path, said: bool | None, beside: str, why: str
) -> None:
    """Slurm itself would take it, and run it without."""
    places = {"at its controller": tmp_path / "etc", "of the site's file": tmp_path / "own"}
    for place in places.values():
        place.mkdir()
    if beside:
        (places[beside] / "oci.conf").touch()
    programs = OfFolder(tmp_path / "etc")
    own = str(tmp_path / "own/slurm.conf")
    system = Slurm(programs, SlurmSettings("A", "grid", configuration=own, images=said))
    nodes, wanted = (await system.look()).nodes, Request(image="x.sif", wall_time=60.0)
    assert nodes is not None
    for found in (nodes.never(wanted), nodes.lacks(wanted), nodes.why_not(wanted)):
        assert (why in found and "it asks for x.sif" in found) if why else not found
    assert nodes.starts_now(wanted, 0.0) == (not why)
    assert nodes.starts_now(Request(wall_time=60.0), 0.0)
    job = replace(JOB, processors=1, request=wanted)
    if why:
        with pytest.raises(LrmsRefusedError, match=f"{why}.*it asks for x.sif") as caught:
            await system.submit(system.encode(job.key), job, OWN)
        assert not caught.value.passing
        assert all(words[1] != "sbatch" for words in programs.words)
    else:
        await system.submit(system.encode(job.key), job, OWN)
        assert any("--container=x.sif" in words for words in programs.words)


@pytest.mark.parametrize("said", [None, False])
async def test_without_an_answer_no_job_runs_in_an_image(said: bool | None) -> None:
    """Nobody knows whether nodes run images, so such a job is to wait, unless the site's file says it; others are taken."""
    system = Slurm(programs := Takes(), SlurmSettings("A", "grid", images=said))
    with pytest.raises(LrmsRefusedError, match=r"oci\.conf|runs no container") as caught:
        await system.submit(NAME, replace(JOB, request=Request(3, image="i", wall_time=1.0)), OWN)
    assert caught.value.passing == (said is None)
    await system.submit(system.encode(JOB.key), JOB, OWN)
    assert len(programs.taken) == 1


async def test_the_site_s_own_folder_counts_where_slurm_does_not_tell_its_own(
    tmp_path: Path,
) -> None:
    """Where it is refused to be asked for its configuration."""
    (tmp_path / "oci.conf").touch()
    programs, job = OfFolder(tmp_path), replace(JOB, request=Request(3, image="i", wall_time=1.0))
    own = str(tmp_path / "slurm.conf")
    for place, is_taken in (("", False), (own, True)):
        programs.closed = True
        system = Slurm(programs, SlurmSettings("A", "grid", configuration=place))
        assert (await system.look()).nodes is None
        if is_taken:
            assert await system.submit(system.encode(job.key), job, OWN) == "7"
        else:
            with pytest.raises(LrmsRefusedError) as caught:
                await system.submit(system.encode(job.key), job, OWN)
            assert caught.value.passing


def test_where_an_oci_conf_is_looked_for(tmp_path: Path) -> None:
    """Also beside a slurm.conf that was fetched, where the site's file names no other."""
    fetched, own = tmp_path / "run", tmp_path / "own"
    fetched.mkdir()
    (fetched / "oci.conf").touch()
    there = str(fetched / "slurm.conf")
    assert find_oci("", "/none/slurm.conf", there) == str(fetched / "oci.conf")
    assert find_oci(str(own / "slurm.conf"), "", there) == ""
    assert find_oci(str(own / "slurm.conf"), there, "") == str(fetched / "oci.conf")


class OfFolder(Tells):
    """The same, with slurm.conf in a folder, and an `sbatch` that takes jobs."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.closed = False

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if program == "sbatch":
            return said("7\n")
        answer = super().answer(program, arguments)
        if arguments != ("show", "config"):
            return answer
        if self.closed:
            return Answer(1, b"", "slurm_load_ctl_conf error: Access/permission denied")
        return said(f"{answer.output.decode()}SLURM_CONF              = {self.folder}/slurm.conf\n")


class WaitInGuests(Records):
    """The same, with a waiting guest and a waiting own job in the partition of guests."""

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if program != "squeue":
            return super().answer(program, arguments)
        token = arguments[-1].partition("|")[0]
        row = "{}|{}|PD|1|1795342847|N/A|N/A|Priority|grid(0)|||guest|hanse:A:{}\n"
        return said(row.format(token, 1, "H/1/2") + row.format(token, 2, "A/1/3"))


async def test_only_guests_wait_no_longer_than_they_may() -> None:
    """Own jobs there wait on, and a clock that is set by a year and back makes no wait longer or shorter."""

    async def hindered(wait_s: float, *moments: float) -> dict[str, str]:
        settings = SlurmSettings("A", "grid", guests=GuestPartitions("guest"), guest_wait_s=wait_s)
        now = iter([moment for moment in moments for _ in range(2)])
        system = Slurm(WaitInGuests(), settings, clock=lambda: next(now))
        for _ in moments:
            rows = (await system.look()).rows
        return {row.name.removeprefix("hanse:A:"): row.hindered for row in rows}

    year = 365 * 86_400.0
    nobody = {"H/1/2": "", "A/1/3": ""}
    assert await hindered(1e-9, 5.0) == nobody
    assert await hindered(1e-9, 5.0, 5.0) == {**nobody, "H/1/2": NO_ROOM}
    assert await hindered(1e-9, year, 5.0) == {**nobody, "H/1/2": NO_ROOM}
    assert await hindered(600.0, 5.0, year) == nobody
    assert await hindered(0.0, 5.0, year) == nobody


class Denies(Records):
    """The same, which says nothing of one job."""

    async def run(self, program: str, *_: str, **_how: Any) -> Answer:
        """Refuses."""
        assert program == "scontrol"
        return Answer(1, b"", "slurm_load_jobs error: Access/permission denied")


async def test_of_a_hold_that_slurm_does_not_tell_of_nothing_is_known() -> None:
    """It may be the submission's, after a release that was forgotten: whoever took it for another's would leave the job held."""
    system = Slurm(Denies(), SlurmSettings("A", "grid"))
    with pytest.raises(LrmsRefusedError, match="denied"):
        await system.held_since_submission(ROW, released=True)


class Held(Records):
    """The same, of which one job is held."""

    async def run(self, program: str, *_: str, **_how: Any) -> Answer:
        """Says why, with the words of Slurm 22.05."""
        assert program == "scontrol"
        return said(
            f"JobId=12 JobName={NAME} JobState=PENDING Priority=0 AccrueTime=Unknown Reason={self.shown}\n"
        )


@pytest.mark.parametrize(
    ("reason", "ours"), [("JobHeldUser", True), ("job_requeued_in_held_state", False)]
)
async def test_a_hold_of_what_somebody_has_requeued_is_his(reason: str, ours: bool) -> None:
    """Also of a job that has started at once, and so has no moment from which it accrues age."""
    system = Slurm(Held(reason), SlurmSettings("A", "grid"))
    assert await system.held_since_submission(ROW, released=True) is ours


async def test_one_that_no_table_shows_is_cancelled_by_its_whole_name() -> None:
    """What its user calls it is part of that; one that is another's by now, or over, is left alone."""
    row = replace(ROW, phase=LrmsPhase.UNKNOWN, name=NAME)
    for shown, words in ((f"my-job@{NAME}", [f"--name=my-job@{NAME}", NUMBER]), ("another", [])):
        programs = Records(shown)
        ended = await Slurm(programs, SlurmSettings("A", "grid")).cancel(row)
        assert ended == bool(words)
        ends = [each[2:] for each in programs.words if each[1] == "scancel"]
        assert ends == ([tuple(words)] if words else [])


async def test_what_is_held_is_cancelled_only_while_it_waits() -> None:
    """It may have been released and have started since; one that is seen running is ended as it is."""
    programs = Records()
    system = Slurm(
        programs, SlurmSettings("A", "grid"), lambda key: "ann" if key == "B/1/2" else ""
    )
    for phase in (LrmsPhase.HELD, LrmsPhase.WAITING, LrmsPhase.RUNNING):
        await system.cancel(replace(ROW, phase=phase))
    held, waiting, runs = programs.words
    assert held == ("ann", "scancel", f"--name={NAME}", "--state=PENDING", NUMBER)
    assert waiting == runs == ("ann", "scancel", f"--name={NAME}", NUMBER)
    await system.knows(question(in_table=False))
    assert programs.words[-1][:2] == ("ann", "scontrol"), "to its own user nothing is hidden"


class Ends(Says):
    """A `scancel` that says what the test says, and notes what it was asked."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.words: list[tuple[str, ...]] = []

    async def run(self, program: str, *arguments: str, **how: Any) -> Answer:
        """Answers."""
        assert program == "scancel"
        account = how.pop("account", "")
        assert how == {"also": {"SLURM_TIME_FORMAT": "%s"}}
        self.words.append((account, *arguments))
        return self.answer


OVER = "scancel: error: Kill job error on job id {}: Invalid job id specified\n"
DENIED = "scancel: error: Kill job error on job id 7: Access/permission denied\n"


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (NOTHING, True),
        (Answer(1, b"", OVER.format(12)), False),
        (
            Answer(
                1,
                b"",
                "scancel: error: Kill job error on job id 12: Job/step already completing or completed\n",
            ),
            True,
        ),
    ],
    ids=["ended", "gone", "over"],
)
async def test_whether_a_job_was_still_there_is_answered(answer: Answer, ended: bool) -> None:
    """What has no job to end has ended none; that it is over already, `scancel` may also say of its own repetition."""
    system = Slurm(Ends(answer), SlurmSettings("A", "grid"))
    assert await system.cancel(ROW) is ended


async def test_many_jobs_are_ended_in_one_call() -> None:
    """Each account's own ones alone; that some have ended is no error, whatever is cut off what is said."""
    rows = [
        JobRow(f"hanse:A:{key}", number, 1.0, LrmsPhase.HELD, 1) for key, number in JOBS.items()
    ]
    long = "".join(map(OVER.format, range(100)))[-ERROR_CHARACTERS_MAX:]
    for answer in (NOTHING, Answer(1, b"", OVER.format(12)), Answer(1, b"", long)):
        programs = Ends(answer)
        await Slurm(programs, SlurmSettings("A", "grid"), LENT.__getitem__).cancel_all(rows)
        waiting = "--state=PENDING"
        assert programs.words == [
            ("", "--user=grid", waiting, "12", "14"),
            ("ann", "--user=ann", waiting, "13"),
        ]
        running = [replace(row, phase=LrmsPhase.RUNNING) for row in rows[:1]]
        await Slurm(programs, SlurmSettings("A", "grid")).cancel_all([*running, rows[2]])
        assert programs.words[2:] == [("", "--user=grid", "12"), ("", "--user=grid", waiting, "14")]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(1, b"", OVER.format(12) + DENIED + OVER.format(13)), LrmsRefusedError),
        (Answer(1, b"", DENIED), LrmsRefusedError),
        (Answer(1, b"", ""), LrmsUnavailableError),
        (DOWN, LrmsUnavailableError),
    ],
)
async def test_what_is_not_ended_of_many_is_told(answer: Answer, kind: type[Exception]) -> None:
    """A refusal of one, and that nobody answers."""
    row = JobRow(NAME, NUMBER, 1.0, LrmsPhase.HELD, 1)
    with pytest.raises(kind):
        await Slurm(Ends(answer), SlurmSettings("A", "grid")).cancel_all([row, row])


JOBS = {"B/1/2": "12", "B/1/3": "13", "B/1/4": "14"}
LENT = {"B/1/2": "", "B/1/3": "ann", "B/1/4": ""}


class HasNames(Programs):
    """Slurm's programs, where jobs have these names by their numbers; what scontrol is told is noted."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__({})
        self.names = names
        self.told: list[str] = []

    async def run(self, program: str, *arguments: str, **how: Any) -> Answer:
        """Answers."""
        del how
        if program == "scontrol":
            self.told += arguments
            return said("")
        numbers = arguments[arguments.index("-j") + 1].split(",")
        if len(numbers) == 1 and numbers[0] not in self.names:
            return GONE  # as Slurm says where it was asked for one
        form = arguments[-1]
        there = [(each, self.names[each]) for each in numbers if each in self.names]
        return said("".join(form.replace("%i", a).replace("%j", b) + "\n" for a, b in there))


@pytest.mark.parametrize(
    ("row", "name", "is_it"),
    [
        (ROW, NAME, True),
        (ROW, f"his-word@{NAME}", True),
        (ROW, f"{NAME}3", False),
        (ROW, "other", False),
        (ROW, f"other\n|{NUMBER}|{NAME}", False),
        (ROW, "", False),
        (replace(ROW, name="renamed", known_as="B/1/2"), "renamed", True),
        (replace(ROW, name="renamed", known_as="B/1/2"), f"renamed@{NAME}", True),
        (replace(ROW, name="renamed", known_as="B/1/2"), "other", False),
        (replace(ROW, name=f"{NAME}:away"), f"{NAME}:away", True),
        (replace(ROW, name=f"{NAME}:away"), NAME, False),
    ],
)
async def test_no_other_job_is_changed_by_a_number_that_it_has_got(
    row: JobRow, name: str, is_it: bool
) -> None:
    """A controller with an older state gives numbers away again, and scontrol goes by them alone."""
    for change in ("release", "release_all", "hold", "start_now", "rename"):
        programs = HasNames({NUMBER: name} if name else {})
        system = Slurm(programs, SlurmSettings("A", "grid"))
        calls = {
            "release": system.release(row),
            "release_all": system.release_all([row]),
            "hold": system.hold(row),
            "start_now": system.start_now(row),
            "rename": system.rename(row, "new"),
        }
        call = calls.pop(change)
        for other in calls.values():
            other.close()
        if is_it:
            await call
        else:
            with pytest.raises(LrmsRefusedError, match=f"{NUMBER}: no job of this site"):
                await call
        assert bool(programs.told) == is_it, change


async def test_of_many_that_are_released_those_are_that_are_there() -> None:
    """One whose number is another's keeps no other from its release, and is said to be refused."""
    rows = [replace(ROW, name=f"hanse:A:B/1/{at}", number=str(at)) for at in range(1, 4)]
    programs = HasNames({"1": rows[0].name, "2": "other", "3": rows[2].name})
    with pytest.raises(LrmsRefusedError, match=r"squeue: 2: no job"):
        await Slurm(programs, SlurmSettings("A", "grid")).release_all(rows)
    assert programs.told == ["release", "1,3"]


# --- submissions ---------------------------------------------------------------------------------


@dataclass
class Takes(Programs):
    """Slurm's programs, which take any job.

    Attributes:
        taken: words of sbatch, with its folder and its mask.
    """

    taken: list[tuple[list[str], str, int]] = field(default_factory=list)

    async def run(self, program: str, *arguments: str, **how: Any) -> Answer:
        """Answers."""
        assert (program, how["dies_with_us"], how["account"]) == ("sbatch", True, "")
        assert "also" not in how
        self.taken.append((list(arguments), how["folder"], how["umask"]))
        return said("7\n")


class Waits(Records):
    """The same, of which the first partition is too short, and the second down; one job waits."""

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if program == "sbatch":
            (self.shown,) = (w[11:] for w in arguments if w.startswith("--job-name="))
            return said("7\n")
        if program == "squeue":
            token = arguments[-1].partition("|")[0]
            row = f"{token}|7|PD|1|1795342847|N/A|N/A|PartitionDown|grid(4000000000)||(null)|main|{self.shown}\n"
            return said(row)
        self.machine.partitions = {"main": Part("1:00:00"), "b": Part("UNLIMITED", state="down")}
        return super().answer(program, arguments)


class Renamed(Records):
    """The same, of which the queue has one job in states of which some have a name of somebody's."""

    def __init__(self, *shown: tuple[str, str]) -> None:
        super().__init__()
        self._shown = iter(shown)

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if program != "squeue":
            return super().answer(program, arguments)
        token, (state, name) = arguments[-1].partition("|")[0], next(self._shown)
        return said(f"{token}|7|{state}|1|1795342847|N/A|N/A|None|grid(0)||(null)|main|{name}\n")


async def test_a_renamed_job_is_known_as_long_as_the_queue_shows_its_end() -> None:
    """A question about its end may be without an answer, and is put again at the next look."""
    tag = "hanse:A:B/1/2"
    programs = Renamed(("R", tag), ("R", "his"), ("CD", "his"), ("CD", "his"))
    system = Slurm(programs, SlurmSettings("A", "grid"))
    looks = [await system.look() for _ in range(4)]
    assert [[row.known_as for row in each.rows] for each in looks] == [[""], *[["B/1/2"]] * 3]


@pytest.mark.parametrize("word", ["", "my job"])
async def test_what_a_job_waits_for_is_known_whatever_its_user_calls_it(word: str) -> None:
    """One partition would start it if it were shorter, and the other one is down: that is known by what it wants."""
    programs = Waits()
    system = Slurm(programs, SlurmSettings("A", "grid", ("main", "b")))
    job = LrmsJob("B/1/2", 1, 7200.0, program=Program("#!/bin/sh\n"), name=word)
    await system.submit(system.encode(job.key), job, Path("/jobs/B+1+2"))
    (row,) = (await system.look()).rows
    assert "PartitionDown" in row.hindered


OWN = Path("/jobs/B+1+2")
HOME = HomeRun(
    "/users/ann",
    (b"A=b", b"SLURM_UMASK=0027"),
    ("--mem=100", "--nodes=1", "--ntasks=3", "--output=/users/ann/%x.%j-%%x"),
)
JOB = LrmsJob("B/1/2", 3, 60.0, program=Program("#!/bin/sh\n"), name="a/job 100%")


async def submitted(job: LrmsJob, **settings: object) -> tuple[list[str], str, int]:
    """Returns with what sbatch was called, without what every job has."""
    programs = Takes()
    system = Slurm(programs, SlurmSettings("A", "grid", **settings))  # type: ignore[arg-type]  # as they are
    assert await system.submit(system.encode(job.key), job, OWN) == "7"
    ((words, folder, umask),) = programs.taken
    common = {
        "--parsable",
        "--hold",
        "--comment=hanse",
        "--input=/dev/null",
        "--no-requeue",
        "--time=1",
    }
    assert common <= set(words)
    assert f"--job-name=a_job_100_@hanse:A:{job.key}" in words
    shown = [word for word in words if word not in common and not word.startswith("--job-name")]
    return shown, folder, umask


async def test_a_job_that_was_not_handed_in_here_runs_in_its_own_folder() -> None:
    """It is submitted from there, so that its script finds it by the name that it knows."""
    assert await submitted(JOB) == (
        [
            *("--export=ALL", "--chdir=/jobs/B+1+2"),
            *("--output=/jobs/B+1+2/stdout", "--error=/jobs/B+1+2/stderr", "--open-mode=append"),
            *("--ntasks=3", "/jobs/B+1+2/launch"),
        ],
        "/jobs/B+1+2",
        -1,
    )


@pytest.mark.parametrize(
    ("said", "streams"),
    [
        ({"merged": True}, ["--output=/jobs/B+1+2/stdout", "--open-mode=append"]),
        (
            {"truncated": True},
            [
                *("--output=/jobs/B+1+2/stdout", "--error=/jobs/B+1+2/stderr"),
                "--open-mode=truncate",
            ],
        ),
    ],
)
async def test_streams_are_one_or_begin_anew_as_was_written(said: Any, streams: list[str]) -> None:
    """In the job's own folder, whatever their user has called them."""
    words, _, _ = await submitted(replace(JOB, program=Program("#!/bin/sh\n", **said)))
    assert [
        word for word in words if word.startswith(("--output", "--error", "--open-mode"))
    ] == streams


async def test_a_job_at_home_runs_as_it_was_handed_in() -> None:
    """With its options, variables, folder and mask; the site's file has the last word on where."""
    words, folder, umask = await submitted(replace(JOB, home=HOME), partitions=("main",))
    assert (folder, umask) == ("/users/ann", 0o027)
    assert words == [
        *("--export-file=/jobs/B+1+2/environ", "--mem=100", "--nodes=1", "--ntasks=3"),
        *("--chdir=/users/ann", "--output=/users/ann/a_job 100%%.%j-%%x"),
        *("--partition=main", "/jobs/B+1+2/launch", "/jobs/B+1+2"),
    ]
    words, _, _ = await submitted(replace(JOB, home=replace(HOME, options=())))
    assert "--output=/users/ann/slurm-%j.out" in words
    assert not any(word.startswith(("--error", "--ntasks", "--open-mode")) for word in words)
    shape = ("--nodes={processors}", "--exclusive")
    words, _, _ = await submitted(replace(JOB, home=HOME), shape=shape)
    assert words[-4:-2] == ["--nodes=3", "--exclusive"]


async def test_a_folder_that_cannot_be_used_leaves_the_rest() -> None:
    """Variables and options are its user's; it runs and prints where no other job does."""
    words, folder, _ = await submitted(replace(JOB, home=replace(HOME, folder="")))
    assert folder == "/jobs/B+1+2"
    assert {"--mem=100", "--chdir=/jobs/B+1+2", "--output=/jobs/B+1+2/stdout"} <= set(words)
    assert words[-1] == "/jobs/B+1+2/launch"


@pytest.mark.parametrize(
    "word",
    [
        *("--uid=0", "--reservation=x", "--priority=9", "--time=9", "mem=1", "--mem=1\n"),
        *("--ntasks=4", "--ntasks=x", "--nice=-5", "--wrap=x", "--export=ALL", "--chdir=/"),
    ],
)
async def test_what_is_not_a_users_to_say_is_refused(word: str) -> None:
    """Whoever speaks to the site could have written it."""
    with pytest.raises(LrmsRefusedError):
        await submitted(replace(JOB, home=replace(HOME, options=(word,))))


class Releases(Tells):
    """The same; a job of the site's has just been released, and has no plan yet."""

    def answer(self, program: str, arguments: Sequence[str]) -> Answer:
        """Returns what a program says."""
        if program == "sbatch":
            (self.shown,) = (w[11:] for w in arguments if w.startswith("--job-name="))
            return said("7\n")
        if program == "squeue":
            token = arguments[-1].partition("|")[0]
            return said(
                f"{token}|7|PD|3|1795342847|N/A|N/A|None|grid(4000000000)||(null)|main|{self.shown}\n"
            )
        return super().answer(program, arguments)


async def test_a_job_without_a_plan_yet_has_its_room() -> None:
    """Where it is this process's; of another's it is not known what it may take."""
    settings = SlurmSettings("A", "grid")
    system = Slurm(programs := Releases(), settings)
    job = replace(JOB, request=Request(3, wall_time=60.0))
    await system.submit(system.encode(job.key), job, OWN)
    nodes = (await system.look()).nodes
    assert nodes is not None
    assert nodes.starts_now(Request(1), 0.0)
    assert not nodes.starts_now(Request(2), 0.0)
    nodes = (await Slurm(programs, settings).look()).nodes
    assert nodes is not None
    assert not nodes.starts_now(Request(1), 0.0)
    assert nodes.starts_now(Request(4, partition="urgent"), 0.0)


USERS = ("--account=x", "--comment=grid", "--partition=b", "--qos=long")


async def test_what_a_user_says_goes_before_what_the_sites_file_says() -> None:
    """At home; a partner's job has the file's words where its own have no meaning here."""
    file = {"partitions": ("main",), "slurm_account": "own", "qos": "normal", "guest_qos": "low"}
    words, _, _ = await submitted(replace(JOB, home=replace(HOME, options=USERS)), **file)
    assert {*USERS} <= {*words}
    assert not {"--partition=main", "--account=own", "--qos=normal"} & {*words}
    words, _, _ = await submitted(replace(JOB, home=replace(HOME, options=USERS[1:2])), **file)
    assert {"--partition=main", "--account=own", "--qos=normal"} <= {*words}
    guest = replace(JOB, partner="B", request=Request(3, wall_time=60.0, partition="b,c"))
    words, _, _ = await submitted(guest, **file)
    assert {"--ntasks=3", "--partition=b,c", "--account=own", "--qos=low"} <= {*words}


async def test_a_users_words_are_not_those_by_which_the_watcher_knows_originals() -> None:
    """The site's job would be held, and made into another one, for ever."""
    watched = {"watched_comment": "grid", "watched_partition": "b"}
    for options in (USERS, ("--comment=grid:held",)):
        words, _, _ = await submitted(replace(JOB, home=replace(HOME, options=options)), **watched)
        assert not {"--comment=grid", "--comment=grid:held", "--partition=b"} & {*words}
    assert "--account=x" in (await submitted(replace(JOB, home=replace(HOME, options=USERS))))[0]


async def test_what_a_job_asks_for_reaches_sbatch() -> None:
    """Of a partner's, and of one that was written for no batch system; else its user's words say it."""
    request = Request(2, 4, memory=Memory(1024), gpus=Gpus(1, "task", "a100"), wall_time=60.0)
    job = replace(JOB, processors=8, request=request)
    asked = ["--ntasks=2", "--cpus-per-task=4", "--mem-per-cpu=1024M", "--gpus-per-task=a100:1"]
    for each in (job, replace(job, partner="B")):
        words, _, _ = await submitted(each, shape=("--nodes={processors}",))
        assert words[-5:-1] == asked
    words, _, _ = await submitted(replace(job, home=HOME))
    assert not {*asked} & {*words}
    plain = replace(JOB, request=Request(3, wall_time=60.0, signal="B:USR1", account="p"))
    words, _, _ = await submitted(plain, shape=("--nodes={processors}", "--exclusive"))
    assert words[-5:-1] == ["--nodes=3", "--exclusive", "--signal=B:USR1@60", "--account=p"]


async def test_a_job_is_run_again_where_both_its_user_and_the_site_allow_it() -> None:
    """Nobody has said it is the site's word."""
    for requeue in (False, True):
        for said_by_user in (None, False, True):
            job = replace(JOB, request=Request(3, wall_time=60.0, requeue=said_by_user))
            system = Slurm(programs := Takes(), SlurmSettings("A", "grid", requeue=requeue))
            await system.submit(system.encode(job.key), job, OWN)
            words = programs.taken[0][0]
            again = requeue and said_by_user is not False
            assert ("--requeue" in words, "--no-requeue" in words) == (again, not again)


def test_all_that_slurm_says_is_told() -> None:
    """Its reasons often stand before the line that says that there is no job."""
    text = "sbatch: error: Memory specification can not be satisfied\n\nsbatch: error: Batch job submission failed: x\n"
    found = failure("sbatch", Answer(1, b"", text))
    assert isinstance(found, LrmsRefusedError)
    assert found.reason == (
        "sbatch: Memory specification can not be satisfied; Batch job submission failed: x"
    )


async def test_a_job_is_known_whatever_its_user_calls_it(tmp_path: Path) -> None:
    """By log, controller and accounting, by what stands behind its user's word."""
    shown = f"my-job@{NAME}"
    row = replace(ROW, name=shown)
    asked = Question("B/1/2", shown, NUMBER, SUBMITTED, row, ran=True)
    for log, shows, accounts in (
        (LINE.format(shown, "FAILED", MOMENT, "7:0"), GONE, NOTHING),
        ("", said(SHOWN.format(shown, "FAILED", "7:0")), NOTHING),
        ("", GONE, said(ACCOUNT.format("FAILED", "7:0", "1795342847", shown))),
    ):
        for question in (asked, replace(asked, name=NAME)):  # an older life does not know the word
            (tmp_path / "log").write_text(log)
            system = slurm(tmp_path, Says(shows, accounts), sacct=True)
            assert code(await system.ending(question)) == "7"
    assert slurm(tmp_path, Says(), sacct=False).decode(shown) == "B/1/2"


@pytest.mark.parametrize(
    ("said", "passing"),
    [
        ("Batch job submission failed: Required partition not available (inactive or drain)", True),
        (
            "QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates",
            True,
        ),
        ("no more of yours\nsbatch: error: Batch job submission failed: Unspecified error", True),
        ("Batch job submission failed: Invalid qos specification", False),
        ("Batch job submission failed: Invalid feature specification", False),
        ("Batch job submission failed: Invalid account or account/partition combination", False),
        (
            "Batch job submission failed: Pathname of a file, directory or other parameter too long",
            False,
        ),
        ("Batch job submission failed: Unable to contact slurm controller (connect failure)", None),
        ("Batch job submission failed: Socket timed out on send/recv operation", None),
        (
            "slurm_msg_sendto: address:port=127.0.0.1:6817 msg_type=4003: Unexpected missing socket error",
            None,
        ),
        ("Batch job submission failed: Unexpected missing socket error", None),
        ("slurm_receive_msg [127.0.0.1:6817]: No buffer space available", None),
        ("Batch job submission failed: Communication shutdown failure", None),
        ("Batch job submission failed: Header lengths are longer than data received", None),
        ("Batch job submission failed: Incompatible versions of client and server code", None),
        ("Batch job submission failed: Can't find an address, check slurm.conf", None),
        (
            "fetch_config: DNS SRV lookup failed\nfatal: Could not establish a configuration source",
            None,
        ),
        ("xgetaddrinfo: getaddrinfo() failed: Name or service not known", None),
        ("fatal: Unable to process configuration file", None),
        ("Batch job submission failed: Unable to create job record, try again", True),
    ],
)
def test_a_refusal_says_whether_it_passes(said: str, passing: bool | None) -> None:
    """What is no matter of the job may be taken later; a controller that does not answer has not refused."""
    error = failure("sbatch", Answer(1, b"", f"sbatch: error: {said}"))
    assert getattr(error, "passing", None) is passing


@pytest.mark.parametrize("full", [False, True])
async def test_a_controller_with_all_the_jobs_it_may_have_has_refused(
    full: bool, tmp_path: Path
) -> None:
    """Then `sbatch` says so, sleeps and tries again, for longer than anybody waits; else nobody has answered."""
    text = "Slurm temporarily unable to accept job, sleeping and retrying" if full else "hm"
    program = tmp_path / "sbatch"
    program.write_text(f"#!/bin/sh\necho 'sbatch: error: {text}' >&2\nexec sleep 600\n")
    program.chmod(0o755)
    slurm = Slurm(Programs({}, folder=str(tmp_path), timeout_s=1.0), SlurmSettings("A", "grid"))
    expected = LrmsRefusedError if full else LrmsUnavailableError
    with pytest.raises(expected, match="sleeping" if full else "within 1 s") as caught:
        await slurm.submit("hanse:A:B/1/2", LrmsJob("B/1/2", 1, 60.0), tmp_path)
    assert getattr(caught.value, "passing", full) is full
