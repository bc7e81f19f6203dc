"""What a node costs an hour, and where that is known from.

What belongs here: price books and providers. No arithmetic on time spent: that is `cost`.
"""
