"""kopeck: the control plane and the command line.

What belongs here: everything that decides and everything that talks to a cluster. What runs inside
a training pod lives in `kopeck_trainer` and `kopeck_exporter`, which import nothing from here.
"""
