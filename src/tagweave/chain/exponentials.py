"""Exponentials of many numbers at once."""

from math import factorial

import numpy as np

from tagweave.chain.compiling import FloatArray, compiled_as_written

# The logarithm of about the smallest normal double; one over log(2); log(2) as a number with so
# few digits that a thousand times it is exact, and the rest of log(2); one over the factorials.
LOWEST = -708.0
LOG2_E = 1.4426950408889634
ROUNDING = 1.5 * 2.0**52
LN2_HIGH, LN2_LOW = 0.693147182464599609375, -1.904654299957767878541823e-9
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / factorial(k) for k in range(2, 14))


@compiled_as_written
def exponentiate(values: FloatArray) -> None:
    r"""Replace numbers up to zero by their exponentials, to the last bit but one; below -708 they count as zero.

    \(e^x = 2^n e^r\) with whole \(n\) and \(|r| \le \log(2) / 2\), and \(e^r\) is its Taylor polynomial of degree 13.
    Without branches and calls the loop does several numbers at a time, which `math.exp` cannot.
    """
    for k in range(len(values)):
        x = values[k]
        kept = LOWEST if x < LOWEST else x
        # The sum is so large that its last binary digits are those of the nearest whole number.
        shifted = kept * LOG2_E + ROUNDING
        n = shifted - ROUNDING
        r = (kept - n * LN2_HIGH) - n * LN2_LOW
        tail = C8 + r * (C9 + r * (C10 + r * (C11 + r * (C12 + r * C13))))
        power = 1.0 + r * (1.0 + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * (C7 + r * tail)))))))
        two_to_n = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
        values[k] = 0.0 if x < LOWEST else power * two_to_n
