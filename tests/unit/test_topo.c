/* SPDX-License-Identifier: BSD-3-Clause */
/* Topology files and device files, through hwloc. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <hwloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "topo/topo.h"

int __real_hwloc_topology_load(hwloc_topology_t topology);
int __wrap_hwloc_topology_load(hwloc_topology_t topology);
bool __real_ddp_topo_has_gpu(const char *root);
bool __wrap_ddp_topo_has_gpu(const char *root);

static char directory[64];
static pid_t slow_below;	/* a child of it loads for longer than it may */
static pid_t greedy_below;	/* a child of it takes more memory than it may */
static bool gpu_here;		/* this machine has a GPU, whatever it has */

int __wrap_hwloc_topology_load(hwloc_topology_t topology)
{
	time_t end = time(NULL) + 10;
	void *volatile taken;	/* clang leaves out memory that nobody uses */

	while (getppid() == slow_below && time(NULL) < end)
		;
	if (getppid() == greedy_below) {
		taken = malloc((size_t)3 << 30);
		if (!taken)
			return -1;
	}
	return __real_hwloc_topology_load(topology);
}

/* The tests' own machines are below a directory. */
bool __wrap_ddp_topo_has_gpu(const char *root)
{
	return *root ? __real_ddp_topo_has_gpu(root) : gpu_here;
}

static void make_directory(void)
{
	strcpy(directory, "/tmp/ddp-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(directory));
}

static void remove_directory(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_expect_eq(system(command), 0);
}

TestSuite(topo, .init = make_directory, .fini = remove_directory);
TestSuite(damage, .init = make_directory, .fini = remove_directory);

/* Write a file below the directory and return its path. */
static const char *write_file(const char *name, const char *text)
{
	static char path[256];
	char command[512];
	FILE *file;

	snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s)",
		 directory, name);
	if (strchr(name, '/'))
		cr_assert_eq(system(command), 0);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

#define HEAD "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n" \
	"<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" " \
	"complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" nodeset=\"0x1\" " \
	"complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n" \
	"<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\" " \
	"complete_cpuset=\"0x3\" nodeset=\"0x1\" complete_nodeset=\"0x1\" " \
	"gp_index=\"2\" local_memory=\"1024\"/>\n"
#define PU(number, set) "<object type=\"PU\" os_index=\"" number "\" " \
	"cpuset=\"" set "\" complete_cpuset=\"" set "\" nodeset=\"0x1\" " \
	"complete_nodeset=\"0x1\" gp_index=\"1" number "\"/>\n"
#define PCI(bus, type, index, rest) "<object type=\"PCIDev\" gp_index=\"2" \
	index "\" pci_busid=\"" bus "\" pci_type=\"" type " [0000:0000] 00\" " \
	"pci_link_speed=\"0.0\">" rest "</object>\n"
#define TAIL "</object>\n</topology>\n"

static struct ddp_machine *read_machine(const char *text,
					struct ddp_error *error)
{
	struct ddp_topo *topo = ddp_topo_create(write_file("node.xml", text),
						error);
	struct ddp_machine *machine;

	if (topo == NULL)
		return NULL;
	machine = ddp_topo_machine(topo, error);
	ddp_topo_destroy(topo);
	return machine;
}

/* Threads without a core, as some virtual machines have, count as cores. */
Test(topo, threads_without_cores)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(HEAD PU("0", "0x1")
						   PU("1", "0x2") TAIL,
						   &error);

	cr_assert_not_null(machine, "%s", error.text);
	cr_expect_eq(machine->cpu_count, 2);
	cr_expect_neq(machine->cpus[0].core, machine->cpus[1].core);
	cr_expect_eq(machine->gpu_count, 0);
	ddp_machine_destroy(machine);
}

