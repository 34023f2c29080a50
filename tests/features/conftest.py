"""Tags such as @CM-13 name scenarios of the user's acceptance list; they select nothing."""

import re


def pytest_bdd_apply_tag(tag, function):
    return True if re.fullmatch(r"[A-Z]{2}-\d{2}", tag) else None
