# SPDX-License-Identifier: BSD-3-Clause
# Writes an hwloc XML topology from a description of a few lines: see machines/.
# A line is
#
#   package
#   numa NODE FIRST CORES STEP THREADS STRIDE
#		a NUMA node of the package; thread T of its core C is CPU
#		FIRST + C * STEP + T * STRIDE
#   memory NODE	a NUMA node of the machine, without CPUs
#   gpu BUSID CLASS VENDOR:DEVICE NAME...
#   nic BUSID INTERFACE GB/S
#		a device at the last "numa" or "machine" line
#   machine	the devices that follow belong to no package
#   switch	the devices that follow, until "end", are behind a PCI switch
#   info NAME VALUE
#		an info of the last device
# and # begins a comment.

function power(bits, out)
{
	for (out = 1; bits > 0; bits--)
		out *= 2
	return out
}

function hex(list, out, i, n, cpu, words, w, top)
{
	top = 0
	n = split(list, cpu, " ")
	for (i = 1; i <= n; i++) {
		w = int(cpu[i] / 16)
		words[w] += power(cpu[i] % 16)
		if (w > top)
			top = w
	}
	if (top % 2 == 0)
		top++
	for (w = top; w >= 0; w -= 2)
		out = out sprintf("%s0x%04x%04x", w < top ? "," : "",
				  words[w], words[w - 1])
	return out
}

function sets(cpus, nodes)
{
	return " cpuset=\"" hex(cpus) "\" complete_cpuset=\"" hex(cpus) \
		"\" nodeset=\"" hex(nodes) "\" complete_nodeset=\"" \
		hex(nodes) "\" gp_index=\"" ++gp "\""
}

function emit(where, text)
{
	body[where] = body[where] text "\n"
}

function close_info()
{
	if (open_object)
		emit(where, "</object>")
	open_object = 0
}

function pci(bus, class, ids, speed)
{
	close_info()
	emit(where, "<object type=\"PCIDev\" gp_index=\"" ++gp \
		"\" pci_busid=\"" bus "\" pci_type=\"" class " [" ids \
		"] [0000:0000] 00\" pci_link_speed=\"" speed "\">")
	open_object = 1
}

BEGIN { where = "machine" }
/^ *#/ || NF == 0 { next }
$1 == "package" {
	close_info()
	packages++
	next
}
$1 == "machine" {
	close_info()
	where = "machine"
	next
}
$1 == "numa" {
	close_info()
	node = $2
	where = node
	order[++numas] = node
	package[node] = packages
	for (c = 0; c < $4; c++) {
		set = ""
		pus = ""
		for (t = 0; t < $6; t++) {
			cpu = $3 + c * $5 + t * $7
			set = set " " cpu
			pus = pus "<object type=\"PU\" os_index=\"" cpu "\"" \
				sets(cpu, node) "/>\n"
		}
		cores[node] = cores[node] "<object type=\"Core\" os_index=\"" \
			core++ "\"" sets(set, node) ">\n" pus "</object>\n"
		cpus[node] = cpus[node] set
	}
	next
}
$1 == "memory" {
	close_info()
	bare[++bares] = $2
	next
}
$1 == "switch" {
	close_info()
	bus = sprintf("%02x", 192 + ++switches)
	emit(where, "<object type=\"Bridge\" gp_index=\"" ++gp \
		"\" bridge_type=\"1-1\" depth=\"1\" bridge_pci=\"0000:[" bus \
		"-" bus "]\" pci_busid=\"0000:" bus ":1f.0\" pci_type=\"" \
		"0604 [10b5:8725] [0000:0000] 00\" pci_link_speed=\"16.0\">")
	next
}
$1 == "end" {
	close_info()
	emit(where, "</object>")
	next
}
$1 == "gpu" {
	pci($2, $3, $4, "16.0")
	name = $5
	for (i = 6; i <= NF; i++)
		name = name " " $i
	emit(where, "<info name=\"PCIDevice\" value=\"" name "\"/>")
	next
}
$1 == "nic" {
	pci($2, "0207", "15b3:1019", $4)
	emit(where, "<object type=\"OSDev\" gp_index=\"" ++gp "\" name=\"" \
		$3 "\" osdev_type=\"2\"/>")
	next
}
$1 == "info" {
	emit(where, "<info name=\"" $2 "\" value=\"" $3 "\"/>")
	next
}
{
	print "topology.awk: line " NR ": '" $1 "' is not known" >"/dev/stderr"
	failed = 1
	exit 1
}

function bridge(where)
{
	if (body[where] != "")
		printf "<object type=\"Bridge\" gp_index=\"%d\" " \
			"bridge_type=\"0-1\" depth=\"0\" " \
			"bridge_pci=\"0000:[00-ff]\">\n%s</object>\n", \
			++gp, body[where]
}

function numa(node, cpus)
{
	printf "<object type=\"NUMANode\" os_index=\"%d\"%s " \
		"local_memory=\"1073741824\"/>\n", node, sets(cpus, node)
}

END {
	if (failed)
		exit 1
	close_info()
	for (i = 1; i <= numas; i++) {
		all = all cpus[order[i]]
		nodes = nodes " " order[i]
		in_package[package[order[i]]] = \
			in_package[package[order[i]]] cpus[order[i]]
		of_package[package[order[i]]] = \
			of_package[package[order[i]]] " " order[i]
	}
	for (i = 1; i <= bares; i++)
		nodes = nodes " " bare[i]
	print "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
	print "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">"
	print "<topology version=\"2.0\">"
	print "<object type=\"Machine\" os_index=\"0\"" sets(all, nodes) \
		" allowed_cpuset=\"" hex(all) "\" allowed_nodeset=\"" \
		hex(nodes) "\">"
	for (i = 1; i <= bares; i++)
		numa(bare[i], "")
	for (p = 1; p <= packages; p++) {
		print "<object type=\"Package\" os_index=\"" p - 1 "\"" \
			sets(in_package[p], of_package[p]) ">"
		for (i = 1; i <= numas; i++) {
			node = order[i]
			if (package[node] != p)
				continue
			print "<object type=\"Group\"" \
				sets(cpus[node], node) ">"
			numa(node, cpus[node])
			printf "%s", cores[node]
			bridge(node)
			print "</object>"
		}
		print "</object>"
	}
	bridge("machine")
	print "</object>"
	print "</topology>"
}
