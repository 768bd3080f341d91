"""Jobs with utilities: a job table, and what each completion is worth by its time."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from lrms_sim.malleable.options import check_choice
from lrms_sim.workload.frames import JOB_COLUMNS
from lrms_sim.workload.jobs import BoolArray, FloatArray, IndexArray, Int32Array, JobTable

Int8Array = npt.NDArray[np.int8]

SHAPES: Final = ("linear", "convex", "concave")
"""How a utility falls between plateau and zero: f, f², √f (paper, Figure 5), by number."""


@dataclass(frozen=True, slots=True, eq=False)
class UtilityJobs:
    """A workload whose jobs have a utility that falls with the time of their completion.

    A job of age z (completion minus submission, in units of its request) has the unit utility
    `weight` while z ≤ `plateau`, none from `zero` on, and between them `weight` · f, f falling
    from 1 to 0; never less than `weight` · `floor`. Its final utility is that times its
    processors and its ideal run time (Vengerov, section 2 and Figure 1, where plateau is 1, zero
    2, weight 1 and floor 0).

    All arrays are one-dimensional, contiguous, read-only, with one row for each job.

    Attributes:
        jobs: submissions, widths, requests and true run times. A run time is what a job takes
            on all of its processors, the *ideal* one; a policy sees requests alone.
        weight: shape (n,), utility of a processor-second of ideal work; finite, at least 0.
        plateau: shape (n,), in requests; at least 0; infinite for a utility that never falls.
        zero: shape (n,), in requests; at least `plateau`, and finite where that is.
        floor: shape (n,), share of the full utility that is never lost; from 0 to 1.
        shape: shape (n,), index into `SHAPES`.
        processors_min: shape (n,), fewest processors on which a job can run, from 1 to its
            width; equal to its width for a rigid job.
    """

    jobs: JobTable
    weight: FloatArray
    plateau: FloatArray
    zero: FloatArray
    floor: FloatArray
    shape: Int8Array
    processors_min: Int32Array

    def __post_init__(self) -> None:
        types = {"shape": np.int8, "processors_min": np.int32}
        for each in fields(self)[1:]:
            given = np.asarray(getattr(self, each.name))
            dtype = types.get(each.name, np.float64)
            if given.shape != (len(self.jobs),):
                raise ValueError(
                    f"column {each.name} has shape {given.shape}, but there are "
                    f"{len(self.jobs)} jobs"
                )
            with np.errstate(invalid="ignore"):
                column = np.ascontiguousarray(given.astype(dtype))
            self._check(each.name, given, (column == given) | (given != given), "a whole number")  # noqa: PLR0124  # NaN, which the checks below name
            if column.flags.writeable:
                column = column.view()
                column.flags.writeable = False
            object.__setattr__(self, each.name, column)
        self.jobs.refuse_overruns("malleable jobs do not outlive their requests")
        self._check("weight", self.weight, np.isfinite(self.weight) & (self.weight >= 0), WEIGHT)
        self._check("plateau", self.plateau, self.plateau >= 0, "at least 0")
        falls = (self.zero >= self.plateau) & (np.isfinite(self.zero) | np.isinf(self.plateau))
        self._check("zero", self.zero, falls, ZERO)
        self._check("floor", self.floor, (self.floor >= 0) & (self.floor <= 1), FLOOR)
        known = (self.shape >= 0) & (self.shape < len(SHAPES))
        self._check("shape", self.shape, known, f"one of 0 to {len(SHAPES) - 1}")
        least = (self.processors_min >= 1) & (self.processors_min <= self.jobs.processors)
        self._check("processors_min", self.processors_min, least, "from 1 to the job's processors")

    def _check(self, name: str, column: npt.NDArray[Any], good: BoolArray, bound: str) -> None:
        if not good.all():
            row = int(np.argmin(good))
            raise ValueError(
                f"{name} of job {self.jobs.job_id[row]} (row {row}) is {column[row]}; "
                f"it must be {bound}"
            )

    @classmethod
    def of(
        cls,
        jobs: JobTable,
        *,
        weight: npt.ArrayLike = 1.0,
        plateau: npt.ArrayLike = 1.0,
        zero: npt.ArrayLike = 2.0,
        floor: npt.ArrayLike = 0.0,
        shape: npt.ArrayLike | str = 0,
        processors_min: npt.ArrayLike = 1,
    ) -> Self:
        """Gives every job of a table the same utility, or each its own if a column is given.

        A shape is an index or a name of `SHAPES`.

        Raises:
            ValueError: a promise of the class is broken.
        """
        if isinstance(shape, str):
            check_choice("shape", shape, SHAPES)
            shape = SHAPES.index(shape)
        given = (weight, plateau, zero, floor, shape, processors_min)
        columns = (
            np.full(len(jobs), one) if np.ndim(one) == 0 else np.asarray(one) for one in given
        )
        return cls(jobs, *columns)

    @classmethod
    def from_columns(cls, columns: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Builds a workload from the output of `columns`; rows are in the order of a `JobTable`.

        Raises:
            ValueError: a promise of a table or of the class is broken.
        """
        own = {name: column for name, column in columns.items() if name not in JOB_COLUMNS}
        return cls(JobTable(**{name: columns[name] for name in JOB_COLUMNS}), **own)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the columns by name, those of the job table first, without copying them."""
        own = {each.name: getattr(self, each.name) for each in fields(self)[1:]}
        return self.jobs.columns() | own

    def __len__(self) -> int:
        return len(self.jobs)

    def select(self, rows: IndexArray) -> Self:
        """Returns the rows of a boolean mask of shape (n,), or of increasing row numbers."""
        columns = (getattr(self, each.name)[rows] for each in fields(self)[1:])
        return type(self)(self.jobs.select(rows), *columns)

    def rigid(self) -> Self:
        """Returns the same jobs, none of which can be squeezed."""
        return replace(self, processors_min=self.jobs.processors)

    @property
    def possible(self) -> FloatArray:
        """Utility of each job if it ran at once on all of its processors, shape (n,).

        Its age is then its run time, which may be past a plateau below 1.
        """
        z = self.jobs.run_time / self.jobs.requested_time
        return self.unit_utility(z) * self.jobs.resource_consumption

    def unit_utility(self, age: npt.ArrayLike) -> FloatArray:
        """Returns the unit utility of each job, shape (n,), at an age in requests, a number or shape (n,)."""
        z = np.broadcast_to(np.asarray(age, np.float64), (len(self),))
        with np.errstate(divide="ignore", invalid="ignore"):
            f = (self.zero - z) / (self.zero - self.plateau)
        f = np.where(z <= self.plateau, 1.0, np.where(z >= self.zero, 0.0, f))
        f = np.choose(self.shape, (f, f * f, np.sqrt(f)))
        return self.weight * np.maximum(f, self.floor)


WEIGHT: Final = "finite and at least 0: the utility would rise with time"
ZERO: Final = "at least the plateau, and finite if that is: the utility would rise with time"
FLOOR: Final = "from 0 to 1"
