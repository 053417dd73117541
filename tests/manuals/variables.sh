# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# The variables of a task: slurm-ddp(7) says what ddp-info --variables says, which is
# the table by which the plugin sets them. README has those that people need most.

# page_table: the page's table, a variable a line: "NAME meaning; set when"
page_table()
{
	sed -n '/^Each task finds:/,/^\.PP/p' "$top/plugin/slurm-ddp.7" |
		sed 's/^\.BR* //; s/ ;$/;/; s/\\-/-/g' | awk '
		/^\.TP/ { show(); names = ""; text = ""; next }
		/^\.PP/ { show() }
		names == "" { names = $0; next }
		{ text = text " " $0 }
		function show(i, n, name) {
			n = split(names, name, ", ")
			for (i = 1; i <= n && text != ""; i++)
				print name[i] text
		}'
}

# readme_names: what README's table has
readme_names()
{
	sed -n '/^| variable | value/,/^$/p' "$top/README.md" |
		sed '1,2d; s/^| //; s/ |.*//' | grep -o '[A-Z_]\{1,\}'
}

if test -x "$build/obj/bin/ddp-info"; then
	call "$build/obj/bin/ddp-info" --variables
	# Columns are two spaces apart, and the meaning is on the second line.
	sed '1,2d; s/   */|/g' out | awk -F'|' '
	$1 == "" { print name, $2 when; next }
	{
		name = $1
		when = $3
		if (sub(/,* *unless exported$/, "", when))
			print name >"users"
		when = when == "" || when == "always" ? "" : "; set " when
	}' | sort >table
	check 'the table of variables fits 100 columns' \
		awk 'length > 100 { print; bad = 1 } END { exit bad }' out
	check 'ddp-info prints a table of variables' test -s table
	page_table | sort >page
	check 'slurm-ddp.7 has the same table' diff table page
	readme_names | sort >readme
	cut -d' ' -f1 table >names
	comm -13 names readme >unknown
	check "README's variables are in that table" diff /dev/null unknown
	for variable in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK \
		MASTER_ADDR MASTER_PORT CUDA_VISIBLE_DEVICES; do
		check "README names $variable" grep -qx $variable readme
	done
	sort -o users users
	sed -n '/^These stay if/,/\.$/p' "$top/plugin/slurm-ddp.7" |
		grep -o '[A-Z]\{1,\}_[A-Z_]*' | sort >page
	check "slurm-ddp.7 says which a user's value replaces" diff users page
else
	skip 'the table of variables' 'ddp-info was not built'
fi
