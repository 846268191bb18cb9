// A plugin of qemu's that counts the instructions of a program, all threads together, and prints the sum at its end.
//   cc -shared -fPIC -O2 -o counter.so counter.c && qemu-aarch64 -plugin ./counter.so -d plugin PROGRAM
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// What is used of qemu-plugin.h, which Debian does not package.
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum { QEMU_PLUGIN_INLINE_ADD_U64 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
extern void qemu_plugin_outs(const char *);

int qemu_plugin_version = 1;

static uint64_t count;

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &count, qemu_plugin_tb_n_insns(block));
}

static void end(qemu_plugin_id_t id, void *unused) {
    char text[64];
    snprintf(text, sizeof text, "instructions %" PRIu64 "\n", count);
    qemu_plugin_outs(text);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
