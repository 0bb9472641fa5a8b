"""The compiled part of the SWF reader: bytes -> numbers, one pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from escala.compile import compiled, inlined

# SWF fields (from 0) that the reader needs, in the order of the rows of `numbers`.
FIELDS = (0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
LEAST_FIELDS = 18

_ROW_OF_FIELD = np.full(LEAST_FIELDS, -1, dtype=np.int64)
_ROW_OF_FIELD[list(FIELDS)] = np.arange(len(FIELDS))
_POWERS = np.array([float(10**k) for k in range(23)])  # exact in binary64

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@inlined
def _number(text: Bytes, position: int, is_id: bool, powers: Floats) -> tuple[int, float]:
    """Where a token ends, and its value; NaN where that is not exact, and for an id that is not kept as it is
    written."""
    negative = text[position] == 45
    if negative or text[position] == 43:
        position += 1
    first = text[position]
    mantissa = np.int64(0)
    digits = 0
    point = -1
    plain = True
    while True:
        byte = text[position]
        if 48 <= byte <= 57:
            if digits < 18:
                mantissa = mantissa * 10 + np.int64(byte - 48)
            digits += 1
        elif byte == 46 and point < 0:
            point = digits
        elif byte == 32 or byte == 9 or byte == 10 or byte == 13:
            break
        else:
            plain = False
        position += 1
    if is_id and (point >= 0 or negative or (first == 48 and digits > 1)):
        plain = False
    if not plain or not 0 < digits <= 18 or mantissa > 9007199254740992:
        return position, np.nan
    value = np.float64(mantissa) / powers[digits - point if point >= 0 else 0]
    return position, -value if negative else value


@compiled
def scan(
    text: Bytes,
    row_of_field: npt.NDArray[np.int64],
    powers: Floats,
    numbers: Floats,
    starts: Ints,
    lines: Ints,
    comments: Ints,
) -> tuple[int, int, int]:
    """Job lines of `text`, which ends with a line break.

    `numbers` [field, job]: the value where it is exact (at most 2^53 before the decimal point is placed), else NaN: the
    caller looks at the token, which begins at `starts` [field, job]. `lines` [job]: line number from 0. `comments`:
    where the comment lines begin. Returns (jobs, comments, first line with too few fields or -1).
    """
    jobs = n_comments = line = position = 0
    size = len(text)
    while position < size:
        field = 0
        while True:
            while text[position] == 32 or text[position] == 9 or text[position] == 13:
                position += 1
            byte = text[position]
            if byte == 10:
                break
            if field == 0 and (byte == 59 or byte == 35):  # ; #
                comments[n_comments] = position
                n_comments += 1
                while text[position] != 10:
                    position += 1
                break
            row = row_of_field[field] if field < len(row_of_field) else -1
            if row < 0:
                while text[position] != 32 and text[position] != 9 and text[position] != 10 and text[position] != 13:
                    position += 1
            else:
                starts[row, jobs] = position
                position, numbers[row, jobs] = _number(text, position, row == 0, powers)
            field += 1
        if 0 < field < len(row_of_field):
            return jobs, n_comments, line
        if field > 0:
            lines[jobs] = line
            jobs += 1
        position += 1
        line += 1
    return jobs, n_comments, -1


class Scanned(NamedTuple):
    """Job lines of a text."""

    numbers: Floats  # [field, job]; NaN: look at the token
    starts: Ints  # [field, job], byte where the token begins
    lines: Ints  # [job], line number from 0
    comments: Ints  # bytes where comment lines begin
    short: int  # first line with too few fields, or -1


def scan_text(text: bytes) -> Scanned:
    """The job lines of whole lines of SWF."""
    buffer = np.frombuffer(text, dtype=np.uint8)
    most = int(np.count_nonzero(buffer == 10))
    numbers = np.empty((len(FIELDS), most), dtype=np.float64)
    starts = np.empty((len(FIELDS), most), dtype=np.int32)
    lines = np.empty(most, dtype=np.int32)
    comments = np.empty(most, dtype=np.int32)
    jobs, n_comments, short = scan(buffer, _ROW_OF_FIELD, _POWERS, numbers, starts, lines, comments)
    return Scanned(numbers[:, :jobs], starts[:, :jobs], lines[:jobs], comments[:n_comments], short)
