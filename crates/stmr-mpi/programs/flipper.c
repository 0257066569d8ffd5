/* Flips one bit in the memory of a running process.  It knows nothing of what runs there.

   flipper PID SEED                     in a writable private page that is in memory, drawn of all
   flipper PID SEED FILE OFFSET LENGTH  in LENGTH bytes at OFFSET of what was loaded from FILE

   It prints what it hit; its exit code is 1 if it could hit nothing, as when the process has ended. */
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state;

static uint64_t draw(void) {
    uint64_t mixed = state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 6) return fprintf(stderr, "usage: flipper PID SEED [FILE OFFSET LENGTH]\n"), 2;
    char path[64], line[4400], name[4200], found_name[4200] = "", rights[5];
    state = strtoull(argv[2], NULL, 10);
    draw();
    snprintf(path, sizeof path, "/proc/%s/maps", argv[1]);
    FILE *maps = fopen(path, "r");
    snprintf(path, sizeof path, "/proc/%s/pagemap", argv[1]);
    int pagemap = open(path, O_RDONLY);
    snprintf(path, sizeof path, "/proc/%s/mem", argv[1]);
    int memory = open(path, O_RDWR);
    if (!maps || memory < 0 || pagemap < 0) return 1;
    uint64_t page = sysconf(_SC_PAGESIZE), seen = 0, at = 0, start, end, base = 0;
    while (fgets(line, sizeof line, maps)) {
        name[0] = 0;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %4199[^\n]", &start, &end, rights, name) < 3) continue;
        if (argc == 6) {
            if (!base && !strcmp(name, argv[3])) base = start;
            continue;
        }
        if (rights[1] != 'w' || rights[3] != 'p') continue;
        for (uint64_t here = start; here < end; here += page) {
            uint64_t entry;
            if (pread(pagemap, &entry, sizeof entry, here / page * 8) != sizeof entry || !(entry >> 63)) continue;
            /* Each page that is there has the same chance. */
            if (draw() % ++seen == 0) at = here, strcpy(found_name, *name ? name : "[anonymous]");
        }
    }
    if (argc == 6) {
        if (!base) return 1;
        at = base + strtoull(argv[4], NULL, 0) + draw() % strtoull(argv[5], NULL, 0);
        strcpy(found_name, argv[3]);
    } else {
        if (!seen) return 1;
        at += draw() % page;
    }
    unsigned char byte, bit = 1u << draw() % 8;
    if (pread(memory, &byte, 1, at) != 1) return 1;
    byte ^= bit;
    if (pwrite(memory, &byte, 1, at) != 1) return 1;
    printf("%#lx in %s\n", at, found_name);
    return 0;
}
