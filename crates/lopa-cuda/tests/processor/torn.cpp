// Without an argument, a kernel whose lanes wait for each other at one place; with one, at two: threads.h has to notice.

#include "threads.h"

void whole(const void *, unsigned) { __shfl_xor_sync(~0u, own_lane(), 1); }

void torn(const void *, unsigned) {
    unsigned sum = own_lane();
    if (own_lane() < 16) sum += __shfl_xor_sync(~0u, sum, 1);
    __shfl_xor_sync(~0u, sum, 2);
}

int main(int count, char **) { run(count > 1 ? torn : whole, nullptr, 0, 1, 32, 0); }
