"""Strict exchange on recorded traces: the figures of an independent program, to all digits."""

import json
import lzma
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from grms.federation.federation import Federation, Site
from grms.federation.sites import Checkpoints
from lrms_sim.scheduling.disciplines import discipline_by_name
from tests.grms.federation.strict_cases import POLICIES, outcome
from tests.grms.federation.test_fair_exchange_on_traces import figures
from tests.recorded import PROCESSORS, recorded

# Each federation, with the AWRT of its sites alone and under each rule, in seconds, how many jobs
# ran elsewhere, how many offers were made, how often a job was sent home, and processor hours lost
# with these. G0: no job checkpoints, G2: every second one of a site's own every hour, G1: all.
FIGURES: Final = """
-5 FCFS KTH+CTC alone 475699.8689 57897.7752
   C1      76685.0786 54940.7758 moved 7232 offers 826483 preempted 0 lost 0.0000
   G0      64496.5059 52275.3191 moved 15075 offers 289242 preempted 3069 lost 27676.9767
   G2      62309.2950 51820.8814 moved 15480 offers 265362 preempted 2975 lost 17496.4864
   G1      59651.5837 51259.6400 moved 15062 offers 250392 preempted 3024 lost 7201.9061
-5 EASY KTH+CTC alone 84052.9241 52323.9341
   C1      59693.6580 49667.6567 moved 6132 offers 83519 preempted 0 lost 0.0000
   G0      59911.2082 49471.6361 moved 6164 offers 82504 preempted 977 lost 9477.8900
   G2      59240.5466 49458.0513 moved 6133 offers 80352 preempted 929 lost 6355.9919
   G1      58497.6645 49360.3345 moved 5997 offers 78088 preempted 1000 lost 4186.2892
-6 FCFS KTH+CTC alone 100013.1841 59118.1572
   C1      71128.0082 55480.9818 moved 9148 offers 919262 preempted 0 lost 0.0000
   G0      61832.0905 54473.1924 moved 17671 offers 422153 preempted 5810 lost 37160.2136
   G2      57840.2319 52451.3104 moved 18205 offers 381712 preempted 5143 lost 19571.9400
   G1      57049.1776 51754.2336 moved 18249 offers 361366 preempted 5035 lost 8979.1292
-6 EASY KTH+CTC alone 68887.2377 53402.5232
   C1      59973.8314 51101.1293 moved 6831 offers 161206 preempted 0 lost 0.0000
   G0      59669.8452 51001.6783 moved 7816 offers 147387 preempted 2217 lost 19994.3619
   G2      57864.3044 50783.0928 moved 8024 offers 139876 preempted 1829 lost 11272.4389
   G1      56834.3182 50469.6393 moved 8332 offers 135803 preempted 1708 lost 5590.8219
-5 FCFS CTC+SDSC05 alone 57897.7752 56858.3509
   C1      47082.5721 53229.9149 moved 8660 offers 568101 preempted 0 lost 0.0000
   G0      46327.1891 49854.4833 moved 14505 offers 209815 preempted 2857 lost 81998.6742
   G2      44962.2705 48258.3275 moved 14661 offers 192721 preempted 2447 lost 48816.7206
   G1      43544.7124 47470.5023 moved 14265 offers 176383 preempted 2495 lost 19238.9225
-5 EASY CTC+SDSC05 alone 52323.9341 47775.3830
   C1      44565.1927 46193.4180 moved 5632 offers 72570 preempted 0 lost 0.0000
   G0      46086.5429 46495.6525 moved 6427 offers 63578 preempted 1472 lost 60443.7994
   G2      44267.1289 45227.4423 moved 6403 offers 53651 preempted 894 lost 26875.2239
   G1      43263.6268 45073.8700 moved 6085 offers 53131 preempted 895 lost 12762.4939
-6 FCFS CTC+SDSC05 alone 59118.1572 77472.7091
   C1      49250.8652 72060.4035 moved 10924 offers 1714071 preempted 0 lost 0.0000
   G0      46659.0648 63868.7303 moved 24309 offers 865589 preempted 9307 lost 171874.3861
   G2      44731.3469 59496.6375 moved 23598 offers 703185 preempted 8553 lost 102499.6603
   G1      43685.7973 56888.6097 moved 24608 offers 613386 preempted 8146 lost 40687.2736
-6 EASY CTC+SDSC05 alone 53402.5232 58605.0397
   C1      44574.8251 55024.6966 moved 10239 offers 245222 preempted 0 lost 0.0000
   G0      45301.4842 54726.9698 moved 11017 offers 212498 preempted 3214 lost 93514.7889
   G2      44698.3960 53990.6935 moved 11823 offers 201482 preempted 2591 lost 47524.1475
   G1      43734.7084 53646.9523 moved 11830 offers 196195 preempted 2572 lost 24875.3367
-6 FCFS KTH+CTC+SDSC05 alone 100013.1841 59118.1572 77472.7091
   C1      60354.0913 47113.5795 69450.0698 moved 21496 offers 2967414 preempted 0 lost 0.0000
   G0      59778.7369 46785.0226 61093.2077 moved 31816 offers 1273995 preempted 10155 lost 193959.6175
   G2      57243.2173 44731.5490 58649.0720 moved 32367 offers 1108825 preempted 8757 lost 108438.0833
   G1      54814.9784 42865.2744 55692.4101 moved 32106 offers 932074 preempted 8186 lost 41590.7203
-6 EASY KTH+CTC+SDSC05 alone 68887.2377 53402.5232 58605.0397
   C1      53235.4439 43785.2563 54191.4445 moved 17136 offers 407834 preempted 0 lost 0.0000
   G0      56979.0715 44847.0115 54691.2945 moved 17177 offers 361962 preempted 3593 lost 102801.1392
   G2      54692.8633 43925.3045 53977.8728 moved 16888 offers 341744 preempted 3413 lost 56132.1894
   G1      53526.8845 43369.6454 53440.4022 moved 17277 offers 333261 preempted 2829 lost 26604.0358
"""

