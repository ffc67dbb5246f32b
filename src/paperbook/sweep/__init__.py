"""Parameter sweeps: many runs of one chapter, on this machine or on Dask, with nothing lost."""
