# SPDX-License-Identifier: BSD-3-Clause
"""JSON lines of collectives on stdin against nccl-tests' definitions:
rows.py RANKS NODES COLLECTIVE SIZE..., each line of one of these sizes."""
import json
import sys

WIDTHS = {"int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8,
          "uint64": 8, "half": 2, "float": 4, "double": 8, "bfloat16": 2}

ranks, nodes, collective = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sizes = [int(size) for size in sys.argv[4:]]
rows = [json.loads(line) for line in sys.stdin]
assert [row["size"] for row in rows] == sizes, rows
for row in rows:
    parts = 1
    factor = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1}.get(
        collective, (ranks - 1) / ranks)
    if collective in ("reduce_scatter", "all_gather"):
        parts = ranks
    assert row["collective"] == collective
    assert (row["ranks"], row["nodes"]) == (ranks, nodes)
    assert row["count"] * WIDTHS[row["type"]] * parts == row["size"]
    for place in row["out_of_place"], row["in_place"]:
        assert place["time"] > 0 or row["size"] == 0
        assert place["nwrong"] == 0
        if row["size"] == 0:
            assert place["alg_bw"] == place["bus_bw"] == 0
            continue
        # Six decimals are printed, and a busy machine is slow.
        algbw = row["size"] / 1e3 / place["time"]
        near = 0.01 * algbw + 1e-6
        assert abs(place["alg_bw"] - algbw) < near, place
        assert abs(place["bus_bw"] - algbw * factor) < near, place
