/* Numbers that say whose they are: N of them, of process `rank`, which who includes this has. */

static void fill(int *cells, int k) {
    for (int i = 0; i < N; i++) cells[i] = 1000 * rank + 10 * i + k;
}

/* That the cells are those of a process, and their sum. */
static long sum_of(const int *cells, int from, int k) {
    long sum = 0;
    for (int i = 0; i < N; i++) {
        WANT(cells[i] == 1000 * from + 10 * i + k);
        sum += cells[i];
    }
    return sum;
}
