"""From what is seen to what should be: (job, pods, money, progress, now) -> objects and status.

What belongs here: decisions about the life of a job, one policy per file, and the objects that it
is made of. Pure: no I/O, time is an argument.
"""
