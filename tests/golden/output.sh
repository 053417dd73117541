# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; inner shells expand
# Where ddp-info writes: files that block or have no room, and names by others.

# fails NAME WORDS COMMAND...: it ends by itself, with 1 and one sentence that
# has WORDS in it
fails()
{
	fails_name=$1 fails_words=$2
	shift 2
	call timeout 20 "$@"
	test "$status" -eq 1 && test "$(wc -l <"$scratch/err")" -eq 1 &&
		grep '^ddp-info: ' "$scratch/err" | grep -qF -- "$fails_words"
	result $? "$fails_name"
}

# README and ddp-info(1) show this machine from contrib/topologies.
check 'contrib/topologies/server8.xml is machines/server8' \
	cmp "$xml" "$top/contrib/topologies/server8.xml"

mkdir folder
mkfifo folder/pipe
cd folder || exit 1
fails '--draw refuses a pipe that nobody reads' 'not a regular file' \
	"$info" --topology "$xml" --draw pipe
fails '--draw refuses a device' 'not a regular file' \
	"$info" --topology "$xml" --draw /dev/null
fails '--topology refuses a pipe that nobody writes' 'not a regular file' \
	"$info" --topology pipe
fails '--draw into no folder' 'No such file' \
	"$info" --topology "$xml" --draw none/x.xml
rm pipe
full='ulimit -f 8 && exec "$0" "$@"'	# 4 KiB, or 8 by bash
fails '--draw without room' 'File too large' \
	sh -c "$full" "$info" --topology "$xml" --draw x.xml
equal 'leaves nothing behind' '' "$(ls -A)"
echo before >x.xml
fails '--draw without room over a file' 'File too large' \
	sh -c "$full" "$info" --topology "$xml" --draw x.xml
equal 'leaves that as it was' 'x.xml before' "$(ls -A) $(cat x.xml)"
rm x.xml
call sh -c 'umask 027; exec "$0" "$@"' "$info" --topology "$xml" --draw x.xml
equal '--draw makes a file with the mode of others' '0 -rw-r-----' \
	"$status $(ls -l x.xml | cut -c1-10)"
ln -s nothing lost
fails '--draw refuses a link that leads nowhere' 'No such file' \
	"$info" --topology "$xml" --draw lost
check 'the link that --draw refuses stays' test -h lost
rm lost
ln -s x.xml link
call "$info" --topology "$xml" --nodes n1 --draw link
cp ../out wanted
call "$info" --topology x.xml --nodes n1
check '--draw follows a link, and draws the same machine' cmp ../out wanted
equal 'a link that --draw follows stays a link' 'link wanted x.xml' \
	"$(test -h link && ls -A | xargs)"
cd .. || exit 1

for option in --help --version --nodes=n1 '--nodes=n1 --format=json'; do
	# shellcheck disable=SC2086 # several arguments
	fails "a full disk is an error: $option" \
		'cannot write the standard output: No space' \
		sh -c '"$0" "$@" >/dev/full' "$info" $option
done
fails 'a closed output is an error' 'cannot write the standard output' \
	sh -c '"$0" "$@" >&-' "$info" --topology "$xml" --draw x.xml
check 'the drawn file does not stand in for a closed output' \
	"$info" --topology x.xml --nodes n1

# An escape and a newline in all that a step's environment says.
bad=$(printf 'a\033[2J\nb')
call env "SLURM_PROCID=$bad" "SLURMD_NODENAME=$bad" "RANK=$bad" \
	"OMP_NUM_THREADS=$bad" "CUDA_VISIBLE_DEVICES=$bad" "DDP_PLACEMENT=$(
		printf '0\t0\t0\t0\t%s\tROCR_VISIBLE_DEVICES=%s\t0\t0\t%s\t' \
			"$bad" "$bad" "$bad"
		printf '1\t0\t%s\t%s\t0\t' "$bad" "$bad")" "$info"
