# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# The report, and steps that start again.

step report=r.json 4 n1:0-1:w100,K,done \
	'n2:2-3:w100,t3=a\b/"c",e3=3=E: x,K,done' srun:all
"$python" - <<'END' >why 2>&1
import json, re
report = json.load(open("r.json"))
for name in "start", "end":
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", report.pop(name))
after_s = report["verdict"].pop("after_s")
assert 0.1 <= after_s <= 3, after_s
# The rank fails after 100 ms.
phases = report.pop("phases")
assert list(phases) == ["launching", "running", "failing", "ending", "over"]
assert phases["launching"] == 0 and sorted(phases.values()) == list(
    phases.values()), phases
assert 0.1 <= phases["failing"] - phases["running"] <= 3, phases
# The others end when the supervisor kills them, for rank 3, and srun then.
events = report.pop("events")
assert list(events) == ["first_end", "decided", "ranks_sigkill", "last_end",
                        "srun_ended"], events
assert events["ranks_sigkill"] == phases["ending"], events
assert report.pop("decision") == "agents tell of no earlier failure"
# Rank 3 is the first to end, and the others when the step is killed for it.
ended = [rank.pop("after_s") for rank in report["ranks"]]
assert ended[3] == after_s and min(ended[:3]) >= after_s + 0.2, ended
ends = [(0, "n1", 9), (1, "n1", 9), (2, "n2", 9), (3, "n2", None)]
wanted = {
    "schema": 1, "job": 12, "step": 3, "world_size": 4, "exit_code": 3,
    "verdict": {"kind": "rank", "rank": 3, "node": "n2", "gpus": None,
                "pid": 1003, "exit_code": 3, "signal": None, "cause": None,
                "message": "E: x", "stderr": ["a\\b", '"c"'], "alike": []},
    "ranks": [{"rank": rank, "node": node, "pid": 1000 + rank,
               "exit_code": None if signal else 3, "signal": signal}
              for rank, node, signal in ends],
    "nodes_lost": [],
}
assert report == wanted, report
END
result $? 'the report of a failure has what was printed, and how each rank ended'
equal 'the report is one file, and nothing is beside it' \
	r.json "$(ls -d r.json* .ddp-* 2>/dev/null)"
long=$(printf %0250d 0)
step "report=$long" 1 n1:0-0:e0=0,done srun:all
equal 'a report may have a name of 250 characters' "$long" \
	"$(find . -name "$long" -size +0 -printf %f)"
step report=r.json 1 n1:0-0:e0=0,done srun:all
"$python" -c 'import json; report = json.load(open("r.json"))
assert report["exit_code"] == 0 and report["verdict"] == {"kind": "none"}' \
	>why 2>&1
result $? 'the report of a step without a failure replaces an older one'
ln -s r.json link.json
step report=link.json 1 n1:0-0:w100,e0=3,K,done srun:all
equal 'a report goes to the file to which a link leads, and the link stays' \
	'r.json 3' "$(readlink link.json) $(
	sed -n 's/.*"exit_code": \([0-9]*\),.*/\1/p' r.json | head -n 1)"
mkfifo fifo.json
ln -s fifo.json piped.json
for file in fifo.json piped.json; do
	step report=$file 1 n1:0-0:e0=0,done srun:all
	said "no report goes to a FIFO, and no step begins: $file" 98 "$(
	)--ddp-report=$file: cannot write it: it is not a regular file; $(
	)give a file in a folder of yours"
done
check 'the FIFO stays' test -p fifo.json
for file in /dev/stdout err; do
	step report=$file 1 n1:0-0:e0=0,done srun:all
	said "no report takes the place of what srun prints: $file" 98 "$(
	)--ddp-report=$file: cannot write it: srun prints there; $(
	)give a file in a folder of yours"
done
call sh -c 'trap "" XFSZ; ulimit -f 1; exec ./srun "$@"' sh report=big.json 12 \
	n1:0-11:w100,e0=3,K,done srun:all
said 'a report for which there is no room is told' 3 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3'; others '11 other ranks')
slurm-ddp: --ddp-report=big.json: cannot write it: File too large; give a file \
in a folder of yours"
equal 'nothing is left of a report for which there is no room' \
	0 "$(find . -name 'big*' -o -name '.ddp-*' | wc -l)"

