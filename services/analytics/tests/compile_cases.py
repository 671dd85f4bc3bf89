"""Drawn metrics and events for the property test: hostile JSON, and every node of the language.

A seed gives the same cases for ever, so a failure is repeated by its seed.
"""

from __future__ import annotations

import json
from random import Random

from weir.definitions.metric import Metric
from weir.expressions.functions import FUNCTIONS
from weir.expressions.tree import Kind

PATHS = (
    "data.a",
    "data.A",
    "data.b",
    "data.c",
    'data."a b"',
    "data.deep.a",
    "data.deep.x.y",
    "data.é",
)
# Raw JSON, because a decoded value has lost what makes it hostile.
NUMBERS = (
    "0",
    "-0",
    "-0.0",
    "-0e0",
    "1",
    "1.0",
    "1.10",
    "1e2",
    "100",
    "-7",
    "7.5",
    "0.1",
    "1E-7",
    "123456.789",
    "0.13436424411240122",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "-9223372036854775808",
    "1e15",
    "1e16",
    "12345678901234567.5",
    "1e100",
    "1.0000000000000002e100",
    "-1e101",
    "1e308",
    "1e400",
    "-1e400",
    "1e-400",
    "2.5",
    "3.5",
    "-2.5",
)
TEXTS = (
    '""',
    '"7"',
    '"NaN"',
    '"Infinity"',
    '"true"',
    '"null"',
    '"~"',
    '"eu"',
    '"EU"',
    '"Straße İ"',
    '"a|b\\\\c"',
    '"é😀x"',
    '"\\u0000"',
    '"line\\nend"',
    '"abcab"',
    '"a%b_c"',
    '"a\\\\Eb"',
    '"\\\\Qa\\\\E.b"',
    json.dumps("long" * 80),
    json.dumps("x" * 255),
    json.dumps("x" * 256),
    json.dumps("é" * 127),
    json.dumps("é" * 128),
    json.dumps("|" * 130),
)
OTHERS = ("null", "true", "false", "NaN", "[]", "[1,2]", "{}", '{"y":1}', '{"a":1,"a":"x"}')
LITERAL_TEXTS = ("eu", "7", "a", "ab", "", "é", "it's", "a%b_c", "Straße İ")
LITERAL_NUMBERS = ("0", "1", "7.5", "-2.5", "100", "9007199254740992", "1e100", "0.1", "3")
PATTERNS = (
    *("a%", "%b", "%a%b%", "eu", "%", "%|%", "é%x", "a\\%b\\_c", "%a%a%", "%%e%u"),
    # What ends a quotation in a regex of Java.
    *("%\\\\E%", "%\\\\Q%\\\\E%", "%\\\\E.*\\\\Q%", "%\\\\%E%"),
)


def draw_value(random: Random, depth: int = 0) -> str:
    """Return the raw JSON of a value."""
    kind = random.randrange(20)
    if kind < 7:
        return random.choice(NUMBERS)
    if kind < 8:
        return repr(random.uniform(-1e6, 1e6))
    if kind < 15:
        return random.choice(TEXTS)
    if kind < 19 or depth > 2:
        return random.choice(OTHERS)
    return draw_object(random, ("a", "x", "y"), depth + 1)


def draw_object(random: Random, names: tuple[str, ...], depth: int = 0) -> str:
    """Return the raw JSON of an object, in which a name may stand twice or not at all."""
    members = []
    for name in names:
        for _ in range(random.choice((0, 1, 1, 1, 1, 1, 1, 2))):
            nested = name in ("deep", "x") and random.random() < 0.8
            value = (
                draw_object(random, ("a", "x", "y"), depth + 1)
                if nested and depth < 3
                else draw_value(random, depth)
            )
            members.append(f"{json.dumps(name, ensure_ascii=False)}:{value}")
    random.shuffle(members)
    return "{" + ",".join(members) + "}"


def draw_event(random: Random) -> str:
    """Return the raw JSON of an event as ingest writes it, with whatever data."""
    data = draw_object(random, ("a", "A", "b", "c", "a b", "deep", "é"))
    if random.random() < 0.04:
        data = random.choice(('"text"', "[1]", "null", "5"))
    subject = f'"subject":{random.choice(TEXTS[7:])},' if random.random() < 0.8 else ""
    return (
        f'{{"weirid":"{"0" * 32}","weirms":"{random.randrange(-5, 2**41):+016d}",'
        f'"specversion":"1.0","id":"{random.randrange(100)}","source":"s",'
        f'"type":"{random.choice(("t", "t.a", "T"))}","weirtenant":"default",'
        f'"weirsource":"{random.choice(("web", "app"))}",{subject}"data":{data}}}'
    )


