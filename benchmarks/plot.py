"""How do figures become pictures? Plain SVG, written by hand: bars of ratios, curves of growth."""

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 90, 130, 40, 40
BAR = 18
COLOURS = {
    "ours": "#1f77b4",
    "pylance": "#d62728",
    "parquet": "#7f7f7f",
    "delta": "#bcbd22",
    "raw": "#2ca02c",
}
INK = "#333333"
FAINT = "#dddddd"
FONT = 'font-family="sans-serif" font-size="12"'

Points = Sequence[tuple[float, float]]


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = FAINT) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _page(height: float, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>',
            '<rect width="100%" height="100%" fill="white"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


class _Scale:
    """Turns values into places on a logarithmic axis."""

    def __init__(self, values: Sequence[float], start: float, stop: float) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self._start = start
        self._step = (stop - start) / (self.high - self.low)

    def __call__(self, value: float) -> float:
        return self._start + (math.log10(value) - self.low) * self._step

    def ticks(self) -> list[float]:
        """Return the powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def curves(title: str, axis: str, lines: Mapping[str, Points]) -> str:
    """Draw seconds over sizes, a line for each peer, both axes logarithmic."""
    height = 360
    points = [point for line in lines.values() for point in line]
    across = _Scale([x for x, _ in points], LEFT, WIDTH - RIGHT)
    up = _Scale([y for _, y in points], height - BOTTOM, TOP)
    parts = [_text(LEFT, 20, title)]
    for tick in across.ticks():
        parts.append(_line(across(tick), TOP, across(tick), height - BOTTOM))
        parts.append(_text(across(tick), height - BOTTOM + 16, f"{tick:,.0f}", "middle"))
    for tick in up.ticks():
        parts.append(_line(LEFT, up(tick), WIDTH - RIGHT, up(tick)))
        parts.append(_text(LEFT - 8, up(tick) + 4, _seconds(tick), "end"))
    parts.append(_text(WIDTH - RIGHT, height - 8, axis, "end"))
    ends: list[float] = []
    for peer, line in lines.items():
        colour = COLOURS.get(peer, INK)
        places = [(across(x), up(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        end = places[-1][1]
        while any(abs(end - other) < 14 for other in ends):
            end += 14
        ends.append(end)
        parts.append(_text(WIDTH - RIGHT + 8, end + 4, peer, colour=colour))
    return _page(height, parts)


def bars(title: str, ratios: Sequence[tuple[str, float, float | None]]) -> str:
    """Draw ratios with their targets as marks; the line at 1 is where both are equally fast."""
    left = 290
    height = TOP + BAR * len(ratios) + BOTTOM
    values = [ratio for _, ratio, _ in ratios]
    scale = _Scale([*values, 0.5, 10], left, WIDTH - 60)
    parts = [_text(12, 20, title)]
    for tick in scale.ticks():
        parts.append(_line(scale(tick), TOP, scale(tick), height - BOTTOM))
        parts.append(_text(scale(tick), height - BOTTOM + 16, f"{tick:g}", "middle"))
    for number, (name, ratio, target) in enumerate(ratios):
        y = TOP + BAR * number
        start, stop = sorted((scale(1), scale(ratio)))
        colour = COLOURS["ours"] if ratio >= 1 else COLOURS["pylance"]
        parts.append(_text(left - 8, y + 13, name, "end"))
        parts.append(
            f'<rect x="{start:.1f}" y="{y + 3}" width="{stop - start:.1f}" height="{BAR - 6}"'
            f' fill="{colour}"/>'
        )
        parts.append(_text(max(stop, scale(1)) + 4, y + 13, f"{ratio:.2g}"))
        if target is not None:
            parts.append(_line(scale(target), y + 1, scale(target), y + BAR - 1, INK))
    parts.append(_line(scale(1), TOP, scale(1), height - BOTTOM, INK))
    return _page(height, parts)


def _seconds(value: float) -> str:
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1:
            return f"{value * factor:,.0f} {name}"
    return f"{value * 1e9:,.0f} ns"
