from mcmpart.frontends.op_costs import cost_of

from .op_views import MS, fp32, i64, op

# Softmax 8, scale 1, mask 1.
SCORE = 10


def test_attention_counts_scores_and_context():
    """B 2, H 4, S 5, L 7, d 8, d_v 6: two products over 280 scores."""
    view = op(
        "Attention",
        [fp32(2, 4, 5, 8), fp32(2, 4, 7, 8), fp32(2, 4, 7, 6)],
        [fp32(2, 4, 5, 6)],
    )
    cost = cost_of(view)
    assert cost.flops == 2 * 280 * (8 + 6) + SCORE * 280
    assert cost.gemm == (40, 7, 14)
    assert cost.bytes == 4 * (320 + 448 + 336 + 240)


def test_attention_adds_the_cache_to_its_keys():
    """Three-axis tensors split by head counts; 3 past keys and 1 new one."""
    view = op(
        "Attention",
        [fp32(2, 1, 32), *[fp32(2, 1, 16)] * 2, None, *[fp32(2, 2, 3, 8)] * 2],
        [fp32(2, 1, 32)],
        attributes={"q_num_heads": 4, "kv_num_heads": 2},
    )
    assert cost_of(view).gemm == (8, 4, 16)


def test_a_local_window_bounds_the_keys():
    """A causal window of 3 to the left leaves 4 keys of 100 to each query."""
    view = op(
        "Attention",
        [fp32(1, 1, 100, 8)] * 3,
        [fp32(1, 1, 100, 8)],
        attributes={"left_window_size": 3, "is_causal": 1},
    )
    assert cost_of(view).gemm == (100, 4, 16)


def test_merged_attention_projects_first():
    """com.microsoft Attention: a [16, 48] projection of 10 tokens, then 4 heads."""
    view = op(
        "Attention",
        [fp32(2, 5, 16), fp32(16, 48), fp32(48)],
        [fp32(2, 5, 16)],
        MS,
        {"num_heads": 4},
    )
    cost = cost_of(view)
    scores = 2 * 4 * 5 * 5
    assert cost.flops == 2 * 10 * 48 * 16 + scores * (2 * 8 + SCORE)
    assert cost.gemm == (10, 48, 16)


def test_grouped_query_attention_counts_query_heads():
    """Packed queries of 4 + 2 x 2 heads of 8; 7 keys as the total length says."""
    view = op(
        "GroupQueryAttention",
        [fp32(2, 1, 64), None, None, *[fp32(2, 2, 6, 8)] * 2, i64(2), i64()],
        [fp32(2, 1, 32), fp32(2, 2, 7, 8), fp32(2, 2, 7, 8)],
        MS,
        {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1},
        constants={6: 7},
    )
    cost = cost_of(view)
    rotary = 3 * 2 * (4 + 2) * 8
    assert cost.flops == 8 * 7 * (2 * 16 + SCORE) + rotary


def test_grouped_query_attention_sees_its_window_only():
    """A local window of 4 of 1,000 keys."""
    view = op(
        "GroupQueryAttention",
        [*[fp32(1, 1, 8)] * 3, *[fp32(1, 1, 999, 8)] * 2],
        [fp32(1, 1, 8), fp32(1, 1, 1000, 8)],
        MS,
        {"num_heads": 1, "kv_num_heads": 1, "local_window_size": 4},
    )
    assert cost_of(view).gemm == (1, 4, 16)


def test_multi_head_attention_takes_packed_queries():
    """[B, S, H, 3, d] holds its own keys and values."""
    view = op(
        "MultiHeadAttention",
        [fp32(2, 5, 4, 3, 8)],
        [fp32(2, 5, 32)],
        MS,
        {"num_heads": 4},
    )
    assert cost_of(view).gemm == (40, 5, 16)


def test_multi_head_attention_takes_cross_keys():
    """[B, H, L, d] keys of a cross attention are 7 positions."""
    view = op(
        "MultiHeadAttention",
        [fp32(2, 5, 32), fp32(2, 4, 7, 8), fp32(2, 4, 7, 8)],
        [fp32(2, 5, 32)],
        MS,
        {"num_heads": 4},
    )
    assert cost_of(view).gemm == (40, 7, 16)


def test_linear_attention_does_not_grow_with_the_square_of_the_tokens():
    """A plain state update and a read are 4 d d_v FLOPs for each token and head."""
    view = op(
        "LinearAttention",
        [fp32(2, 5, 16), fp32(2, 5, 16), fp32(2, 5, 12)],
        [fp32(2, 5, 12), fp32(2, 2, 8, 6)],
        attributes={"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"},
    )
    assert cost_of(view).flops == 10 * 2 * 4 * 8 * 6


def test_rotary_embedding_reads_no_more_cache_than_it_uses():
    """A cache of 10,000 positions costs two positions' worth of cosines and sines."""
    view = op(
        "RotaryEmbedding",
        [fp32(1, 4, 2, 8), fp32(10_000, 4), fp32(10_000, 4), i64(1, 2)],
        [fp32(1, 4, 2, 8)],
    )
    cost = cost_of(view)
    assert cost.flops == 3 * 64
    assert cost.bytes == 256 + 128 + 128 + 16 + 256


def _step(past: int, present: int, total: int):
    """Return one token's step of two heads of 8 with a float32 cache."""
    caches = [fp32(1, 2, past, 8)] * 2
    return op(
        "GroupQueryAttention",
        [fp32(1, 1, 16), fp32(1, 1, 16), fp32(1, 1, 16), *caches, None, i64()],
        [fp32(1, 1, 16), *[fp32(1, 2, present, 8)] * 2],
        MS,
        {"num_heads": 2, "kv_num_heads": 2},
        constants={6: total},
    )


def test_a_shared_cache_moves_only_the_keys_in_use():
    """7 of 100 positions are read and 1 is written, 2 x 64 bytes each."""
    cost = cost_of(_step(past=100, present=100, total=7))
    assert cost.bytes == 4 * 64 + 8 + 8 * 128


def test_a_copied_cache_moves_whole():
    """6 positions in and 7 out."""
    cost = cost_of(_step(past=6, present=7, total=7))
    assert cost.bytes == 4 * 64 + 8 + 13 * 128


def test_sparse_attention_is_bounded_by_its_blocks():
    """3 of 16 blocks of 4 x 4 positions: 48 scores for 16 queries are 3 keys each."""
    view = op(
        "SparseAttention",
        [*[fp32(1, 16, 8)] * 3, *[fp32(1, 1, 16, 8)] * 2, i64(1, 5), i64(1, 3)],
        [fp32(1, 16, 8), fp32(1, 1, 16, 8), fp32(1, 1, 16, 8)],
        MS,
        {"num_heads": 1, "kv_num_heads": 1, "sparse_block_size": 4},
    )
    assert cost_of(view).gemm == (16, 3, 16)


def test_paged_attention_reads_the_pages_of_its_table():
    """2 tokens; a table of 1 x 3 pages of 4 positions, from a pool of 1,000 pages."""
    pool = fp32(1000, 4, 1, 8)
    view = op(
        "PagedAttention",
        [*[fp32(2, 8)] * 3, pool, pool, None, None, i64(1, 3)],
        [fp32(2, 8), pool, pool],
        MS,
        {"num_heads": 1, "kv_num_heads": 1},
    )
    cost = cost_of(view)
    assert cost.gemm == (2, 12, 16)
    assert cost.bytes == 4 * 64 + 24 + (12 + 2) * 2 * 32