def draw_metric(random: Random, name: str) -> Metric:
    """Return a metric whose texts were drawn and then parsed, as a user's are."""
    return Metric.model_validate(
        {
            "name": name,
            "events": {
                "type": random.choice((["t"], ["t*"], ["t", "T"], ["t.a", "x*"], ["*"])),
                "source": random.choice(([], [], ["web"])),
            },
            "where": draw_expression(random, Kind.BOOL, 3) if random.random() < 0.8 else None,
            "value": draw_expression(random, Kind.NUMBER, 3),
            "by": random.sample((*PATHS, "subject", "time", "id"), random.randrange(4)),
            "aggregates": ["avg", f"distinct({random.choice((*PATHS, 'subject', 'time'))})"],
        }
    )


def draw_expression(random: Random, kind: Kind, depth: int) -> str:
    """Return the text of an expression of a kind, fully in brackets."""
    if depth == 0:
        return _draw_leaf(random, kind)
    if kind is Kind.NUMBER:
        return _draw_number(random, depth)
    if kind is Kind.TEXT:
        return _draw_text(random, depth)
    return _draw_condition(random, depth)


def _draw_leaf(random: Random, kind: Kind) -> str:
    if kind is Kind.NUMBER:
        return random.choice((*PATHS, *PATHS, "time", *LITERAL_NUMBERS))
    if kind is Kind.TEXT:
        return random.choice((*PATHS, *PATHS, "subject", "type", *map(_quoted, LITERAL_TEXTS)))
    return random.choice((*PATHS, "true", "false"))


def _draw_number(random: Random, depth: int) -> str:
    def number() -> str:
        return draw_expression(random, Kind.NUMBER, depth - 1)

    match random.randrange(4):
        case 0:
            return _draw_leaf(random, Kind.NUMBER)
        case 1:
            name = random.choice(("abs", "round", "floor", "ceil"))
            return f"{name}({number()})"
        case 2:
            inner = draw_expression(random, Kind.TEXT, depth - 1)
            return random.choice((f"length({inner})", f"coalesce({number()}, {number()})"))
        case _:
            return f"({number()} {random.choice('+-*/%')} {number()})"


def _draw_text(random: Random, depth: int) -> str:
    inner = draw_expression(random, Kind.TEXT, depth - 1)
    return random.choice(
        (
            _draw_leaf(random, Kind.TEXT),
            f"lower({inner})",
            f"upper({inner})",
            f"substr({inner}, {random.randrange(1, 4)}, {random.randrange(4)})",
            f"substr({inner}, 2)",
            f"coalesce({inner}, {random.choice(PATHS)})",
        )
    )


def _draw_condition(random: Random, depth: int) -> str:
    def one(kind: Kind) -> str:
        return draw_expression(random, kind, depth - 1)

    op = random.choice(("=", "!=", "<", "<=", ">", ">="))
    # A literal on the right, so that the kind is always told.
    literal_text = _quoted(random.choice(LITERAL_TEXTS))
    literal_number = random.choice(LITERAL_NUMBERS)
    match random.randrange(10):
        case 0 | 1:
            return f"({one(Kind.NUMBER)} {op} {literal_number})"
        case 2:
            return f"({one(Kind.TEXT)} {op} {literal_text})"
        case 3:
            return f"({one(Kind.BOOL)} {random.choice(('=', '!='))} true)"
        case 4:
            return f"({one(Kind.BOOL)} {random.choice(('and', 'or'))} {one(Kind.BOOL)})"
        case 5:
            return f"(not {one(Kind.BOOL)})"
        case 6:
            size = random.choice((1, 3, 12))
            options = ", ".join(random.choices(LITERAL_NUMBERS, k=size))
            texts = ", ".join(map(_quoted, random.choices(LITERAL_TEXTS, k=size)))
            return random.choice(
                (f"({one(Kind.NUMBER)} in ({options}))", f"({one(Kind.TEXT)} not in ({texts}))")
            )
        case 7:
            return f"({one(Kind.TEXT)} like {_quoted(random.choice(PATTERNS))})"
        case 8:
            name = random.choice([n for n, f in FUNCTIONS.items() if f.gives is Kind.BOOL])
            return f"{name}({one(Kind.TEXT)}, {one(Kind.TEXT)})"
        case _:
            return random.choice(
                (
                    f"({random.choice(PATHS)} is not null)",
                    f"({random.choice((*PATHS, 'subject'))} is null)",
                    f"(({one(Kind.NUMBER)} + 1) is null)",
                    f"({one(Kind.NUMBER)} between {literal_number} and 100)",
                )
            )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
