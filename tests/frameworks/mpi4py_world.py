# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py, whose local rank is that in a communicator of the node."""
from mpi4py import MPI

from report import report

world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
report(world.rank, world.size, world.allreduce(world.rank), node.rank)
