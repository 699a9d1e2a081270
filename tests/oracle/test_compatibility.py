"""Every fixture gives its expected rows, and the report says so."""

import pytest

from tests.compatibility import listed
from tests.fixtures_catalog import GOLDEN, SHARED, Case, cases

pytestmark = pytest.mark.oracle

SMALL = cases(GOLDEN)
ALL = cases(SHARED) if SHARED.exists() else []


@pytest.mark.parametrize("case", SMALL, ids=[case.name for case in SMALL])
def test_every_golden_case_reads_as_expected(case: Case) -> None:
    case.check()


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_every_fixture_reads_as_expected(case: Case) -> None:
    case.check()


@pytest.mark.skipif(not ALL, reason="the collection of fixtures is not beside the checkout")
def test_the_report_lists_every_case_with_its_result() -> None:
    expected = {case.name: "refused" if case.is_refusal else "equal" for case in ALL}
    assert listed() == expected


def test_the_golden_cases_are_part_of_the_report() -> None:
    assert {case.name for case in SMALL} <= set(listed())
