"""Tables of verdicts: plain text for comparison, HTML with sample dots for readers."""

import html
import math

from paperbook.evidence.judgement import Judgement, Measured
from paperbook.evidence.rules import Rule

MARKS = {"reproduced": "✓", "not reproduced": "✗", "inconclusive": "?", "needs scale": "↑"}
STRIP_WIDTH, STRIP_HEIGHT, MARGIN = 150, 22, 8


class PlainText:
    """Text that a notebook shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Html:
    """HTML that a notebook shows as it is."""

    def __init__(self, text: str, plain: str) -> None:
        self.text, self.plain = text, plain

    def __repr__(self) -> str:
        return self.plain

    def _repr_html_(self) -> str:
        return self.text


def verdict_lines(judgements: list[Judgement], card) -> str:
    """One line a claim: id, rules, verdict. No measured number, so it is the same everywhere."""
    rows = [(j.claim, _rules(card.claim(j.claim)), j.verdict) for j in judgements]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)


def _rules(claim) -> str:
    return " and ".join(f"{t.name} {t.rule}".strip() for t in claim.tests) or "-"


def verdict_badge(verdict: str) -> str:
    return (
        f'<span class="pb-verdict pb-{verdict.replace(" ", "-")}">{MARKS[verdict]} {verdict}</span>'
    )


def claim_table(judgements: list[Judgement], card) -> str:
    """HTML table of a chapter's claims: statement, rule, value, samples, verdict."""
    body = "".join(_claim_rows(judgement, card.claim(judgement.claim)) for judgement in judgements)
    head = "".join(f"<th>{h}</th>" for h in ("claim and verdict", "rule", "measured"))
    return (
        '<div class="pb-scroll"><table class="pb-claims">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _claim_rows(judgement: Judgement, claim) -> str:
    span = f' rowspan="{max(len(judgement.tests), 1)}"'
    name = (
        f'<td{span}><strong>{claim.id}</strong><br><span class="pb-kind">{claim.kind}</span> '
        f"{verdict_badge(judgement.verdict)}</td>"
    )
    if not judgement.tests:
        text = html.escape(f"needs {claim.needs}; tested instead: {claim.proxy}")
        return f'<tr>{name}<td colspan="2">{text}</td></tr>'
    first, *others = [_test_cells(test) for test in judgement.tests]
    return f"<tr>{name}{first}</tr>" + "".join(f"<tr>{row}</tr>" for row in others)


def _test_cells(test: Measured) -> str:
    label = html.escape(f"{test.name} {test.rule}".strip())
    return (
        f'<td class="pb-rule">{label}</td>'
        f'<td class="pb-number">{html.escape(str(test))}<br>{sample_strip(test)}</td>'
    )


def sample_strip(test: Measured) -> str:
    """Inline SVG: each sample a dot, the mean a tick, the interval a bar, the allowed set shaded.

    The axis covers samples, interval and the rule's ends; it is logarithmic where all of these are
    positive and span more than two decades.
    """
    rule = Rule.parse(test.rule)
    ends = [end for end in (rule.low, rule.high) if math.isfinite(end)]
    points = [v for v in (*test.samples, test.low, test.high) if v is not None and math.isfinite(v)]
    if not points:
        return ""
    place = _axis([*points, *ends])
    left = place(rule.low) if math.isfinite(rule.low) else 0
    right = place(rule.high) if math.isfinite(rule.high) else STRIP_WIDTH
    middle = STRIP_HEIGHT / 2
    parts = [
        f'<rect class="pb-allowed" x="{left:.1f}" y="1" width="{max(right - left, 1):.1f}" '
        f'height="{STRIP_HEIGHT - 2}"/>'
    ]
    if test.method != "worst" and test.low is not None and test.high is not None:
        parts.append(
            f'<line class="pb-interval" x1="{place(test.low):.1f}" x2="{place(test.high):.1f}" '
            f'y1="{middle}" y2="{middle}"/>'
        )
    shown = [v for v in test.samples if math.isfinite(v)][:200]
    parts += [f'<circle cx="{place(v):.1f}" cy="{middle}" r="2.5"/>' for v in shown]
    label = html.escape(f"{len(test.samples)} samples, {test}; rule {test.rule}")
    return (
        f'<svg class="pb-strip" role="img" aria-label="{label}" width="{STRIP_WIDTH}" '
        f'height="{STRIP_HEIGHT}" viewBox="0 0 {STRIP_WIDTH} {STRIP_HEIGHT}">{"".join(parts)}</svg>'
    )


def _axis(values: list[float]):
    low, high = min(values), max(values)
    logarithmic = low > 0 and high > 100 * low
    scale = math.log if logarithmic else float
    start, stop = scale(low), scale(high)
    if stop == start:
        start, stop = start - 1, stop + 1
    width = STRIP_WIDTH - 2 * MARGIN
    return lambda value: MARGIN + width * (scale(value) - start) / (stop - start)
