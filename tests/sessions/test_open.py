"""Which database is opened: the one that is named, by argument, variable or home; what names none is refused."""

import pytest

from cleveragents import errors, open_sessions
from cleveragents.sessions.open import open_database
from support.sessions import one_line


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/db",
        "",
        "/a/path",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://host/path",
        "sqlite:///x.db?surprise=1",
        "sqlite:///x.db?journal_mode=off",
        "sqlite:///x.db?busy_timeout=soon",
        "sqlite:///x.db?busy_timeout=-1",
        "sqlite:///x.db?busy_timeout=nan",
        "postgresql://[bad/db",
    ],
)
def test_what_is_no_database_url_is_refused(url, monkeypatch):
    with pytest.raises(errors.InvalidSettingError) as failure:
        open_database(url)
    one_line(failure)


def test_the_database_is_chosen_by_argument_then_variable_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLEVERAGENTS_DATABASE_URL", raising=False)
    with open_sessions() as sessions:
        sessions.create()
    assert (tmp_path / "home" / "cleveragents.db").exists()
    monkeypatch.setenv("CLEVERAGENTS_DATABASE_URL", f"sqlite:///{tmp_path}/variable.db")
    with open_sessions() as sessions:
        sessions.create()
    with open_sessions(f"sqlite:///{tmp_path}/argument.db") as sessions:
        sessions.create()
    assert {each.name for each in tmp_path.glob("*.db")} == {"variable.db", "argument.db"}
