"""What is refused: with a code, the place, what was typed there, and a mend of that very slip."""

from __future__ import annotations

import re
from typing import Final

import pytest
from weir.expressions import ExpressionError, Kind, parse_where
from weir.expressions.parse import parse_kind
from weir.expressions.slip_words import OPERATORS, SIGNS, UNSAID
from weir.expressions.slips import slip_of
from weir.problems import Reason, echo

from .expression_mends import can_be_written, codes_of

CASES: Final = [
    # What is told as the fault stands between the marks; where something is missing, nothing does.
    ("⟦status⟧ < 500", Reason.EXPRESSION_INVALID, "write data.status"),
    ("⟦status⟧ < 500", Reason.EXPRESSION_INVALID, "or extension.status for an extension"),
    ("⟦user_id⟧ = 'x'", Reason.EXPRESSION_INVALID, "; write data.user_id"),
    ("⟦extension⟧ = 1", Reason.EXPRESSION_INVALID, "name it: extension.traceparent"),
    ("⟦extension.subject⟧ = 'x'", Reason.EXPRESSION_INVALID, "write subject"),
    ("⟦extension.txId⟧ = 'x'", Reason.EXPRESSION_INVALID, "write extension.txid: ingest"),
    ("⟦extension.user_id⟧ = 'x'", Reason.EXPRESSION_INVALID, "a-z and 0-9"),
    ("⟦extension.weirtenant⟧ = 'x'", Reason.EXPRESSION_INVALID, "not taken from clients"),
    ("⟦extension.trace.id⟧ = 'x'", Reason.EXPRESSION_INVALID, "extension.trace has no mem"),
    ("⟦extension.trace[0]⟧ = 'x'", Reason.EXPRESSION_INVALID, "extension.trace has no mem"),
    ("⟦extension.data⟧ = 'x'", Reason.EXPRESSION_INVALID, "is below data"),
    ("array_length(⟦extension.a⟧) = 1", Reason.EXPRESSION_INVALID, "a path below data"),
    ("has(⟦subject⟧, 'a')", Reason.EXPRESSION_INVALID, "has(data.tags, 'eu')"),
    ("has(data.a, ⟦data.b⟧)", Reason.EXPRESSION_INVALID, "part of the definition"),
    ("⟦has(data.a)⟧", Reason.EXPRESSION_INVALID, "like has(data.tags, 'eu')"),
    ("⟦'eu' in data.tags⟧", Reason.EXPRESSION_INVALID, "of an array has(data.tags, 'a')"),
    ("⟦data⟧ = 1", Reason.EXPRESSION_INVALID, "name the member: data.amount"),
    ("⟦subject.x⟧ = 'a'", Reason.EXPRESSION_INVALID, "subject has no members"),
    ("id > ⟦5⟧", Reason.EXPRESSION_INVALID, "must be text"),
    ("⟦data.a = data.b⟧", Reason.EXPRESSION_INVALID, "add 0 to compare numbers"),
    ("not ⟦data.a = data.b⟧", Reason.EXPRESSION_INVALID, "add 0 to compare numbers"),
    ("data.a = ⟦null⟧", Reason.EXPRESSION_INVALID, 'write "is null"'),
    ("⟦data.a > true⟧", Reason.EXPRESSION_INVALID, "use = or !="),
    ("not ⟦data.a > true⟧", Reason.EXPRESSION_INVALID, "use = or !="),
    ("data.a = 1 and not ⟦data.b > true⟧", Reason.EXPRESSION_INVALID, "use = or !="),
    ("⟦data.a not in (true) > true⟧", Reason.EXPRESSION_INVALID, "use = or !="),
    ("data.a in (1, ⟦'x'⟧)", Reason.EXPRESSION_INVALID, "literals of one type"),
    ("data.a in (⟦data.b⟧)", Reason.EXPRESSION_INVALID, "a list of literals"),
    ("data.a like ⟦'x_'⟧", Reason.EXPRESSION_INVALID, "write \\_ for the sign"),
    ("data.a like ⟦data.b⟧", Reason.EXPRESSION_INVALID, "pattern as a literal"),
    ("data.a + ⟦'x'⟧ > 1", Reason.EXPRESSION_INVALID, "this is text"),
    ("data.⟦select⟧ = 1", Reason.EXPRESSION_INVALID, 'double quotes: data."select"'),
    ("data.a > 1 and⟦⟧", Reason.EXPRESSION_INVALID, "write a value there, or leave and out"),
    ("data.a = ⟦1e999⟧", Reason.EXPRESSION_INVALID, "write a smaller one"),
    ("⟦round(data.a, 2, 3)⟧ = 1", Reason.EXPRESSION_INVALID, "like round(data.price, 2)"),
    ("substr(data.a, ⟦data.b⟧) = 'x'", Reason.EXPRESSION_INVALID, "whole number from 1 on"),
    ("substr(data.a, ⟦0⟧) = 'x'", Reason.EXPRESSION_INVALID, "whole number from 1 on"),
    ("data.a = 1⟦; drop table x⟧", Reason.FUNCTION_NOT_ALLOWED, "write one condition"),
    ("⟦lowr(data.a)⟧ = 'x'", Reason.FUNCTION_NOT_ALLOWED, 'did you mean "lower"?'),
    ("⟦reflect('java.lang.System', 'exit')⟧", Reason.FUNCTION_NOT_ALLOWED, "functions are"),
    ("⟦java_method('a', 'b')⟧", Reason.FUNCTION_NOT_ALLOWED, "the functions are"),
    ("exists(⟦select 1)⟧", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("(⟦select 1)⟧", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("data.a in (⟦select 1)⟧", Reason.FUNCTION_NOT_ALLOWED, "write one condition"),
    ("exists(⟦select * from csv.`/etc/passwd`)⟧", Reason.FUNCTION_NOT_ALLOWED, "write one"),
    ("csv.⟦`/etc/passwd` = 1⟧", Reason.FUNCTION_NOT_ALLOWED, "write one condition"),
    ("⟦rand()⟧ > 0.5", Reason.FUNCTION_NOT_ALLOWED, "the functions are"),
    ("⟦now()⟧ > 1", Reason.FUNCTION_NOT_ALLOWED, "the functions are"),
    ("data.a⟦::⟧int = 1", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("data.a ⟦rlike⟧ '(a+)+$'", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("⟦data.a is true⟧", Reason.FUNCTION_NOT_ALLOWED, 'write "= true" or "is null"'),
    ("not ⟦data.a is true⟧", Reason.FUNCTION_NOT_ALLOWED, 'write "= true" or "is null"'),
    ("⟦data.a is not true⟧", Reason.FUNCTION_NOT_ALLOWED, 'write "!= true" or "is not null"'),
    ("⟦data.a is not data.b⟧", Reason.FUNCTION_NOT_ALLOWED, 'write "!= data.b + 0" of a number'),
    ("⟦data.a is source⟧", Reason.FUNCTION_NOT_ALLOWED, 'write "= source" or "is null"'),
    ("⟦data.a is not missing⟧", Reason.FUNCTION_NOT_ALLOWED, 'alone; write "is not null"'),
    ("data.a ⟦is distinct from⟧ data.b", Reason.FUNCTION_NOT_ALLOWED, "write !=;"),
    ("data.a ⟦IS NOT distinct FROM⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write =;"),
    ("⟦data.*⟧ = 1", Reason.FUNCTION_NOT_ALLOWED, "name one member"),
    ("⟦status\1⟧ = 1", Reason.EXPRESSION_INVALID, "such a member cannot be read"),
    ("data.a[⟦-1⟧] = 1", Reason.EXPRESSION_INVALID, "counted from 0"),
    ("data.a[⟦10000⟧] = 1", Reason.EXPRESSION_INVALID, "from 0 to 9999"),
    ("data.a[⟦'x'⟧] = 1", Reason.EXPRESSION_INVALID, "a name stands in quotes"),
    ("data.a[⟦data.b⟧] = 1", Reason.EXPRESSION_INVALID, "counted from 0"),
    ("data.a[⟦1:2⟧] = 1", Reason.EXPRESSION_INVALID, "counted from 0"),
    ("data.b = 1 and ⟦data.a[:]⟧ = 1", Reason.EXPRESSION_INVALID, "counted from 0"),
    ('⟦data."[0]"⟧ = 1', Reason.EXPRESSION_INVALID, "without quotes, brackets"),
    ("⟦data[0]⟧ = 1", Reason.EXPRESSION_INVALID, "name the array: data.items[0]"),
    ("⟦subject[0]⟧ = 'a'", Reason.EXPRESSION_INVALID, "subject has no members"),
    ("array_length(⟦subject⟧) = 1", Reason.EXPRESSION_INVALID, "a path below data"),
    ("case when data.a then 1 else ⟦'x'⟧ end = 1", Reason.EXPRESSION_INVALID, "this is text"),
    ("⟦case data.a when data.b then 1 end⟧ = 1", Reason.EXPRESSION_INVALID, "known type"),
    ("data.a > ⟦null⟧", Reason.EXPRESSION_INVALID, 'write "is null"'),
    ("coalesce(data.a, ⟦null⟧) = 1", Reason.EXPRESSION_INVALID, "of case and if only"),
    ("if(data.a⟦)⟧ = 1", Reason.EXPRESSION_INVALID, "if takes 2 or 3 operands, and there is 1"),
    ("⟦nullif(data.a)⟧ = 1", Reason.EXPRESSION_INVALID, "like nullif(data.total, 0)"),
    ("⟦least(data.a)⟧ = 1", Reason.EXPRESSION_INVALID, "like least(data.a, data.b)"),
    ("⟦greatest(true, data.a)⟧", Reason.EXPRESSION_INVALID, "have no order"),
    ("replace(data.a, ' ', ⟦'%20'⟧) = 'x'", Reason.EXPRESSION_INVALID, "must not grow"),
    ("replace(data.a, ⟦''⟧, 'x') = 'x'", Reason.EXPRESSION_INVALID, "at least one character"),
    ("lpad(data.a, ⟦257⟧) = 'x'", Reason.EXPRESSION_INVALID, "from 0 to 256"),
    ("left(data.a, ⟦length(data.b)⟧) = 'x'", Reason.EXPRESSION_INVALID, "part of the def"),
    ("split_part(data.a, '/', ⟦0⟧) = 'x'", Reason.EXPRESSION_INVALID, "whole number, not 0"),
    ("split_part(data.a, ⟦data.b⟧, 1) = 'x'", Reason.EXPRESSION_INVALID, "part of the def"),
    ("date_trunc(⟦'decade'⟧, time) = 1", Reason.EXPRESSION_INVALID, "one of second, minute"),
    ("url_query(data.a, ⟦'a=b'⟧) = 'x'", Reason.EXPRESSION_INVALID, "without & = #"),
    ("round(data.a, ⟦16⟧) = 1", Reason.EXPRESSION_INVALID, "from 0 to 15"),
    ("⟦repeat(data.a, 1000)⟧ = 'x'", Reason.FUNCTION_NOT_ALLOWED, "the functions are"),
    ("⟦log(data.a)⟧ = 1", Reason.FUNCTION_NOT_ALLOWED, 'write "ln" or "log10"'),
    ("age(⟦now()⟧) > 1", Reason.FUNCTION_NOT_ALLOWED, "the event's is time"),
    ("⟦current_date⟧ = 1", Reason.FUNCTION_NOT_ALLOWED, "the event's is time"),
    ("⟦cast(data.a as int)⟧ = 1", Reason.FUNCTION_NOT_ALLOWED, "write to_number"),
    ("lower(data.a) ⟦over⟧ () = 'x'", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("lower(⟦distinct⟧ data.a) = 'x'", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("lower(x ⟦->⟧ x) = 'x'", Reason.FUNCTION_NOT_ALLOWED, "must be made of"),
    ("⟦count(*)⟧ > 1", Reason.FUNCTION_NOT_ALLOWED, "the functions are"),
    ("data.a = ⟦'x⟧", Reason.EXPRESSION_INVALID, "close the text"),
    ('⟦data."a\'b"⟧ = 1', Reason.EXPRESSION_INVALID, "without quotes"),
    ("data.a > ⟦>⟧ 1", Reason.EXPRESSION_INVALID, "write a value between > and >, or leave one"),
    ("data.a > 1 or⟦⟧", Reason.EXPRESSION_INVALID, "write a value there, or leave or out"),
    ("data.a +⟦⟧", Reason.EXPRESSION_INVALID, "write a value there, or leave + out"),
    ("+⟦⟧", Reason.EXPRESSION_INVALID, "write a value there, or leave + out"),
    ("⟦and⟧ data.a", Reason.EXPRESSION_INVALID, "write a value there, or leave and out"),
    (
        "data.a = 1 or ⟦or⟧ data.b = 2",
        Reason.EXPRESSION_INVALID,
        "write a value between or and or, or leave one",
    ),
    ("data.a = 1 and not⟦⟧", Reason.EXPRESSION_INVALID, "write a value there, or leave not out"),
    ("data.a != ⟦=⟧ 1", Reason.EXPRESSION_INVALID, "write a value between != and =, or leave one"),
    ("data.a > ⟦=⟧ 1", Reason.EXPRESSION_INVALID, "write >= without a blank in it"),
    ("data.a ⟦===⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write ="),
    ("data.a ⟦!==⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write !="),
    ("data.a ⟦=>⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write >="),
    ("data.a ⟦=<⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write <="),
    ("data.a ⟦><⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write !="),
    ("data.a ⟦&&⟧ data.b", Reason.FUNCTION_NOT_ALLOWED, "write and"),
    (
        "data.a = 1 ⟦&⟧ data.b = 2",
        Reason.FUNCTION_NOT_ALLOWED,
        "numbers have no bits here; write and or or",
    ),
    (
        "data.a = 1 ⟦|⟧ data.b = 2",
        Reason.FUNCTION_NOT_ALLOWED,
        "write or; two texts are joined by ||",
    ),
    (
        "data.a = ⟦1⟧ || data.b = 2",
        Reason.EXPRESSION_INVALID,
        "this is a number; a text stands in single",
    ),
    ("⟦data.a || data.b⟧", Reason.EXPRESSION_INVALID, "this is text; || joins texts; write or"),
    ("data.a ⟦^⟧ 2 > 1", Reason.FUNCTION_NOT_ALLOWED, "write power(data.a, 2)"),
    ("data.a ⟦**⟧ 2 > 1", Reason.FUNCTION_NOT_ALLOWED, "write power(data.a, 2)"),
    ("data.a ⟦//⟧ 2 = 1", Reason.FUNCTION_NOT_ALLOWED, "write floor(data.a / 2)"),
    (
        "data.a ⟦<<⟧ 2 = 1",
        Reason.FUNCTION_NOT_ALLOWED,
        "numbers have no bits here; write and or or",
    ),
    (
        "data.a ⟦->⟧ 'b' = 'x'",
        Reason.FUNCTION_NOT_ALLOWED,
        "name the member with points: data.cart.total",
    ),
    ("data.a⟦:⟧b = 1", Reason.FUNCTION_NOT_ALLOWED, "name the member with points: data.cart.total"),
    ("data.a ⟦?⟧ 1 : 2", Reason.FUNCTION_NOT_ALLOWED, "write if(data.paid, data.total, 0)"),
    ("data.a ⟦??⟧ 0 = 1", Reason.FUNCTION_NOT_ALLOWED, "write coalesce(data.a, 0)"),
    ("data.a ⟦~⟧ 'x'", Reason.FUNCTION_NOT_ALLOWED, "write like 'a%', in which % stands for any"),
    ("data.a = ⟦{⟧1}", Reason.FUNCTION_NOT_ALLOWED, "a list stands in round brackets: in (1, 2)"),
    ("data.a ⟦#⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "leave it out; operators are = != < <= > >= +"),
    ("data.a = ⟦$⟧1", Reason.FUNCTION_NOT_ALLOWED, "name a member of the event: data.amount"),
    ("data.a = ⟦@⟧x", Reason.FUNCTION_NOT_ALLOWED, "name a member of the event: data.amount"),
    ("data.a ⟦≥⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write >="),
    ("data.a = ⟦“x”⟧", Reason.EXPRESSION_INVALID, "write ' in place of “"),
    ("data.a = ⟦“x” and⟧", Reason.EXPRESSION_INVALID, "write ' in place of “"),
    ("data.a = ⟦`x`⟧", Reason.FUNCTION_NOT_ALLOWED, "write one condition on members of the event;"),
    ("data.a = 'it⟦'s'⟧", Reason.EXPRESSION_INVALID, "double a quote within a text: 'it''s'"),
    ('data.a = ⟦"x⟧', Reason.EXPRESSION_INVALID, 'close the text with "'),
    ("'x' ⟦'y'⟧ = 'z'", Reason.EXPRESSION_INVALID, "put || between two texts to join them, or a"),
    ("data.a ⟦'x'⟧", Reason.EXPRESSION_INVALID, "put what joins or compares them between: and,"),
    ("data.a ⟦1⟧", Reason.EXPRESSION_INVALID, "put what joins or compares them between: and,"),
    ("data.a ⟦data⟧.b", Reason.EXPRESSION_INVALID, "put what joins or compares them between: and,"),
    (
        "data.user ⟦agent⟧ = 'x'",
        Reason.EXPRESSION_INVALID,
        "put what joins or compares them between: and,",
    ),
    (
        "data.a = 1 ⟦data⟧.b = 2",
        Reason.EXPRESSION_INVALID,
        "put what joins or compares them between: and,",
    ),
    (
        "data.a ⟦contains⟧ 'x'",
        Reason.EXPRESSION_INVALID,
        "contains is a function: contains(data.a, …)",
    ),
    ("data.a ⟦startswith⟧ 'x'", Reason.EXPRESSION_INVALID, "starts_with is a function:"),
    ("data.a ⟦equals⟧ 1", Reason.FUNCTION_NOT_ALLOWED, "write ="),
    ("data.a ⟦xor⟧ data.b", Reason.FUNCTION_NOT_ALLOWED, "write (data.a = 1) != (data.b = 2)"),
    ("data.a ⟦andor⟧ data.b", Reason.EXPRESSION_INVALID, 'did you mean "and"?'),
    ("data.a = 1⟦_000⟧", Reason.EXPRESSION_INVALID, "write a number with digits, a point and an"),
    ("data.a = 5⟦k⟧", Reason.EXPRESSION_INVALID, "write a number with digits, a point and an"),
    ("data.a = 1⟦,⟧ data.b", Reason.EXPRESSION_INVALID, "write and between two conditions; a list"),
    ("data.⟦.⟧a = 1", Reason.EXPRESSION_INVALID, "write one name behind each point:"),
    ("data. ⟦=⟧ 1", Reason.EXPRESSION_INVALID, "write one name behind each point:"),
    ("(data.a = 1⟦⟧", Reason.EXPRESSION_INVALID, "close the ( at character 1 with )"),
    ("data.a = 1⟦)⟧", Reason.EXPRESSION_INVALID, "leave it out, or open it with ( in front"),
    ("lower(data.a = 'x'⟦⟧", Reason.EXPRESSION_INVALID, "close the ( at character 6 with )"),
    ("data.a in (1, 2⟦⟧", Reason.EXPRESSION_INVALID, "close the ( at character 11 with )"),
    ("data.a[0 = 1⟦⟧", Reason.EXPRESSION_INVALID, "close the [ at character 7 with ]"),
    ("data.a[0⟦)⟧ = 1", Reason.EXPRESSION_INVALID, "close the [ at character 7 with ] first"),
    ("f(⟦⟧", Reason.EXPRESSION_INVALID, "write a value there, or leave ( out"),
    ("⟦lower()⟧ = 'x'", Reason.EXPRESSION_INVALID, "write 1 operand, not 0"),
    ("⟦lower(,)⟧ = 'x'", Reason.EXPRESSION_INVALID, "write 1 operand, not 0"),
    ("⟦lower(data.a, 'x')⟧ = 'x'", Reason.EXPRESSION_INVALID, "write 1 operand, not 2"),
    ("⟦data.a in ()⟧", Reason.EXPRESSION_INVALID, "write in ('a', 'b'), or = coalesce("),
    ("data.a between 1⟦⟧", Reason.EXPRESSION_INVALID, "write both ends: between 1 and 5"),
    ("data.a between 1 ⟦or⟧ 5", Reason.EXPRESSION_INVALID, "write both ends: between 1 and 5"),
    (
        "case data.a when 1 then⟦⟧",
        Reason.EXPRESSION_INVALID,
        "write a value there, or leave then out",
    ),
    (
        "case when data.a then 1⟦⟧",
        Reason.EXPRESSION_INVALID,
        "close the case at character 1 with end",
    ),
    (
        "case when (data.a > 1 ⟦then⟧ 2 end = 2",
        Reason.EXPRESSION_INVALID,
        "close the ( at character 11 with ) first",
    ),
    (
        "case when data.a > 1 then lower(data.b ⟦end⟧ = 'x'",
        Reason.EXPRESSION_INVALID,
        "close the ( at character 32 with ) first",
    ),
    ("case ⟦end⟧ = 1", Reason.EXPRESSION_INVALID, "write a value between case and end, or leave"),
    (
        "data.a = 1 ⟦then⟧ 2",
        Reason.EXPRESSION_INVALID,
        "begin with case: case when data.a > 1 then 2",
    ),
    ("if ⟦data⟧.a", Reason.EXPRESSION_INVALID, "if takes its operands in brackets:"),
    ("⟦data.a is 5⟧", Reason.FUNCTION_NOT_ALLOWED, '"is" asks for null alone; write "= 5" or "is'),
    ("data.a ⟦as⟧ b = 1", Reason.FUNCTION_NOT_ALLOWED, "leave it out: only a dimension is given a"),
    ("⟦1⟧", Reason.EXPRESSION_INVALID, "this is a number; compare something with it:"),
    ("⟦data.a + 1⟧", Reason.EXPRESSION_INVALID, "this is a number; write data.a + 1 > 0"),
    ("⟦lower(data.a)⟧", Reason.EXPRESSION_INVALID, "this is text; write lower(data.a) = 'x'"),
    (
        "data.a = 1 or ⟦2⟧",
        Reason.EXPRESSION_INVALID,
        "this is a number; compare something with it:",
    ),
    (
        "data.a = 'x' or ⟦'y'⟧",
        Reason.EXPRESSION_INVALID,
        "this is text; compare something with it:",
    ),
    ("length(⟦5⟧) = 1", Reason.EXPRESSION_INVALID, "this is a number; a text stands in single"),
    (
        "lower(⟦data.a + 1⟧) = 'x'",
        Reason.EXPRESSION_INVALID,
        "this is a number; write to_text(data.a + 1)",
    ),
    (
        "lower(⟦data.a > 1⟧) = 'x'",
        Reason.EXPRESSION_INVALID,
        "this is true or false; write to_text(data.a >",
    ),
    ("data.a + ⟦'5'⟧ > 1", Reason.EXPRESSION_INVALID, "this is text; a number has no quotes: 5"),
    (
        "data.a > timestamp ⟦'2026-01-31'⟧",
        Reason.EXPRESSION_INVALID,
        "write to_time('2026-01-31') for an instant",
    ),
    (
        "time > ⟦'2026-01-31'⟧",
        Reason.EXPRESSION_INVALID,
        "this is text; write to_time('2026-01-31')",
    ),
    (
        "data.a * ⟦lower(data.b)⟧ > 1",
        Reason.EXPRESSION_INVALID,
        "this is text; write to_number(lower(data.b))",
    ),
    (
        "data.a + (⟦data.b > 1⟧) > 1",
        Reason.EXPRESSION_INVALID,
        "this is true or false; write if(data.b > 1,",
    ),
    ("lower(⟦-data.a⟧) = 'x'", Reason.EXPRESSION_INVALID, "number; write to_text(-data.a)"),
    ("⟦-data.a⟧", Reason.EXPRESSION_INVALID, "this is a number; write -data.a > 0"),
    ("lower(⟦-5⟧) = 'x'", Reason.EXPRESSION_INVALID, "a text stands in single quotes: '-5'"),
    ("⟦-5⟧", Reason.EXPRESSION_INVALID, "compare something with it: data.a = -5"),
    ("lower(data.a) = ⟦5⟧", Reason.EXPRESSION_INVALID, "this is a number; a text stands in single"),
    (
        "round(data.a, 2) = ⟦'5'⟧",
        Reason.EXPRESSION_INVALID,
        "this is text; a number has no quotes: 5",
    ),
    ("time = ⟦'x'⟧", Reason.EXPRESSION_INVALID, "this is text; write a number, or read one:"),
    (
        "length(⟦time⟧) = 1",
        Reason.EXPRESSION_INVALID,
        "time is a number; compare it with a number,",
    ),
    ("⟦source⟧ + 1 > 2", Reason.EXPRESSION_INVALID, "source is text; compare it with text, or"),
    ("not ⟦source⟧", Reason.EXPRESSION_INVALID, "source is text; compare it with text, or"),
    (
        "to_text(⟦'x'⟧) = 'x'",
        Reason.EXPRESSION_INVALID,
        "this is text; write a number, or read one:",
    ),
    ("⟦to_text(data.a, 2)⟧ = 'x'", Reason.EXPRESSION_INVALID, "write 1 operand, not 2"),
    ("⟦str(data.a)⟧ = 'x'", Reason.FUNCTION_NOT_ALLOWED, "write to_text(data.total)"),
    ("⟦exists(data.a)⟧", Reason.FUNCTION_NOT_ALLOWED, "write data.a is not null"),
    ("⟦regexp_like(data.a, 'x')⟧", Reason.FUNCTION_NOT_ALLOWED, "use like"),
    (
        "data.a > interval ⟦'1 day'⟧",
        Reason.EXPRESSION_INVALID,
        "a length of time is a number of milliseconds:",
    ),
    (
        "⟦(data.a, 1)⟧ = 1",
        Reason.FUNCTION_NOT_ALLOWED,
        "a list stands behind in alone: data.a in (1,",
    ),
    (
        "data.a ⟦collate⟧ x = 'y'",
        Reason.FUNCTION_NOT_ALLOWED,
        "leave it out: text is compared by code point,",
    ),
    (
        "⟦LOWR(data.a)⟧ = 'x'",
        Reason.FUNCTION_NOT_ALLOWED,
        'did you mean "lower"? the functions are',
    ),
    (
        "( data.a + ⟦LOWER( data.b )⟧ ) > 1",
        Reason.EXPRESSION_INVALID,
        "this is text; write to_number(LOWER( data.b ))",
    ),
]


def refusal(text: str, kind: Kind = Kind.BOOL) -> ExpressionError:
    """Return the error of an expression that is refused."""
    with pytest.raises(ExpressionError) as caught:
        parse_kind(text, kind)
    return caught.value


def parts_of(marked: str) -> tuple[str, str, str]:
    """Return what stands before, between and behind the marks of a case."""
    before, got, after = re.split("[⟦⟧]", marked)
    return before, got, after


class TestRefusals:
    @pytest.mark.parametrize(("marked", "reason", "words"), CASES)
    def test_refusals(self, marked: str, reason: Reason, words: str) -> None:
        """Each is pointed at where it was typed, as it was typed, and says what to do instead."""
        before, got, after = parts_of(marked)
        error = refusal(before + got + after)
        assert (error.reason, error.at, error.got) == (reason, len(before), echo(got))
        assert words in str(error)
        assert len(error.mend) > 4
        assert "docs/" not in error.mend
        assert "cannot stand" not in error.mend
        assert [code for code in codes_of(error.mend) if not can_be_written(code)] == []

    def test_nothing_at_all(self) -> None:
        """An empty text alone has no place."""
        error = refusal("  ")
        assert (error.reason, error.at) == (Reason.EXPRESSION_INVALID, None)
        assert "write one, or leave the member out" in str(error)

    def test_where_something_is_missing_nothing_is_what_came(self) -> None:
        """The sentence says so, and the caret stands behind what is there."""
        error = refusal("data.a > 1 and")
        assert "must be a value behind and, got nothing at character 15" in str(error)
        assert str(error.excerpt).splitlines() == ["data.a > 1 and", " " * 14 + "^"]

    @pytest.mark.parametrize(
        "text", ["data.a = 1 and oops = {}", "lower(data.a = {})", "data.a || {} = 1"]
    )
    def test_long_texts_are_cut_where_they_are_said_back(self, text: str) -> None:
        """However long what was typed is, 64 characters of it are told."""
        assert len(refusal(text.format(f"'{'x' * 900}'")).got) <= 64


class TestMends:
    @pytest.mark.parametrize(
        "marked",
        [
            "lower(⟦data.a + 1⟧) = 'x'",
            "lower(⟦data.a > 1⟧) = 'x'",
            "lower(⟦5⟧) = 'x'",
            "data.a + ⟦'5'⟧ > 1",
            "data.a + ⟦lower(data.b)⟧ > 1",
            "data.a + (⟦data.b > 1⟧) > 1",
            "data.a = 1 and ⟦data.b * 2⟧",
            "data.a = 1 and ⟦lower(data.b)⟧",
            "time > ⟦'2026-01-31T12:30:00Z'⟧",
            "⟦source⟧ + 1 > 2",
            "length(⟦time⟧) = 1",
            "data.a ⟦===⟧ 1",
            "data.a = 1 ⟦&&⟧ data.b = 2",
            "data.a = 1 ⟦|⟧ data.b = 2",
            "data.a ⟦=>⟧ 1",
            "data.a ⟦≤⟧ 1",
        ],
    )
    def test_what_is_to_be_written_is_right(self, marked: str) -> None:
        """Put where the fault is, what the mend says makes an expression of it."""
        before, got, after = parts_of(marked)
        found = re.search(
            r"(?:write|quotes:) ([^;]+)$|write (and|or);", refusal(before + got + after).mend
        )
        assert found is not None
        parse_where(f"{before}{found[1] or found[2]}{after}")

    @pytest.mark.parametrize("sign", sorted({*SIGNS, *UNSAID} - {"!", "{", "$", "@"}))
    def test_each_sign_of_another_language_has_a_mend(self, sign: str) -> None:
        """It is told by the sign itself, wherever a value stands on both sides."""
        error = slip_of(f"data.a {sign} data.b")
        assert error is not None
        assert (error.at, error.got) == (7, sign)
        assert error.mend == {**SIGNS, **UNSAID}[sign]

    @pytest.mark.parametrize("operator", sorted(OPERATORS - {"."}))
    def test_operators_of_the_language_are_no_slips(self, operator: str) -> None:
        """What is allowed is never told to be wrong."""
        assert slip_of(f"data.a {operator} 1") is None

    @pytest.mark.parametrize(
        "text",
        [
            "not (data.a in (1, 2) or data.b not like 'a%') and data.c is not null",
            "data.a between 1 and 5 and data.b not between -1 and 2",
            "case data.a when 1 then 'x' else null end = 'x' and (data.a).b[0].c notnull",
            "trim(both 'x ' from data.a) || 'it''s' = position('C' in data.b) || data.\"a b\".c",
            "extract(hour from time) = 1e3 or substring(data.a from 2 for 3) ilike '%'",
            "!data.a == -1 and lower() = count(*) and cast(data.a as int) <> .5",
        ],
    )
    def test_what_can_be_said_is_no_slip(self, text: str) -> None:
        """Everything that the grammar knows is passed over."""
        assert slip_of(text) is None
