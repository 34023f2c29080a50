"""What makes, inside the sandbox, text of the values that code leaves: JSON, or why it is none, never too long.

``sandbox`` sends this file as text, one section at a time and without this docstring; nothing imports it but a test. It
runs inside, within the limits of the code, since a value that crosses by itself may be small inside and endless here:
a list that holds one list ten times, which holds one list ten times. It is read after the code has run and in a
namespace of its own, so that no name of the code stands for anything here. It is written for the sandbox's Python, and
says its limits itself; a test holds them equal to those of the package.
"""

# --- a short value: most expressions are worth one, and reading the next section takes longer than they do ---


def short_answer(value):
    """The JSON ``["done", value]``; "" for a value that is not short."""
    import json

    kind = type(value)
    short = value is None or kind is bool or (kind is str and len(value) < 100_000)
    if short or (kind is int and -1e18 < value < 1e18):
        return json.dumps(["done", value], ensure_ascii=False)
    return ""


# --- any values, each with its name ---


def answer(values):
    """The JSON ``["done", …]`` of ``values``, pairs of a name and a value; or ``["refused", where, why]``."""
    import json
    from datetime import date, datetime, time

    most = 1 << 14_283
    left = [0]  # characters, and eight for each value, that there is still room for
    wrong = []  # the place of a fault, and what it is

    def refused(reason):
        wrong.append("")
        wrong.append(reason)

    def plain(value, depth):
        kind = type(value)
        if kind is int:
            return value if -most < value < most else refused("an integer of more than 4,300 digits cannot be stored")
        if kind is str:
            left[0] -= len(value)
            return value if left[0] >= 0 else refused("larger than 8 MB")
        if value is None or kind is bool:
            return value
        if kind is float:
            return value if -1e999 < value < 1e999 else refused(repr(value) + " cannot be stored as JSON")
        if depth > 200:
            return refused("nested deeper than 200 levels")
        if isinstance(value, (dict, list, tuple)):
            left[0] -= 8 * len(value)
            if left[0] < 0:
                return refused("larger than 8 MB")
            return plain_mapping(value, depth) if isinstance(value, dict) else plain_list(value, depth)
        if kind is datetime or kind is date or kind is time:
            return value.isoformat()
        if kind.__name__ == "Decimal":
            from decimal import Decimal

            if kind is Decimal:
                return str(value) if value.is_finite() else refused(str(value) + " cannot be stored as JSON")
        return refused("a value of type " + kind.__name__ + " cannot be stored as JSON")

    def plain_list(value, depth):
        items = []
        for item in value:
            items.append(plain(item, depth + 1))
            if wrong:
                wrong[0] = "[" + str(len(items) - 1) + "]" + wrong[0]
                return None
        return items

    def plain_mapping(value, depth):
        members = {}
        for key, item in value.items():
            if type(key) is not str:
                return refused("the key " + repr(key)[:80] + " is not text")
            left[0] -= len(key)
            members[key] = plain(item, depth + 1)
            if wrong:
                wrong[0] = "." + key[:80] + wrong[0]
                return None
        return members

    texts = []
    for name, value in values:
        left[0] = 8_000_000 - 8
        text = json.dumps(plain(value, 0), ensure_ascii=False, separators=(",", ":"))
        if left[0] < 0 or len(text) > 8_000_000:
            return json.dumps(["refused", name, "larger than 8 MB"])
        if wrong:
            return json.dumps(["refused", (name + wrong[0])[:120], wrong[1]], ensure_ascii=False)
        texts.append(text)
    return '["done",' + ",".join(texts) + "]"
