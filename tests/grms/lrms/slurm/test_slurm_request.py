"""What jobs ask for is read from both of Slurm's programs alike, and Slurm is asked for just that.

`slurm_22_05_jobs.jsonl` has, for words of sbatch, what Slurm 22.05 has printed: the options of a trial with the
processors of its estimate, and the fields of `scontrol show job` once submitted. Jobs there have 100 MiB a core
by default, 500 MiB in the partition `gpu`.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from grms.lrms.slurm.slurm_request import (
    UnsaidError,
    read_features,
    read_fields,
    read_gpus,
    read_licences,
    read_memory,
    read_nodes,
    read_options,
    read_signal,
    shape_options,
)
from grms.lrms.slurm.slurm_text import read_job
from lrms_sim.workload.requests import Gpus, Memory, Request, RequestError
from tests.node_strategies import requests

_LINES = Path(__file__).with_name("slurm_22_05_jobs.jsonl").read_text().splitlines()
JOBS = {job["words"]: job for job in map(json.loads, _LINES)}

UNSAID = {
    "-C skylake|icelake": "constraint",
    "-C [skylake*1&icelake*1] -N2": "constraint",
    "-w n1": "nodelist",
    "--tmp=100": "tmp",
    "--mincpus=4": "mincpus",
    "-p gpu --gpus-per-socket=1 --sockets-per-node=1": "gpus-per-socket",
    "-d singleton": "dependency",
}
ASKED = {
    "-n1": Request(1),
    "-n4": Request(4),
    "-n4 -c2": Request(4, 2),
    "-N2": Request(2, nodes_min=2, nodes_max=2),
    "-N2 --ntasks-per-node=2": Request(4, nodes_min=2, nodes_max=2, tasks_per_node=2),
    "--ntasks-per-node=3": Request(3, tasks_per_node=3),
    "-N1-3 -n3": Request(3, nodes_max=3),
    "-N2 -n8 --ntasks-per-node=6": Request(8, nodes_min=2, nodes_max=2, tasks_per_node=6),
    "--mem=1G -n4": Request(4, memory=Memory(1024, "node")),
    "--mem-per-cpu=500M -n2": Request(2, memory=Memory(500)),
    "--mem=1500K": Request(memory=Memory(2, "node")),
    "--exclusive": Request(exclusive=True),
    "--exclusive=user -n2": Request(2, exclusive=True),
    "-p gpu --gres=gpu:1": Request(gpus=Gpus(1, "node"), partition="gpu"),
    "-p gpu --gres=gpu:a100:2": Request(gpus=Gpus(2, "node", "a100"), partition="gpu"),
    "-p gpu --gpus=2 -N1": Request(gpus=Gpus(2), nodes_max=1, partition="gpu"),
    "-p gpu --gpus-per-node=v100:1": Request(gpus=Gpus(1, "node", "v100"), partition="gpu"),
    "-p gpu -n2 --gpus-per-task=1": Request(2, gpus=Gpus(1, "task"), partition="gpu"),
    "-p gpu --gpus=a100:2 --mem-per-gpu=2G": Request(
        gpus=Gpus(2, type="a100"), memory=Memory(2048, "gpu"), partition="gpu"
    ),
    "-p gpu --gpus=2 --cpus-per-gpu=3": Request(1, 6, gpus=Gpus(2), partition="gpu"),
    "-p gpu -n4 --ntasks-per-gpu=2": Request(4, gpus=Gpus(2), partition="gpu"),
    "-p gpu --ntasks-per-gpu=2 --gpus=1": Request(2, gpus=Gpus(1), partition="gpu"),
    "-C skylake&avx512": Request(features=("skylake", "avx512")),
    "-L matlab,fluent:3": Request(licences=(("matlab", 1), ("fluent", 3))),
    "--no-requeue -t 1-0": Request(wall_time=86400.0, requeue=False),
    "--container=image.sif": Request(image="image.sif"),  # a word, and no file
    "-p main,short -t 5": Request(partition="main,short", wall_time=300.0),
    "--comment=x --nice=10 --mail-type=END -x n1 --hint=nomultithread -m cyclic --prefer=skylake": Request(),
}


@pytest.mark.parametrize("words", ASKED)
def test_options_in_force_are_read(words: str) -> None:
    """As Slurm has counted them where it prints no number of tasks."""
    assert read_options(JOBS[words]["options"], JOBS[words]["processors"]) == ASKED[words]


@pytest.mark.parametrize("words", sorted(JOBS.keys() - UNSAID.keys()))
def test_both_programs_say_the_same(words: str) -> None:
    """But for what Slurm fills in."""
    job = JOBS[words]
    fields = read_job(job["fields"])
    shown, said = read_fields(fields), read_options(job["options"], job["processors"])
    memory = said.memory or Memory(500 if fields["Partition"] == "gpu" else 100)
    filled = replace(said, partition="", memory=memory, requeue=shown.requeue)
    assert replace(filled, wall_time=shown.wall_time) == shown
    assert said.wall_time in {None, shown.wall_time}


@pytest.mark.parametrize("words", UNSAID)
def test_a_job_of_which_not_all_can_be_said_is_not_read(words: str) -> None:
    """The option is named."""
    with pytest.raises(UnsaidError) as caught:
        read_fields(read_job(JOBS[words]["fields"]))
    assert caught.value.option == UNSAID[words]
    assert str(caught.value).startswith(f"--{UNSAID[words]}: ")


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"gres": "gres:gpu:1,gres:disk:2"}, "gres"),
        ({"gres": "gres:disk:2"}, "gres"),
        ({"gpus": "a100:1,v100:2"}, "gpus"),
        ({"gpus-per-node": "1", "gpus-per-task": "1"}, "gpus-per-task"),
        ({"licenses": "a:1|b"}, "licenses"),
        ({"mem": "much"}, "mem"),
        ({"ntasks": "four"}, "ntasks"),
        ({"nodes": "many"}, "nodes"),
        ({"signal": "B:"}, "signal"),
        ({"time": "soon"}, "time"),
        ({"ntasks": "3", "gpus": "2", "cpus-per-gpu": "2"}, "cpus-per-gpu"),
        ({"cpus-per-gpu": "2"}, "cpus-per-gpu"),
        ({"ntasks-per-gpu": "2"}, "ntasks-per-gpu"),
        ({"ntasks-per-gpu": "2", "gpus": "2", "ntasks": "3"}, "ntasks-per-gpu"),
    ],
)
def test_an_option_that_cannot_be_said_is_named(options: dict[str, str], option: str) -> None:
    """Nothing is made of a part of it."""
    with pytest.raises(UnsaidError) as caught:
        read_options(options)
    assert caught.value.option == option


def test_a_contradiction_is_no_request() -> None:
    """Slurm takes it, and gives the job other tasks than it says."""
    with pytest.raises(RequestError, match="8 tasks do not go on 2 nodes"):
        read_options({"ntasks": "8", "nodes": "2", "ntasks-per-node": "2"})


@pytest.mark.parametrize(
    ("options", "cores"),
    [
        ({"gpus": "4", "ntasks": "2"}, 6),
        ({"gpus-per-task": "2", "ntasks": "2"}, 6),
        ({"gpus-per-node": "4", "ntasks": "4", "nodes": "2"}, 6),
        ({"gres": "gres:gpu:2"}, 6),
    ],
)
def test_cores_of_gpus_are_those_of_the_tasks_that_have_them(
    options: dict[str, str], cores: int
) -> None:
    """Two GPUs a task here, of three cores each."""
    assert read_options({**options, "cpus-per-gpu": "3"}).cores_per_task == cores


def test_slurms_word_for_no_resource_is_no_type_of_gpu() -> None:
    """Beside GPUs that another option asks for as well."""
    assert read_options({"gres": "none", "ntasks": "2"}) == Request(2)
    assert read_options({"gres": "NONE", "gpus": "2"}).gpus == Gpus(2)


def test_values_are_read_as_slurm_prints_them() -> None:
    """Units of 1024, and defaults as on its page of sbatch."""
    texts = ("0?", "100", "1500K", "1G", "1.50G", "2T", "500MB")
    assert [read_memory(text) for text in texts] == [0, 100, 2, 1024, 1536, 2 * 1024**2, 500]
    assert [read_nodes(text) for text in ("2", "2-4", "1k")] == [(2, 2), (2, 4), (1024, 1024)]
    assert read_gpus("gres/gpu:a100:2", "node") == Gpus(2, "node", "a100")
    assert read_gpus("a100", "job") == Gpus(1, "job", "a100")
    assert read_gpus("gres:gpu", "node") == Gpus(1, "node")
    assert read_gpus("0", "job") is None
    assert read_signal("B:USR1@90") == ("B:USR1", 90.0)
    assert read_signal("R:10") == ("10", 60.0)
    assert read_signal("B:sigusr1@90") == ("B:USR1", 90.0)  # as sbatch takes it
    assert read_features("a,b&c-1.2") == ("a", "b", "c-1.2")
    assert read_licences("matlab@server:2;fluent") == (("matlab@server", 2), ("fluent", 1))
    assert read_options({"mem": "0?", "ntasks": "2"}) == Request(2, exclusive=True)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(4), "--ntasks=4"),
        (Request(4, 2, nodes_min=2), "--ntasks=4 --cpus-per-task=2 --nodes=2-4"),
        (Request(4, nodes_min=2, nodes_max=9), "--ntasks=4 --nodes=2-4"),
        (Request(4, nodes_min=4, tasks_per_node=1), "--ntasks=4 --nodes=4 --ntasks-per-node=1"),
        (Request(4, nodes_min=2, tasks_per_node=4), "--ntasks=4 --nodes=2-4"),
        (Request(gpus=Gpus(2), nodes_max=1), "--ntasks=1 --nodes=1 --gpus-per-task=2"),
        (Request(2, gpus=Gpus(3)), "--ntasks=2 --nodes=1 --gres=gpu:3"),
        (Request(exclusive=True), "--ntasks=1 --mem=0 --exclusive"),
        (Request(signal="B:USR1", signal_before=90.0), "--ntasks=1 --signal=B:USR1@90"),
        (
            Request(2, gpus=Gpus(1, "task", "a100"), memory=Memory(2048, "gpu")),
            "--ntasks=2 --mem-per-gpu=2048M --gpus-per-task=a100:1",
        ),
        (
            Request(features=("a", "b"), licences=(("m", 2),), image="/i"),
            "--ntasks=1 --constraint=a&b --licenses=m:2 --container=/i",
        ),
    ],
)
def test_slurm_is_asked_for_what_a_request_says(request_: Request, words: str) -> None:
    """By its own options, without those that are the site's to say."""
    assert shape_options(request_) == words.split()


