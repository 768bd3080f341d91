"""The broker's configuration file."""

import math
import time
from pathlib import Path

import pytest

from broker.config.config import BrokerConfig, load_config
from broker.model.network import Link, Network
from broker.util.errors import FileError, OutputError

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "broker.toml"
LEAST = 'listen.socket = "b.sock"\njournal.path = "b.journal"\n'


def test_the_example_is_what_the_program_takes_by_itself(tmp_path: Path) -> None:
    """Every value in it but the sites is the default, so the comments there tell the truth."""
    path = tmp_path / "broker.toml"
    path.write_text(LEAST)
    default, example = load_config(path), load_config(EXAMPLE)
    for name in ("clock", "cycle", "search", "simulation", "limits", "logging"):
        assert getattr(example, name) == getattr(default, name)
    assert [site.name for site in example.sites] == ["luebeck", "riga", "tartu"]


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """So the daemon finds them wherever it was started."""
    path = tmp_path / "broker.toml"
    path.write_text(LEAST + '[[sites]]\nname = "riga"\naddress = "unix:riga.sock"\n')
    config = load_config(path)
    assert config.listen.socket == str(tmp_path / "b.sock")
    assert config.journal.path == str(tmp_path / "b.journal")
    assert config.sites[0].address == f"unix:{tmp_path}/riga.sock"


