/* With -DFUZZ_REPLAY a fuzz target is a program of its own that runs each file named on its command line once, in a buffer of the input's exact size. */
#ifndef REPLAY_H
#define REPLAY_H
#ifdef FUZZ_REPLAY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    static uint8_t buf[8 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) return perror(argv[i]), 1;
        size_t n = fread(buf, 1, sizeof buf, f);
        fclose(f);
        uint8_t *exact = malloc(n + !n);
        if (!exact) return 1;
        memcpy(exact, buf, n);
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}
#endif
#endif