Test(topo, which_devices_are_gpus)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(HEAD PU("0", "0x1")
		PU("1", "0x2")
		PCI("0001:02:00.0", "0302 [10de:20b0]", "0", "")
		PCI("0000:0a:00.0", "0300 [10de:2204]", "1",
		    "<info name=\"PCIDevice\" value=\"GA102 [RTX 3090 ]\"/>")
		PCI("0000:03:00.1", "0403 [10de:1aef]", "2", "")
		PCI("0000:04:00.0", "0680 [10de:1af1]", "3", "")
		PCI("0000:05:00.0", "0300 [1a03:2000]", "4", "")
		PCI("0000:06:00.0", "0300 [8086:3e92]", "5", "")
		PCI("0000:07:00.0", "0300 [1002:66a1]", "6",
		    "<info name=\"PCIDevice\" value=\"Vega 20\"/>")
		PCI("0000:08:00.0", "0380 [1002:740c]", "7", "")
		PCI("0000:09:00.0", "1200 [1002:74a1]", "8", "") TAIL,
		&error);
	static const char *const expected[] = {
		"0000:07:00.0", "0000:08:00.0", "0000:09:00.0",
		"0000:0a:00.0", "0001:02:00.0",
	};
	uint32_t i;

	cr_assert_not_null(machine, "%s", error.text);
	cr_assert_eq(machine->gpu_count, 5);
	for (i = 0; i < 5; i++) {
		cr_expect_str_eq(machine->gpus[i].bus_id, expected[i]);
		cr_expect_eq(machine->gpus[i].vendor, i < 3 ?
			     DDP_VENDOR_AMD : DDP_VENDOR_NVIDIA);
		cr_expect_eq(ddp_cpuset_count(&machine->gpus[i].cpus), 2);
	}
	cr_expect_str_eq(machine->gpus[0].model, "Vega 20");
	cr_expect_str_eq(machine->gpus[1].model, "1002:740c");
	cr_expect_str_eq(machine->gpus[3].model, "RTX 3090");
	ddp_machine_destroy(machine);
}

/* XML names them in any order; functions of one device differ in the last digit. */
Test(topo, sorts_gpus_by_all_parts_of_their_bus_id)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(HEAD PU("0", "0x1")
		PU("1", "0x2")
		PCI("0001:02:00.0", "0302 [10de:20b0]", "0", "")
		PCI("0000:03:01.0", "0302 [10de:20b0]", "1", "")
		PCI("0000:03:00.7", "0302 [10de:20b0]", "2", "")
		PCI("0000:03:00.1", "0302 [10de:20b0]", "3", "")
		PCI("0000:03:00.2", "0302 [10de:20b0]", "4", "")
		PCI("0000:03:00.0", "0302 [10de:20b0]", "5", "")
		PCI("0000:02:1f.0", "0302 [10de:20b0]", "6", "") TAIL, &error);
	static const char *const expected[] = {
		"0000:02:1f.0", "0000:03:00.0", "0000:03:00.1",
		"0000:03:00.2", "0000:03:00.7", "0000:03:01.0",
		"0001:02:00.0",
	};
	uint32_t i;

	cr_assert_not_null(machine, "%s", error.text);
	cr_assert_eq(machine->gpu_count, 7);
	for (i = 0; i < 7; i++)
		cr_expect_str_eq(machine->gpus[i].bus_id, expected[i]);
	ddp_machine_destroy(machine);
}

