"""Chip, Link and Package: their checks, classes, sizes and hash."""

import math
from dataclasses import replace

import pytest

from mcmpart.errors import InputError
from mcmpart.hardware import DTYPES, Chip, Link, Package, content_hash

CHIP = Chip(
    memory_bytes=1000,
    memory_bandwidth_bytes_per_s=100.0,
    io_bandwidth_bytes_per_s=10.0,
    op_overhead_s=0.5,
    peak_ops_per_s=(("int8", 4.0), ("fp16", 2.0)),
    e_flop_j=0.25,
    e_mem_j_per_byte=0.125,
)
LINK = Link(bandwidth_bytes_per_s=5.0, latency_s=0.0, e_link_j_per_byte=1.0)


def ring(num_chips: int = 3) -> Package:
    """Return a ring of equal chips."""
    return Package(
        name="toy",
        source="made up",
        topology="ring",
        long_edges="forbid",
        io="serial",
        link_limit=True,
        rules=("no_skip", "triangle"),
        chips=(CHIP,) * num_chips,
        links=(LINK,) * (num_chips - 1),
    )


def crossbar() -> Package:
    """Return a crossbar of three equal chips."""
    return replace(
        ring(), topology="crossbar", long_edges="direct", link_limit=False, rules=()
    )


def mixed() -> Package:
    """Return a ring of five chips, chip 1 and 3 with half the memory."""
    small = replace(CHIP, memory_bytes=500)
    return replace(ring(5), chips=(CHIP, small, CHIP, small, CHIP))


def test_peak_by_dtype():
    """A dtype in the table has its peak, another has none."""
    assert CHIP.peak("fp16") == 2.0
    assert CHIP.peak("fp32") is None


def test_one_peak_for_all():
    """The pair ("*", x) gives each dtype the peak x."""
    chip = replace(CHIP, peak_ops_per_s=(("*", 7.0),))
    assert {chip.peak(dtype) for dtype in DTYPES} == {7.0}


def test_numbers_become_floats():
    """A chip given integers is equal to, and hashes like, one given floats."""
    chip = replace(CHIP, io_bandwidth_bytes_per_s=10, peak_ops_per_s=(("int8", 4),))
    assert type(chip.io_bandwidth_bytes_per_s) is float
    assert type(chip.peak_ops_per_s[0][1]) is float
    assert type(replace(LINK, latency_s=0).latency_s) is float
    assert math.copysign(1.0, replace(LINK, latency_s=-0.0).latency_s) == 1.0


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("memory_bytes", 0, "memory_bytes is 0: a chip has from 1 to 2^63 - 1 bytes"),
        ("memory_bytes", -8, "memory_bytes is -8: a chip has from 1"),
        ("memory_bytes", 2**63, "memory_bytes is 9223372036854775808: a chip has"),
        ("memory_bytes", 8e6, "memory_bytes is 8000000.0: give a whole number"),
        ("memory_bytes", True, "memory_bytes is True: give a whole number"),
        ("memory_bandwidth_bytes_per_s", 0.0, "is 0.0: give a number above 0"),
        ("io_bandwidth_bytes_per_s", 0, "is 0: give a number above 0"),
        ("io_bandwidth_bytes_per_s", math.nan, "is nan: give a finite number, 0 or"),
        ("memory_bandwidth_bytes_per_s", math.inf, "is inf: give a finite number"),
        ("op_overhead_s", -1.0, "op_overhead_s is -1.0: give a finite number, 0 or"),
        ("op_overhead_s", "1 us", "op_overhead_s is '1 us': give a finite number"),
        ("e_flop_j", math.nan, "e_flop_j is nan: give a finite number, 0 or more"),
        ("e_mem_j_per_byte", False, "e_mem_j_per_byte is False: give a finite"),
        ("peak_ops_per_s", (), "peak_ops_per_s is empty: give one number"),
        ("peak_ops_per_s", (("int8", 0.0),), "peak_ops_per_s of int8 is 0.0: give a"),
        ("peak_ops_per_s", (("int8", math.inf),), "of int8 is inf: give a finite"),
        ("peak_ops_per_s", (("int8", 1.0), ("int8", 2.0)), "names a dtype twice"),
        ("peak_ops_per_s", (("*", 1.0), ("int8", 2.0)), "the unknown dtype '*'"),
    ],
)
def test_a_chip_refuses_numbers_it_cannot_use(field, value, sentence):
    """Each field has its range, and the sentence names field and value."""
    with pytest.raises(InputError) as caught:
        replace(CHIP, **{field: value})
    assert sentence in str(caught.value)
    assert str(caught.value).startswith(field)


