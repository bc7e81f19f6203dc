"""Checkpoints that are whole or invisible.

Here belongs what a checkpoint is on disk, who may write one, and how the newest good one is found
and loaded at any world size. When to save is the loop's concern.

    <path>/<job uid>/
        fence                     the highest attempt that has started
        step-40.a1/               complete: was renamed to this name as a whole
            __0_0.distcp …        the ranks' shards, by torch.distributed.checkpoint
            .metadata
            manifest.json         every file with size and sha256; written last
        step-60.a1.tmp/           being written, or left by a crash
        step-20.a0.bad/           was found damaged
"""
