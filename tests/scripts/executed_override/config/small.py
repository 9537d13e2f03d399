# the small run
batch_size = 3
block_size = 4
