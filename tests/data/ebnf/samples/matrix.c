// Dense matrices: elimination with partial pivoting, products in blocks.
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef BLOCK
# define BLOCK 32
#endif

struct matrix {
    size_t rows, columns;
    double *restrict cells;
};

static double *cell(struct matrix *m, size_t row, size_t column) {
    return &m->cells[row * m->columns + column];
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

struct matrix *matrix_new(size_t rows, size_t columns) {
    struct matrix *m = malloc(sizeof *m);
    if (!m) return NULL;
    *m = (struct matrix){.rows = rows, .columns = columns};
    m->cells = calloc(rows * columns, sizeof(double));
    if (!m->cells) {
        free(m);
        return NULL;
    }
    return m;
}

void matrix_multiply(struct matrix *out, struct matrix *a, struct matrix *b) {
    for (size_t ii = 0; ii < a->rows; ii += BLOCK)
        for (size_t kk = 0; kk < a->columns; kk += BLOCK)
            for (size_t jj = 0; jj < b->columns; jj += BLOCK)
                for (size_t i = ii; i < smaller(ii + BLOCK, a->rows); i++)
                    for (size_t k = kk; k < smaller(kk + BLOCK, a->columns); k++) {
                        const double factor = *cell(a, i, k);
                        for (size_t j = jj; j < smaller(jj + BLOCK, b->columns); j++)
                            *cell(out, i, j) += factor * *cell(b, k, j);
                    }
}

/* Solves in place; returns the sign of the permutation, or 0 where the matrix is singular. */
int matrix_eliminate(struct matrix *m, double *determinant) {
    int sign = 1;
    double product = 1.0;
    for (size_t step = 0; step < smaller(m->rows, m->columns); step++) {
        size_t pivot = step;
        double best = fabs(*cell(m, step, step));
        for (size_t row = step + 1; row < m->rows; row++) {
            double value = fabs(*cell(m, row, step));
            if (value > best) {
                best = value;
                pivot = row;
            }
        }
        if (best < 1e-12) {
            *determinant = 0.;
            return 0;
        }
        if (pivot != step) {
            for (size_t column = 0; column < m->columns; column++) {
                double keep = *cell(m, step, column);
                *cell(m, step, column) = *cell(m, pivot, column);
                *cell(m, pivot, column) = keep;
            }
            sign = -sign;
        }
        product *= *cell(m, step, step);
        for (size_t row = step + 1; row < m->rows; row++) {
            const double ratio = *cell(m, row, step) / *cell(m, step, step);
            if (ratio == 0.0) continue;
            for (size_t column = step; column < m->columns; column++)
                *cell(m, row, column) -= ratio * *cell(m, step, column);
        }
    }
    *determinant = product * (double)sign;
    return sign;
}

int main(void) {
    static const double values[3][3] = {{2, -1, 0}, {-1, 2, -1}, {0, -1, 2}};
    struct matrix *m = matrix_new(3, 3), *square = matrix_new(3, 3);
    double determinant;
    if (m == NULL || square == NULL) {
        fputs("out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    for (int i = 0; i < 9; ++i) m->cells[i] = values[i / 3][i % 3];
    matrix_multiply(square, m, m);
    for (int i = 0; i < 9; ++i) {
        printf("%6.2f%c", square->cells[i], (i + 1) % 3 ? ' ' : '\n');
    }
    if (matrix_eliminate(m, &determinant) && determinant > 0) {
        printf("determinant %g, flags %#x\n", determinant, 0xFFu & ~(1u << 3) | 0b101);
    }
    return 0;
}
