// What Rust's standard library takes from bcryptprimitives.dll, which Windows has and Wine before version 9 lacks.
//   x86_64-w64-mingw32-gcc -shared -o bcryptprimitives.dll random.c -ladvapi32
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return RtlGenRandom(data, (ULONG)size);
}
