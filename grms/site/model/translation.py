"""What names of partners mean at this site: partitions, accounts, features and others. Pure.

Each site's own file says it for its partners' jobs (`[guests.translate]`). What has no meaning here is declined; so a
name of a partner never reaches the batch system by chance.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from lrms_sim.util.errors import HanseError
from lrms_sim.workload.requests import Request

ANY: Final = "*"
"""As a key: every name that has no entry of its own; as a value: the same name."""

_SAME: Final = {ANY: ANY}


class NoMeaningError(HanseError):
    """A name in a partner's request has no meaning here."""


@dataclass(frozen=True, slots=True)
class Translation:
    """Tables of names, by what they name.

    A key is a partner's name for something, `PARTNER:NAME` for that of one partner alone, `*`, or `PARTNER:*`; the most
    exact counts. A name that has a colon itself is `*:NAME` for all partners, unless it is an address (`docker://…`): else
    a partner could write what is another's alone. A value is the name here, `*` for the same name, or empty: the job goes without, and the site's own
    setting counts. Features and types of GPUs without a table are those that a federation has agreed on.
    """

    partitions: Mapping[str, str] = field(default_factory=dict)
    accounts: Mapping[str, str] = field(default_factory=dict)
    qos: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, str] = field(default_factory=lambda: _SAME)
    gpus: Mapping[str, str] = field(default_factory=lambda: _SAME)
    licences: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)

    def local(
        self, partner: str, request: Request, guarded: frozenset[str] = frozenset()
    ) -> Request:
        """Returns what a partner's job asks for, in the names of this site.

        `guarded` are features here that keep jobs away which do not name them: a partner's job has one only where a
        table says so, by that name.

        Raises:
            NoMeaningError: one of its names has no meaning here.
        """
        for name in guarded.intersection(request.features):
            key = self._key("features", partner, name)
            if key is not None and key.endswith(ANY) and self.features[key] == ANY:
                raise NoMeaningError(f"feature {name} of {partner} has no meaning here")
        gpus = request.gpus
        if gpus is not None and gpus.type:
            gpus = replace(gpus, type=self._one("gpus", partner, gpus.type))
        return replace(
            request,
            partition=self._any_of(partner, request.partition),
            account=self._one("accounts", partner, request.account),
            qos=self._one("qos", partner, request.qos),
            features=self._all("features", partner, request.features),
            gpus=gpus,
            licences=self._licences(partner, request.licences),
            image=self._one("images", partner, request.image),
            modules=self._all("modules", partner, request.modules),
        )

    def _any_of(self, partner: str, names: str) -> str:
        # A job that several partitions could run needs one that means something.
        if not names:
            return ""
        found = [self._look_up("partitions", partner, name) for name in names.split(",")]
        known = [name for name in found if name is not None]
        if not known:
            raise NoMeaningError(f"partition {names} of {partner} has no meaning here")
        return "" if "" in known else ",".join(dict.fromkeys(known))

    def _licences(
        self, partner: str, licences: tuple[tuple[str, int], ...]
    ) -> tuple[tuple[str, int], ...]:
        # Two names may mean the same here, of which both numbers are needed.
        found: Counter[str] = Counter()
        for name, count in licences:
            if here := self._one("licences", partner, name):
                found[here] += count
        return tuple(found.items())

    def _all(self, what: str, partner: str, names: tuple[str, ...]) -> tuple[str, ...]:
        found = (self._one(what, partner, name) for name in names)
        return tuple(dict.fromkeys(name for name in found if name))

    def _one(self, what: str, partner: str, name: str) -> str:
        if not name:
            return ""
        found = self._look_up(what, partner, name)
        if found is None:
            shown = "QOS" if what == "qos" else what.removesuffix("s")
            raise NoMeaningError(f"{shown} {name} of {partner} has no meaning here")
        return found

    def _look_up(self, what: str, partner: str, name: str) -> str | None:
        table: Mapping[str, str] = getattr(self, what)
        key = self._key(what, partner, name)
        if key is None:
            return None
        return name if table[key] == ANY else table[key]

    def _key(self, what: str, partner: str, name: str) -> str | None:
        # The entry of a table that says what a name means.
        table: Mapping[str, str] = getattr(self, what)
        before, colon, after = name.partition(":")
        of_all = name if before and (not colon or after.startswith("//")) else f"{ANY}:{name}"
        keys = (f"{partner}:{name}", of_all, f"{partner}:{ANY}", ANY)
        return next((key for key in keys if key in table), None)


NO_TRANSLATION: Final = Translation()
"""Of a site whose file has no tables: only what names nothing of a partner's own has a meaning."""
