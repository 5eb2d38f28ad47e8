"""Conversion between text and float32: word-vector lines, and files with one number per line.

The kernels handle the common cases. They stop at any other input and leave it to the caller.
"""

import math

import numpy as np

from tiedtools.kernels.base.jit import jit

TAB, LF, CR, BLANK, PLUS, MINUS, DOT, ZERO, SMALL_E, LARGE_E = b"\t\n\r +-.0eE"

MANTISSA = 10**17  # above this, further digits no longer change the mantissa
MAX_EXPONENT = 80  # covers every float32, 1e-45 to 3e38, written with an 18-digit mantissa
POWERS = np.array([float(f"1e{e}") for e in range(MAX_EXPONENT + 1)])
# Up to these limits, mantissa and power are exact in float64, and their product or quotient is rounded only once.
EXACT_MANTISSA = 2**53
EXACT_EXPONENT = 22
THREE = np.frombuffer("".join(f"{k:03}" for k in range(1000)).encode(), np.uint8).reshape(-1, 3)  # digits of k
DIGITS = 9  # enough to distinguish any two float32
LIMIT = 10**DIGITS  # integers of DIGITS digits are below it; a power in a kernel takes long to compile
SMALL = 1e-3  # six decimals have at least three digits of a vector's largest component if it is not below this
# Above them, three roundings of 2**-53 and dropped digits of 1e-17 give a relative error of less than half of this.
DOUBT = 1e-15


@jit
def parse_rows(matrix, spans, data, start, rows, E):
    """Parse up to `rows` lines `word x1 ... xE` from `data`, starting at byte `start`.

    matrix  (rows, E) float32, out: the numbers, rounded as by float32(float(text))
    spans   (rows, 2) int64, out: start and end of each word in `data`
    data    uint8: whole lines; the last byte is LF

    Returns (n, stop): the number of rows parsed and the start of the next line. Stops early at a line with a space in
    the word, a different number of fields, a field that is not a decimal number, or a number that overflows float32 or
    is so close to the midpoint of two float32 that this arithmetic cannot round it reliably.
    """
    for row in range(rows):
        if start == len(data):
            return row, start
        # The word. Every loop below ends at the line's LF and so stays within `data`.
        i = start
        while data[i] != BLANK and data[i] != TAB and data[i] != LF:
            i += 1
        word_end = i
        if word_end == start:
            return row, start
        for e in range(E):
            if data[i] != BLANK and data[i] != TAB:
                return row, start
            while data[i] == BLANK or data[i] == TAB:
                i += 1

            # Sign, digits, and decimal point: mantissa * 10**exponent.
            negative = data[i] == MINUS
            if negative or data[i] == PLUS:
                i += 1
            mantissa = 0
            exponent = 0
            seen = 0
            after_dot = 0
            while True:
                digit = np.int64(data[i]) - ZERO
                if 0 <= digit <= 9:
                    seen += 1
                    if mantissa < MANTISSA:
                        mantissa = 10 * mantissa + digit
                        exponent -= after_dot
                    else:
                        exponent += 1 - after_dot
                elif data[i] == DOT and after_dot == 0:
                    after_dot = 1
                else:
                    break
                i += 1
            if seen == 0:
                return row, start
            # The exponent as written.
            if data[i] == SMALL_E or data[i] == LARGE_E:
                i += 1
                sign = -1 if data[i] == MINUS else 1
                if sign < 0 or data[i] == PLUS:
                    i += 1
                seen = 0
                written = 0
                while ZERO <= data[i] <= ZERO + 9:
                    written = min(10 * written + np.int64(data[i]) - ZERO, 10000)
                    seen += 1
                    i += 1
                if seen == 0:
                    return row, start
                exponent += sign * written

            # Round to float32, unless the rounding is uncertain.
            value = 0.0
            if mantissa != 0:
                if not -MAX_EXPONENT <= exponent <= MAX_EXPONENT:
                    return row, start
                value = mantissa * POWERS[exponent] if exponent >= 0 else mantissa / POWERS[-exponent]
            x = np.float32(value)
            if math.isinf(x):
                return row, start
            if mantissa > EXACT_MANTISSA or abs(exponent) > EXACT_EXPONENT:
                if np.float32(value * (1 - DOUBT)) != np.float32(value * (1 + DOUBT)):
                    return row, start
            matrix[row, e] = -x if negative else x
        # The end of the line.
        while data[i] == BLANK or data[i] == TAB or data[i] == CR:
            i += 1
        if data[i] != LF:
            return row, start
        spans[row, 0] = start
        spans[row, 1] = word_end
        start = i + 1
    return rows, start