def test_an_unknown_dtype_is_answered_with_the_nearest():
    """bfloat16 is called bf16 here, and the sentence lists all names."""
    with pytest.raises(InputError) as caught:
        replace(CHIP, peak_ops_per_s=(("bf166", 1.0),))
    assert str(caught.value) == (
        "peak_ops_per_s has the unknown dtype 'bf166' (did you mean 'bf16'?): use "
        f"{', '.join(DTYPES)}, or one number for every dtype"
    )


@pytest.mark.parametrize(
    ("field", "value", "remedy"),
    [
        ("bandwidth_bytes_per_s", 0.0, "give a number above 0"),
        ("latency_s", -1e-9, "give a finite number, 0 or more"),
        ("e_link_j_per_byte", math.inf, "give a finite number, 0 or more"),
    ],
)
def test_a_link_refuses_numbers_it_cannot_use(field, value, remedy):
    """A link has a bandwidth above 0 and a latency and energy of 0 or more."""
    with pytest.raises(InputError) as caught:
        replace(LINK, **{field: value})
    assert str(caught.value) == f"{field} is {value!r}: {remedy}"


def test_equal_chips_share_a_class():
    """Classes are numbered by first appearance."""
    package = mixed()
    assert package.num_chips == 5
    assert package.chip_class == (0, 1, 0, 1, 0)
    assert [chip.memory_bytes for chip in package.classes] == [1000, 500]


def test_dataflow_is_always_on():
    """has_rule knows the listed rules and the one that is never listed."""
    assert ring().has_rule("no_skip")
    assert ring().has_rule("dataflow")
    assert not ring().has_rule("memory")


def test_the_most_frequent_part_is_the_base():
    """Without a base given, the chip and the link seen most often are it."""
    assert mixed().base_chip == CHIP
    assert ring().base_link == LINK
    assert ring(1).base_link is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": " "}, "name is empty: give the package a name"),
        (
            {"topology": "rign"},
            "topology is 'rign' (did you mean 'ring'?): choose 'ring' or 'crossbar'",
        ),
        ({"io": "both"}, "io is 'both': choose 'serial' or 'overlap'"),
        (
            {"long_edges": "forbidden"},
            "long_edges is 'forbidden' (did you mean 'forbid'?): choose 'forbid' or "
            "'relay' or 'direct'",
        ),
        (
            {"rules": ("no_skip", "dataflow")},
            "rules lists 'dataflow', which is always on: leave it out of the list",
        ),
        (
            {"rules": ("triangel",)},
            "rules lists 'triangel' (did you mean 'triangle'?): a package may switch "
            "on no_skip, triangle, memory",
        ),
        (
            {"rules": ("triangle", "triangle")},
            "rules lists 'triangle' twice: keep one of them",
        ),
        (
            {"rules": ("no_skip",)},
            "long_edges is 'forbid', which needs the rule 'triangle', and rules lacks "
            "it: add 'triangle' to rules, or choose long_edges = 'relay' or 'direct'",
        ),
        (
            {"long_edges": "direct"},
            "rules lists 'triangle', which needs long_edges = 'forbid', and long_edges "
            "is 'direct': change one of the two",
        ),
        (
            {"links": (LINK,)},
            "3 chips have 2 links, and 1 are given: link i joins chip i and chip i + 1",
        ),
        (
            {"chips": ()},
            "a package of 0 chips is not supported: choose from 1 to 64, the limit of "
            "this version",
        ),
    ],
)
def test_a_package_refuses_what_contradicts(change, sentence):
    """Each rule of the package format has its sentence, with the remedy."""
    with pytest.raises(InputError) as caught:
        replace(ring(), **change)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"long_edges": "relay"},
            "long_edges is 'relay' on a crossbar, where no chip stands between two "
            "others: choose long_edges = 'direct', or topology = 'ring'",
        ),
        (
            {"link_limit": True},
            "link_limit is true on a crossbar, where no link is shared: set "
            "link_limit = false, or topology = 'ring'",
        ),
        (
            {"links": (LINK, replace(LINK, latency_s=1.0))},
            "the links of a crossbar differ, and each of its pairs is one equal hop: "
            "give one link, or topology = 'ring'",
        ),
    ],
)
def test_a_crossbar_shares_nothing(change, sentence):
    """What only a ring can have is refused on a crossbar."""
    with pytest.raises(InputError) as caught:
        replace(crossbar(), **change)
    assert str(caught.value) == sentence


