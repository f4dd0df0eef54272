"""Package files: presets, quantities, overrides, round trip, and broken files."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcmpart.errors import InputError
from mcmpart.hardware import (
    DEFAULT_PACKAGE,
    DTYPES,
    Chip,
    Link,
    Package,
    content_hash,
    load_package,
    parse_package,
    preset_names,
    preset_text,
    to_toml,
)

TOY = """
name = "toy"
source = "made up"
long_edges = "relay"
link_limit = true
rules = ["no_skip", "memory"]

[chip]
count = 4
memory_bytes = "8 MiB"
memory_bandwidth_bytes_per_s = "64 GB/s"
io_bandwidth_bytes_per_s = 8e9
op_overhead_s = "1.5 us"
e_flop_j = 0.5e-12
e_mem_j_per_byte = 0

[chip.peak_ops_per_s]
int8 = 4e12
fp16 = 1e12

[link]
bandwidth_bytes_per_s = "4 GB/s"
latency_s = "20 ns"
e_link_j_per_byte = 14e-12
"""
CROSSBAR = TOY.replace('"relay"', '"direct"\ntopology = "crossbar"').replace(
    "link_limit = true", "link_limit = false"
)


def refused(text: str) -> str:
    """Return the sentence with which the text is refused as FILE."""
    with pytest.raises(InputError) as caught:
        parse_package(text, "FILE")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_units_and_plain_numbers_are_both_read():
    """Every value of the toy file, worked out by hand."""
    package = parse_package(TOY)
    assert package.name == "toy"
    assert package.topology == "ring"
    assert package.io == "serial"
    assert package.rules == ("no_skip", "memory")
    assert (
        package.chips
        == (
            Chip(
                memory_bytes=8_388_608,
                memory_bandwidth_bytes_per_s=64e9,
                io_bandwidth_bytes_per_s=8e9,
                op_overhead_s=1.5e-6,
                peak_ops_per_s=(("int8", 4e12), ("fp16", 1e12)),
                e_flop_j=0.5e-12,
                e_mem_j_per_byte=0.0,
            ),
        )
        * 4
    )
    assert package.links == (Link(4e9, 2e-8, 14e-12),) * 3


def test_one_peak_for_every_dtype():
    """A single number stands for all dtypes."""
    table = "[chip.peak_ops_per_s]\nint8 = 4e12\nfp16 = 1e12\n"
    text = TOY.replace(table, "").replace("count = 4", "count = 4\npeak_ops_per_s = 9")
    package = parse_package(text)
    assert package.chips[0].peak_ops_per_s == (("*", 9.0),)
    assert package.chips[0].peak("fp64") == 9.0


def test_overrides_change_only_what_they_name():
    """Chips 1 and 3 get less memory, hop 2 is slower; all else is the base."""
    package = parse_package(
        TOY
        + '[[link.override]]\nhops = [2]\nbandwidth_bytes_per_s = "1 GB/s"\n'
        + '[[chip.override]]\nchips = [3, 1]\nmemory_bytes = "4 MiB"\n'
        + "[[chip.override]]\nchips = [0]\npeak_ops_per_s = 5\n"
    )
    assert [chip.memory_bytes >> 20 for chip in package.chips] == [8, 4, 8, 4]
    assert package.chip_class == (0, 1, 2, 1)
    assert package.chips[0].peak_ops_per_s == (("*", 5.0),)
    assert package.chips[1] == replace(package.chips[2], memory_bytes=4 << 20)
    assert [link.bandwidth_bytes_per_s for link in package.links] == [4e9, 4e9, 1e9]
    assert package.links[2].latency_s == 2e-8


def test_a_single_chip_needs_no_link():
    """A ring of 1 has no hop, so [link] may be missing, and only then."""
    alone = TOY[: TOY.index("[link]")]
    assert parse_package(alone.replace("count = 4", "count = 1")).links == ()
    assert refused(alone) == (
        "FILE: the top of the file lacks link: add a [link] table for the 3 links "
        "between the 4 chips"
    )


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads_prints_and_round_trips(name):
    """A preset is called what its file is, and survives canonical TOML exactly."""
    package = load_package(name)
    assert package.name == name
    assert preset_text(name).startswith(f"# {name} - ")
    again = parse_package(to_toml(package))
    assert again == package
    assert content_hash(again) == content_hash(package)
    assert to_toml(again) == to_toml(package)


@pytest.mark.parametrize("name", [n for n in preset_names() if n != "mtpp"])
def test_every_number_of_a_preset_has_a_source(name):
    """Each number's line says where it is from, or that it is ASSUMED."""
    lines = [
        line
        for line in preset_text(name).splitlines()
        if re.match(r"\w+ = (?:\d|\"[\d.]+ \w)", line)
    ]
    assert len(lines) >= 11
    for line in lines:
        assert re.search(r"# (src|src \(derived\)|ASSUMED): ", line), line