@jit
def format_rows(out, matrix, text, offsets, first, rows, E):
    """Write lines `word x1 ... xE` for rows `first` .. rows - 1, byte for byte as printf's "%.6f" does.

    A value that "%.6f" would round to 0, and all values of a row below SMALL, are written as by `write_number`.

    out      uint8, out: with space for the words, 20 bytes per number and 1 per line
    matrix   (rows, E) float32
    text     uint8: the words, concatenated
    offsets  (rows + 1,) int64: word r is text[offsets[r]:offsets[r + 1]]

    Returns (n, size): the rows before `n` are written, in `size` bytes. If n < rows, row `n` has a value that is not
    finite or has a magnitude of at least 1e9.
    """
    at = 0
    for row in range(first, rows):
        line = at
        for i in range(offsets[row], offsets[row + 1]):
            out[at] = text[i]
            at += 1
        largest = 0.0
        for e in range(E):
            x = abs(np.float64(matrix[row, e]))
            if not x < 1e9:
                return row, line
            largest = x if x > largest else largest
        for e in range(E):
            x = np.float64(matrix[row, e])
            out[at] = BLANK
            at += 1
            # Exact: float32 has 24 significant bits and 1e6 has 14. rint rounds ties to even, as printf does.
            micros = np.int64(np.rint(abs(x) * 1e6))
            if x != 0 and (largest < SMALL or micros == 0):
                at = write_number(out, at, x)
                continue
            out[at] = MINUS
            at += math.copysign(1.0, x) < 0  # without a branch: signs cannot be predicted
            whole = micros // 1_000_000
            fraction = micros - 1_000_000 * whole
            end = at + 1
            limit = 10
            while whole >= limit:
                limit *= 10
                end += 1
            for i in range(end - 1, at - 1, -1):
                out[i] = ZERO + whole % 10
                whole //= 10
            out[end] = DOT
            at = end + 1
            for three in (fraction // 1000, fraction % 1000):
                for i in range(3):
                    out[at + i] = THREE[three, i]
                at += 3
        out[at] = LF
        at += 1
    return rows, at


@jit
def format_numbers(out, numbers):
    """Write one number per line as printf's "%.9g" does, which preserves every float32.

    out      uint8, out: with space for 16 bytes per number        numbers  float32 [n]

    Returns (n, size): the numbers before `n` are written, in `size` bytes. If n < len(numbers), number `n` is not
    finite.
    """
    at = 0
    for k in range(numbers.size):
        if not math.isfinite(numbers[k]):
            return k, at
        at = write_number(out, at, np.float64(numbers[k]))
        out[at] = LF
        at += 1
    return numbers.size, at


@jit
def write_number(out, at, x):
    """Write a float32, passed as a finite float64, as printf's "%.9g" does; returns the end position.

    The ninth digit may differ from printf's at a tie, which float64 arithmetic may not detect.
    """
    if math.copysign(1.0, x) < 0:
        out[at] = MINUS
        at += 1
    x = abs(x)
    exponent = 0
    digits = 0
    if x > 0:
        exponent = math.floor(math.log10(x))
        digits = scaled(x, exponent)
        if digits < LIMIT // 10:  # the logarithm was rounded up to an integer
            exponent -= 1
            digits = scaled(x, exponent)
        if digits >= LIMIT:
            exponent += 1
            digits = scaled(x, exponent)
    count = DIGITS
    while count > 1 and digits % 10 == 0:
        digits //= 10
        count -= 1
    if -5 < exponent < DIGITS:
        at = write_plain(out, at, digits, count, exponent)
    else:
        at = write_plain(out, at, digits, count, 0)
        out[at] = SMALL_E
        out[at + 1] = MINUS if exponent < 0 else PLUS
        out[at + 2] = ZERO + abs(exponent) // 10
        out[at + 3] = ZERO + abs(exponent) % 10
        at += 4
    return at


@jit
def scaled(x, exponent):
    """Scale x / 10**exponent to an integer of DIGITS digits, or one more."""
    shift = DIGITS - 1 - exponent
    return np.int64(np.rint(x * POWERS[shift] if shift >= 0 else x / POWERS[-shift]))


@jit
def write_plain(out, at, digits, count, exponent):
    """Write d.ddd * 10**exponent, of `count` digits, in positional notation; returns the end position."""
    before = exponent + 1 if exponent > 0 else 1  # digits before the decimal point
    zeros = -exponent if exponent < 0 else 0  # leading zeros
    width = max(zeros + count, before)
    for i in range(width - 1, -1, -1):
        position = at + i + (i >= before)
        if i < zeros or i >= zeros + count:
            out[position] = ZERO
        else:
            out[position] = ZERO + digits % 10
            digits //= 10
    if width > before:
        out[at + before] = DOT
    return at + width + (width > before)