@given(requests())
def test_what_is_asked_of_slurm_is_read_again(request_: Request) -> None:
    """So a job that travels on asks for the same; GPUs of a job are those of its tasks or its node then."""
    if request_.on_one_node:
        # Else nothing runs it.
        assume(request_.nodes_min == 1 and (request_.tasks_per_node or 99) >= request_.tasks)
    options = dict(word.removeprefix("--").partition("=")[::2] for word in shape_options(request_))
    again = read_options(options)
    most = min(request_.nodes_max or request_.tasks, request_.tasks)
    if request_.on_one_node:
        most = 1
    assert again.nodes_max in {most, None if request_.nodes_min == 1 else most}
    each = request_.tasks_per_node
    assert again == replace(
        request_,
        gpus=request_.node_gpus(),
        nodes_max=again.nodes_max,
        tasks_per_node=each if each is not None and each < request_.tasks else None,
    )


@given(
    st.dictionaries(
        st.sampled_from(["mem", "gres", "gpus", "nodes", "signal", "licenses", "constraint"]),
        st.text(alphabet="abgpures:,/0123456789KMG.@-&|[]*? ", max_size=12),
    )
)
def test_no_text_is_read_by_halves(options: dict[str, str]) -> None:
    """It is a request, or an error that says which option."""
    assert _option_unsaid(options) in {"", "a contradiction", *options}


def _option_unsaid(options: dict[str, str]) -> str:
    try:
        read_options(options)
    except UnsaidError as error:
        return error.option
    except RequestError:
        return "a contradiction"
    return ""