/* The machine says that it has CPUs 0 to 3 near the GPU, but only two are there. */
Test(topo, keeps_only_cpus_that_are_there)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(
		"<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n"
		"<object type=\"Machine\" os_index=\"0\" cpuset=\"0xf\" "
		"complete_cpuset=\"0xf\" allowed_cpuset=\"0xf\" "
		"nodeset=\"0x1\" complete_nodeset=\"0x1\" "
		"allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
		"<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xf\" "
		"complete_cpuset=\"0xf\" nodeset=\"0x1\" "
		"complete_nodeset=\"0x1\" gp_index=\"2\" "
		"local_memory=\"1024\"/>\n"
		PU("1", "0x2") PU("2", "0x4")
		PCI("0000:02:00.0", "0302 [10de:20b0]", "0", "") TAIL, &error);

	cr_assert_not_null(machine, "%s", error.text);
	cr_assert_eq(machine->cpu_count, 2);
	cr_assert_eq(machine->gpu_count, 1);
	cr_expect_eq(ddp_cpuset_count(&machine->gpus[0].cpus), 2);
	cr_expect(ddp_cpuset_has(&machine->gpus[0].cpus, 1));
	cr_expect(ddp_cpuset_has(&machine->gpus[0].cpus, 2));
	ddp_machine_destroy(machine);
}

/* A network card of this link speed, in GB/s, with one device of the system. */
#define NIC(bus, index, speed, type, name) "<object type=\"PCIDev\" " \
	"gp_index=\"3" index "\" pci_busid=\"" bus "\" " \
	"pci_type=\"0200 [15b3:1017] [0000:0000] 00\" " \
	"pci_link_speed=\"" speed "\"><object type=\"OSDev\" " \
	"gp_index=\"4" index "\" name=\"" name "\" osdev_type=\"" type \
	"\"/></object>\n"
#define BRIDGE(index, rest) "<object type=\"Bridge\" gp_index=\"5" index \
	"\" bridge_type=\"0-1\" depth=\"0\" " \
	"bridge_pci=\"0000:[0" index "-0" index "]\">" rest "</object>\n"
#define NETWORK "2"
#define RDMA "3"
#define GPU(bus) PCI(bus, "0302 [10de:20b0]", "0", "")

static void expect_interface(const char *devices, const char *wanted)
{
	struct ddp_error error = { 0 };
	char *text;
	struct ddp_machine *machine;

	cr_assert_gt(asprintf(&text, "%s%s%s", HEAD PU("0", "0x1")
			      PU("1", "0x2"), devices, TAIL), 0);
	machine = read_machine(text, &error);
	free(text);
	cr_assert_not_null(machine, "%s", error.text);
	cr_assert_eq(machine->gpu_count, 1);
	cr_expect_str_eq(machine->gpus[0].interface, wanted);
	ddp_machine_destroy(machine);
}

Test(topo, of_cards_that_are_as_near_the_faster_link_counts)
{
	expect_interface(BRIDGE("1", GPU("0000:01:00.0")
		NIC("0000:01:01.0", "1", "2.0", NETWORK, "slow")
		NIC("0000:01:02.0", "2", "31.5", NETWORK, "fast")), "fast");
	expect_interface(BRIDGE("1", GPU("0000:01:00.0")
		NIC("0000:01:01.0", "1", "31.5", NETWORK, "fast")
		NIC("0000:01:02.0", "2", "2.0", NETWORK, "slow")), "fast");
}

Test(topo, a_card_with_sockets_counts_before_one_with_rdma_alone)
{
	expect_interface(BRIDGE("1", GPU("0000:01:00.0")
		NIC("0000:01:01.0", "1", "63.0", RDMA, "mlx5_0")
		NIC("0000:01:02.0", "2", "2.0", NETWORK, "eth0")), "eth0");
	expect_interface(BRIDGE("1", GPU("0000:01:00.0")
		NIC("0000:01:01.0", "1", "63.0", RDMA, "mlx5_0")), "mlx5_0");
	expect_interface(BRIDGE("1", GPU("0000:01:00.0")
		NIC("0000:01:01.0", "1", "31.5", NETWORK, "cxi0")
		NIC("0000:01:02.0", "2", "31.5", NETWORK, "hsn0")), "hsn0");
	expect_interface(BRIDGE("1", GPU("0000:01:00.0")
		NIC("0000:01:01.0", "1", "31.5", NETWORK, "cxi0")), "cxi0");
}

