# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Signals to the process of srun alone, and to its group, as a terminal sends them.
# Here the clock is that of the machine.

# They are sent once a line of stderr has the word READY ("ready", a line that is
# not shown). MORE=MS: once more, so much later than all have taken the first, with
# which the kernel would make it one.
cat >signals.py <<'END'
import os, signal, subprocess, sys, time
number, group = int(sys.argv[1]), sys.argv[2] == "group"

def read(pid, name):
    with open(f"/proc/{pid}/{name}") as file:
        return file.read()

def is_pending(pid):
    status = dict(line.split(":", 1) for line in
                  read(pid, "status").splitlines())
    return (status["Name"].strip() != "ddp-mirror" and
            int(status["ShdPnd"], 16) >> (number - 1) & 1)

def is_taken(pid):
    pids = [pid]
    if group:
        pids += read(pid, f"task/{pid}/children").split()
    try:
        return not any(is_pending(one) for one in pids)
    except (FileNotFoundError, ProcessLookupError):
        return False  # a mirror that has gone: look again

def show(line):
    if line.strip() != b"ready":
        sys.stderr.buffer.write(line)
        sys.stderr.flush()

signal.signal(number, signal.SIG_DFL)  # a shell's "&" may have it ignored
child = subprocess.Popen(sys.argv[3:], start_new_session=True,
                         stderr=subprocess.PIPE)
for line in child.stderr:
    show(line)
    if os.environ.get("READY", "ready").encode() in line:
        break
(os.killpg if group else os.kill)(child.pid, number)
if os.environ.get("MORE"):
    while not is_taken(child.pid):
        time.sleep(0.001)
    time.sleep(int(os.environ["MORE"]) / 1000)
    (os.killpg if group else os.kill)(child.pid, number)
for line in child.stderr:
    show(line)
sys.exit(child.wait() % 256)
END
for number in 1 2 3 10 12 15; do
	soon "$python" signals.py $number one ./real 1 srun:pready/,w60000
	said "signal $number reaches srun" $((128 + number)) \
		"slurm-ddp: srun itself was killed by signal $number, and so the step ends"
done
for how in one group; do
	soon "$python" signals.py 2 $how ./real 1 srun:I,pready/,n1
	said "srun gets a SIGINT to $how once" 0 'interrupts: 1'
done
for more in 8 200; do
	for how in one group; do
		soon env MORE=$more "$python" signals.py 2 $how ./real 1 \
			srun:I,pready/,n2
		said "srun gets two SIGINTs to $how, $more ms apart, as two" 0 \
			'interrupts: 2'
	done
done
soon env MORE=8 "$python" signals.py 2 one ./real 1 srun:I,B,pready/,w1000,n2
said 'srun gets two SIGINTs as two where it is slow to take the first' 0 \
	'interrupts: 2'
# The status of a process begins with all its groups, which can be long.
cat >groups.py <<'END'
import os, sys
os.setgroups(range(4000000, 4000450))
os.execvp(sys.argv[1], sys.argv[1:])
END
if "$python" groups.py true 2>why; then
	soon "$python" groups.py "$python" signals.py 2 group ./real 1 \
		srun:I,pready/,n1
	said 'srun gets a SIGINT once for a user of many groups' 0 \
		'interrupts: 1'
else
	skip 'a user of many groups' "$(tail -n 1 why)"
fi

asks='srun: interrupt (one more within 1 sec to abort)'
again='n1:0-0:e0=0,done srun:all'
both='n1:0-1:e0=0,e1=0,done srun:all'
# shellcheck disable=SC2086 # words
soon "$python" signals.py 2 one ./real restarts=1 1 n1:0-0:w1500,e0=3,done \
	"srun:I,pready/,n1,p$asks/,all" $again
said_soon 'one SIGINT, about which srun asks, does not explain a failure' 0 \
	"interrupts: 1
$asks
$(first 0 'n1 (GPU 0, pid 1000)' 9 'exit code 3')
slurm-ddp: restart 1 of 1: on the same nodes"
# shellcheck disable=SC2086 # words
soon env READY='ended because' "$python" signals.py 2 one ./real restarts=1 2 \
	n1:0-1:w200,e0=3,K,done "srun:I,n1,p$asks/,all" $both
said_soon 'a step does not start again after a SIGINT to srun' 3 \
	"$(first 0 'n1 (GPU 0, pid 1000)' 2 'exit code 3'; others '1 other rank')
interrupts: 1
$asks"
for number in 2 15; do
	soon env READY='failed first' "$python" signals.py $number one ./real \
		restarts=1 1 n1:0-0:w300,e0=3,done srun:w60000
	said_soon "a step does not start again that signal $number was for" 3 \
		"$(first 0 'n1 (GPU 0, pid 1000)' 3 'exit code 3')
slurm-ddp: srun itself was killed by signal $number, and so the step ends"
done
(
	timeout -k 1 60 ./real 1 n1:0-0:w60000 \
		"srun:$(seq -s , -f p%g/,w500 100),w60000"
	echo $? >code
) 2>&1 | head -n 1 >out
equal 'srun ends by SIGPIPE where nobody reads what it prints' '1 141' \
	"$(cat out code | paste -sd' ')"

# Somebody stops all processes of srun, and lets them go on one after the other.
cat >stops.py <<'END'
import os, signal, subprocess, sys, time

def read(pid, name):
    with open(f"/proc/{pid}/{name}") as file:
        return file.read()

def status(pid, name):
    return dict(line.split(":", 1) for line in
                read(pid, "status").splitlines())[name].strip()

def wait(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)

def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    wait(lambda: status(pid, "State")[0] == "T")

def find_srun():
    """And the mirror, until that has its name."""
    return [pid for pid in
            map(int, read(step.pid, f"task/{step.pid}/children").split())
            if status(pid, "Name") != "ddp-mirror"]

step = subprocess.Popen(sys.argv[2:], stderr=subprocess.PIPE)
step.stderr.readline()
wait(lambda: len(find_srun()) == 1)
srun, = find_srun()
if sys.argv[1] == "continue":
    stop(step.pid)
    stop(srun)
    os.kill(step.pid, signal.SIGCONT)
    wait(lambda: not int(status(step.pid, "ShdPnd"), 16) >>
         (signal.SIGCHLD - 1) & 1)
    time.sleep(0.05)
    os.kill(srun, signal.SIGCONT)
else:
    stop(srun)
    os.kill(step.pid, signal.SIGTERM)
try:
    sys.exit(step.wait(50))
except subprocess.TimeoutExpired:
    print("supervisor:", status(step.pid, "State"))
    os.kill(step.pid, signal.SIGKILL)
END
soon "$python" stops.py continue ./real 1 n1:0-0:w500,e0=0,done srun:pready/,all,x4
equal 'a step goes on to its end when all of srun was stopped, and continued' \
	'4 ' "$status $(cat out)"
soon "$python" stops.py end ./real 1 n1:0-0:K,done srun:pready/,w60000
equal 'a signal ends a step whose srun alone was stopped' '143 ' \
	"$status $(cat out)"