# More than one attempt
fails="n1:0-1:w100,e0=3,K,done srun:nodes,all"
failed="$(first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3'; others '1 other rank')"
# shellcheck disable=SC2086 # words
step restarts=2 report=r.json 2 $fails $fails \
	n1:0-1:e0=0,e1=0,done srun:nodes,all
said 'a step that has failed starts again on the same nodes' 0 "on any
$failed
slurm-ddp: restart 1 of 2: on the same nodes
on n1
$failed
slurm-ddp: restart 2 of 2: on the same nodes
on n1"
"$python" - <<'END' >why 2>&1
import json
report = json.load(open("r.json"))
assert report["exit_code"] == 0 and report["verdict"]["kind"] == "none"
assert [(a["exit_code"], a["verdict"]["kind"], len(a["ranks"]))
        for a in report["attempts"]] == [
    (3, "rank", 2), (3, "rank", 2), (0, "none", 2)], report
END
result $? 'the report of a step that started again has all attempts'
# shellcheck disable=SC2086 # words
step restarts=1 2 $fails $fails
said 'a step that fails too often ends with its last code' 3 "on any
$failed
slurm-ddp: restart 1 of 1: on the same nodes
on n1
$failed
slurm-ddp: the step is not started again: all its restarts are used up"
step restarts=1 'spare=n[1-3]' 2 n1:0-0:K,done n2:1-1:w100,orphan,K,done \
	srun:nodes,all,x1 n1:0-0:e0=0,done n3:1-1:e1=0,done srun:nodes,all
said 'a spare takes the place of a node that is lost' 0 "on n1,n2
slurm-ddp: node n2 was lost first, after 0.1 s: its slurmstepd has ended
$(others '1 other rank')
slurm-ddp: restart 1 of 1: n3 in place of n2, which was lost
on n1,n3, overlapping"
launch='srun: error: Task launch for StepId=12.3 failed on node n2: Timed out'
step 2 n1:0-0:w500,e0=0,done n2:1-1:w500,e1=0,done "srun:w200,p$launch/,all"
said 'a node on which an agent runs is not lost though srun says so' 0 "$launch"
step restarts=1 'spare=n[1-3]' 2 n1:0-0:w200,K,done \
	n2:1-1:l900,orphan,K,done "srun:w200,p$launch/,all,x1" \
	n1:0-0:e0=0,done n3:1-1:e1=0,done srun:nodes,all
grep -e restart -e ^on err >why
test "$status $(paste -sd, why)" = '0 slurm-ddp: restart 1 of 1: n3 in place of n2, which was lost,on n1,n3, overlapping'
result $? 'a node that srun and its slurmstepd give up is lost once'
step restarts=1 'spare=n[1-4]' 3 n1:0-0:w200,K,done "srun:w200,p$launch/,hang"
grep 'started again' err >why
test "$(cat why)" = 'slurm-ddp: the step is not started again: processes of it may still run'
result $? 'a step does not start again beside a node of which nobody knows'
step restarts=1 2 n1:0-1:w100,e0=3,K0,stays,deaf,w9000 srun:hang
said 'a step does not start again beside processes that stay' 3 "$(
	first 0 'n1 (GPU 0, pid 1000)' 1 'exit code 3')
slurm-ddp: rank 0 on n1 (pid 1000) stays: D, in nfs_wait_bit_killable
$(others '1 other rank')
slurm-ddp: the step is not started again: processes of it may still run"
step restarts=1 2 n1:0-1:e0=0,e1=0,done srun:all,x4
tail -n 1 err >last
mv last err
said 'a step does not start again of which srun alone knows that it has failed' \
	4 \
	"slurm-ddp: the step is not started again: it is not known which rank \
or node failed"
step restarts=1 2 n1:0-1:w100,e0=3,K,done n9:1-1:l1500,e1=9,K,done srun:w600,x3 \
	n1:0-0:w4000,e0=0,done n2:1-1:l2000,w2000,e1=0,done srun:all
said 'an agent that an attempt has left behind cannot join the next one' 0 "$failed
slurm-ddp: restart 1 of 1: on the same nodes"

# Ranks that srun has left are killed a second later; that of n2 ends after those.
step restarts=1 3 n1:0-0:K,done n2:1-1:b2700,K,done n3:2-2:K,done srun:w1400,x1 \
	n1:0-2:e0=0,e1=0,e2=0,done srun:all
! grep -q 'failed first\|restart 1' err && test "$status" = 1
result $? 'ranks that are killed as srun has left them have not failed'
