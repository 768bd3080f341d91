"""A plain queue before each link, that looks at everything at every moment."""

from dataclasses import dataclass, field


@dataclass
class PlainLinks:
    """Transfers over links that carry one at a time; each takes a second for each byte.

    Attributes:
        waiting: by key the link, the sizes of its files, and the order.
        there: since when each file is where it was sent.
        taken: until when each link is taken.
        begun: moment, key and files of each transfer, in order of time.
    """

    waiting: dict[
        tuple[str, str, str],
        tuple[tuple[str, str], dict[tuple[str, str, str], float], tuple[float, int]],
    ] = field(default_factory=dict)
    there: dict[tuple[str, str, str], float] = field(default_factory=dict)
    taken: dict[tuple[str, str], float] = field(default_factory=dict)
    begun: list[tuple[float, tuple[str, str, str], frozenset[tuple[str, str, str]]]] = field(
        default_factory=list
    )

    def go_on(self, now: float) -> None:
        """Begins what can begin at a moment."""
        for link in sorted({link for link, _, _ in self.waiting.values()}):
            mine = sorted(
                (order, key) for key, (other, _, order) in self.waiting.items() if other == link
            )
            for _, key in mine:
                if self.taken.get(link, now) > now:
                    break
                _, sizes, _ = self.waiting.pop(key)
                missing = [file for file in sizes if file not in self.there]
                if missing:
                    end = now + sum(sizes[file] for file in missing)
                    self.taken[link] = end
                    self.there |= dict.fromkeys(missing, end)
                    self.begun.append((now, key, frozenset(missing)))

    @property
    def next_time(self) -> float:
        """When the next link is free for which something waits; infinite for never."""
        links = [link for link, _, _ in self.waiting.values()]
        return min((self.taken.get(link, -1.0) for link in links), default=float("inf"))
