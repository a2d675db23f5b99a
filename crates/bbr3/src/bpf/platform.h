/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What differs between the BPF build and the native one: integer types, random numbers, and nothing of the algorithm.
 */
#ifndef BBR3_PLATFORM_H
#define BBR3_PLATFORM_H

#ifdef __bpf__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define bool _Bool
#define true 1
#define false 0
#ifndef NULL
#define NULL ((void *)0)
#endif

/* From the kernel's include/uapi/linux/bpf.h; bpf_helpers.h needs the types only. */
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* Verified by itself, whoever calls it; takes and returns numbers, and pointers to structures in maps that may be NULL. */
#define SUBPROGRAM __noinline

/* What the verifier wants to see at the start of a SUBPROGRAM. */
#define RETURN_IF_NULL(pointer)                                                                                        \
	if (!(pointer))                                                                                                \
	return 0

#else

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int8_t __s8;
typedef int16_t __s16;
typedef int32_t __s32;
typedef int64_t __s64;

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#define barrier_var(var) ((void)0)
#define SUBPROGRAM static __noinline
#define RETURN_IF_NULL(pointer) ((void)0)

#endif

/* For what hardly any ACK does: the compiler puts it aside, so that what every ACK does lies close together. */
#ifndef unlikely
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

/* "No bound yet". */
#define INFINITE (~0U)

/* Gains and thresholds are fractions of this. */
#define UNIT 256
#define UNIT_SHIFT 8

/* Bandwidths are packets per microsecond times this. */
#define BW_SHIFT 24
#define BW_UNIT (1U << BW_SHIFT)

#define USEC_PER_SEC 1000000ULL
#define USEC_PER_MSEC 1000ULL
#define NSEC_PER_USEC 1000ULL

static __always_inline u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static __always_inline u32 max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

static __always_inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Is counter value `a` earlier than `b`, where both wrap at 2^32 and are less than 2^31 apart? */
static __always_inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* `value` times `fraction`/256, rounded down. */
static __always_inline u32 scale(u32 value, u32 fraction)
{
	return (u32)(((u64)value * fraction) >> UNIT_SHIFT);
}

/* Where a connection's random numbers begin; and, in tests, what to draw instead of the next. */
#ifdef __bpf__
static __always_inline u32 random_seed(void)
{
	return bpf_get_prandom_u32();
}
static __always_inline bool is_scripted(u32 *drawn)
{
	return false;
}
#else
u32 random_seed(void);
bool is_scripted(u32 *drawn);
#endif

/* Uniform in [0, ceiling): Marsaglia's xorshift, whose state belongs to the connection, so that what it did can be repeated. */
static __always_inline u32 random_below(u32 *generator, u32 ceiling)
{
	u32 drawn;

	if (!is_scripted(&drawn)) {
		drawn = *generator;
		drawn ^= drawn << 13;
		drawn ^= drawn >> 17;
		drawn ^= drawn << 5;
		*generator = drawn;
	}
	return (u32)(((u64)drawn * ceiling) >> 32);
}

#endif
