"""Drawn metrics and events for the property test: hostile JSON, and every node of the language.

Some members hold mostly what an expression asks of them, others anything: hostile values
alone make nearly every tree null, and a tree that is null on all events proves little.
A seed gives the same cases for ever, so a failure is repeated by its seed.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from random import Random
from typing import Any

from weir.definitions.metric import Metric
from weir.expressions import ExpressionError, evaluate
from weir.expressions.functions import APPROXIMATED, CHOOSING, FUNCTIONS
from weir.expressions.parse import parse_kind
from weir.expressions.times import UNITS
from weir.expressions.tree import Call, Kind, Node

PATHS = (
    "data.a",
    "data.A",
    "data.b",
    "data.c",
    'data."a b"',
    "data.deep.a",
    "data.deep.x.y",
    "data.é",
    "data.list[0]",
    "data.list[1].a",
    "data.deep.x[1][0]",
)
TYPED = {
    Kind.NUMBER: ("data.n", "data.m", "data.typed.n", "data.list[0]", "extension.sequence"),
    Kind.TEXT: ("data.s", "data.u", "data.typed.s", "extension.traceparent", "subject"),
    Kind.BOOL: ("data.f", "data.g", "data.typed.f", "extension.sampled"),
}
"""Paths that mostly hold a value of a kind."""
FITTING = {
    **dict.fromkeys(("url_host", "url_path", "url_query"), "data.url"),
    **dict.fromkeys(("ua_browser", "ua_os", "ua_device"), "data.agent"),
    **{"to_time": "data.at", "to_number": "data.numeral"},
    **dict.fromkeys(("year", "month", "day", "day_of_week", "hour", "minute"), "data.ms"),
    **{"date_trunc": "data.ms", "exp": "data.m", "to_text": "data.n"},
    **dict.fromkeys(("sqrt", "ln", "log10", "power"), "abs(data.n)"),
}
"""Function -> what it mostly makes something of."""
MEMBERS = {
    **{"n": Kind.NUMBER, "m": Kind.NUMBER, "s": Kind.TEXT, "u": Kind.TEXT},
    **{"f": Kind.BOOL, "g": Kind.BOOL},
}
ATTRIBUTES = (
    *("subject", "partitionkey", "extension.sequence", "extension.traceparent"),
    "extension.sampled",
)
ARRAYS = ("data.tags", "data.tags", "data.list", "data.deep.x")
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
# Times, and what is just beyond what counts as one; and numbers in the middle of two roundings.
TIMES = (
    *("1700000000123", "951782400000", "-62135596800000", "253402300799999", "-1", "86399999.9"),
    *("999999999999999", "1000000000000000", "-999999999999999.5", "-1000000000000000"),
    *("-2208988800001", "4102444799999", "-12219292800000", "68169600000"),
    *("2.675", "1.005", "-0.125", "1234567.8905", "5e-16"),
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
NUMERALS = (
    *("12.5", "-3e2", "+07", "1.", ".5", "1e400", "1e-400", "0x1p3", "1d", "1_0", " 1", "1\n"),
    *("-0", "١٢", "9" * 40, "9" * 41, "1e99999", "5e", "-", "nan", "1.7976931348623159e308"),
)
INSTANTS = (
    *("2026-01-31T12:30:00.5Z", "2026-01-31", "2026-02-30", "2024-02-29 23:59:59", "1900-02-29"),
    *("2026-01-31T12:30", "2026-01-31T12:30Z", "2026-01-31T12:30:00+02:00", "now", "today"),
    *("2026-01-31T12:30:00-0930", "2026-01-31T12:30:00+18:00", "2026-01-31T12:30:00+18:01"),
    *("0000-01-01", "9999-12-31T23:59:59.999999999-18:00", "2026-01-31T24:00:00", "T12:30:00"),
    *("2026-01-31T12:60:00", "2026-01-31T12:30:60", "2026-13-01", "2026-00-10", "2026-1-1"),
    *("2026-01-31T12:30:00.", "2026-01-31T12:30:00z", "2026-01-31t12:30:00", "1582-10-10T00:00:00"),
    *("2026-01-31T12:30:00.1234567891", "2026-01-31\n", "2026-01-31T12:30:00 Europe/Berlin"),
    *("1969-12-31T23:59:59.9999", "2026-01-31T12:30:00+02", "2026-01-31T12:30:00+02:99"),
)
URLS = (
    *("https://Shop.Example.com/pay?a=1&utm_source=News#top", "/pay?x=&a=2&a=3", "//CDN.example/x"),
    *("http://user:p@ss@host:8080/", "http://[::1]:80/a?b", "http://[::1", "http://[]/"),
    *("mailto:a@b", "https://", "https://@", "https://a@", "http://:80/"),
    *("HTTP://É.example/ä b?a=ö|[]&b=%zz", "https://u@[::A]x/", "https:/one/slash"),
    *("a=1&b=2", "?a", "?a=", "?&&a=1=2&", "#?a=1", "x?y?a=1", "https://h?a=1/2?3", "1http://x/y"),
    *("https://a@b@c/d", "https:///p", "javascript:a//b?c"),
)
AGENTS = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like"
    " Gecko) Version/17.4 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    *("curl/8.5.0", "Mozilla/5.0 (", "Mozilla/5.0 (Linux; Android 14; é😀)", "Opera/9.80 (\0)"),
    *(
        "python-requests/2.32",
        "; " * 300,
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Firefox/128.0",
    ),
)
OTHERS = (
    *("null", "true", "false", "NaN", "[]", "[1,2]", "{}", '{"y":1}', '{"a":1,"a":"x"}'),
    *('[[3],{"a":"x"}]', '["é",[5,null]]', '[null,{"a":7.5,"y":[1]}]', '{"0":1,"[0]":2}'),
)
LITERAL_TEXTS = ("eu", "7", "a", "ab", "", "é", "it's", "a%b_c", "Straße İ")
LITERAL_NUMBERS = ("0", "1", "7.5", "-2.5", "100", "9007199254740992", "1e100", "0.1", "3")
PATTERNS = (
    *("a%", "%b", "%a%b%", "eu", "%", "%|%", "é%x", "a\\%b\\_c", "%a%a%", "%%e%u", "%E%"),
    # What ends a quotation in a regex of Java.
    *("%\\\\E%", "%\\\\Q%\\\\E%", "%\\\\E.*\\\\Q%", "%\\\\%E%"),
)
_FILLERS = ("'0'", "'é😀'", "'ab'", "'|'")
LITERALS = {
    "trim": (("' '", "'ax'", "'é|'", "'😀'", "'\\'"),),
    "lpad": (("0", "1", "3", "256"), _FILLERS),
    "substr": (("1", "2", "3", "2147483647"), ("0", "1", "3", "2147483647")),
    "left": (("0", "1", "4", "2147483647"),),
    "replace": (("'a'", "'ab'", "'é😀'", "'\\E'", "'|'"), ("''", "'b'", "'é'", "'$'")),
    "split_part": (("'a'", "'ab'", "'|'", "'.'", "'/'"), ("1", "2", "-1", "-3", "1000")),
    "url_query": (("'a'", "'utm_source'", "'b'", "'x'", "'.*'"),),
    "round": (("0", "1", "2", "15"),),
    "date_trunc": (tuple(f"'{unit}'" for unit in UNITS),),
}
LITERALS |= {name: LITERALS[like] for name, like in (("ltrim", "trim"), ("rtrim", "trim"))}
LITERALS |= {name: LITERALS[like] for name, like in (("rpad", "lpad"), ("right", "left"))}
"""What may stand where an operand must be a literal, function by function."""


def draw_typed(random: Random, kind: Kind) -> str:
    """Return the raw JSON of a value of a kind that literals are compared with; seldom of any."""
    if random.random() < 0.08:
        return draw_value(random)
    if kind is Kind.BOOL:
        return random.choice(("true", "false"))
    if kind is Kind.TEXT:
        return json.dumps(random.choice((*LITERAL_TEXTS, "abcab", "EU", "a-b/c")))
    number = random.choice((*LITERAL_NUMBERS[:5], "2", "-1", repr(random.uniform(-20, 120))))
    return number if random.random() < 0.9 else random.choice((*NUMBERS, *TIMES))


def draw_value(random: Random, depth: int = 0) -> str:
    """Return the raw JSON of a value."""
    kind = random.randrange(28)
    if kind < 7:
        return random.choice(NUMBERS)
    if kind < 9:
        return repr(random.uniform(-1e6, 1e6))
    if kind < 12:
        return random.choice((random.choice(TIMES), str(random.randrange(-(10**14), 10**14))))
    if kind < 18:
        return random.choice(TEXTS)
    if kind < 22:
        texts = random.choice((NUMERALS, INSTANTS, URLS, AGENTS, LITERAL_TEXTS))
        return json.dumps(random.choice(texts))
    if kind < 26 or depth > 2:
        return random.choice(OTHERS)
    return draw_object(random, ("a", "x", "y"), depth + 1)


def draw_object(random: Random, names: tuple[str, ...], depth: int = 0) -> str:
    """Return the raw JSON of an object, in which a name may stand twice or not at all."""
    members = []
    for name in names:
        for _ in range(random.choice((0, 1, 1, 1, 1, 1, 1, 2))):
            nested = name in ("deep", "x") and random.random() < 0.8
            if nested and depth < 3:
                value = draw_object(random, ("a", "x", "y"), depth + 1)
            elif name == "list" and random.random() < 0.8:
                size = random.randrange(4)
                value = f"[{','.join(draw_value(random, depth + 1) for _ in range(size))}]"
            else:
                value = draw_value(random, depth)
            members.append(f"{json.dumps(name, ensure_ascii=False)}:{value}")
    random.shuffle(members)
    return "{" + ",".join(members) + "}"


def draw_event(random: Random) -> str:
    """Return the raw JSON of an event as ingest writes it, with whatever data."""
    hostile = draw_object(random, ("a", "A", "b", "c", "a b", "deep", "é", "list"))
    data = "{" + ",".join(_friendly(random)) + "," + hostile[1:] if len(hostile) > 2 else hostile
    if random.random() < 0.04:
        data = random.choice(('"text"', "[1]", "null", "5"))
    said = {
        "subject": random.choice((*TEXTS[7:], '"eu"', '"a"')),
        "partitionkey": random.choice(('"eu"', '"7"', "7", "-12", "true", "false")),
        "sequence": draw_typed(random, Kind.NUMBER),
        "traceparent": draw_typed(random, Kind.TEXT),
        "sampled": draw_typed(random, Kind.BOOL),
    }
    given = "".join(f'"{name}":{of},' for name, of in said.items() if random.random() < 0.9)
    return (
        f'{{"weirid":"{"0" * 32}","weirms":"{random.randrange(-5, 2**41):+016d}",'
        f'"specversion":"1.0","id":"{random.randrange(100)}","source":"s",'
        f'"type":"{random.choice(("t", "t.a", "T"))}","weirtenant":"default",'
        f'"weirsource":"{random.choice(("web", "app"))}",{given}"data":{data}}}'
    )


def _friendly(random: Random) -> list[str]:
    """Return members that mostly hold what is asked of them."""
    typed = [f'"{name}":{draw_typed(random, kind)}' for name, kind in MEMBERS.items()]
    tags = [draw_typed(random, random.choice(list(Kind))) for _ in range(random.randrange(5))]
    return [
        *random.sample(typed, random.choice((5, 6, 6, 6))),
        f'"typed":{{{",".join(typed[::2])}}}',
        f'"url":{json.dumps(random.choice(URLS[:4]))}',
        f'"agent":{json.dumps(random.choice(AGENTS[:4]))}',
        f'"at":{json.dumps(random.choice(INSTANTS[:12]))}',
        f'"numeral":{json.dumps(random.choice(NUMERALS[:7]))}',
        f'"ms":{random.choice((*TIMES[:6], str(random.randrange(2**41))))}',
        f'"tags":[{",".join(tags)}]',
    ]


def draw_metric(random: Random, name: str) -> Metric:
    """Return a metric whose texts were drawn and then parsed, as a user's are."""
    return Metric.model_validate(
        {
            "name": name,
            "events": {
                "type": random.choice((["t"], ["t*"], ["t", "T"], ["t.a", "x*"], ["*"])),
                "source": random.choice(([], [], ["web"])),
            },
            "where": draw_exact(random, Kind.BOOL, 2) if random.random() < 0.8 else None,
            "value": draw_exact(random, Kind.NUMBER, 2),
            "by": draw_dimensions(random),
            "aggregates": ["avg", f"distinct({random.choice((*PATHS, *ATTRIBUTES, 'time'))})"],
        }
    )


