"""The one door to the API server: plain dicts over `kubernetes.aio`'s connections.

What belongs here: requests, retries, errors. No decisions: what to write is `plan`'s to say.
Typed models are left aside: they refuse fields newer than the client and drop them on reading.
"""
