"""Where GPUs and NICs sit in a machine, and the XML file that tells NCCL: pure data and text.

What belongs here: the graph of a machine, what is known of instance types, the file's writer, and
the rules by which NCCL reads it. Files are read and written by the command line; what a pod gets
is decided in `plan`.
"""
