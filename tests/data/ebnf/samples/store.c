/* A small key-value store: open addressing with linear probing, strings interned in an arena. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "store.h"

#define INITIAL_CAPACITY 64u
#define LOAD_LIMIT(n) ((n) - (n) / 4)
#define SWAP(a, b) \
    do {           \
        a ^= b;    \
    } while (0)

typedef struct arena {
    char *base;
    size_t used, size;
    struct arena *next;
} arena_t;

enum slot_state { SLOT_EMPTY = 0, SLOT_FULL, SLOT_DELETED = 0x7f };

struct slot {
    uint32_t hash;
    enum slot_state state : 8;
    unsigned int dirty : 1;
    const char *key;
    union {
        int64_t integer;
        double real;
        void *pointer;
    } value;
};

typedef int (*visitor_t)(const struct slot *slot, void *context);

static struct slot *slots = NULL;
static size_t capacity, count = 0;
extern volatile int store_errors;
static const uint8_t magic[4] = {0x4c, 'v', '\x01', 0};
static const struct { const char *name; int code; } codes[] = {
    {"none", 0},
    [2] = {.name = "full", .code = -1},
    {"missing\n", +2},
};

static inline uint32_t hash_bytes(const char *restrict bytes, size_t length)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; ++i) {
        h ^= (uint8_t)bytes[i];
        h *= 16777619UL;
    }
    return h ? h : 1;
}

static char *arena_copy(arena_t **arena, const char *text)
{
    size_t need = strlen(text) + 1;
    if (!*arena || (*arena)->size - (*arena)->used < need) {
        size_t size = need > 4096 ? need : 4096;
        arena_t *fresh = malloc(sizeof(arena_t));
        if (fresh == NULL)
            return NULL;
        fresh->base = calloc(size, sizeof *fresh->base);
        fresh->used = 0, fresh->size = size;
        fresh->next = *arena;
        *arena = fresh;
    }
    char *at = (*arena)->base + (*arena)->used;
    memcpy(at, text, need);
    (*arena)->used += need;
    return at;
}

static int grow(void)
{
    size_t old = capacity;
    struct slot *before = slots;
    capacity = old == 0 ? INITIAL_CAPACITY : old << 1;
    slots = calloc(capacity, sizeof(struct slot));
    if (!slots) {
        slots = before;
        capacity = old;
        return -1;
    }
    for (size_t i = 0; i < old; i++) {
        if (before[i].state != SLOT_FULL)
            continue;
        size_t at = before[i].hash & (capacity - 1);
        while (slots[at].state == SLOT_FULL)
            at = (at + 1) & (capacity - 1);
        slots[at] = before[i]; // the hash moves along
    }
    free(before);
    return 0;
}

#ifdef STORE_TRACE
#pragma message("tracing")
#endif

struct slot *store_find(const char *key)
{
    uint32_t h = hash_bytes(key, strlen(key));
    if (capacity == 0)
        goto missing;
    for (size_t at = h & (capacity - 1);; at = (at + 1) & (capacity - 1)) {
        switch (slots[at].state) {
        case SLOT_EMPTY:
            goto missing;
        case SLOT_FULL:
            if (slots[at].hash == h && strcmp(slots[at].key, key) == 0)
                return &slots[at];
            break;
        default:
            break;
        }
    }
missing:
    return NULL;
}

int store_each(visitor_t visit, void *context)
{
    int done = 0;
    for (size_t i = 0; i < capacity && !done; i++)
        if (slots[i].state == SLOT_FULL) {
            done = visit(&slots[i], context);
        }
    return done;
}

double store_ratio(void) { return capacity ? (double)count / (double)capacity * 100.0 : .5e-3f; }

int main(int argc, char *argv[])
{
    arena_t *arena = NULL;
    char line[256];
    int status = EXIT_SUCCESS, verbose = argc > 1 && argv[1][0] == '-' && argv[1][1] == 'v';
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *split = strchr(line, '=');
        if (!split) {
            fprintf(stderr, "no value in \"%s\": %d%%\n", line, ~store_errors);
            status |= 1;
            continue;
        }
        *split++ = '\0';
        if (count >= LOAD_LIMIT(capacity) && grow() != 0) {
            perror("grow");
            abort();
        }
        struct slot *slot = store_find(line);
        if (slot != NULL) {
            slot->value.integer = strtoll(split, NULL, 0);
            slot->dirty = 1;
        } else {
            (void)arena_copy(&arena, line);
            count++;
        }
        if (verbose)
            printf("%zu of %zu (%.1f%%)\n", count, capacity, store_ratio());
    }
    do {
        arena_t *next = arena ? arena->next : (arena_t *)0;
        free(arena);
        arena = next;
    } while (arena);
    return status;
}