Test(topo, the_nearer_card_counts_however_slow_it_is)
{
	expect_interface(BRIDGE("1",
		NIC("0000:01:01.0", "1", "63.0", NETWORK, "far"))
		BRIDGE("2", GPU("0000:02:00.0")
		NIC("0000:02:01.0", "2", "2.0", RDMA, "near")), "near");
}

static void expect_refusal(const char *text, const char *expected)
{
	struct ddp_error error = { 0 };

	cr_expect_null(read_machine(text, &error));
	cr_expect_not_null(strstr(error.text, expected), "%s", error.text);
}

Test(topo, refuses_a_bus_id_twice)
{
	expect_refusal(HEAD PU("0", "0x1") PU("1", "0x2")
		       PCI("0000:02:00.0", "0302 [10de:20b0]", "0", "")
		       PCI("0000:02:00.0", "0302 [10de:20b0]", "1", "") TAIL,
		       "two GPUs with the bus id 0000:02:00.0");
}

/* hwloc accepts any numbers, even those that no machine has. */
Test(topo, refuses_a_cpu_twice)
{
	expect_refusal(HEAD PU("1", "0x1") PU("1", "0x2") TAIL,
		       "two CPUs with the number 1");
}

Test(topo, refuses_a_numa_node_out_of_range)
{
	expect_refusal("<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n"
		       "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" "
		       "complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" "
		       "nodeset=\"0x1\" complete_nodeset=\"0x1\" "
		       "allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
		       "<object type=\"NUMANode\" os_index=\"60000\" "
		       "cpuset=\"0x1\" complete_cpuset=\"0x1\" "
		       "nodeset=\"0x1\" complete_nodeset=\"0x1\" "
		       "gp_index=\"2\" local_memory=\"1024\"/>\n"
		       PU("0", "0x1") TAIL,
		       "NUMA node 60000, which is above 8191");
}

Test(topo, refuses_what_is_no_topology)
{
	char *deep = calloc(1, 1 << 16);
	uint32_t i;

	expect_refusal("", "no topology");
	expect_refusal("hello\n", "no topology");
	expect_refusal("<html></html>", "cannot read the topology file");
	expect_refusal(HEAD "<object", "ends within a tag");
	expect_refusal(HEAD PU("0", "0x1"), "topology file");
	expect_refusal("<!DOCTYPE x [<!ENTITY a \"b\">]><x>&a;</x>",
		       "declares entities");
	for (i = 0; i < 5000; i++)
		strcat(deep, "<object>");
	expect_refusal(deep, "nests more than");
	free(deep);
}

Test(topo, refuses_what_is_no_file)
{
	struct ddp_error error = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s/fifo", directory);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_null(ddp_topo_create(path, &error));
	cr_expect_not_null(strstr(error.text, "not a regular file"));
	cr_expect_null(ddp_topo_create(directory, &error));
	cr_expect_null(ddp_topo_create("/nonexistent.xml", &error));
	cr_expect_not_null(strstr(error.text, "No such file"));
	cr_assert_eq(truncate(write_file("big", ""), DDP_TOPO_FILE_MAX + 1),
		     0);
	snprintf(path, sizeof(path), "%s/big", directory);
	cr_expect_null(ddp_topo_create(path, &error));
	cr_expect_not_null(strstr(error.text, "longer than"));
}

/*
 * Whatever byte of a topology is wrong, the process must not crash. A suite of its
 * own, as it takes long.
 */
Test(damage, to_a_topology_is_survived, .timeout = 300)
{
	static const char whole[] = HEAD PU("0", "0x1") PU("1", "0x2")
		PCI("0000:02:00.0", "0302 [10de:20b0]", "0", "") TAIL;
	char text[sizeof(whole)];
	size_t i;

	for (i = 0; i < sizeof(whole) - 1; i += 3) {
		memcpy(text, whole, sizeof(whole));
		text[i] = "<>\"0x[/ 9"[i % 9];
		ddp_machine_destroy(read_machine(text, NULL));
		memcpy(text, whole, sizeof(whole));
		text[i] = '\0';
		ddp_machine_destroy(read_machine(text, NULL));
	}
}

