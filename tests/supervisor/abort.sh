# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# MPI_Abort, of which no agent could tell, and ranks that ended well.

# The agents are killed before they could tell of any rank. Open MPI has said who
# called MPI_Abort, and srun ends with the code of that.
echo '12 RUNNING' >squeue.says
invoked='MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD'
gone='n1:0-0:w550,quit n2:1-1:w570,quit'
called='MPI_Abort, exit code 5'
# shellcheck disable=SC2086 # words
step restarts=1 report=r.json 2 $gone \
	"srun:w500,p$invoked/$cancelled/,w300,x5" n1:0-1:e0=0,e1=0,done srun:all
said 'a rank that has called MPI_Abort is named, and the step starts again' \
	0 "$invoked
$cancelled
$(first 1 'n2 (pid 1001)' 4 "$called")
slurm-ddp: restart 1 of 1: on the same nodes"
equal 'the report has the attempt of a rank that has called MPI_Abort' \
	'"exit_code": 5, "verdict": {"kind": "rank"' \
	"$(grep -o -m 1 '"exit_code": 5' r.json), $(
	grep -o -m 1 '"verdict": {"kind": "rank"' r.json)"
step restarts=1 2 n1:0-0:w550,k0=9,quit n2:1-1:w550,quit \
	"srun:w500,p$invoked/$cancelled/,w500,x5" n1:0-1:e0=0,e1=0,done srun:all
said 'a rank that has called MPI_Abort is named where another was killed then' \
	0 \
	"$invoked
$cancelled
$(first 1 'n2 (pid 1001)' 4 "$called")
slurm-ddp: restart 1 of 1: on the same nodes"
# unnamed NAME CODE LINES WORDS...: nobody is named, and nothing starts again
unnamed()
{
	unnamed_name=$1 unnamed_code=$2 unnamed_lines=$3
	shift 3
	step restarts=1 2 "$@"
	said "$unnamed_name" "$unnamed_code" "$unnamed_lines"
}
# shellcheck disable=SC2086 # words
unnamed 'nobody is named after MPI_Abort where srun ends as its killed ranks did' \
	137 "$invoked
$cancelled" $gone "srun:w500,p$invoked/$cancelled/,w300,x137"
# As a rank does that is told to end.
# shellcheck disable=SC2086 # words
unnamed 'nobody is named for MPI_Abort after Slurm had said that the step ends' \
	5 "$invoked
$cancelled" $gone "srun:w500,p$cancelled/$invoked/,w300,x5"
# shellcheck disable=SC2086 # words
unnamed 'nobody is named for MPI_Abort of which Open MPI has not told' \
	5 "$cancelled" \
	$gone "srun:w500,p$cancelled/,w300,x5"
unnamed 'nobody is named for MPI_Abort where a rank had ended by SIGTERM' \
	5 "$invoked
$cancelled" n1:0-0:w550,k0=15,quit n2:1-1:w550,quit \
	"srun:w500,p$invoked/$cancelled/,w500,x5"
unnamed 'a rank that has ended well is not named for MPI_Abort' 5 "$invoked
$cancelled
slurm-ddp: rank 1 had ended with exit code 0 when the step was killed; did rank \
0 wait?" n1:0-0:w550,quit n2:1-1:w300,e1=0,w250,quit \
	"srun:w500,p$invoked/$cancelled/,w500,x5"
unnamed 'nobody is named for MPI_Abort where the agents had gone long before' \
	5 "$invoked
$cancelled" n1:0-0:w300,quit n2:1-1:w300,quit \
	"srun:w1600,p$invoked/$cancelled/,w100,x5"
# As squeue tells of a task of an array, and of another one of it.
printf '%s\n' '13 RUNNING' '12 COMPLETING' >squeue.says
# shellcheck disable=SC2086 # words
unnamed 'nobody is named for MPI_Abort in a job that is not running' 5 "$invoked
$cancelled" $gone "srun:w500,p$invoked/$cancelled/,w300,x5"
rm squeue.says
step 2 n1:0-0:w100,e0=0,done n2:1-1:w300,quit srun:all,x143
said 'a rank that ended well before the step was killed is told' 143 \
	'slurm-ddp: rank 0 had ended with exit code 0 when the step was killed; did rank 1 wait?'
step 3 n1:0-0:w100,e0=0,done n2:1-1:w300,quit srun:all,x143
said 'no rank is told to have ended well where not all ranks are known' 143 \
	'slurm-ddp: which rank failed first, if any, is not known: the ddp-agent of node n2 ended before its ranks did'

# Since Slurm 26.05 mpi/pmix ends all others by SIGTERM, which agents survive.
failure='slurmstepd: error: *** STEP 12.3 ON n1 CANCELLED AT 1 DUE TO TASK FAILURE ***'
for line in "p$failure/," ''; do
	step restarts=1 6 n1:0-1:w1400,k0=15,k1=15,done \
		n2:2-3:w400,e2=0,w1030,k3=15,done n3:4-5:w1410,k4=15,k5=15,done \
		"srun:w1405,${line}all,x143"
	said "a rank that ended well is told where SIGTERM then ends all others${line:+, as Slurm says}" \
		143 "${line:+$failure
}slurm-ddp: rank 2 had ended with exit code 0 when the step was killed; did ranks \
0-1,3-5 wait?
slurm-ddp: the step is not started again: it is not known which rank or node \
failed"
done
step 2 n1:0-0:w1400,k0=15,done n2:1-1:w400,e1=0,done srun:all,x143
said 'a rank that ended well is told where SIGTERM then ends the only other one' \
	143 'slurm-ddp: rank 1 had ended with exit code 0 when the step was killed; did rank 0 wait?'
step 4 n1:0-1:w1400,k0=15,w300,k1=15,done n2:2-3:w400,e2=0,w1300,k3=15,done \
	srun:all,x143
said 'a rank is named that SIGTERM ends alone, though another had ended well' 143 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 1.4 'killed by signal 15 (SIGTERM)' |
		sed 's/ 0\.1\.4 / 1.4 /'
	others '2 other ranks')"
step 2 n1:0-0:w11000,k0=15,done n2:1-1:w400,e1=0,done srun:all,x143
said 'a rank is named that SIGTERM ends 11 s after another had ended well' 143 \
	"slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after 11.0 s: killed by \
signal 15 (SIGTERM)"
