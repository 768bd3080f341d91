"""The history of HTCondor, in each of the ways in which it is written."""

import json
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.workload.accounting.importing import import_lines
from lrms_sim.workload.accounting.records import AccountingError, Import
from lrms_sim.workload.preparation import PreparationOptions, prepare

DONE: dict[str, Any] = {
    "ClusterId": 11,
    "ProcId": 0,
    "JobStatus": 4,
    "JobUniverse": 5,
    "Owner": "zoe",
    "QDate": 1000,
    "JobStartDate": 1010,
    "JobCurrentStartDate": 1060,
    "CompletionDate": 1160,
    "NumJobStarts": 2,
    "RequestCpus": 4,
    "ExitCode": 0,
    "ExitBySignal": False,
    "AcctGroup": "phys",
    "AllowedExecuteDuration": 3600,
    "RemoteWallClockTime": 140.0,
    "Args": 'a = "b"',
}
ADS: list[dict[str, Any]] = [
    DONE,
    # Held and then removed: it ran for 30 s.
    DONE
    | {"JobStatus": 3, "CompletionDate": 0, "EnteredCurrentStatus": 5000, "NumJobStarts": 1}
    | {"QDate": 1001, "RemoteWallClockTime": 30.0, "Owner": "ann", "AllowedExecuteDuration": 0},
    # Removed before it started.
    {"JobStatus": 3, "QDate": 1002, "EnteredCurrentStatus": 1100, "RequestCpus": 2, "Owner": "ann"},
    DONE | {"QDate": 1003, "JobUniverse": 11, "MaxHosts": 3, "ExitCode": 1, "NumJobStarts": 1},
    DONE | {"JobUniverse": 7},
    DONE | {"JobStatus": 5},
    {**{key: DONE[key] for key in ("JobStatus", "QDate")}, "CompletionDate": 900, "Owner": "zoe"},
]  # fmt: skip


def read(text: str, **options: Any) -> Import:
    """Returns what a history says."""
    lines = text.splitlines(keepends=True)
    return import_lines("htcondor", lines, name="history", **options)


def xml(ads: list[dict[str, Any]]) -> str:
    """Returns jobs as -xml prints them."""

    def spelled(value: Any) -> str:
        if isinstance(value, bool):
            return f'<b v="{str(value).lower()[0]}"/>'
        kind = {str: "s", int: "i", float: "r"}[type(value)]
        return f"<{kind}>{escape(str(value))}</{kind}>"

    entries = [
        "".join(f'    <a n="{key}">{spelled(value)}</a>\n' for key, value in ad.items())
        for ad in ads
    ]
    head = '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
    return head + "".join(f"<c>\n{entry}</c>\n" for entry in entries) + "</classads>\n"


def long(ads: list[dict[str, Any]], end: str = "\n") -> str:
    """Returns jobs as -long prints them, each followed by a line of its own."""

    def spelled(value: Any) -> str:
        return json.dumps(value) if isinstance(value, str) else str(value).lower()

    return "".join(
        "".join(f"{key} = {spelled(value)}\n" for key, value in ad.items()) + end for ad in ads
    )


BANNER = '*** Offset = 0 ClusterId = 11 ProcId = 0 Owner = "zoe" CompletionDate = 1160\n'

WAYS = {
    "-long": "\n\n-- Schedd: host : <192.0.2.1:9618>\n" + long(ADS),
    "file": long(ADS, BANNER),
    "-json": "[\n" + ",\n".join(json.dumps(ad, indent=2) for ad in ADS) + "\n]\n",
    "-xml": xml(ADS),
    "two files of -xml": xml(ADS[:3]) + xml(ADS[3:]),
    "-jsonl": "".join(json.dumps(ad) + "\n" for ad in ADS),
}