def draw_dimensions(random: Random) -> list[str]:
    """Return dimensions, some of which are computed."""
    read = random.sample((*PATHS, *ATTRIBUTES, "time", "id"), random.randrange(4))
    count = random.choice((0, 0, 1, 2))
    kinds = random.choices((Kind.TEXT, Kind.NUMBER, Kind.BOOL), (2, 1, 1), k=count)
    drawn = (draw_exact(random, kind, 2) for kind in kinds)
    computed = [f"{text} as x{at}" for at, text in enumerate(drawn)]
    return random.sample([*read, *computed], len(read) + count)


def draw_expression(random: Random, kind: Kind, depth: int) -> str:
    """Return the text of an expression of a kind, fully in brackets."""
    if depth == 0:
        return _draw_leaf(random, kind)
    if random.random() < 0.15:
        return _draw_choice(random, kind, depth)
    if kind is Kind.NUMBER:
        return _draw_number(random, depth)
    if kind is Kind.TEXT:
        return _draw_text(random, depth)
    return _draw_condition(random, depth)


def draw_call(random: Random, name: str, depth: int) -> str:
    """Return a call of a function of the table."""
    function = FUNCTIONS[name]
    takes = function.takes[: len(function.takes) - random.randint(0, function.optional)]
    takes += takes[-1:] * random.randrange(3) if function.repeats else ()
    literals = iter(LITERALS.get(name, ()))
    operands = [
        draw_expression(random, operand.kind, depth - 1)
        if operand.rule is None
        else random.choice(next(literals))
        for operand in takes
    ]
    if name in FITTING and random.random() < 0.7:
        operands[-1 if name == "date_trunc" else 0] = FITTING[name]
    if name == "replace" and len(operands[1]) < len(operands[2]):
        operands[2] = "''"
    if name == "position":
        return f"position({operands[1]} in {operands[0]})"
    return f"{name}({', '.join(operands)})"


