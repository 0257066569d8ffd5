/* Kernels that communicate as those of the NAS Parallel Benchmarks do, with the sizes of its classes A (cg,
   is) and W (lu, mg, ft): what a process computes between two messages is what it computes there on as many
   processes, or less.  Each is checked by a sum that all its data goes into.
     cg  a sparse matrix of 14,000 rows with 132 entries each, times a vector: parts of the vector go to all
         others, and two dot products are summed
     lu  33 x 33 x 33 points of 5 values, swept plane by plane from one corner to the other and back, some
         2,000 operations a point in all: a pipeline of messages of less than 700 bytes
     mg  V-cycles on 128 x 128 x 128 points down to 4 x 4 x 4 or as many planes as processes: halos
     ft  Fourier transforms of 128 x 128 x 32 complex numbers: a transpose by MPI_Alltoall
     is  8,388,608 keys below 524,288, sorted by buckets: MPI_Allreduce, MPI_Alltoall, MPI_Alltoallv
   usage: patterns cg|lu|mg|ft|is [rounds], on 1, 2, 4, 8 or 16 processes */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 16
typedef double complex number;

static int rank, size;
static unsigned long long seed;

static double draw(void) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 11) * 0x1p-53;
}

static double sum_of(double own) {
    double all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* ------------------------------------------------------------------------------------------------ cg */

static double cg(int rounds) {
    enum { N = 14000, ENTRIES = 132, INNER = 25 };
    int from = N * rank / size, rows = N * (rank + 1) / size - from;
    int *column = malloc(sizeof *column * rows * ENTRIES);
    double *entry = malloc(sizeof *entry * rows * ENTRIES), p[N], *q = malloc(sizeof *q * rows);
    double *x = malloc(sizeof *x * rows), *z = malloc(sizeof *z * rows), *r = malloc(sizeof *r * rows), norm = 0;
    for (int i = 0; i < rows; i++) {
        seed = from + i + 1;
        for (int k = 0; k < ENTRIES; k++) {
            column[i * ENTRIES + k] = k ? (int)(draw() * N) : from + i;
            entry[i * ENTRIES + k] = k ? (draw() - 0.5) * 0.1 : 20;
        }
        x[i] = 1;
    }
    for (int round = 0; round < rounds; round++) {
        double rho = 0;
        for (int i = 0; i < rows; i++) z[i] = 0, r[i] = p[from + i] = x[i], rho += r[i] * r[i];
        rho = sum_of(rho);
        for (int inner = 0; inner < INNER; inner++) {
            MPI_Request requests[2 * MOST];
            int n = 0;
            for (int peer = 0; peer < size; peer++) {
                int at = N * peer / size, end = N * (peer + 1) / size;
                if (peer != rank) MPI_Irecv(p + at, end - at, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[n++]);
            }
            for (int peer = 0; peer < size; peer++)
                if (peer != rank) MPI_Isend(p + from, rows, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[n++]);
            MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
            double d = 0, next = 0;
            for (int i = 0; i < rows; i++) {
                double sum = 0;
                for (int k = i * ENTRIES; k < (i + 1) * ENTRIES; k++) sum += entry[k] * p[column[k]];
                q[i] = sum, d += sum * p[from + i];
            }
            double alpha = rho / sum_of(d);
            for (int i = 0; i < rows; i++) z[i] += alpha * p[from + i], r[i] -= alpha * q[i], next += r[i] * r[i];
            next = sum_of(next);
            for (int i = 0; i < rows; i++) p[from + i] = r[i] + next / rho * p[from + i];
            rho = next;
        }
        double own = 0;
        for (int i = 0; i < rows; i++) own += z[i] * z[i];
        norm = sqrt(sum_of(own));
        for (int i = 0; i < rows; i++) x[i] = z[i] / norm;
    }
    return norm;
}

/* ------------------------------------------------------------------------------------------------ lu */

enum { LU = 33 };
static double u[LU][LU + 2][LU + 2][5], rhs[LU][LU + 2][LU + 2][5];

/* One point: three blocks of 5 x 5 that depend on its neighbours, and one that is solved. */
static void relax(int k, int j, int i, int step) {
    double *v = rhs[k][j][i], *around[3] = {rhs[k - step][j][i], rhs[k][j - step][i], rhs[k][j][i - step]};
    double *state[3] = {u[k - step][j][i], u[k][j - step][i], u[k][j][i - step]}, block[5][5];
    for (int side = 0; side < 3; side++)
        for (int a = 0; a < 5; a++) {
            double sum = 0, inverse = 1 + 0.1 * state[side][a];
            for (int b = 0; b < 5; b++) {
                block[a][b] = 0.02 * state[side][b] * inverse + 0.01 * (a == b) - 0.005 * state[side][a] * state[side][b];
                sum += block[a][b] * around[side][b];
            }
            v[a] -= sum;
        }
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) block[a][b] = 0.03 * u[k][j][i][a] * u[k][j][i][b] + (a == b) * (2 + 0.1 * u[k][j][i][a]);
    for (int a = 0; a < 5; a++) {
        double pivot = 1 / block[a][a];
        for (int b = a + 1; b < 5; b++) {
            double factor = block[b][a] * pivot;
            for (int c = a + 1; c < 5; c++) block[b][c] -= factor * block[a][c];
            v[b] -= factor * v[a];
        }
    }
    for (int a = 4; 0 <= a; a--) {
        for (int b = a + 1; b < 5; b++) v[a] -= block[a][b] * v[b];
        v[a] /= block[a][a];
    }
}

