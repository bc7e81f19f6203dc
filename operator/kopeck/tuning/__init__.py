"""How to train the same global batch for the fewest dollars: pure arithmetic.

What belongs here: the points of a tuning, what a point's training has shown, the choice among
them, and the documents that tell it. Processes are started in `kopeck.local`.
"""
