# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# An srun that had threads of its own before the plugin was loaded. The
# supervisor's signals must not go to one of them, and it must not change for a
# moment what belongs to the whole process.

make -s -C "$build" obj/tests/fakes/idle_threads.so >made 2>&1 || {
	cat made >&2
	exit 1
}

# threaded WHICH WORD...: run that srun, as call
threaded()
{
	which=$1
	shift
	call env "IDLE_THREADS=$which" timeout -k 1 60 env \
		"LD_PRELOAD=$build/obj/tests/fakes/idle_threads.so" "$@"
}

# spoke NAME STATUS LINES: its code and what it has printed, but for the times
spoke()
{
	sed 's/ after [0-9.]* s/ after T/' err >spoken
	equal "$1" "$2 $3" "$status $(cat spoken)"
}

threaded 2 ./srun 2 n1:0-1:e0=0,e1=0,done srun:launch,phello/,all
spoke 'an srun that has threads tells the supervisor of its launch, and ends' \
	0 hello
threaded 2 ./srun 2 n1:0-1:w100,e0=3,K,done srun:launch,all,x143
spoke 'a rank that fails is named where srun has threads' 3 \
	'slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after T: exit code 3
slurm-ddp: 1 other rank ended because of it'
threaded 2 ./srun restarts=1 1 n1:0-0:w100,e0=3,K,done srun:launch,all,x143 \
	n1:0-0:e0=0,done srun:launch,all
spoke 'a step is started again where srun has threads' 0 \
	'slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after T: exit code 3
slurm-ddp: restart 1 of 1: on the same nodes'

# once.py NUMBER CMD...: send CMD one signal when its supervisor takes them,
# which is when the process is there by which it tells ours from the terminal's
cat >once.py <<'END'
import signal, subprocess, sys, time
number = int(sys.argv[1])

def read(path):
    try:
        with open(path) as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""

def is_ready(pid):
    children = read(f"/proc/{pid}/task/{pid}/children").split()
    return any(read(f"/proc/{one}/comm") == "ddp-mirror\n" for one in children)

signal.signal(number, signal.SIG_DFL)  # a shell's "&" may have it ignored
child = subprocess.Popen(sys.argv[2:], start_new_session=True)
end = time.monotonic() + 50
while not is_ready(child.pid) and child.poll() is None:
    assert time.monotonic() < end, "no supervisor"
    time.sleep(0.01)
child.send_signal(number)
code = child.wait()
sys.exit(f"killed by signal {-code}" if code < 0 else code)
END
for number in 1 2 3 10 12 15; do
	threaded 2 python3 once.py $number ./srun 1 srun:hang
	spoke "signal $number reaches the supervisor of an srun that has threads" \
		$((128 + number)) "slurm-ddp: srun itself was killed by signal \
$number, and so the step ends"
done

# By the machine's clock, as that thread sleeps by it
mkdir machine
cp real machine/srun
threaded late machine/srun 1 n1:0-0:w500,e0=0,done srun:launch,all
spoke 'a thread that has just been made leaves signals to the supervisor' 0 ''

lacks="a thread of srun (\"srun\") does not leave signals to it; take the \
library that starts that thread out of LD_PRELOAD"
threaded deaf ./srun 1 srun:x0
spoke 'a thread that cannot be asked to block signals is told of' 98 "$lacks"
threaded waits ./srun 1 srun:x0
spoke 'a thread that waits for the signals itself is told of' 98 "$lacks"

# By the machine's clock: clock.c looks for processes in /proc.
name='an srun whose /proc is of another PID namespace has a supervisor'
if unshare --pid --fork true 2>/dev/null; then
	soon timeout -k 1 60 unshare --pid --fork ./real 1 n1:0-0:w100,e0=3,K,done \
		srun:launch,all,x143
	spoke "$name" 3 'slurm-ddp: rank 0 failed first on n1 (GPU 0, pid 1000) after T: exit code 3'
else
	skip "$name" 'no right to make one'
fi

threaded 2 sh -c 'umask 027; exec ./srun "$@"' sh report=shared.json 1 \
	n1:0-0:e0=0,done srun:launch,all
spoke 'a report is written without a change of the umask' 0 ''
equal 'a report has the mode that the umask leaves' 640 \
	"$(stat -c %a shared.json)"

echo "RUNNING $(($(date +%s) + 3600))" >squeue.says
threaded 2 ./srun signal=USR1@60 1 n1:0-0:w900,e0=0,done srun:launch,all
spoke 'Slurm is asked for the end of a job without a change of the environment' \
	0 ''
rm squeue.says
