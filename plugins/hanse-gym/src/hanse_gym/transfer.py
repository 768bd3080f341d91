"""An environment in which an agent is the transfer policy of one site that exchanges jobs with others.

The replay is that of `grms.federation`; it runs in a thread that waits for the agent at each question.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Final, SupportsInt

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from grms.federation.federation import replay
from grms.federation.sites import Site
from grms.policy.transfer import TransferPolicy, TransferQuestion, UserDefinedTransfer
from hanse_gym.sequences import SHARES, Split
from lrms_sim.analysis.metrics import awrt
from lrms_sim.machine.machine import simulate
from lrms_sim.workload.schedule import Schedule

OBSERVED: Final = (
    "own", "job_processors", "requested_time", "processors_free", "processors_waiting", "fits", "offered", "accepted",
    "balance",
)  # fmt: skip
"""What an agent sees, number by number; `TransferEnv` says what each is."""

Observation = npt.NDArray[np.float32]
Agent = Callable[[Observation], int]

_TIME_SCALE: Final = float(np.log1p(1e7))
_DRAWS: Final = 100


class _Ended(Exception):  # noqa: N818  # no error: the episode was left
    pass


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of the same length from one part of the time that some sites' workloads have in common.

    Training has the first 60 % of that time, validation the next 20 %, the test the last 20 %. A window has the jobs
    that are submitted in it, and begins with empty machines.

    Attributes:
        sites: with their workloads and policies.
        seconds: length of a window.
        split: the part.
    """

    sites: tuple[Site, ...]
    seconds: float
    split: Split = "train"

    def __post_init__(self) -> None:
        low, high = self.range
        if not high - low >= self.seconds > 0:
            raise ValueError(
                f"the {self.split} part is {max(high - low, 0):g} s long; a window of {self.seconds:g} s is none of it"
            )

    @property
    def range(self) -> tuple[float, float]:
        """When the part begins and ends, seconds on the workloads' clock."""
        if any(len(site.jobs) == 0 for site in self.sites):
            return 0.0, 0.0
        start = max(float(site.jobs.submit_time[0]) for site in self.sites)
        length = min(float(site.jobs.submit_time[-1]) for site in self.sites) - start
        low, high = SHARES[self.split]
        return start + low * length, start + high * length

    def draw(self, random: np.random.Generator) -> float:
        """Returns the beginning of a random window."""
        low, high = self.range
        return float(random.uniform(low, high - self.seconds))

    def fixed(self, count: int, seed: int) -> list[float]:
        """Returns the beginnings of `count` windows, the same for the same seed, workloads, length and split."""
        random = np.random.default_rng(seed)
        return [self.draw(random) for _ in range(count)]

    def cut(self, start: float) -> list[Site]:
        """Returns the sites with the jobs of the window that begins then."""
        return [
            replace(
                site,
                jobs=site.jobs.select(
                    (site.jobs.submit_time >= start)
                    & (site.jobs.submit_time < start + self.seconds)
                ),
            )
            for site in self.sites
        ]


