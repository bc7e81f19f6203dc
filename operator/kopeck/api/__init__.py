"""The TrainingJob as users and the API server see it: types, names, errors, the CRD.

What belongs here: every word of the API, its rules and its documentation. No arithmetic on money,
no decisions, no I/O.
"""
