"""The electricity of a machine, as options of a command."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrms_sim.util.option_fields import option

if TYPE_CHECKING:
    from lrms_sim.electricity.power import Supply
    from lrms_sim.electricity.series import Series


@dataclass(frozen=True, slots=True)
class ElectricityOptions:
    """What a machine pays and draws.

    Attributes:
        price: per MWh, a CSV file or a number; without it nothing is known.
        carbon: grams of carbon dioxide per kWh; the same.
        price_zone: where times in the files are local that have no offset from UTC.
        price_begin: the moment that falls on second 0; the first moment of each file if left out.
    """

    price: str | None = option(
        "Of electricity per MWh: a CSV file with the columns time and value, or a number.",
        default=None,
        metavar="FILE|NUMBER",
    )
    carbon: str | None = option(
        "Grams of carbon dioxide per kWh: the same.", default=None, metavar="FILE|NUMBER"
    )
    price_zone: str | None = option(
        "Time zone of times in these files that have no offset from UTC, such as Europe/Berlin.",
        default=None,
        metavar="ZONE",
    )
    price_begin: str | None = option(
        "Moment that falls on second 0 of the log.  [default: the first one in each file]",
        default=None,
        metavar="TIME",
    )
    idle_watts: float = option("Of a node that is on and idle.", default=100.0, metavar="W")
    busy_watts: float = option("Of a node that is busy.", default=200.0, metavar="W")
    processors_per_node: int = option("1: watts are per processor.", default=1, metavar="N")
    power_off: bool = option("Nodes without a job are off.", default=False)

    def supply(self) -> "Supply | None":
        """Returns what is said; `None` without a price.

        Raises:
            ValueError: a file or a number cannot be used, or something is said without a price.
            OSError: a file cannot be read.
        """
        from lrms_sim.electricity.power import Power, Supply  # noqa: PLC0415  # slow to import

        if self.price is None:
            if self.carbon is not None:
                raise ValueError("--carbon goes with --price")
            return None
        power = Power(self.idle_watts, self.busy_watts, self.processors_per_node, self.power_off)
        carbon = None if self.carbon is None else self._series(self.carbon, 0.0)
        return Supply(self._series(self.price, -1e9), carbon, power)

    def _series(self, said: str, least: float) -> "Series":
        from lrms_sim.electricity.csv_files import moment_of, read_series  # noqa: PLC0415  # same
        from lrms_sim.electricity.series import Series  # noqa: PLC0415  # same
        from lrms_sim.scheduling.situations import zone_named  # noqa: PLC0415  # same

        try:
            value = float(said)
        except ValueError:
            found = read_series(said, time_zone=self.price_zone, least=least)
            zone = None if self.price_zone is None else zone_named(self.price_zone)
            begin = found.first if self.price_begin is None else moment_of(self.price_begin, zone)
            return found.shifted(-begin)
        if not least <= value < 1e9:
            raise ValueError(
                f"{said} is no price and no carbon intensity; at least {least:g} is possible"
            )
        return Series.constant(value)