class TransferEnv(gymnasium.Env[Observation, SupportsInt]):
    """Decides for one site which own jobs to offer and which of its partners' offers to take.

    An action is 1 or 0: whether the site wants to run the job itself, the question of every transfer policy. An
    observation has no more than a site may use by the information policy, nine numbers in 0 to 1:

    - `own`: 1 for a job of its own users, 0 for an offer;
    - `job_processors`, `processors_free`: shares of its machine;
    - `requested_time`: ln(1 + seconds) / ln(1 + 10⁷);
    - `processors_waiting`: w / (w + 1), w as a share of its machine;
    - `fits`: whether there is room for the job now;
    - `offered`: of the requested work of its own questions, the share that it did not want;
    - `accepted`: of the requested work that was offered to it, the share that it wanted;
    - `balance`: wanted work of others / (that + own work that it did not want), 0.5 at first.

    The last three are what it has noted of its own answers in this episode. The last step alone has a reward, 1 − AWRT
    of its users' jobs / AWRT of the same jobs without exchange: more than 0 if exchange pays. `info` then has
    both, in seconds; `schedule`, for judges, has all jobs of all sites.

    Args:
        windows: the sites, their workloads and the policies of the others.
        site: name of the agent's site.

    Raises:
        ValueError: there is no such site, or no other one.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own form

    def __init__(self, windows: Windows, site: str) -> None:
        names = [each.name for each in windows.sites]
        if site not in names:
            raise ValueError(f"site is {site!r}; it must be one of {', '.join(names)}")
        if len(names) < 2:
            raise ValueError("one site has nobody to exchange jobs with")
        self.windows = windows
        self.number = names.index(site)
        self.observation_space: spaces.Space[Any] = spaces.Box(
            0.0, 1.0, (len(OBSERVED),), np.float32
        )
        self.action_space = spaces.Discrete(2)
        self.schedule: Schedule | None = None
        self._running: _Running | None = None
        self._alone = 0.0
        self._seen = np.zeros(len(OBSERVED), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins a random window, or the one from `options["start"]` on, seconds on the workloads' clock.

        Raises:
            ValueError: the site is asked nothing in the named window, or in 100 random ones.
        """
        super().reset(seed=seed)
        self.close()
        chosen = (options or {}).get("start")
        for _ in range(_DRAWS if chosen is None else 1):
            start = self.windows.draw(self.np_random) if chosen is None else float(chosen)
            sites = self.windows.cut(start)
            if len(sites[self.number].jobs) == 0:
                continue
            self._running = running = _Running(sites, self.number)
            seen = running.next_question()
            if seen is not None:
                self._alone = _awrt_alone(sites[self.number])
                self._seen = seen
                return seen, {"start": start}
            running.leave()
            self._running = None
        raise ValueError(f"site {self.windows.sites[self.number].name!r} is asked nothing")

    def step(self, action: SupportsInt) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answers the question that was seen last.

        Raises:
            ValueError: the action is neither 0 nor 1.
            RuntimeError: the window is over.
        """
        if self._running is None:
            raise RuntimeError("no window is under way; reset first")
        answer = int(action)
        if answer not in {0, 1}:
            raise ValueError(f"action is {answer}; it must be 0 or 1")
        self._running.answers.put(answer == 1)
        seen = self._running.next_question()
        if seen is not None:
            self._seen = seen
            return seen, 0.0, False, False, {}
        self.schedule = self._running.schedule
        self._running.leave()
        self._running = None
        assert self.schedule is not None, "a replay without an error has a schedule"
        own = awrt(self.schedule, self.number)
        told = {"awrt": own, "awrt_alone": self._alone}
        return self._seen, 1.0 - own / self._alone, True, False, told

    def close(self) -> None:
        """Ends the replay of a window that is not over."""
        if self._running is not None:
            self._running.leave()
            self._running = None


class _Running:
    """A replay in a thread; its questions come out, and answers go in."""

    def __init__(self, sites: Sequence[Site], number: int) -> None:
        self.questions: SimpleQueue[Observation | BaseException | None] = SimpleQueue()
        self.answers: SimpleQueue[bool | None] = SimpleQueue()
        self.schedule: Schedule | None = None
        # Requested work, by own and wanted.
        self._work = np.zeros((2, 2))
        self._left = False
        policy = UserDefinedTransfer(self)
        home = sites[number]
        policies: Mapping[str, TransferPolicy] = {
            site.name: policy for site in sites if site is not home
        }
        self._sites = [
            replace(site, transfer_policies=policies) if site is home else site for site in sites
        ]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def next_question(self) -> Observation | None:
        """Returns what is asked next, `None` at the end of the replay, whose error is raised here."""
        found = self.questions.get()
        if isinstance(found, BaseException):
            self.leave()
            raise found
        return found

    def leave(self) -> None:
        """Ends the thread."""
        self.answers.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            self.schedule = replay(self._sites)
        except _Ended:
            return
        except BaseException as error:  # noqa: BLE001  # raised again in the thread of the agent
            self.questions.put(error)
        else:
            self.questions.put(None)

    def accept(self, question: TransferQuestion) -> bool:
        """Asks the agent; called in the thread of the replay."""
        if self._left:
            raise _Ended
        self.questions.put(self._observation(question))
        answer = self.answers.get()
        if answer is None:
            self._left = True
            raise _Ended
        self._work[int(question.own), int(answer)] += (
            question.requested_time * question.job_processors
        )
        return answer

    def _observation(self, question: TransferQuestion) -> Observation:
        waiting = question.processors_waiting / question.processors
        (declined, taken), (offered, kept) = self._work.tolist()
        return np.array(
            (
                question.own,
                min(question.job_processors / question.processors, 1.0),
                min(np.log1p(question.requested_time) / _TIME_SCALE, 1.0),
                question.processors_free / question.processors,
                waiting / (waiting + 1.0),
                question.fits,
                _share(offered, kept, 0.0),
                _share(taken, declined, 0.0),
                _share(taken, offered, 0.5),
            ),
            np.float32,
        )


def _share(part: float, rest: float, without: float) -> float:
    return part / (part + rest) if part + rest > 0 else without


def _awrt_alone(site: Site) -> float:
    return awrt(simulate(site.jobs, site.processors, site.discipline))


def constant_agents(seed: int = 0) -> dict[str, Agent]:
    """Returns the agents that one that learned has to beat; `keep` is a site by itself."""
    random = np.random.default_rng(seed)
    return {
        "keep": lambda seen: int(seen[0]),
        "always": lambda _: 1,
        "never": lambda _: 0,
        "random": lambda _: int(random.integers(2)),
        "accept-when-fit": lambda seen: int(seen[1] <= seen[3]),
    }


@dataclass(frozen=True, slots=True)
class Judged:
    """What an agent reaches in one window.

    Attributes:
        own: AWRT of its users' jobs over that without exchange; less is better.
        worst: the largest of these ratios of its partners, of those that have jobs.
    """

    own: float
    worst: float


def judged(env: TransferEnv, agent: Agent, starts: Iterable[float]) -> list[Judged]:
    """Lets an agent decide in windows by their beginnings; the others' ratios are known to the judge alone."""
    found = []
    for start in starts:
        seen, _ = env.reset(options={"start": start})
        ended, reward = False, 0.0
        while not ended:
            seen, reward, ended, _, _ = env.step(agent(seen))
        assert env.schedule is not None, "the window is over"
        ratios = [
            awrt(env.schedule, number) / _awrt_alone(site)
            for number, site in enumerate(env.windows.cut(start))
            if number != env.number and len(site.jobs)
        ]
        found.append(Judged(1.0 - reward, max(ratios, default=float("nan"))))
    return found