RULES: Final = {"C1": ("C1", 0), "G0": ("G", 0), "G1": ("G", 1), "G2": ("G", 2)}
CASES_VARIABLE: Final = "HANSE_STRICT_CASES"
"""Names a file of federations with what an independent program makes of them, as JSON in xz."""


def _rows() -> Iterator[tuple[str, str, str, str]]:
    names = discipline = ""
    for line in FIGURES.strip().splitlines():
        if head := re.fullmatch(r"(-\d) (\w+) (\S+) alone .*", line):
            names = " ".join(site + head[1] for site in head[3].split("+"))
            discipline = head[2].lower()
        else:
            rule, _, expected = line.strip().partition(" ")
            yield names, discipline, rule, expected.strip()


@pytest.mark.traces
@pytest.mark.parametrize(("names", "discipline", "rule", "expected"), list(_rows()))
def test_figures_are_those_of_an_independent_program(
    names: str, discipline: str, rule: str, expected: str, traces_folder: Path
) -> None:
    """AWRT to four decimals, every offer, everyone who was sent home, and the work lost."""
    word, checkpoints = RULES[rule]
    sites = [
        Site(
            name,
            PROCESSORS[name.partition("-")[0]],
            recorded(traces_folder, name),
            discipline_by_name(discipline),
            {other: POLICIES[word] for other in names.split() if other != name},
            reoffer=900.0,
            checkpoint=Checkpoints(3600.0, checkpoints) if checkpoints else None,
        )
        for name in names.split()
    ]
    exchange = Federation(sites).exchange()
    preempted, lost = sum(exchange.preempted), sum(exchange.lost) / 3600
    found = f"{figures(exchange, len(sites))} preempted {preempted} lost {lost:.4f}"
    assert found == expected
    assert np.all(exchange.schedule.end_time >= exchange.schedule.start_time)


if CASES_VARIABLE in os.environ:

    def test_federations_that_were_handed_over_come_out_exactly() -> None:
        """Each case of the file; without one there is no such test, as others hold random federations against a program."""
        text = lzma.decompress(Path(os.environ[CASES_VARIABLE]).read_bytes())
        cases: list[dict[str, Any]] = json.loads(text)
        assert cases
        for case in cases:
            wanted = {name: case[name] for name in ("end", "site", "offers", "preempted", "lost")}
            assert outcome(case) == wanted, case["name"]
