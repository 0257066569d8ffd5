/* A library that reads the cycle counter when it is loaded and when it is asked; with QUIET, one
 * that holds no such instruction. */
unsigned long long begun;

#ifdef QUIET
unsigned long long count(void) { return 5; }
#else
__attribute__((constructor)) static void begin(void) { begun = __builtin_ia32_rdtsc(); }
unsigned long long count(void) { return __builtin_ia32_rdtsc(); }
#endif
