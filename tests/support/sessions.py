"""Sessions as tests make them and look at them."""

from cleveragents import MessageDraft
from cleveragents.sessions.open import open_database
from cleveragents.values.canonical import checksum

PLANS = ["01BX5ZZKBKACTAV9WEVGEMMVRZ", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVS0"]
TABLES = ("sessions", "messages", "usage_entries", "linked_plans", "session_tags")


def signed(document):
    """The export ``document`` with a checksum that is right for it."""
    body = {key: value for key, value in document.items() if key != "checksum"}
    return body | {"checksum": checksum(body)}


def user(*texts):
    return [MessageDraft("user", text) for text in texts]


def texts(messages):
    return [message.content for message in messages]


def ids(summaries):
    return [summary.session_id for summary in summaries]


def rows_in_tables(url):
    """How many rows each table of the database holds."""
    database = open_database(url)
    counts = {table: database.query(f"SELECT count(*) AS n FROM {table}", {})[0]["n"] for table in TABLES}  # noqa: S608
    database.close()
    return counts


def with_everything(sessions, actor="team/bot", tags=("a", "b")):
    session_id = sessions.create(actor, tags=tags).session_id
    sessions.append_all(session_id, user("one", "two", "three"))
    for plan in PLANS:
        sessions.link_plan(session_id, plan)
    sessions.add_usage(session_id, 10, 5, 0.1, llm="local")
    return session_id


def one_line(failure, *parts):
    """Check that an error is one line in which all of ``parts`` occur."""
    text = str(failure.value)
    assert "\n" not in text
    for part in parts:
        assert str(part) in text
    return text
