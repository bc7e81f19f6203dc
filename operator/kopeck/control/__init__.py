"""The operator: watches, a queue of dirty jobs, one pass per job at a time, health and metrics.

What belongs here: what runs and when. What is decided in a pass lives in `plan`, requests in
`kube`. kopf watches and keeps the process alive; it stores nothing on objects.
"""
