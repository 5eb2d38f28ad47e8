"""Numbers between text and float32: rows of word vectors, and one number a line.

The kernels do what is plain, which is nearly all, and hand anything else back to the caller: in doubt they stop.
"""

import math

import numpy as np

from tiedtools.kernels.jit import jit

TAB, LF, CR, BLANK, PLUS, MINUS, DOT, ZERO, SMALL_E, LARGE_E = b"\t\n\r +-.0eE"

MANTISSA = 10**17  # digits beyond this many no longer change the mantissa
MAX_EXPONENT = 80  # enough for every float32, 1e-45 to 3e38, written with a mantissa of 18 digits
POWERS = np.array([float(f"1e{e}") for e in range(MAX_EXPONENT + 1)])
# Up to here mantissa and power are float64 without error, and their product or quotient is rounded but once.
EXACT_MANTISSA = 2**53
EXACT_EXPONENT = 22
DIGITS = 9  # that tell any two float32 apart
# Beyond, three roundings of 2**-53 and lost digits of 1e-17 make a relative error of less than half of this.
DOUBT = 1e-15


@jit
def parse_rows(matrix, spans, data, start, rows, E):
    """Read lines `word x1 ... xE` out of `data` from byte `start`, at most `rows` of them.

    matrix  (rows, E) float32, out: the numbers, rounded as float32(float(text)) rounds them
    spans   (rows, 2) int64, out: where each word starts and ends in `data`
    data    uint8: whole lines, the last byte is LF

    Returns (n, stop): `n` rows were read, and the next line starts at `stop`. It stops early at a line that is not
    plain: blanks in the word, another count of fields, something that is no decimal number, or one that does not fit
    a float32 or lies so near the middle between two of them that this arithmetic cannot tell to which it belongs.
    """
    for row in range(rows):
        if start == len(data):
            return row, start
        # Every loop below ends at the line's LF, so none leaves `data`.
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
    """Write lines `word x1 ... xE` for the rows from `first` to `rows`, in the very bytes of printf's "%.6f".

    out      uint8, out: 20 bytes a number, 1 a line and the words must fit
    matrix   (rows, E) float32
    text     uint8: the words, one straight after the other
    offsets  (rows + 1,) int64: word r is text[offsets[r]:offsets[r + 1]]

    Returns (n, size): the rows before `n` are written, in `size` bytes. Row `n`, where that is not `rows`, holds a
    value of 1e9 or more, or one that is not finite.
    """
    at = 0
    for row in range(first, rows):
        line = at
        for i in range(offsets[row], offsets[row + 1]):
            out[at] = text[i]
            at += 1
        for e in range(E):
            x = np.float64(matrix[row, e])
            if not abs(x) < 1e9:
                return row, line
            out[at] = BLANK
            at += 1
            if math.copysign(1.0, x) < 0:
                out[at] = MINUS
                at += 1
            # A float32 has 24 bits and 1e6 another 14: the product is exact, and rint rounds halves as printf does.
            micros = np.int64(np.rint(abs(x) * 1e6))
            end = at + 8
            limit = 10_000_000
            while micros >= limit:
                limit *= 10
                end += 1
            for i in range(end - 1, end - 7, -1):
                out[i] = ZERO + micros % 10
                micros //= 10
            out[end - 7] = DOT
            for i in range(end - 8, at - 1, -1):
                out[i] = ZERO + micros % 10
                micros //= 10
            at = end
        out[at] = LF
        at += 1
    return rows, at


@jit
def format_numbers(out, numbers):
    """Write one number a line as printf's "%.9g" does, which is enough to read the same float32 again.

    out      uint8, out: 16 bytes a number must fit        numbers  float32 [n]

    Returns (n, size): the numbers before `n` are written, in `size` bytes. Number `n`, if there is one, is not finite.
    In a tie of the ninth digit, which float64 need not see, the digit may be the other one.
    """
    at = 0
    for k in range(numbers.size):
        x = abs(np.float64(numbers[k]))
        if not x < math.inf:
            return k, at
        if math.copysign(1.0, numbers[k]) < 0:
            out[at] = MINUS
            at += 1
        exponent = 0
        digits = 0
        if x > 0:
            exponent = int(math.floor(math.log10(x)))
            digits = scaled(x, exponent)
            if digits < 10 ** (DIGITS - 1):  # the logarithm was rounded up to a whole number
                exponent -= 1
                digits = scaled(x, exponent)
            if digits >= 10**DIGITS:
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
        out[at] = LF
        at += 1
    return numbers.size, at


@jit
def scaled(x, exponent):
    """x / 10**exponent as a whole number of DIGITS digits, or one more."""
    shift = DIGITS - 1 - exponent
    return np.int64(np.rint(x * POWERS[shift] if shift >= 0 else x / POWERS[-shift]))


@jit
def write_plain(out, at, digits, count, exponent):
    """Write d.ddd * 10**exponent of `count` digits without an exponent; returns where it ends."""
    before = max(exponent, 0) + 1  # digits before the point
    zeros = max(-exponent, 0)  # that come first
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
