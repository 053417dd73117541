# SPDX-License-Identifier: BSD-3-Clause
"""JAX: jax.distributed.initialize, which is told nothing."""
import jax
import numpy
from jax.experimental import multihost_utils

from report import report

jax.distributed.initialize()
rank = jax.process_index()
ranks = multihost_utils.process_allgather(numpy.array(rank))
# What it would show CUDA
devices = jax.config.read("jax_cuda_visible_devices").split(",")
report(rank, jax.process_count(), ranks.sum(), *map(int, devices))
jax.distributed.shutdown()