Test(topo, this_machine)
{
	struct ddp_error error = { 0 };
	struct ddp_topo *topo = ddp_topo_create(NULL, &error);
	struct ddp_machine *machine;

	cr_assert_not_null(topo, "%s", error.text);
	machine = ddp_topo_machine(topo, &error);
	cr_assert_not_null(machine, "%s", error.text);
	cr_expect_geq(machine->cpu_count, sysconf(_SC_NPROCESSORS_ONLN));
	ddp_topo_drivers(machine, "");
	ddp_topo_reach(machine, "");
	ddp_machine_destroy(machine);
	ddp_topo_destroy(topo);
}

/* In less time, the same machine. */
Test(topo, finds_the_same)
{
	struct ddp_error error = { 0 };
	struct ddp_topo *whole = ddp_topo_create(NULL, &error);
	struct ddp_topo *found = ddp_topo_find(&error);
	struct ddp_machine *a = whole ? ddp_topo_machine(whole, &error) : NULL;
	struct ddp_machine *b = found ? ddp_topo_machine(found, &error) : NULL;

	cr_assert(a && b, "%s", error.text);
	cr_assert_eq(a->cpu_count, b->cpu_count);
	cr_expect_arr_eq(a->cpus, b->cpus, a->cpu_count * sizeof(*a->cpus));
	cr_assert_eq(a->gpu_count, b->gpu_count);
	cr_expect_arr_eq(a->gpus, b->gpus, a->gpu_count * sizeof(*a->gpus));
	ddp_machine_destroy(a);
	ddp_machine_destroy(b);
	ddp_topo_destroy(whole);
	ddp_topo_destroy(found);
}

/*
 * hwloc takes this machine from a file, which has a GPU. Reading PCI takes time,
 * so that it is left out where the kernel knows no GPU.
 */
Test(topo, finds_gpus_where_the_kernel_has_some)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine;
	struct ddp_topo *found;
	int i;

	setenv("HWLOC_XMLFILE", write_file("here.xml", HEAD PU("0", "0x1")
		PU("1", "0x2") PCI("0000:02:00.0", "0302 [10de:20b0]", "0", "")
		TAIL), 1);
	for (i = 0; i < 2; i++) {
		gpu_here = i == 1;
		found = ddp_topo_find(&error);
		machine = found ? ddp_topo_machine(found, &error) : NULL;
		cr_assert_not_null(machine, "%s", error.text);
		cr_expect_eq(machine->cpu_count, 2);
		cr_expect_eq(machine->gpu_count, gpu_here ? 1 : 0);
		ddp_machine_destroy(machine);
		ddp_topo_destroy(found);
	}
	found = ddp_topo_create(NULL, &error);
	machine = found ? ddp_topo_machine(found, &error) : NULL;
	cr_assert_not_null(machine, "%s", error.text);
	cr_expect_eq(machine->gpu_count, 1, "all that there is was asked for");
	ddp_machine_destroy(machine);
	ddp_topo_destroy(found);
}

/*
 * A trial is ended after 5 s, also where the caller blocks or ignores the signal
 * that does it.
 */
Test(topo, ends_a_trial_that_loops, .timeout = 120)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
	signal(SIGALRM, SIG_IGN);
	slow_below = getpid();
	expect_refusal(HEAD PU("0", "0x1") PU("1", "0x2") TAIL,
		       "hwloc does not survive the topology file");
}

/* A trial may take 1 GiB. */
Test(topo, a_trial_does_not_take_all_memory)
{
	greedy_below = getpid();
	expect_refusal(HEAD PU("0", "0x1") PU("1", "0x2") TAIL,
		       "hwloc cannot read the topology file");
}

