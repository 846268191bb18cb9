// kernels/lopa.cu or kernels/layers.cu as a library; ../suite/processor.rs writes source.cu.

#include <initializer_list>

#include "threads.h"

#include "source.cu"

// The size of a kernel's parameters.
extern "C" unsigned parameters(const char *name) {
    auto begins = [&](std::initializer_list<const char *> names) {
        for (const char *of : names)
            if (!strncmp(name, of, strlen(of))) return true;
        return false;
    };
#ifdef WITH_PRODUCTS
    if (begins({"forward_", "head_", "slopes_", "single_", "chunks_", "outer_", "errors_", "backward_"})) return sizeof(Product);
#endif
    if (begins({"update_"})) return sizeof(Sums<float>);
    if (begins({"carry_"})) return sizeof(Spans<float>);
    if (begins({"find_"})) return sizeof(Finding<float>);
    if (begins({"sizes_"})) return sizeof(Sizes<float>);
    return strstr(name, "_f64") ? sizeof(Job<double>) : sizeof(Job<float>);
}