def functions_giving(kind: Kind) -> list[str]:
    """Return the functions of the table that give a kind."""
    return [name for name, function in FUNCTIONS.items() if function.gives is kind]


def draw_exact(random: Random, kind: Kind, depth: int) -> str:
    """Return a drawn expression that Python and Spark compute to the same last digit."""
    while True:
        text = draw_expression(random, kind, depth)
        if not any(f"{name}(" in text for name in APPROXIMATED):
            return text


def _draw_leaf(random: Random, kind: Kind) -> str:
    if random.random() < 0.7:
        return random.choice(TYPED[kind])
    if kind is Kind.NUMBER:
        return random.choice((*PATHS, *PATHS, "time", *LITERAL_NUMBERS))
    if kind is Kind.TEXT:
        return random.choice((*PATHS, *PATHS, "partitionkey", "type", *map(_quoted, LITERAL_TEXTS)))
    return random.choice((*PATHS, "true", "false"))


def _draw_choice(random: Random, kind: Kind, depth: int) -> str:
    """Return one of the forms that give whatever kind they are given."""

    def one(of: Kind = kind) -> str:
        return draw_expression(random, of, depth - 1)

    typed = {Kind.NUMBER: f"{one()} + 0", Kind.TEXT: f"lower({one()})", Kind.BOOL: f"not {one()}"}
    match random.randrange(5):
        case 0:
            end = random.choice(("", f" else {one()}", " else null"))
            return f"(case when {one(Kind.BOOL)} then {typed[kind]}{end} end)"
        case 1:
            number = random.choice(LITERAL_NUMBERS)
            cases = f"when {number} then {one()} when 3 then null when {one(Kind.NUMBER)} then"
            return f"(case {one(Kind.NUMBER)} {cases} {typed[kind]} else {one()} end)"
        case 2:
            return f"if({one(Kind.BOOL)}, {one()}, {typed[kind]})"
        case 3:
            return f"nullif({typed[kind]}, {one()})"
        case _:
            name = "coalesce" if kind is Kind.BOOL else random.choice(CHOOSING)
            return f"{name}({one()}, {typed[kind]}, {one()})"