equal 'in a step nothing is printed raw' '1 0' \
	"$status $(tr -d '\n' <out | tr -d ' -~' | wc -c)"
equal 'no text from outside begins a line' \
	'task a?[2J?b on a?[2J?b' "$(grep -v '^  ' out)"
fails 'an option of others is quoted' "--$(printf 'a?[2J?b') is not" \
	"$info" "--$bad"

# tty [NAME=VALUE...] ARGUMENTS...: what ddp-info prints on a terminal, with
# ESC for each escape and without the terminal's carriage returns
cat >terminal.py <<'END'
import os, pty, sys
def read(fd):
    data = os.read(fd, 65536)
    out.write(data)
    return data
with open("terminal.out", "wb") as out:
    pty.spawn(sys.argv[1:], read)
END
tty()
{
	call /usr/bin/python3 terminal.py env -u NO_COLOR TERM=xterm "$@" </dev/null
	tr '\033' '^' <terminal.out | tr -d '\r' | sed 's/\^/ESC/g'
}
set -- "$info" --topology "$xml" --nodes n1
"$@" >plain
sed '1s/.*/ESC[1m&ESC[0m/' plain >wanted
tty "$@" >got
check 'the header is bold on a terminal' diff wanted got
for variable in NO_COLOR=1 TERM=dumb; do
	tty "$variable" "$@" >got
	check "the header is not bold with $variable" diff plain got
done
planned=$(printf '0\t0\t0\t0\tn1\t\t99999\t0\teth0\t0\t0\t')
set -- SLURM_PROCID=0 "DDP_PLACEMENT=$planned" "$info"
tty "$@" >got
equal 'on a terminal a line that differs is red' \
	"1 $(grep -c DIFFERS got) ESC[31m  CPUs" \
	"$(grep -c 'ESC\[31m  CPUs  .*DIFFERSESC\[0m$' got) $(
		grep -c 'ESC\[31m' got) $(sed -n 's/\(CPUs\) .*/\1/p' got)"
tty NO_COLOR=1 "$@" >got
check 'a line that differs is not red with NO_COLOR' \
	sh -c '! grep ESC got && grep -q DIFFERS got'

sed "s/A100 SXM4 40GB/A\&quot;\\\\$(printf '\303\244')/" "$xml" >odd.xml
call "$info" --topology odd.xml --nodes 'n"\1' --format json
check 'JSON has quotation marks and backslashes as they are' \
	/usr/bin/python3 -c '
import json
rows = json.load(open("out"))["ranks"]
assert {row["node"] for row in rows} == {"n\"\\1"}, rows
models = {gpu["model"] for row in rows for gpu in row["gpus"]}
assert len(rows) == 8 and models == {"A\"\\??"}, models'

"$info" --nodes 'n[1-2500]' --tasks-per-node 1 --gpus 0 >many
for rank in 0 1023 1024 2047 2048 2499; do
	equal "of 2,500 rows the one of rank $rank has its rank and node" \
		"$rank n$((rank + 1))" \
		"$(awk -v rank=$rank '$1 == rank { print $1, $2 }' many)"
done

# A million hosts cost less processor time than another program takes to print a
# million such lines.
check 'a million hosts are not dear' /usr/bin/python3 - "$info" <<'END'
import resource, subprocess, sys
def cost(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime, out.count(b"\n")
for form, others in ("table", 3), ("json", 2):
    mine, lines = cost(sys.argv[1], "--nodes", "n[1-1048576]",
                       "--tasks-per-node", "1", "--gpus", "0", "--format", form)
    assert lines == 1048576 + others, lines
    awk, _ = cost("awk", "BEGIN { for (i = 0; i < 1048576; i++) printf "
                  "\"%d  n%d  %d  %s  %s  %s  %s\\n\", i, i, 0, \"a\", "
                  "\"b\", \"c\", \"d\" }")
    assert mine < awk, f"{form}: {mine} s beside {awk} s"
END