@pytest.mark.parametrize("way", WAYS)
def test_jobs(way: str) -> None:
    """Each way says the same; the last run counts, and what ran nowhere is cancelled."""
    found = read(WAYS[way])
    log = found.log
    assert found.counts == {"open": 1, "other": 1, "disorder": 1, "never": 1, "restart": 1, "request": 2}  # fmt: skip
    assert log.submit_time.tolist() == [0, 1, 2, 3]
    assert log.wait_time.tolist() == [60, 59, -1, 57]
    assert log.run_time.tolist() == [100, 30, -1, 100]
    assert log.processors_requested.tolist() == [4, 4, 2, 12]
    assert log.requested_time.tolist() == [3600, -1, -1, 3600]
    assert log.status.tolist() == [1, 5, 5, 0]
    assert log.user.tolist() == [1, 2, 2, 1]
    assert log.header.fields["UnixStartTime"] == "1000"
    assert len(prepare(log, 64, PreparationOptions(requested_time_missing="run_time")).jobs) == 3


def test_names_of_attributes_and_processors() -> None:
    """Case does not count; what was given goes before what was asked for; an expression says nothing."""
    ad = {key.upper(): value for key, value in DONE.items()} | {"CpusProvisioned": 8}
    assert read(long([ad])).log.processors_allocated.tolist() == [8]
    unsaid = {key: value for key, value in DONE.items() if key != "RequestCpus"}
    assert read(json.dumps(unsaid)).log.processors_allocated.tolist() == [1]
    assert read(long([unsaid]) + "RequestCpus = 2 * Cpus\n" + long([unsaid])).counts["width"] == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "history:1: no line Name = value, as condor_history -long writes"),
        ("a b = 3\n", "history:1: no line Name = value"),
        (long([{"JobStatus": 4, "QDate": 1}]), "history:3: the job that ends here has no Compl"),
        (long([{"JobStatus": 4, "CompletionDate": 1}]), "history:3: .* has no QDate"),
        ('[\n{"JobStatus": 1},\n{"JobStatus": }\n]', "history:3: no JSON: Expecting value"),
        ("[\n 3\n]", "history:2: 3 is no job"),
        ('{"QDate": ' + 5000 * "1" + "}", "history:1: no JSON: Exceeds the limit"),
        ("<c>\n<a>", "history:2: no XML of ClassAds: mismatched tag"),
        ("<c>&boom;</c>", "history:1: no XML of ClassAds: undefined entity"),
        (200 * "<c>", "history:1: no XML of ClassAds: elements within elements"),
        ('<!DOCTYPE c [<!ENTITY a "b">]>\n<c>&a;</c>', "history:1: no XML of ClassAds: not well-"),
    ],
)
def test_what_cannot_be_read(text: str, words: str) -> None:
    """The error has file, line and what is expected."""
    with pytest.raises(AccountingError, match=words):
        read(text, unreadable="error")


@given(text=st.text(st.sampled_from('[]{},:"\\ \nA=1e9.-*</c>&;'), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No file ends the command in another way."""
    try:
        read(text, unreadable="error")
    except AccountingError as error:
        assert str(error).startswith("history:")  # noqa: PT017  # either way is right


def test_odd_ads_end_nothing() -> None:
    """Lines and objects that cannot be read are left out and counted, and a list may end too early."""
    job = {"JobStatus": 4, "QDate": 1, "JobStartDate": 2, "CompletionDate": 9, "RequestCpus": 2}
    again = read(long([job]) + "hello\n\n" + long([{"JobStatus": 4, "QDate": 1}]))
    assert again.counts == {"unreadable": 1, "moment": 1, "request": 1}
    lines = "\n".join(json.dumps(one) for one in (job, job))
    found = read(f'[\n{lines},\n{{"JobStatus": }}\n{{"JobStatus": 1}}\n{{"Job')
    assert found.counts == {"open": 1, "unreadable": 2, "request": 2}
    assert found.examples["unreadable"].line == 4
    assert found.log.processors_allocated.tolist() == [2, 2]


def test_what_a_job_held() -> None:
    """What was provisioned counts, then the slot it was matched to, then what it asked for."""
    job = {
        "JobStatus": 3,
        "QDate": 1,
        "JobStartDate": 2,
        "EnteredCurrentStatus": 9,
        "RequestCpus": 2,
    }
    ways: list[dict[str, Any]] = [
        {},
        {"MachineAttrCpus0": 4},
        {"MachineAttrCpus0": 4, "CpusProvisioned": 8},
    ]
    assert [read(json.dumps(job | way)).log.processors_allocated[0] for way in ways] == [2, 4, 8]
