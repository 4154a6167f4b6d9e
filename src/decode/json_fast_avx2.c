/* The fast path with AVX2; json_fast.c calls it only where the processor has that. */
#include "decode/json_int.h"
#ifdef JS_HAVE_AVX2
#ifndef __AVX2__
#pragma GCC target("avx2,bmi,bmi2,lzcnt")
#endif
#include <immintrin.h>
#define V 32
#define NAME js_fast_row_avx2
#include "decode/json_fast.h"
#else
typedef int js_no_avx2; /* a translation unit must not be empty */
#endif
