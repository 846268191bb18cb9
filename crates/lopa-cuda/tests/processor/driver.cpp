// A driver with the functions of libcuda.so.1 that runs launches on the processor, at once and in order. The kernels are in
// libraries beside this one, compiled from kernels/lopa.cu and kernels/layers.cu; the text to translate, or the code, only tells which one.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

typedef void *Handle;
typedef uint64_t Address;

struct Library {
    void *handle;
    void (*run)(void (*)(const void *, unsigned), const void *, unsigned, unsigned, unsigned, unsigned);
    unsigned (*parameters)(const char *);
};
struct Kernel {
    Library *of;
    void (*call)(const void *, unsigned);
    unsigned parameters;
};
struct Launch {
    Kernel *kernel;
    std::vector<unsigned char> job;
    unsigned at, blocks, width, bytes;
    void go() const;
};
typedef std::vector<Launch> Graph;

std::mutex one_at_a_time;
thread_local Graph *recording;

void Launch::go() const {
    std::lock_guard<std::mutex> guard(one_at_a_time);
    kernel->of->run(kernel->call, job.data(), at, blocks, width, bytes);
}

template <class F> F symbol(void *library, const char *name) { return (F)dlsym(library, name); }

Library *library(const std::string &name) {
    static std::mutex lock;
    static std::map<std::string, Library> all;
    std::lock_guard<std::mutex> guard(lock);
    if (auto found = all.find(name); found != all.end()) return &found->second;
    Dl_info own;
    dladdr((void *)library, &own);
    const std::string path(own.dli_fname);
    void *handle = dlopen((path.substr(0, path.rfind('/')) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return nullptr;
    }
    return &(all[name] = {handle, symbol<decltype(Library::run)>(handle, "run"), symbol<decltype(Library::parameters)>(handle, "parameters")});
}

} // namespace

#define API extern "C" int
API cuInit(unsigned) { return 0; }
API cuDriverGetVersion(int *version) { return *version = 13000, 0; }
API cuDeviceGetCount(int *count) { return *count = 1, 0; }
API cuDeviceGet(int *device, int) { return *device = 0, 0; }
API cuDeviceGetName(char *name, int, int) { return strcpy(name, "the processor"), 0; }
API cuDeviceGetAttribute(int *value, int attribute, int) {
    // The compute capability, and the shared memory that a block can have.
    return *value = attribute == 75 ? CAPABILITY : attribute == 76 ? 0 : (CAPABILITY == 9 ? 227 : 163) << 10, 0;
}
API cuDevicePrimaryCtxRetain(Handle *context, int) { return *context = (Handle)1, 0; }
API cuCtxSetCurrent(Handle) { return 0; }
// Text that ends with 0, or code, which gives the place of its table of sections.
API cuModuleLoadData(Handle *module, const char *code) {
    size_t bytes = strlen(code);
    if (!memcmp(code, "\177ELF", 4)) memcpy(&bytes, code + 40, sizeof bytes);
    const std::string_view names(code, bytes);
    const size_t halves = names.find("halves_1") != names.npos ? 1 : names.find("halves_2") != names.npos ? 2 : 0;
    *module = library(halves ? "layers" + std::to_string(halves) + ".so" : "lopa.so");
    return *module ? 0 : 500;
}
API cuModuleUnload(Handle) { return 0; }
API cuModuleGetFunction(Handle *function, Handle module, const char *name) {
    Library *of = (Library *)module;
    auto call = symbol<decltype(Kernel::call)>(of->handle, name);
    return *function = new Kernel{of, call, of->parameters(name)}, call ? 0 : 500;
}
API cuFuncSetAttribute(Handle, int, int) { return 0; }
API cuMemGetInfo_v2(size_t *free, size_t *all) { return *free = *all = size_t(16) << 30, 0; }
API cuMemAlloc_v2(Address *to, size_t bytes) {
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *to = (Address)memory, memory ? 0 : 2;
}
API cuMemFree_v2(Address memory) { return free((void *)memory), 0; }
API cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Handle) { return memset((void *)to, value, bytes), 0; }
API cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) { return memcpy(to, (void *)from, bytes), 0; }
API cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Handle) { return memcpy((void *)to, from, bytes), 0; }
API cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Handle) { return memcpy(to, (void *)from, bytes), 0; }
API cuMemAllocHost_v2(void **to, size_t bytes) { return *to = malloc(bytes), 0; }
API cuMemFreeHost(void *memory) { return free(memory), 0; }
API cuStreamCreate(Handle *stream, unsigned) { return *stream = (Handle)1, 0; }
API cuStreamDestroy_v2(Handle) { return 0; }
API cuStreamSynchronize(Handle) { return 0; }
API cuStreamWaitEvent(Handle, Handle, unsigned) { return 0; }
API cuEventCreate(Handle *event, unsigned) { return *event = (Handle)1, 0; }
API cuEventRecord(Handle, Handle) { return 0; }
API cuEventDestroy_v2(Handle) { return 0; }
API cuLaunchKernel(Handle function, unsigned blocks, unsigned down, unsigned, unsigned width, unsigned, unsigned, unsigned bytes, Handle, void **given, void **) {
    Kernel *kernel = (Kernel *)function;
    if (down != 1) return 1;
    const unsigned char *job = (const unsigned char *)given[0];
    Launch launch{kernel, {job, job + kernel->parameters}, *(unsigned *)given[1], blocks, width, bytes};
    if (recording) recording->push_back(std::move(launch));
    else launch.go();
    return 0;
}
API cuStreamBeginCapture_v2(Handle, int) { return recording = new Graph, 0; }
API cuStreamEndCapture(Handle, Handle *graph) { return *graph = recording, recording = nullptr, 0; }
API cuGraphInstantiateWithFlags(Handle *exec, Handle graph, uint64_t) { return *exec = new Graph(*(Graph *)graph), 0; }
API cuGraphLaunch(Handle exec, Handle) {
    for (const Launch &launch : *(Graph *)exec) launch.go();
    return 0;
}
API cuGraphDestroy(Handle graph) { return delete (Graph *)graph, 0; }
API cuGraphExecDestroy(Handle exec) { return delete (Graph *)exec, 0; }
API cuGetErrorString(int, const char **text) { return *text = "the processor cannot do this", 0; }
