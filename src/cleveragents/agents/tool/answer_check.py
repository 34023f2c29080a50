"""What looks, inside the sandbox, at the values that code leaves: are they JSON, and not too large?

``sandbox`` sends this file as text, one section at a time and without this docstring; nothing imports it but a test. It
runs inside since outside a function arrives as text such as "<function 'f' at 0xc>". It is defined before the code it
checks, and holds on to the names it needs by its defaults: code may well call a variable of its own "type" or "list".
It is written for the sandbox's Python, and says its limits itself; a test holds them equal to those of the package.
"""

# --- a short value: most expressions are worth one, and reading the other section takes longer than they do ---


def __plain(value, type_of=type, length=len, text=str, whole=int, flag=bool):
    kind = type_of(value)
    short = value is None or kind is flag or (kind is text and length(value) < 100_000)
    return [value] if short or (kind is whole and -1e18 < value < 1e18) else []


# --- any value ---


def __fault(
    value,
    left,
    depth=0,
    type_of=type,
    is_a=isinstance,
    length=len,
    shown=repr,
    numbered=enumerate,
    text=str,
    whole=int,
    flag=bool,
    number=float,
    mapping=dict,
    array=list,
    record=tuple,
    most=1 << 14_283,
):
    if depth > 200:
        return "", "nested deeper than 200 levels"
    kind = type_of(value)
    left[0] -= 8
    if kind is text:
        left[0] -= length(value)
    elif is_a(value, mapping):
        for key, item in value.items():
            if type_of(key) is not text:
                return "", "the key " + shown(key)[:80] + " is not text"
            left[0] -= length(key)
            fault = __fault(item, left, depth + 1)
            if fault:
                return "." + key[:80] + fault[0], fault[1]
    elif is_a(value, (array, record)):
        for index, item in numbered(value):
            fault = __fault(item, left, depth + 1)
            if fault:
                return "[" + shown(index) + "]" + fault[0], fault[1]
    elif kind is whole:
        if not -most < value < most:
            return "", "an integer of more than 4,300 digits cannot be stored"
    elif not (
        value is None or kind is flag or kind is number or kind.__name__ in ("datetime", "date", "time", "Decimal")
    ):
        return "", "a value of type " + kind.__name__ + " cannot be stored as JSON"
    return ("", "too large") if left[0] < 0 else None


def __answer(values, fault=__fault):
    for name, value in values:
        left = [8_000_000]
        found = fault(value, left)
        if left[0] < 0:
            return name, "larger than 8 MB"
        if found:
            return (name + found[0])[:120], found[1]
    return [value for name, value in values]
