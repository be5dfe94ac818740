#pragma once

// Before a loop whose iterations do not touch each other's memory, which the compiler cannot see: lets it vectorise.
#ifdef __clang__
#define TENON_INDEPENDENT_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TENON_INDEPENDENT_LOOP _Pragma("GCC ivdep")
#endif