/* The MIG instances of the second GPU are its own. */
Test(topo, parts_belong_to_their_gpu)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(HEAD PU("0", "0x1")
		PU("1", "0x2")
		PCI("0000:01:00.0", "0302 [10de:20b0]", "0", "")
		PCI("0000:02:00.0", "0302 [10de:20b0]", "1",
		    "<info name=\"MIGUUID\" value=\"MIG-a\"/>"
		    "<info name=\"MIGUUID\" value=\"MIG-b\"/>") TAIL, &error);

	cr_assert_not_null(machine, "%s", error.text);
	cr_assert_eq(machine->part_count, 2);
	cr_expect_eq(machine->parts[0].gpu, 1);
	cr_expect_str_eq(machine->parts[0].uuid, "MIG-a");
	cr_expect_eq(machine->parts[1].gpu, 1);
	cr_expect_str_eq(machine->parts[1].uuid, "MIG-b");
	ddp_machine_destroy(machine);
}

/* A bridge, a management display, an NVIDIA bridge, and then a GPU. */
Test(topo, has_gpu)
{
	cr_expect_not(ddp_topo_has_gpu(directory));
	write_file("sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n");
	write_file("sys/bus/pci/devices/0000:00:00.0/class", "0x060000\n");
	write_file("sys/bus/pci/devices/0000:03:00.0/vendor", "0x1a03\n");
	write_file("sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
	write_file("sys/bus/pci/devices/0000:04:00.0/vendor", "0x10de\n");
	write_file("sys/bus/pci/devices/0000:04:00.0/class", "0x068000\n");
	write_file("sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n");
	cr_expect_not(ddp_topo_has_gpu(directory));
	write_file("sys/bus/pci/devices/0000:05:00.0/class", "0x030200\n");
	cr_expect(ddp_topo_has_gpu(directory));
}

/* Device files of each vendor, and those of drivers without a device. */
Test(topo, has_device)
{
	static const char *const files[] = {
		"dev/nvidia0", "dev/nvidia15", "dev/nvmap",
		"dev/dri/renderD128", "dev/dxg", "dev/accel0", "dev/vfio/0",
		"dev/accel/accel0", "dev/hl7", "dev/davinci0", "dev/neuron0",
		"dev/cambricon_dev0", "dev/mtgpu.0",
	};
	static const char *const others[] = {
		"dev/nvidiactl", "dev/nvidia-uvm", "dev/kfd", "dev/dri/card0",
		"dev/dri/by-path/pci-0000:04:00.0-render", "dev/vfio/vfio",
		"dev/davinci_manager", "dev/null", "dev/accelerated",
	};
	const char *path;
	size_t i;

	cr_expect_not(ddp_topo_has_device(directory));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		write_file(others[i], "");
	cr_expect_not(ddp_topo_has_device(directory));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		path = write_file(files[i], "");
		cr_expect(ddp_topo_has_device(directory), "%s", files[i]);
		cr_assert_eq(unlink(path), 0);
	}
	cr_expect_not(ddp_topo_has_device(directory));
}

/* access() asks for the real user. */
Test(topo, has_device_of_others)
{
	const char *path = write_file("dev/nvidia0", "");
	uid_t user = getuid();

	cr_assert_eq(chmod(directory, 0711), 0);
	if (user == 0)
		cr_assert_eq(setreuid(65534, (uid_t)-1), 0);
	cr_assert_eq(chmod(path, 0666), 0);
	cr_expect(ddp_topo_has_device(directory));
	cr_assert_eq(chmod(path, 0), 0);
	cr_expect_not(ddp_topo_has_device(directory));
	/* As another, the shell that removes the directory may not. */
	cr_assert_eq(setreuid(user, (uid_t)-1), 0);
}