def test_the_presets_are_those_of_the_documentation():
    """The shipped names, and the values a reader can check by hand."""
    assert preset_names() == (
        *("coral-x8", "cpu-x2", "h100-x8", "hailo8-x4", "inferentia2-x12"),
        *("ipu-pod16", "mtpp", "ring36", "simba36", "tpuv4i-x4", "wormhole-x8"),
    )
    ring36 = load_package(DEFAULT_PACKAGE)
    assert (ring36.name, ring36.num_chips) == ("ring36", 36)
    assert ring36.rules == ("no_skip", "triangle", "memory")
    assert ring36.chips[0].memory_bytes == 32 << 20
    assert ring36.links[35 - 1].bandwidth_bytes_per_s == 4e9
    assert load_package("mtpp").chips[0].io_bandwidth_bytes_per_s == 12.5e9
    assert load_package("simba36").chips[0].memory_bytes == 752 * 1024


def test_a_file_is_named_by_path(tmp_path, monkeypatch):
    """A path object, a path with a folder and a bare .toml name are all files."""
    path = tmp_path / "mine.toml"
    path.write_text(TOY)
    monkeypatch.chdir(tmp_path)
    for name in (path, str(path), "mine.toml", "./mine.toml"):
        assert load_package(name) == parse_package(TOY)


def test_a_preset_wins_over_a_file_of_its_name(tmp_path, monkeypatch):
    """The string ring36 is the preset even where a file has that name."""
    (tmp_path / "ring36").write_text(TOY)
    (tmp_path / "bare").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    assert load_package("ring36").num_chips == 36
    assert load_package("bare").name == "toy"


def test_a_file_may_start_with_a_byte_order_mark(tmp_path):
    """Some Windows editors write one, and CR LF line ends."""
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TOY.replace("\n", "\r\n").encode())
    assert load_package(path) == parse_package(TOY)


def test_an_unknown_name_is_answered_with_the_nearest():
    """A misspelt preset gets a suggestion and the list."""
    with pytest.raises(InputError) as caught:
        load_package("rinng36")
    assert str(caught.value) == (
        "'rinng36' is neither a preset package nor a file (did you mean 'ring36'?): "
        f"choose one of {', '.join(preset_names())}, or name a .toml file"
    )
    with pytest.raises(InputError, match=r"'simba' is no preset package .*simba36"):
        preset_text("simba")


