"""How the values of options are read."""

import re

import pytest

from mcmpart.cli import _options
from mcmpart.cli._options import parse_apart, parse_pins, parse_together
from mcmpart.errors import InputError
from mcmpart.frontends.load import FRONTENDS
from mcmpart.search import METHODS


def test_help_names_what_there_is():
    """The names that help shows are those of the tables behind them."""
    assert tuple(METHODS) == _options.METHODS
    assert tuple(FRONTENDS) == _options.FORMATS


@pytest.mark.parametrize(
    ("text", "pins"),
    [
        ("a=3", {"a": 3}),
        ("a=b=3", {"a=b": 3}),
        ("/layer.0/x:0=0", {"/layer.0/x:0": 0}),
        (" a =2", {" a ": 2}),
        ("Foo=1e3", {"Foo": 1000}),
    ],
)
def test_name_and_number(text, pins):
    """The last = parts the name, which may hold anything, from a whole number."""
    assert parse_pins([text]) == pins


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a"], "--pin 'a' is not of the form OP=CHIP"),
        (["=3"], "--pin '=3' is not of the form OP=CHIP"),
        (["a="], "--pin 'a=' gives '': give a whole number"),
        (["a=-1"], "--pin 'a=-1' gives '-1': give a whole number, 0 or more"),
        (["a=1.5"], "gives '1.5': give a whole number"),
        (["a=nan"], "gives 'nan': give a whole number"),
        (["a=1e30"], "below 2**63"),
        (["a=1e999999999"], "below 2**63"),
        (["a=1", "a=2"], "--pin gives 'a' both 1 and 2: keep one"),
    ],
)
def test_name_and_number_refused(texts, message):
    """What is no name with a whole number is refused with the value met."""
    with pytest.raises(InputError, match=re.escape(message)):
        parse_pins(texts)


def test_the_same_thing_twice():
    """A value that is given twice alike is taken once."""
    assert parse_pins(["a=1", "a=1"]) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ("a", "b")),
        ("a, b,c", ("a", "b", "c")),
        ('a,"b,c"', ("a", "b,c")),
        ('" a","say ""x"""', (" a", 'say "x"')),
        ("x=1,y", ("x=1", "y")),
    ],
)
def test_names(text, names):
    """Names are separated by commas; one with a comma or quote stands in quotes."""
    assert parse_together([text]) == (names,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "--together 'a' is not of the form OP,OP: give two or more"),
        ("", "--together '' is not of the form OP,OP"),
        ("a,,b", "--together 'a,,b' is not of the form OP,OP"),
        ('a,"b', "is not a list of op names"),
    ],
)
def test_names_refused(text, message):
    """A list of fewer than two names, of an empty name or an open quote is refused."""
    with pytest.raises(InputError, match=re.escape(message)):
        parse_together([text])


def test_apart_is_each_pair():
    """Three names apart are three pairs."""
    assert parse_apart(["a,b,c"]) == (("a", "b"), ("a", "c"), ("b", "c"))


def test_nothing_given():
    """An option that is not given demands nothing."""
    assert (parse_pins(None), parse_together(None), parse_apart(None)) == ({}, (), ())
