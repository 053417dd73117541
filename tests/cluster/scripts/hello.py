# SPDX-License-Identifier: BSD-3-Clause
"""Every rank says who it is."""
import os
import socket

for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK",
             "LOCAL_WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"):
    print("||", name + ":", os.environ[name], end=" ")
print("|| on", socket.gethostname(), "||")
