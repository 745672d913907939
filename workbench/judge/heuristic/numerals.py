"""What a number may mean as it is written: separators of thousands and decimals, and Chinese numerals."""

import re

from workbench.judge.heuristic.units import HAN_DIGITS, HAN_TENS


def number_values(written: str) -> list[float]:
    """What a number may mean: "1.200" is 1.2 or 1200, according to who wrote it."""
    if written.startswith("-"):
        return [-value for value in number_values(written[1:])]
    digits = re.sub(r"[\u00a0\u202f ']", "", written)[:40]
    if "." in digits and "," in digits:
        decimal = max(digits.rfind("."), digits.rfind(","))
        whole = re.sub(r"[.,]", "", digits[:decimal])
        return [float(f"{whole}.{re.sub('[.,]', '', digits[decimal + 1 :])}")]
    separators = [c for c in digits if c in ".,"]
    joined = re.sub(r"[.,]", "", digits)
    if len(separators) > 1:
        return [float(joined)]
    if not separators:
        return [float(joined)]
    as_decimal = float(digits.replace(",", "."))
    if re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", digits):
        return [as_decimal, float(joined)]
    return [as_decimal]


def han_value(digits: str) -> int:
    """The number that Chinese numerals stand for: 10 for "十", 25 for "二十五"."""
    total = current = 0
    for digit in digits:
        if digit in HAN_TENS:
            total += (current or 1) * HAN_TENS[digit]
            current = 0
        else:
            current = current * 10 + HAN_DIGITS[digit]
    return total + current