static double lu(int rounds) {
    int across = 1, dims[2];
    while (across * across * 4 <= size) across *= 2;
    dims[0] = across, dims[1] = size / across;
    int x = rank % dims[0], y = rank / dims[0];
    int nx = LU * (x + 1) / dims[0] - LU * x / dims[0], ny = LU * (y + 1) / dims[1] - LU * y / dims[1];
    int left = x ? rank - 1 : MPI_PROC_NULL, right = x + 1 < dims[0] ? rank + 1 : MPI_PROC_NULL;
    int up = y ? rank - dims[0] : MPI_PROC_NULL, down = y + 1 < dims[1] ? rank + dims[0] : MPI_PROC_NULL;
    double total = 0, row[LU][5], got[LU][5];
    for (int k = 0; k < LU; k++)
        for (int j = 0; j < ny + 2; j++)
            for (int i = 0; i < nx + 2; i++)
                for (int a = 0; a < 5; a++) u[k][j][i][a] = 1 + 0.01 * ((k * 7 + j * 5 + i * 3 + a + rank) % 11);
    for (int round = 0; round < rounds; round++) {
        for (int k = 1; k < LU - 1; k++)
            for (int j = 1; j <= ny; j++)
                for (int i = 1; i <= nx; i++)
                    for (int a = 0; a < 5; a++) {
                        double flux = 0;
                        for (int b = 0; b < 5; b++)
                            flux += 0.01 * (u[k][j][i + 1][b] - u[k][j][i - 1][b]) * u[k][j][i][a]
                                  + 0.02 * (u[k][j + 1][i][b] + u[k][j - 1][i][b] - 2 * u[k][j][i][b])
                                  + 0.01 * (u[k + 1][j][i][b] - u[k - 1][j][i][b]) * u[k][j][i][b];
                        rhs[k][j][i][a] = 0.1 * flux;
                    }
        for (int way = 0; way < 2; way++) {
            int step = way ? -1 : 1;
            int before[2] = {way ? right : left, way ? down : up}, after[2] = {way ? left : right, way ? up : down};
            int first[2] = {way ? nx : 1, way ? ny : 1}, last[2] = {way ? 1 : nx, way ? 1 : ny};
            for (int plane = 1; plane < LU - 1; plane++) {
                int k = way ? LU - 1 - plane : plane;
                if (before[0] != MPI_PROC_NULL) {
                    MPI_Recv(got, 5 * ny, MPI_DOUBLE, before[0], 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    for (int j = 1; j <= ny; j++) memcpy(rhs[k][j][first[0] - step], got[j - 1], sizeof *got);
                }
                if (before[1] != MPI_PROC_NULL)
                    MPI_Recv(rhs[k][first[1] - step][1], 5 * nx, MPI_DOUBLE, before[1], 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                for (int j = first[1]; j != last[1] + step; j += step)
                    for (int i = first[0]; i != last[0] + step; i += step) relax(k, j, i, step);
                if (after[0] != MPI_PROC_NULL) {
                    for (int j = 1; j <= ny; j++) memcpy(row[j - 1], rhs[k][j][last[0]], sizeof *row);
                    MPI_Send(row, 5 * ny, MPI_DOUBLE, after[0], 2, MPI_COMM_WORLD);
                }
                if (after[1] != MPI_PROC_NULL)
                    MPI_Send(rhs[k][last[1]][1], 5 * nx, MPI_DOUBLE, after[1], 3, MPI_COMM_WORLD);
            }
        }
        double own = 0;
        for (int k = 1; k < LU - 1; k++)
            for (int j = 1; j <= ny; j++)
                for (int i = 1; i <= nx; i++)
                    for (int a = 0; a < 5; a++) u[k][j][i][a] += 0.1 * rhs[k][j][i][a], own += rhs[k][j][i][a] * rhs[k][j][i][a];
        if (round % 50 == 49 || round + 1 == rounds) total += sum_of(own);
    }
    return total;
}

/* ------------------------------------------------------------------------------------------------ mg */

/* A level's planes of this process, with one more at each side. */
struct level { int n, planes; double *v, *r; };

static void halo(double *v, const struct level *at) {
    int plane = at->n * at->n, above = (rank + 1) % size, below = (rank + size - 1) % size;
    MPI_Sendrecv(v + plane, plane, MPI_DOUBLE, below, 4, v + plane * (at->planes + 1), plane, MPI_DOUBLE, above, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(v + plane * at->planes, plane, MPI_DOUBLE, above, 5, v, plane, MPI_DOUBLE, below, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* to += factor * (what a point of `from` is beside its neighbours) */
static void stencil(double *to, const double *from, const struct level *at, double factor) {
    int n = at->n, plane = n * n;
    for (int k = 1; k <= at->planes; k++)
        for (int j = 0; j < n; j++) {
            const double *c = from + k * plane + j * n, *s = from + k * plane + (j + n - 1) % n * n, *e = from + k * plane + (j + 1) % n * n;
            double *out = to + k * plane + j * n;
            for (int i = 0; i < n; i++) {
                int l = (i + n - 1) % n, r = (i + 1) % n;
                double faces = c[l] + c[r] + s[i] + e[i] + c[i - plane] + c[i + plane];
                double edges = s[l] + s[r] + e[l] + e[r] + c[l - plane] + c[r - plane] + c[l + plane] + c[r + plane]
                             + s[i - plane] + s[i + plane] + e[i - plane] + e[i + plane];
                out[i] += factor * (c[i] - faces / 12 - edges / 24);
            }
        }
}

static double mg(int rounds) {
    struct level levels[8];
    int n_levels = 0;
    for (int n = 128; 4 <= n && size <= n; n /= 2) {
        struct level *it = &levels[n_levels++];
        it->n = n, it->planes = n / size;
        it->v = calloc(n * n * (it->planes + 2), sizeof(double)), it->r = calloc(n * n * (it->planes + 2), sizeof(double));
    }
    struct level *top = levels;
    double *source = calloc(top->n * top->n * (top->planes + 2), sizeof(double)), norm = 0;
    seed = rank + 1;
    for (int k = 0; k < 20; k++) source[(1 + (int)(draw() * top->planes)) * top->n * top->n + (int)(draw() * top->n * top->n)] = k % 2 ? 1 : -1;
    for (int round = 0; round < rounds; round++) {
        int all = top->n * top->n * (top->planes + 2);
        halo(top->v, top);
        memcpy(top->r, source, all * sizeof(double));
        stencil(top->r, top->v, top, -1);
        for (int l = 1; l < n_levels; l++) {
            struct level *fine = &levels[l - 1], *coarse = &levels[l];
            int n = coarse->n;
            halo(fine->r, fine);
            memset(coarse->v, 0, n * n * (coarse->planes + 2) * sizeof(double));
            for (int k = 1; k <= coarse->planes; k++)
                for (int j = 0; j < n; j++)
                    for (int i = 0; i < n; i++) {
                        const double *at = fine->r + (2 * k - 1) * fine->n * fine->n + 2 * j * fine->n + 2 * i;
                        coarse->r[k * n * n + j * n + i] = 0.25 * (at[0] + at[1] + at[fine->n] + at[fine->n * fine->n]);
                    }
        }
        for (int l = n_levels - 1; 0 <= l; l--) {
            struct level *at = &levels[l];
            int n = at->n;
            if (l + 1 < n_levels)
                for (int k = 1; k <= at->planes; k++)
                    for (int j = 0; j < n; j++)
                        for (int i = 0; i < n; i++)
                            at->v[k * n * n + j * n + i] += 0.5 * at[1].v[((k + 1) / 2) * at[1].n * at[1].n + j / 2 * at[1].n + i / 2];
            halo(at->r, at);
            stencil(at->v, at->r, at, 0.3);
            halo(at->v, at);
        }
        double own = 0;
        for (int i = top->n * top->n; i < top->n * top->n * (top->planes + 1); i++) own += top->v[i] * top->v[i];
        norm = sqrt(sum_of(own));
        for (int i = 0; 1e6 < norm && i < all; i++) top->v[i] /= norm;
    }
    return norm;
}

/* ------------------------------------------------------------------------------------------------ ft */

static void fourier(number *row, int n, int stride, const number *roots) {
    number a[128], b[128];
    for (int i = 0; i < n; i++) a[i] = row[i * stride];
    number *from = a, *to = b;
    for (int half = n / 2, m = 1; half; half /= 2, m *= 2) {
        for (int j = 0; j < half; j++)
            for (int k = 0; k < m; k++) {
                number x = from[k + m * j], y = from[k + m * (j + half)], w = roots[j * m * (128 / n)];
                to[k + 2 * m * j] = x + y;
                to[k + 2 * m * j + m] = (creal(x - y) * creal(w) - cimag(x - y) * cimag(w)) + (creal(x - y) * cimag(w) + cimag(x - y) * creal(w)) * I;
            }
        number *other = from;
        from = to, to = other;
    }
    for (int i = 0; i < n; i++) row[i * stride] = from[i] * 0.125;
}

static double ft(int rounds) {
    enum { NX = 128, NY = 128, NZ = 32 };
    int planes = NZ / size, columns = NX / size, all = NX * NY * planes;
    number *v = malloc(all * sizeof *v), *out = malloc(all * sizeof *v), *in = malloc(all * sizeof *v), roots[128], check = 0;
    for (int i = 0; i < 128; i++) roots[i] = cexp(-2 * M_PI * I * i / 128);
    seed = rank + 1;
    for (int i = 0; i < all; i++) v[i] = draw() + draw() * I;
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < planes; k++) {
            for (int j = 0; j < NY; j++) fourier(v + (k * NY + j) * NX, NX, 1, roots);
            for (int i = 0; i < NX; i++) fourier(v + k * NY * NX + i, NY, NX, roots);
        }
        /* What was split along z is split along x. */
        for (int peer = 0, at = 0; peer < size; peer++)
            for (int i = peer * columns; i < (peer + 1) * columns; i++)
                for (int j = 0; j < NY; j++)
                    for (int k = 0; k < planes; k++) out[at++] = v[(k * NY + j) * NX + i];
        int part = 2 * columns * NY * planes;
        MPI_Alltoall(out, part, MPI_DOUBLE, in, part, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int i = 0; i < columns * NY; i++) {
            number line[NZ];
            for (int k = 0; k < NZ; k++) line[k] = in[k / planes * (part / 2) + i * planes + k % planes];
            fourier(line, NZ, 1, roots);
            for (int k = 0; k < NZ; k++) v[(i * NZ + k) % all] = line[k] * (0.5 + 0.001 * (k % 7));
        }
        double own[2] = {0}, sums[2];
        for (int i = 0; i < all; i += 17) own[0] += creal(v[i]), own[1] += cimag(v[i]);
        MPI_Allreduce(own, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check = sums[0] + sums[1] * I;
    }
    return creal(check) + cimag(check);
}

/* ------------------------------------------------------------------------------------------------ is */

static double is(int rounds) {
    enum { KEYS = 1 << 23, RANGE = 1 << 19, BUCKETS = 1024 };
    int n = KEYS / size, *own = malloc(n * sizeof *own), *sorted = malloc(n * sizeof *own), *got = malloc(KEYS * sizeof *own);
    static int counts[BUCKETS], sums[BUCKETS], ranks[RANGE];
    double total = 0;
    seed = rank + 1;
    for (int i = 0; i < n; i++) own[i] = (draw() + draw() + draw() + draw()) / 4 * RANGE;
    for (int round = 0; round < rounds; round++) {
        own[round % n] = round % RANGE;
        memset(counts, 0, sizeof counts);
        for (int i = 0; i < n; i++) counts[own[i] / (RANGE / BUCKETS)]++;
        MPI_Allreduce(counts, sums, BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        int starts[BUCKETS], give[MOST] = {0}, take[MOST], from[MOST], to[MOST], owner[BUCKETS], sum = 0, all = 0;
        for (int b = 0, before = 0; b < BUCKETS; before += sums[b++]) {
            owner[b] = (int)((long long)before * size / KEYS), give[owner[b]] += counts[b];
            starts[b] = sum, sum += counts[b];
        }
        for (int i = 0; i < n; i++) sorted[starts[own[i] / (RANGE / BUCKETS)]++] = own[i];
        MPI_Alltoall(give, 1, MPI_INT, take, 1, MPI_INT, MPI_COMM_WORLD);
        for (int peer = 0, at = 0; peer < size; at += give[peer++]) from[peer] = at;
        for (int peer = 0; peer < size; all += take[peer++]) to[peer] = all;
        MPI_Alltoallv(sorted, give, from, MPI_INT, got, take, to, MPI_INT, MPI_COMM_WORLD);
        memset(ranks, 0, sizeof ranks);
        for (int i = 0; i < all; i++) ranks[got[i]]++;
        for (int i = 1; i < RANGE; i++) ranks[i] += ranks[i - 1];
        for (int i = 0; i < RANGE; i += 97) total += (double)ranks[i] * (i % 13);
    }
    return sum_of(total);
}

int main(int argc, char **argv) {
    static const struct { const char *name; double (*run)(int); int rounds; } kernels[] = {
        {"cg", cg, 15}, {"lu", lu, 300}, {"mg", mg, 4}, {"ft", ft, 6}, {"is", is, 10}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 5; i++)
        if (1 < argc && !strcmp(argv[1], kernels[i].name)) {
            double check = kernels[i].run(2 < argc ? atoi(argv[2]) : kernels[i].rounds);
            if (!rank) printf("%s: %.17g\n", kernels[i].name, check);
            MPI_Finalize();
            return check != check;
        }
    if (!rank) fprintf(stderr, "usage: patterns cg|lu|mg|ft|is [rounds]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
}
