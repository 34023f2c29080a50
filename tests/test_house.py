"""What holds for every file of the house."""

import tomllib
from pathlib import Path

HOUSE = Path(__file__).parents[1]
LONGEST = 400
FILES = [file for place in ("src", "tests", "benchmarks") for file in sorted((HOUSE / place).rglob("*.py"))]


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    lines = {file.relative_to(HOUSE).as_posix(): len(file.read_bytes().splitlines()) for file in FILES}
    assert len(lines) > 100
    assert {file: count for file, count in lines.items() if count > LONGEST} == {}


def test_every_folder_of_tests_is_known_to_mypy_as_one() -> None:
    settings = tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))
    known = {name for override in settings["tool"]["mypy"]["overrides"] for name in override["module"]}
    folders = {file.parent.name for file in (HOUSE / "tests").glob("*/*.py")}
    assert len(folders) > 10
    assert {f"{folder}.*" for folder in folders} - known == set()


def test_whatever_has_a_long_form_is_run_in_it_by_make_soak() -> None:
    texts = {file.name: file.read_text(encoding="utf-8") for file in (HOUSE / "tests").glob("*/test_*.py")}
    campaigns = {name for name, text in texts.items() if "campaign(short=" in text}
    assert len(campaigns) > 5
    assert {name for name in campaigns if "pytest.mark.campaign" not in texts[name]} == set()
