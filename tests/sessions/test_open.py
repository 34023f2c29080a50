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


@pytest.mark.parametrize("special", [*"@:/#?%[", "%zz", "@/", "\u2100"])
@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_a_password_with_special_characters_is_told_how_to_be_written_and_not_shown(special, scheme):
    for url in (f"{scheme}://user:hush{special}quiet@host/db", f"{scheme}://user:hush{special}quiet@host:5432/db?a=b"):
        with pytest.raises(errors.InvalidSettingError) as refusal:
            open_database(url)
        text = str(refusal.value)
        assert "PGPASSWORD" in text
        assert "%40" in text
        assert "\n" not in text
        assert "hush" not in text
        assert "quiet" not in text
        assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@pytest.mark.parametrize("url", ["hush@host/db", "user:hush@host/db", "postgresql://user:hush/db"])
def test_what_may_hold_a_password_is_not_repeated(url):
    with pytest.raises(errors.InvalidSettingError) as refusal:
        open_database(url)
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("server", ["host", "host:5432", "[::1]", "[::1]:5432", "", "a:1,b:2"])
def test_a_percent_encoded_password_is_taken_and_not_shown(server):
    database = open_database(f"postgresql+psycopg://user:hu%40sh@{server}/db?sslmode=disable")
    assert database.name == f"postgresql://{server}/db"
    database.close()