def _draw_number(random: Random, depth: int) -> str:
    def number() -> str:
        return draw_expression(random, Kind.NUMBER, depth - 1)

    match random.randrange(7):
        case 6:
            return draw_call(random, random.choice(sorted(APPROXIMATED)), depth)
        case 0:
            return _draw_leaf(random, Kind.NUMBER)
        case 1 | 2 | 3:
            return draw_call(random, random.choice(functions_giving(Kind.NUMBER)), depth)
        case 4:
            path = random.choice((*ARRAYS, random.choice(PATHS)))
            other = f"mod({number()}, {number()})"
            return random.choice((f"array_length({path})", f"age({number()})", other))
        case _:
            return f"({number()} {random.choice('+-*/%')} {number()})"


def _draw_text(random: Random, depth: int) -> str:
    if random.random() < 0.2:
        return _draw_leaf(random, Kind.TEXT)
    return draw_call(random, random.choice(functions_giving(Kind.TEXT)), depth)


def _draw_condition(random: Random, depth: int) -> str:
    def one(kind: Kind) -> str:
        return draw_expression(random, kind, depth - 1)

    op = random.choice(("=", "!=", "<", "<=", ">", ">="))
    # A literal on the right, so that the kind is always told.
    literal_text = _quoted(random.choice(LITERAL_TEXTS))
    literal_number = random.choice(LITERAL_NUMBERS)
    match random.randrange(11):
        case 10:
            item = random.choice((literal_text, literal_number, "true", "-0"))
            return f"has({random.choice((*ARRAYS, random.choice(PATHS)))}, {item})"
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
            like = random.choice(("like", "not like", "ilike"))
            return f"({one(Kind.TEXT)} {like} {_quoted(random.choice(PATTERNS))})"
        case 8:
            return draw_call(random, random.choice(functions_giving(Kind.BOOL)), depth)
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