def test_files_that_cannot_be_read_are_one_sentence(tmp_path):
    """Missing, a folder, or binary: the sentence says which."""
    with pytest.raises(InputError, match=r"no\.toml does not exist: check the name"):
        load_package(tmp_path / "no.toml")
    with pytest.raises(InputError, match="is a folder, not a package file"):
        load_package(tmp_path)
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a package file: it is no UTF-8 text"):
        load_package(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "count = 4",
            "count = = 4",
            "FILE is not a TOML file: Invalid value (at line 9, column 9)",
        ),
        (
            "[chip]",
            "[chip",
            "FILE is not a TOML file: Expected ']' at the end of a table declaration "
            "(at line 8, column 6)",
        ),
        (
            "e_link_j_per_byte = 14e-12\n",
            "latency_s = 1",
            "FILE is not a TOML file: Cannot overwrite a value (at line 24, the end)",
        ),
        (
            "memory_bytes",
            "memry_bytes",
            "FILE: [chip] has the unknown key 'memry_bytes' (did you mean "
            "'memory_bytes'?): remove or rename it",
        ),
        (
            "long_edges",
            "longedges",
            "FILE: the top of the file has the unknown key 'longedges' (did you mean "
            "'long_edges'?): remove or rename it",
        ),
        (
            "latency_s",
            "overhead",
            "FILE: [link] has the unknown key 'overhead' (did you mean 'override'?): "
            "remove or rename it",
        ),
        (
            'name = "toy"\nsource = "made up"\n',
            "",
            "FILE: the top of the file lacks name, source: add them",
        ),
        (
            "e_flop_j = 0.5e-12\n",
            "",
            "FILE: [chip] lacks e_flop_j: add it",
        ),
        (
            'memory_bytes = "8 MiB"',
            'memory_bytes = "8 mib"',
            "FILE: chip.memory_bytes is '8 mib': give a number, 0 or more, of bytes, "
            'or text such as "8 MiB" or "80 GB" (B, KB to PB, KiB to PiB)',
        ),
        (
            'memory_bytes = "8 MiB"',
            "memory_bytes = 0",
            "FILE: chip.memory_bytes is 0: a chip has from 1 to 2^63 - 1 bytes of "
            "memory",
        ),
        (
            '"64 GB/s"',
            "nan",
            "FILE: chip.memory_bandwidth_bytes_per_s is nan: give a number, 0 or more, "
            'of bytes per second, or text such as "25 GB/s", "96 GiB/s" or "100 Gb/s" '
            "(B is a byte, b a bit)",
        ),
        (
            '"4 GB/s"',
            "0",
            "FILE: link.bandwidth_bytes_per_s is 0.0: give a number above 0",
        ),
        (
            '"1.5 us"',
            "[1]",
            "FILE: chip.op_overhead_s is [1]: give a number, or text with a unit such "
            'as "8 MiB"',
        ),
        (
            "e_flop_j = 0.5e-12",
            'e_flop_j = "0.5 pJ"',
            "FILE: chip.e_flop_j is '0.5 pJ': give a number without quotes or unit",
        ),
        (
            "e_flop_j = 0.5e-12",
            "e_flop_j = -inf",
            "FILE: chip.e_flop_j is -inf: give a finite number, 0 or more",
        ),
        (
            "int8 = 4e12",
            "int9 = 4e12",
            "FILE: chip.peak_ops_per_s has the unknown dtype 'int9' (did you mean "
            f"'int8'?): use {', '.join(DTYPES)}, or one number for every dtype",
        ),
        (
            "int8 = 4e12",
            '"*" = 4e12',
            "FILE: chip.peak_ops_per_s has the key '*': for one peak of every dtype "
            "write peak_ops_per_s = NUMBER instead of a table",
        ),
        (
            "int8 = 4e12",
            "int8 = true",
            "FILE: chip.peak_ops_per_s.int8 is True: give a number without quotes or "
            "unit",
        ),
        (
            "count = 4",
            "count = 65",
            "FILE: chip.count is 65: choose from 1 to 64 chips, the limit of this "
            "version",
        ),
        (
            "count = 4",
            "count = 4.0",
            "FILE: chip.count is 4.0: give a whole number",
        ),
        (
            "link_limit = true",
            'link_limit = "yes"',
            "FILE: link_limit is 'yes': give true or false",
        ),
        (
            '["no_skip", "memory"]',
            '"no_skip"',
            "FILE: rules is 'no_skip': give a list of texts, such as [\"no_skip\"]",
        ),
        (
            '"no_skip", "memory"',
            '"no_skip", "triangle"',
            "FILE: rules lists 'triangle', which needs long_edges = 'forbid', and "
            "long_edges is 'relay': change one of the two",
        ),
        (
            '"relay"',
            '"relay"\ntopology = "crossbar"',
            "FILE: long_edges is 'relay' on a crossbar, where no chip stands between "
            "two others: choose long_edges = 'direct', or topology = 'ring'",
        ),
        (
            '"made up"',
            "7",
            "FILE: source is 7: give a text in quotes",
        ),
    ],
)
def test_a_broken_file_is_one_sentence(old, new, sentence):
    """Each fault is told with the file, the place, the value and the remedy."""
    assert old in TOY
    assert refused(TOY.replace(old, new, 1)) == sentence


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (
            "[[chip.override]]\nchips = [4]\nmemory_bytes = 1",
            "FILE: chip.override[0].chips names 4, and there are 4 chips: they count "
            "from 0",
        ),
        (
            "[[chip.override]]\nchips = [-1]\nmemory_bytes = 1",
            "FILE: chip.override[0].chips names -1, and there are 4 chips: they count "
            "from 0",
        ),
        (
            "[[link.override]]\nhops = [3]\nlatency_s = 1",
            "FILE: link.override[0].hops names 3, and there are 3 hops: they count "
            "from 0",
        ),
        (
            "[[chip.override]]\nchips = [1]\nmemory_bytes = 1\n"
            "[[chip.override]]\nchips = [0, 1]\nmemory_bytes = 2",
            "FILE: chip.override[1].chips names 1, which is overridden already: keep "
            "one of the two",
        ),
        (
            "[[chip.override]]\nchips = [2, 2]\nmemory_bytes = 1",
            "FILE: chip.override[0].chips names 2, which is overridden already: keep "
            "one of the two",
        ),
        (
            "[[chip.override]]\nchips = []\nmemory_bytes = 1",
            "FILE: chip.override[0].chips is []: give a list of whole numbers, such as "
            "[2, 3]",
        ),
        (
            "[[chip.override]]\nchips = 2\nmemory_bytes = 1",
            "FILE: chip.override[0].chips is 2: give a list of whole numbers, such as "
            "[2, 3]",
        ),
        (
            "[[chip.override]]\nchips = [true]\nmemory_bytes = 1",
            "FILE: chip.override[0].chips is [True]: give a list of whole numbers, "
            "such as [2, 3]",
        ),
        (
            "[[chip.override]]\nmemory_bytes = 1",
            "FILE: [chip.override[0]] lacks chips: add it",
        ),
        (
            "[[link.override]]\nhops = [1]",
            "FILE: [[link.override]] changes nothing: give it one of "
            "bandwidth_bytes_per_s, latency_s, e_link_j_per_byte",
        ),
        (
            "[[chip.override]]\nchips = [1]\ncount = 9",
            "FILE: [chip.override[0]] has the unknown key 'count': remove or rename it",
        ),
        (
            "[[chip.override]]\nchips = [1]\nmemory_bytes = -1",
            "FILE: chip.override[0].memory_bytes is -1: give a number, 0 or more, of "
            'bytes, or text such as "8 MiB" or "80 GB" (B, KB to PB, KiB to PiB)',
        ),
        (
            "[chip.override]\nchips = [1]",
            "FILE: chip.override is {'chips': [1]}: give a list of tables: write "
            "[[chip.override]]",
        ),
    ],
)
def test_a_wrong_override_is_one_sentence(override, sentence):
    """An override names existing parts once, and changes something."""
    assert refused(f"{TOY}\n{override}\n") == sentence