WITH_TLS = """
[[sites]]
name = "a"
address = "unix:a"
tls = { authority = "a", certificate = "b", key = "c" }
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[cycle]\nevery_s = 0\n", ("cycle.every_s", "0", "more than 0")),
        ("[cycle]\nmargin_s = 1e-300\n", ("cycle.margin_s", "1e-300", "at least 0.1")),
        ("[cycle]\nislands = 0\n", ("cycle.islands", "0", "at least 1")),
        ("[cycle]\nislands = 257\n", ("cycle.islands", "257", "256")),
        ("[cycle]\nislands = 1.5\n", ("cycle.islands", "1.5", "whole number")),
        (
            "[cycle]\nislands = 3\n[search]\nworkers = 2\n",
            ("cycle.islands is 3", "search.workers", "2"),
        ),
        (
            "[cycle]\nislands = 3\n[search]\nevaluations = 2\n",
            ("cycle.islands is 3", "search.evaluations", "2"),
        ),
        ("[cycle]\nslots_s = 5\n", ("cycle.slots_s", "slot_s")),
        ("[search]\nbudget_s = 180\n", ("search.budget_s", "180", "planning slot")),
        ('[search]\nworkers = "two"\n', ("search.workers", "two", "whole number")),
        ("[clock]\nspeed = 5\n", ("speed", "scaled")),
        ('[clock]\nkind = "scaled"\n', ("origin",)),
        ('[[sites]]\nname = "a"\naddress = "a.example:7000"\n', ("a.example:7000", "tls")),
        ('[[sites]]\nname = "a"\naddress = "127.0.0.1:7000"\n', ("127.0.0.1:7000", "unix:PATH")),
        ('[[sites]]\nname = "a b"\naddress = "unix:a.sock"\n', ("a b", "letters, digits")),
        (WITH_TLS, ("unix:", "HOST:PORT")),
        ('[mqtt]\naddress = "mqtt.example:1883"\n', ("mqtt", "another machine", "TLS")),
        ('[mqtt]\naddress = "unix:m.sock"\n', ("mqtt", "HOST:PORT")),
        ('[mqtt]\naddress = "[::1]:1883"\npassword_file = "p"\n', ("password_file", "username")),
        ('[[sites]]\nname = "a"\naddress = "nowhere"\n', ("nowhere", "HOST:PORT")),
        ('[limits]\non_lost = "forget"\n', ("limits.on_lost", "forget", "wait")),
        ("[limits]\nsite_down_s = 10\nsite_lost_s = 5\n", ("site_lost_s", "5", "10")),
        ("[simulation]\nfailing = 1.5\n", ("simulation.failing", "1.5", "1")),
        ("[cycle]\nearly = 1\n", ("cycle.early", "is 1", "must be true or false")),
        (
            '[[sites]]\nname = "a"\naddress = "unix:a"\njobs = { processors = 1, performance = 1e-9 }\n',
            ("sites[0].jobs.performance", "1e-09", "at least 1e-06"),
        ),
    ],
)
def test_a_mistake_names_file_key_value_and_what_is_allowed(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    """Nobody has to guess."""
    path = tmp_path / "broker.toml"
    path.write_text(LEAST + text)
    with pytest.raises(FileError) as refused:
        load_config(path)
    for word in ("broker.toml", *words):
        assert word in str(refused.value)


def test_sites_have_names_of_their_own(tmp_path: Path) -> None:
    """Two of the same name are refused."""
    site = '[[sites]]\nname = "a"\naddress = "unix:a.sock"\n'
    path = tmp_path / "broker.toml"
    path.write_text(LEAST + site + site)
    with pytest.raises(FileError, match="'a' comes twice"):
        load_config(path)


def test_a_scaled_clock_begins_in_the_past(tmp_path: Path) -> None:
    """Its speed counts for the bound of the search, which is in real seconds."""
    path = tmp_path / "broker.toml"
    scaled = '[clock]\nkind = "scaled"\nspeed = 100\norigin = {}\n[search]\nbudget_s = {}\n'
    path.write_text(LEAST + scaled.format(time.time() - 10, 1.5))
    assert load_config(path).make_clock().now() >= 1000
    path.write_text(LEAST + scaled.format(time.time() - 10, 2.0))
    with pytest.raises(FileError, match=r"1\.8 real seconds"):
        load_config(path)
    path.write_text(LEAST + scaled.format(time.time() + 1000, 1.0))
    with pytest.raises(FileError, match="ahead"):
        load_config(path)


def test_islands_reach_the_planning(tmp_path: Path) -> None:
    """There is one where the file says nothing."""
    path = tmp_path / "broker.toml"
    assert load_config_of(path, LEAST).planning().islands == 1
    assert load_config_of(path, LEAST + "cycle.islands = 4\n").planning().islands == 4


def test_a_search_has_what_is_left_of_the_period(tmp_path: Path) -> None:
    """Where no budget is given; the period is the slot or the cycle, in real seconds."""
    path = tmp_path / "broker.toml"
    planning = load_config_of(path, LEAST).planning()
    assert (planning.seconds, planning.period) == (math.inf, 180)
    scaled = '[clock]\nkind = "scaled"\nspeed = 10\norigin = 1\n[cycle]\nevery_s = 100\n'
    planning = load_config_of(path, LEAST + scaled + "[search]\nbudget_s = 3\n").planning()
    assert (planning.seconds, planning.period) == (3, 10)


def test_a_long_path_of_a_socket_is_refused(tmp_path: Path) -> None:
    """The kernel would cut it."""
    path = tmp_path / "broker.toml"
    path.write_text(f'listen.socket = "{"x" * 100}"\njournal.path = "b"\n')
    with pytest.raises(FileError, match="longer than 100 bytes"):
        load_config(path)


def test_how_the_plan_is_published(tmp_path: Path) -> None:
    """Address, user and password as the files have them; a missing password is said."""
    path = tmp_path / "broker.toml"
    entry = '[mqtt]\naddress = "[::1]:1884"\nusername = "gorba"\npassword_file = "p"\n'
    path.write_text(LEAST + entry)
    mqtt = load_config(path).mqtt
    assert mqtt is not None
    with pytest.raises(OutputError, match="password"):
        mqtt.settings()
    (tmp_path / "p").write_text("secret\n")
    made = mqtt.settings()
    assert (made.host, made.port, made.user, made.password) == ("::1", 1884, "gorba", "secret")
    assert load_config_of(path, LEAST).mqtt is None


def load_config_of(path: Path, text: str) -> BrokerConfig:
    """Returns the configuration that a text is."""
    path.write_text(text)
    return load_config(path)


def test_a_network_is_planned_with(tmp_path: Path) -> None:
    """Resources may come later, so only the table itself is checked here."""
    path = tmp_path / "broker.toml"
    text = EXAMPLE.read_text(encoding="utf-8")
    path.write_text(f"{text}\n[network]\nbandwidth = 8\nsites = {{ x = ['alpha'] }}\n")
    assert load_config(path).settings().network == Network(Link(8.0), {"alpha": "x"})
    path.write_text(f'{text}\n[network]\nbandwidth = 8\ncontention = "link"\n')
    assert load_config(path).settings().network == Network(Link(8.0), contention="link")
    path.write_text(f"{text}\n[network]\nbandwidth = -8\n")
    with pytest.raises(FileError, match=r"network\.bandwidth: is -8; it must be at least 1e-06"):
        load_config(path)
    path.write_text(
        f"{text}\n[network]\nbandwidth = 1e-300\n"
    )  # files of a byte would never be there
    with pytest.raises(
        FileError, match=r"network\.bandwidth: is 1e-300; it must be at least 1e-06"
    ):
        load_config(path)