static void write_kfd(unsigned int node, unsigned int simds,
		      unsigned long location, unsigned int minor)
{
	char name[64], text[128];

	snprintf(name, sizeof(name),
		 "sys/class/kfd/kfd/topology/nodes/%u/properties", node);
	snprintf(text, sizeof(text), "cpu_cores_count %u\nsimd_count %u\n"
		 "location_id %lu\ndomain 0\ndrm_render_minor %u\n",
		 simds ? 0 : 64, simds, location, minor);
	write_file(name, text);
}

/* Bus 4 is one GPU, and bus 5 is divided into three: 5 << 8 is 1280. */
Test(topo, parts_of_amd)
{
	static const char *const devices[] = {
		"/dev/dri/renderD128", "/dev/dri/renderD129",
		"/dev/dri/renderD130", "/dev/dri/renderD131",
	};
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(HEAD PU("0", "0x1")
		PCI("0000:04:00.0", "1200 [1002:74a1]", "0", "")
		PCI("0000:05:00.0", "1200 [1002:74a1]", "1", "") TAIL, &error);
	uint32_t i;

	cr_assert_not_null(machine, "%s", error.text);
	write_kfd(0, 0, 0, 0);
	write_kfd(1, 1216, 1024, 128);
	write_kfd(2, 152, 1280, 129);
	write_kfd(3, 152, 1280 | 1UL << 28, 130);
	write_kfd(4, 152, 1280 | 2UL << 28, 131);
	write_file("dev/dri/renderD130", "");
	ddp_topo_drivers(machine, directory);
	ddp_topo_reach(machine, directory);
	cr_assert_eq(machine->gpu_count, 4);
	for (i = 0; i < 4; i++) {
		cr_expect_str_eq(machine->gpus[i].device, devices[i]);
		cr_expect_str_eq(machine->gpus[i].bus_id, i ? "0000:05:00.0" :
				 "0000:04:00.0");
		cr_expect_eq(machine->gpus[i].reachable, i == 2, "%u", i);
	}
	ddp_machine_destroy(machine);
}

/* Files like the drivers' own: GPU 0 has minor 1, and may be opened. */
Test(topo, drivers)
{
	struct ddp_error error = { 0 };
	struct ddp_machine *machine = read_machine(HEAD PU("0", "0x1")
		PU("1", "0x2")
		PCI("0000:02:00.0", "0302 [10de:20b0]", "0", "")
		PCI("0000:03:00.0", "0302 [10de:20b0]", "1", "")
		PCI("0000:04:00.0", "0380 [1002:740c]", "2", "")
		PCI("0000:05:00.0", "0302 [10de:20b0]", "3", "") TAIL, &error);

	cr_assert_not_null(machine, "%s", error.text);
	write_file("proc/driver/nvidia/gpus/0000:02:00.0/information",
		   "Model: \t\t NVIDIA A100\nIRQ:   \t\t 42\n"
		   "GPU UUID: \t GPU-01234567-89ab-cdef-0123-456789abcdef\n"
		   "Device Minor: \t 1\n");
	write_file("proc/driver/nvidia/gpus/0000:03:00.0/information",
		   "GPU UUID: \t GPU-\?\?\?\?\?\?\?\?-\?\?\?\?\n"
		   "Device Minor: \t 0\n");
	write_file("dev/nvidia1", "");
	write_file("dev/dri/by-path/pci-0000:04:00.0-render", "");
	ddp_topo_drivers(machine, directory);
	cr_expect_str_eq(machine->gpus[0].device, "/dev/nvidia1");
	cr_expect(!machine->gpus[0].reachable, "nobody has asked yet");
	ddp_topo_reach(machine, directory);
	cr_expect_str_eq(machine->gpus[0].uuid,
			 "GPU-01234567-89ab-cdef-0123-456789abcdef");
	cr_expect(machine->gpus[0].reachable);
	cr_expect_str_eq(machine->gpus[1].uuid, "");
	cr_expect(!machine->gpus[1].reachable);
	cr_expect(machine->gpus[2].reachable);
	cr_expect(!machine->gpus[3].reachable);
	ddp_machine_destroy(machine);
}
