"""Arithmetic on money and time: shares, the ledger, unit costs.

What belongs here: pure functions. Money is `Decimal` built from text, time is an argument.
"""
