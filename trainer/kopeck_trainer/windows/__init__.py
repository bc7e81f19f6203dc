"""Trace windows: now and then a few steps are traced, and measured outside of the trainer.

All ranks record the same steps. A window that fails costs its figures and nothing else: no rank
waits for another one's, and nothing here raises into the training.
"""