def test_a_crossbar_may_forbid_long_edges():
    """The paper's triangle rule may be demanded of a crossbar too."""
    package = replace(crossbar(), long_edges="forbid", rules=("triangle",))
    assert package.has_rule("triangle")


def test_sixty_four_chips_are_the_limit():
    """64 chips are allowed, 65 are not, whether made or asked for."""
    assert ring(64).num_chips == 64
    limit = "a package of 65 chips is not supported: choose from 1 to 64, the limit"
    with pytest.raises(InputError, match=limit):
        ring(65)
    with pytest.raises(InputError, match=limit):
        ring(64).with_chips(65)
    with pytest.raises(InputError, match="a package of 0 chips is not supported"):
        ring().with_chips(0)


def test_a_package_is_cut_and_extended():
    """Equal chips are repeated or dropped, with one link fewer than chips."""
    assert ring(3).with_chips(5) == ring(5)
    assert ring(3).with_chips(1).links == ()
    assert ring(3).with_chips(3) == ring(3)


def test_a_cut_to_one_chip_can_be_undone():
    """A package cut to one chip still knows its link."""
    assert ring(3).with_chips(1).with_chips(3) == ring(3)


def test_an_extension_takes_the_base():
    """New chips and links are the base ones, whatever the last chip is."""
    small, fast = replace(CHIP, memory_bytes=1), replace(LINK, latency_s=9.0)
    package = replace(
        ring(3), chips=(small,) * 3, links=(LINK, LINK), base_chip=CHIP, base_link=fast
    )
    assert package.with_chips(4).chips == (small, small, small, CHIP)
    assert package.with_chips(4).links == (LINK, LINK, fast)


def test_one_chip_without_a_link_cannot_be_extended():
    """Nothing says what the new link would be."""
    with pytest.raises(InputError, match=r"'toy' has one chip and no link, .*\[link\]"):
        ring(1).with_chips(2)


def test_chips_of_their_own_are_not_cut_off():
    """A cut that would lose an override is refused and names the fewest chips."""
    assert mixed().with_chips(4).num_chips == 4
    with pytest.raises(InputError) as caught:
        mixed().with_chips(3)
    assert str(caught.value) == (
        "chip 3 of package 'toy' has values of its own, and 3 chips would cut it off: "
        "ask for 4 chips or more, or remove the override from the package file"
    )


def test_links_of_their_own_are_not_cut_off():
    """Hop 2 joins chips 2 and 3, so it needs four chips."""
    slow = replace(LINK, bandwidth_bytes_per_s=1.0)
    package = replace(ring(5), links=(LINK, LINK, slow, LINK))
    assert package.with_chips(4).links == (LINK, LINK, slow)
    with pytest.raises(InputError, match=r"hop 2 .* 3 chips would .* for 4 chips"):
        package.with_chips(3)


def test_the_hash_is_of_what_a_cost_depends_on():
    """Name, source, base and rule order do not count; every number does."""
    package = ring()
    same = replace(
        package,
        name="x",
        source="y",
        rules=("triangle", "no_skip"),
        base_chip=replace(CHIP, memory_bytes=1),
    )
    assert content_hash(same) == content_hash(package)
    others = [
        replace(package, io="overlap"),
        replace(package, link_limit=False),
        replace(package, rules=("triangle",)),
        replace(package, chips=(CHIP, CHIP, replace(CHIP, e_flop_j=0.5))),
        replace(package, links=(LINK, replace(LINK, latency_s=1.0))),
        # The first dtype is the one that `--precision auto` falls back on.
        replace(
            package,
            chips=(replace(CHIP, peak_ops_per_s=CHIP.peak_ops_per_s[::-1]),) * 3,
        ),
        package.with_chips(2),
    ]
    hashes = {content_hash(other) for other in (package, *others)}
    assert len(hashes) == 1 + len(others)