def test_a_crossbar_has_no_link_overrides():
    """Every pair is one equal hop, so no hop can be singled out."""
    assert parse_package(CROSSBAR).topology == "crossbar"
    override = "[[link.override]]\nhops = [1]\nlatency_s = 1\n"
    assert refused(CROSSBAR + override) == (
        "FILE: link.override is given on a crossbar, where each pair of chips is one "
        'equal hop: remove it, or set topology = "ring"'
    )


@pytest.mark.parametrize("key", ["chip", "link"])
def test_a_table_must_be_a_table(key):
    """The keys chip and link name tables, not values."""
    text = f"{key} = 1\n" + re.sub(rf"(?s)\[{key}\].*?(?=\n\[[^.]+\]|$)", "", TOY)
    assert refused(text) == f"FILE: {key} is 1: give a table: write [{key}]"


def test_deep_nesting_is_refused():
    """A hostile file ends in a sentence, not in a recursion traceback."""
    assert refused("x = " + "[" * 100_000) == (
        "FILE is not a TOML file: it nests too deeply"
    )


def positive(**limits):
    """Draw floats above 0."""
    return st.floats(min_value=1e-3, max_value=1e30, allow_nan=False, **limits)


def chips():
    """Draw chips with one peak or a table of peaks in any order."""
    tables = st.lists(
        st.tuples(st.sampled_from(DTYPES), positive()),
        min_size=1,
        max_size=3,
        unique_by=lambda pair: pair[0],
    ).map(tuple)
    single = positive().map(lambda peak: (("*", peak),))
    zero_up = st.just(0.0) | positive()
    return st.builds(
        Chip,
        memory_bytes=st.integers(1, 2**63 - 1),
        memory_bandwidth_bytes_per_s=positive(),
        io_bandwidth_bytes_per_s=positive(),
        op_overhead_s=zero_up,
        peak_ops_per_s=tables | single,
        e_flop_j=zero_up,
        e_mem_j_per_byte=zero_up,
    )


@st.composite
def packages(draw):
    """Draw rings of up to 6 chips of up to 3 kinds, and links of up to 2."""
    num_chips = draw(st.integers(1, 6))
    kinds = draw(st.lists(chips(), min_size=1, max_size=3))
    links = st.builds(Link, positive(), st.just(0.0) | positive(), st.just(1.0))
    link_kinds = draw(st.lists(links, min_size=1, max_size=2))
    text = st.text(st.characters(codec="utf-8"), max_size=8)
    return Package(
        name="x" + draw(text),
        source=draw(text),
        topology="ring",
        long_edges=draw(st.sampled_from(["relay", "direct"])),
        io=draw(st.sampled_from(["serial", "overlap"])),
        link_limit=draw(st.booleans()),
        rules=tuple(draw(st.permutations(["no_skip", "memory"]))),
        chips=tuple(draw(st.sampled_from(kinds)) for _ in range(num_chips)),
        links=tuple(draw(st.sampled_from(link_kinds)) for _ in range(num_chips - 1)),
        base_chip=draw(st.none() | st.sampled_from(kinds)),
        base_link=draw(st.none() | st.sampled_from(link_kinds)),
    )


@given(packages())
def test_any_package_survives_canonical_toml(package):
    """Load(to_toml(p)) == p, and both hash alike, for heterogeneous packages too."""
    again = parse_package(to_toml(package))
    assert again == package
    assert content_hash(again) == content_hash(package)


def test_an_override_may_only_reorder_the_peaks():
    """The order of dtypes is a preference, so it is written and read back."""
    package = parse_package(TOY)
    first = package.chips[0]
    turned = replace(first, peak_ops_per_s=first.peak_ops_per_s[::-1])
    package = replace(package, chips=(first, turned, first, first))
    assert parse_package(to_toml(package)) == package
