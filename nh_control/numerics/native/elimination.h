#ifndef NH_ELIMINATION_H
#define NH_ELIMINATION_H
/* One solution of a dense system whose factors are not kept. Rows are padded to whole registers of
 * the processor, so that no loop has a remainder. Sums add one number after another: the bits do
 * not depend on the width. */
#include <math.h>
#include <string.h>

#include "linear_algebra.h"

#if defined(__AVX512F__)
#define WIDTH 8
#elif defined(__AVX__)
#define WIDTH 4
#else
#define WIDTH 2
#endif
typedef double wide __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));
typedef long long wide_bits __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));

/* The length of padded rows of n numbers. */
#define PADDED(n) (((n) + WIDTH - 1) / WIDTH * WIDTH)

/* Pivots are those of the diagonal unless they are smaller by this factor than others. */
#define PIVOT_SIZE 0.1

LU_INLINE double larger_size(double a, double b) { return a > b ? a : b; }

/* The largest size of a padded row. */
LU_INLINE double largest_of_row(int length, const double *row)
{
    wide_bits largest = {0};
    double sizes[WIDTH];
    for (int j = 0; j < length; j += WIDTH) { /* sizes are ordered as their bits are */
        const wide_bits size = *(const wide_bits *)(row + j) & 0x7fffffffffffffffLL;
        const wide_bits is_larger = size > largest;
        largest = (size & is_larger) | (largest & ~is_larger);
    }
    memcpy(sizes, &largest, sizeof sizes);
    for (int half = WIDTH / 2; half; half /= 2)
        for (int j = 0; j < half; ++j) sizes[j] = larger_size(sizes[j], sizes[j + half]);
    return sizes[0];
}

/* The largest size of n numbers of a column. */
LU_INLINE double largest_of_column(int n, int length, const double *column)
{
    double sizes[4] = {0.0};
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int l = 0; l < 4; ++l)
            sizes[l] = larger_size(fabs(column[(size_t)length * (i + l)]), sizes[l]);
    for (; i < n; ++i) sizes[0] = larger_size(fabs(column[(size_t)length * i]), sizes[0]);
    return larger_size(larger_size(sizes[0], sizes[1]), larger_size(sizes[2], sizes[3]));
}

/* Row k, divided by its pivot, leaves the rows below it; `parts`: registers of a row from its
 * pivot on. Numbers before the pivot are no longer read. */
LU_INLINE void eliminate_row(int n, int k, int length, int parts, double by, double *restrict a,
                             double *restrict b)
{
    const double *row = a + (size_t)length * k + length - WIDTH * parts, right = b[k];
    for (int i = k + 1; i < n; ++i) {
        double *other = a + (size_t)length * i;
        const double f = other[k] * by;
        b[i] -= f * right;
        other += length - WIDTH * parts;
        for (int j = 0; j < WIDTH * parts; j += WIDTH)
            *(wide *)(other + j) -= f * *(const wide *)(row + j);
    }
}

/* Row k and the first row below it with a number of this size in column k change places. */
LU_INLINE void exchange_rows(int k, int length, double size, double *restrict a,
                             double *restrict b)
{
    int p = k;
    while (!(fabs(a[(size_t)length * p + k]) >= size)) ++p;
    for (int j = k; j < length; ++j) {
        const double t = a[(size_t)length * k + j];
        a[(size_t)length * k + j] = a[(size_t)length * p + j];
        a[(size_t)length * p + j] = t;
    }
    const double t = b[k];
    b[k] = b[p];
    b[p] = t;
}

/* b (n) becomes the solution of a b = b, by elimination of rows divided by their largest number,
 * with pivots by their size; 1 where there is none. a (n, PADDED(n)) has zeros behind its columns
 * and is lost; room for reciprocal pivots (n). */
FOR_EVERY_PROCESSOR
static int eliminate(int n, double *restrict a, double *restrict b, double *restrict reciprocals)
{
    const int length = PADDED(n);
    for (int i = 0; i < n; ++i) {
        double *row = a + (size_t)length * i;
        const double size = largest_of_row(length, row);
        if (!(size > 0.0 && size < INFINITY)) return 1;
        const double by = 1.0 / size;
        for (int j = 0; j < length; j += WIDTH) *(wide *)(row + j) *= by;
        b[i] *= by;
    }
    for (int k = 0; k < n; ++k) {
        double *diagonal = a + (size_t)length * k + k;
        const double size = largest_of_column(n - k, length, diagonal);
        if (!(size > 0.0 && size < INFINITY)) return 1;
        if (!(fabs(*diagonal) >= PIVOT_SIZE * size)) exchange_rows(k, length, size, a, b);
        const double by = reciprocals[k] = 1.0 / *diagonal;
        const int parts = length / WIDTH - k / WIDTH;
        switch (parts) { /* loops of constant length keep the row in registers */
        case 1: eliminate_row(n, k, length, 1, by, a, b); break;
        case 2: eliminate_row(n, k, length, 2, by, a, b); break;
        case 3: eliminate_row(n, k, length, 3, by, a, b); break;
        case 4: eliminate_row(n, k, length, 4, by, a, b); break;
        case 5: eliminate_row(n, k, length, 5, by, a, b); break;
        case 6: eliminate_row(n, k, length, 6, by, a, b); break;
        default: eliminate_row(n, k, length, parts, by, a, b);
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        const double by = b[k] *= reciprocals[k];
        for (int i = 0; i < k; ++i) b[i] -= by * a[(size_t)length * i + k];
    }
    return 0;
}
#endif
