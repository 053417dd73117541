# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run
# The pages themselves: clean, one under each function's name, and with every
# option of the programs.

# silent COMMAND...: it succeeds and says nothing.
silent()
{
	"$@" >said 2>&1 || echo "status $?" >>said
	cat said
	test ! -s said
}

for page in "$top"/lib/*.3 "$top"/bin/*/*.1 "$top"/contrib/*/*.1 \
		"$top"/plugin/*.[78]; do
	name=${page##*/}
	equal "$name: no line is longer than 80 bytes" '' \
		"$(awk 'length > 80 { print FNR }' "$page")"
	if command -v mandoc >/dev/null; then
		check "$name: mandoc finds no fault" \
			silent mandoc -T lint -W all "$page"
	else
		skip "$name: mandoc finds no fault" 'there is no mandoc'
	fi
	if command -v groff >/dev/null; then
		check "$name: groff warns of nothing" \
			silent groff -man -Tascii -ww -b -z "$page"
	else
		skip "$name: groff warns of nothing" 'there is no groff'
	fi
done

# Every reference to one of our pages, as ddp(3), leads to a page that is there, and
# a section in capitals that follows it is in that page.
page_file()
{
	case $1 in
	*_nccl*'(3)') echo "$top/lib/ddp_nccl.3" ;;
	*'(3)') echo "$top/lib/ddp.3" ;;
	*) find "$top/plugin" "$top/bin" "$top/contrib" \
		-name "$(echo "$1" | sed 's/(/./; s/)//')" ;;
	esac
}

cat "$top"/lib/*.3 "$top"/bin/*/*.1 "$top"/contrib/*/*.1 "$top"/plugin/*.[78] |
	sed 's/\\-/-/g; s/^\.BR* //; s/ (/(/' | tr '\n' ' ' |
	grep -oE '(spank_|slurm-)?ddp[a-z_-]*\([1378]\)(, [A-Z]{4,})?' |
	sort -u >references
check 'the pages refer to each other' test -s references
while IFS=, read -r page section; do
	file=$(page_file "$page")
	test -f "$file" &&
		{ test ! "$section" || grep -q "^\.S[HS]$section" "$file"; }
	result $? "$page${section:+,$section} is there"
done <references

# describes PAGE FUNCTION: its NAME lists the function, its SYNOPSIS has it.
describes()
{
	sed -n '/^\.SH NAME/,/^\.SH LIBRARY/p' "$1" | tr -s ', ' '\n' |
		grep -qx "$2" &&
		sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$1" |
		grep -q "[ *]$2("
}

# Every function that the library shows has a page, and no other name has one.
if has PMIX; then
	nm -D --defined-only "$build/obj/lib/libddp.so.0" |
		sed -n 's/.* T \(ddp_[a-z_]*\).*/\1/p' >functions
	check 'the library shows functions' test -s functions
	while read -r function; do
		page=$(sed -n 's/^\.so //p' "man/man3/$function.3")
		check "man $function" describes "man/${page:-none}" "$function"
	done <functions
	find man/man3 -type f | sed 's/.*\///; s/\.3$//' | sort |
		grep -vx -e ddp -e ddp_nccl >pages
	check 'no other page is there' diff functions pages
else
	skip 'a page for each function' 'configure found no PMIx'
fi

# arguments FUNCTION: those of one of ddp_checkpoint.py, one a line
arguments()
{
	python3 - "$1" "$top/contrib/pytorch/ddp_checkpoint.py" <<-'END'
	import ast, sys
	name, path = sys.argv[1:]
	for node in ast.parse(open(path).read()).body:
	    if isinstance(node, ast.FunctionDef) and node.name == name:
	        print(*(argument.arg for argument in node.args.args), sep="\n")
	END
}

# The two functions of contrib/pytorch/ddp_checkpoint.py that users call
sed -n '/^\.SS In PyTorch/,/^\.SH /p' "$top/bin/ddp-train/ddp-train.1" >section
for function in load save; do
	sed -n "/^\.BI $function(/,/^\.\(TP\|PP\)/p" section |
		grep '^\.[BI]' | tr -cs 'a-z_' '\n' | sort -u >described
	arguments "$function" | sort >wanted
	comm -23 wanted described >missing
	test -s wanted && test ! -s missing
	result $? "ddp-train.1 has all arguments of ddp_checkpoint.$function"
done

# options: the long options in a text, one a line
options()
{
	grep -o -- '--[a-z0-9_]\{1,\}[a-z0-9_-]*' | sort -u
}

# A page's options are in bold at the beginning of its tagged paragraphs.
for tool in ddp-info ddp-bench ddp-train; do
	program=$build/obj/bin/$tool
	if test ! -x "$program"; then
		skip "$tool.1 has the options of --help" "$tool was not built"
		continue
	fi
	call "$program" --help all
	sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[^ ]*\).*/\2/p' out | sort >wanted
	awk '/^\.(TP|TQ)/ { tag = 2 } tag-- == 1' "$top/bin/$tool/$tool.1" |
		sed 's/\\-/-/g' | options >had
	check "$tool.1 has the options of --help" diff wanted had
	equal "$tool --help fits on a terminal" '' \
		"$(awk 'length > 80' out)"
done

# The other documents: each link leads to a file, and the newest version of which
# NEWS tells is the one that configure reads.
(cd "$top" && find README.md bin contrib lib plugin tests -name '*.md') >documents
while read -r document; do
	folder=$top/$(dirname "$document")
	sed 's/](/\n](/g' "$top/$document" | sed -n 's/^](\([^):]*\)).*/\1/p' |
		while read -r link; do
			test -e "$folder/${link%#*}" || echo "$link"
		done >broken
	check "$document: each link leads to a file" diff /dev/null broken
done <documents
equal 'NEWS begins with the version of contrib/VERSION' \
	"$(cat "$top/contrib/VERSION")" \
	"$(sed -n 's/^## //p' "$top/contrib/NEWS.md" | head -n 1)"
