"""Ops on strings and n-grams. A string's length is data: its bytes are a guess."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mcmpart.frontends.op_costs.reading import (
    all_bytes,
    in_shape,
    in_size,
    int_attribute,
    length_of_attribute,
    out_size,
)
from mcmpart.frontends.op_costs.types import CostRule, OpCost, OpView

# Characters of a string, each compared or copied once (an assumption).
_STRING_LENGTH = 16


def _string(op: OpView) -> OpCost:
    """Go once through the characters of each string."""
    strings = max(in_size(op, 0), out_size(op))
    return OpCost(_STRING_LENGTH * strings, all_bytes(op))


def _tfidf(op: OpView) -> OpCost:
    """Look up each n-gram of each length and skip, and weigh each output."""
    lengths = int_attribute(op, "max_gram_length", 1)
    skips = int_attribute(op, "max_skip_count", 0) + 1
    counts = length_of_attribute(op, "weights") and out_size(op)
    flops = in_size(op, 0) * max(lengths * skips, 1) + counts
    return OpCost(flops, all_bytes(op))


def _ngram_hash(op: OpView) -> OpCost:
    """Multiply and exclusive-or the ids of each n-gram, and take a remainder."""
    grams = int_attribute(op, "max_ngram_size", 2)
    return OpCost((2 * max(grams, 1) + 3) * out_size(op), all_bytes(op))


def _ngram_repeat(op: OpView) -> OpCost:
    """Compare the last n-gram with each earlier one; copy the scores."""
    size = max(int_attribute(op, "ngram_size", 1), 1)
    return OpCost(size * in_size(op, 0), all_bytes(op))


def _time_warping(op: OpView) -> OpCost:
    """Fill a table: two comparisons and an add for each cell."""
    return OpCost(3 * math.prod(in_shape(op, 0)), all_bytes(op))


RULES: Mapping[str, CostRule] = {
    "RegexFullMatch": _string,
    "StringConcat": _string,
    "StringNormalizer": _string,
    "StringSplit": _string,
    "TfIdfVectorizer": _tfidf,
}
"""Rules of the default domain."""

MICROSOFT_RULES: Mapping[str, CostRule] = {
    "DynamicTimeWarping": _time_warping,
    "NGramHashMapping": _ngram_hash,
    "NGramRepeatBlock": _ngram_repeat,
    "Tokenizer": _string,
}
"""Rules of com.microsoft."""
