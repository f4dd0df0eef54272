"""Tests of the FLOP, byte and shape rules of ops."""
