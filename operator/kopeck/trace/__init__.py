"""Kineto traces of a training's ranks: where each nanosecond of each GPU went.

What belongs here: reading what torch's profiler writes, whole or damaged, and arithmetic on it.
`files`, `rank_reader` and `parallel_reading` open files; all else is handed bytes or arrays and
opens nothing. Prices belong to `cost`.
"""
