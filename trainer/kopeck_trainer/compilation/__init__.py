"""How the blocks of a model are compiled, and which mode of torch.compile is worth its price.

Here belong the policy `auto`, the comparison with eager, what happens to calls that fit no graph,
and the compile cache that attempts share. The order of the transformations is `parallelize`'s.

    <compile.cache>/
        decision-<hash>.json      what `auto` measured and chose, see record.py
        inductor-<hash>.tar.gz    worker 0's directory of torch's compiler, see archive.py
"""
