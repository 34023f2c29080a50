"""Every scenario of the user's acceptance list has a test: each id is a tag in one of our features."""

import re
from pathlib import Path

import pytest

ASKED = {"CM": 17, "SM": 41, "SP": 23}


def tags() -> set[str]:
    features = Path(__file__).parent.glob("*.feature")
    return {tag for file in features for tag in re.findall(r"@([A-Z]{2}-\d{2})\b", file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("identifier", [f"{area}-{n:02}" for area, count in ASKED.items() for n in range(1, count + 1)])
def test_the_scenario_has_a_test(identifier):
    assert identifier in tags(), f"no feature in {Path(__file__).parent.name}/ is tagged @{identifier}"