def forms_of(name: str) -> list[str]:
    """Return calls of a function on `data.x` and `data.y` that use each of its literals once."""
    function = FUNCTIONS[name]
    choices = LITERALS.get(name, ((),))
    forms = []
    for at in range(max(1, *map(len, choices))):
        literals = iter(choices)
        read = iter(("data.x", "data.y"))
        operands = []
        for operand in function.takes:
            found = next(read) if operand.rule is None else next(literals)
            operands.append(found if isinstance(found, str) else found[at % len(found)])
        if name == "replace" and len(operands[1]) < len(operands[2]):
            operands[2] = "''"
        shortest = operands[: len(operands) - function.optional]
        forms += [shortest, operands] if shortest != operands else [operands]
    calls = [f"{name}({', '.join(operands)})" for operands in forms]
    if name == "position":
        calls = ["position(data.y in data.x)"]
    return list(dict.fromkeys(calls))


def every_function() -> list[Node]:
    """Return calls of every function of the table."""
    return [
        parse_kind(form, FUNCTIONS[name].gives) for name in FUNCTIONS for form in forms_of(name)
    ]


def drawn_trees(random: Random, count: int) -> list[Node]:
    """Return drawn expressions of all kinds."""
    drawn: list[Node] = []
    while len(drawn) < count:
        kind = random.choice(list(Kind))
        # One that is beyond a limit is no case.
        with contextlib.suppress(ExpressionError):
            drawn.append(parse_kind(draw_expression(random, kind, 3), kind))
    return drawn


def event_of(data: str, **attributes: str | int | None) -> str:
    """Return the raw JSON of an event of type `t`."""
    extra = "".join(f'"{name}":{json.dumps(value)},' for name, value in attributes.items())
    return (
        f'{{"weirid":"{"0" * 32}","weirms":"+000001700000000","type":"t","source":"s","id":"1",'
        f'"weirtenant":"default","weirsource":"web",{extra}"data":{data}}}'
    )


def function_events() -> list[str]:
    """Return events for `every_function`, as raw JSON: each value beside another one."""
    texts = [json.dumps(text) for text in (*NUMERALS, *INSTANTS, *URLS, *AGENTS)]
    values = [*NUMBERS, *TIMES, *TEXTS, *texts, "null", "true", "[1]"]
    others = [*values[7:], *values[:7]]
    return [event_of(f'{{"x":{x},"y":{y}}}') for x, y in zip(values, others, strict=True)]


def assert_as_the_reference(tree: Node, event: Mapping[str, Any], got: Any) -> None:
    """Assert that a function gave what the reference gives, some of them but for the last digit."""
    wanted = evaluate(tree, event)
    if isinstance(tree, Call) and tree.name in APPROXIMATED and wanted is not None:
        assert isinstance(wanted, float)
        assert abs(got - wanted) <= math.ulp(wanted), (event, tree)
    else:
        assert (got, type(got)) == (wanted, type(wanted)), (event, tree)


def assert_within(got: Any, low: Any, high: Any, case: object) -> None:
    """Assert that a value lies in its span (`jobs/digits.py`), and has the type of its ends."""
    if low == high:
        assert (got, type(got)) == (low, type(low)), case
    else:
        assert isinstance(got, float), case
        assert low <= got <= high, case
