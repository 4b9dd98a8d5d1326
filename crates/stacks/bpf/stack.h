/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a congestion control needs of the kernel, and nothing else: it takes the place of vmlinux.h. The kernel's structures
 * are declared with the fields that are used here; their places are found when the object is loaded (CO-RE).
 *
 * The same sources compile for user space, where bpf/harness.c plays the kernel: that is how the arithmetic is tested.
 */
#ifndef STACK_H
#define STACK_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	u16 skc_family;
	u16 skc_num;   /* local port, host order */
	u16 skc_dport; /* remote port, network order */
	u32 skc_daddr, skc_rcv_saddr;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
};

/* One within the other, as in the kernel: a pointer to the one is a pointer to the other. */
struct inet_connection_sock {
	struct sock within;
	u64 icsk_ca_priv[13]; /* 104 bytes that are the congestion control's own, zero at first */
};

struct tcp_sock {
	struct inet_connection_sock within;
	u32 snd_cwnd;        /* the window, segments */
	u32 snd_cwnd_cnt;    /* what has been acknowledged towards the next segment of the window */
	u32 snd_cwnd_clamp;  /* its upper bound */
	u32 snd_ssthresh;    /* below it is slow start */
	u32 prior_cwnd;      /* the window before the loss that is being repaired */
	u32 prior_ssthresh;
	u32 undo_marker;
	u32 max_packets_out; /* most segments under way in the last round trip */
	u32 snd_nxt;         /* next sequence number to be sent */
	u8 is_cwnd_limited : 1;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us; /* negative where it was not measured */
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

/* Name and flags first: the loader gives them their values. The kernel's own structure is found by the members' names. */
struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	void (*init)(struct sock *);
	void (*release)(struct sock *);
	u32 (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, u32, u32);
	void (*pkts_acked)(struct sock *, const struct ack_sample *);
	void (*in_ack_event)(struct sock *, u32);
	u32 (*undo_cwnd)(struct sock *);
};

/*
 * CALLBACK(type, name, type, argument, ...) { ... } defines a function that the kernel calls. A BPF program gets its
 * arguments as an array of 64-bit words.
 */
#ifdef __bpf__
#define CALLBACK_1(type, name, t1, a1)                                                                                 \
	INLINE type name##_body(t1 a1);                                                                                \
	SEC("struct_ops") type name(u64 *ctx) { return name##_body((t1)ctx[0]); }                                      \
	INLINE type name##_body(t1 a1)
#define CALLBACK_2(type, name, t1, a1, t2, a2)                                                                         \
	INLINE type name##_body(t1 a1, t2 a2);                                                                         \
	SEC("struct_ops") type name(u64 *ctx) { return name##_body((t1)ctx[0], (t2)ctx[1]); }                          \
	INLINE type name##_body(t1 a1, t2 a2)
#define CALLBACK_3(type, name, t1, a1, t2, a2, t3, a3)                                                                 \
	INLINE type name##_body(t1 a1, t2 a2, t3 a3);                                                                  \
	SEC("struct_ops") type name(u64 *ctx) { return name##_body((t1)ctx[0], (t2)ctx[1], (t3)ctx[2]); }              \
	INLINE type name##_body(t1 a1, t2 a2, t3 a3)
#define STACK SEC(".struct_ops.link") struct tcp_congestion_ops stack =
#define LICENSE SEC("license") char stack_license[] = "Dual MIT/GPL";
#define PARAMS_SECTION SEC(".rodata.params")
#define RULES_SECTION SEC(".rodata.rules")

static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_setsockopt)(void *sk, int level, int option, void *value, int bytes) = (void *)49;

/* A bit-field lies in another word on another kernel: its place comes with the object's relocations. */
#define READ_BITS(object, field)                                                                                       \
	({                                                                                                             \
		const void *place_ = (const void *)(object) + __builtin_preserve_field_info((object)->field, 0);       \
		u64 word_ = 0;                                                                                         \
		asm volatile("" : "+r"(place_));                                                                       \
		switch (__builtin_preserve_field_info((object)->field, 1)) {                                           \
		case 1: word_ = *(const u8 *)place_; break;                                                            \
		case 2: word_ = *(const u16 *)place_; break;                                                           \
		case 4: word_ = *(const u32 *)place_; break;                                                           \
		case 8: word_ = *(const u64 *)place_; break;                                                           \
		}                                                                                                      \
		(word_ << __builtin_preserve_field_info((object)->field, 4)) >>                                        \
			__builtin_preserve_field_info((object)->field, 5);                                             \
	})
#else
#define CALLBACK_1(type, name, t1, a1) static type name(t1 a1)
#define CALLBACK_2(type, name, t1, a1, t2, a2) static type name(t1 a1, t2 a2)
#define CALLBACK_3(type, name, t1, a1, t2, a2, t3, a3) static type name(t1 a1, t2 a2, t3 a3)
#define STACK static struct tcp_congestion_ops stack =
#define LICENSE
#define PARAMS_SECTION __attribute__((used))
#define RULES_SECTION __attribute__((used))
#define READ_BITS(object, field) ((object)->field)
u64 bpf_ktime_get_ns(void);
long bpf_setsockopt(void *sk, int level, int option, void *value, int bytes);
#endif
#define CALLBACK_OF(a, b, c, d, e, f, which, ...) which
#define CALLBACK(type, name, ...)                                                                                      \
	CALLBACK_OF(__VA_ARGS__, CALLBACK_3, 0, CALLBACK_2, 0, CALLBACK_1, 0)(type, name, __VA_ARGS__)

/*
 * A parameter is a whole number of 1/unit: { "b", 1000, 125, 1, 999 } is 0.125, from 0.001 to 0.999. The loader writes its
 * value before the kernel sees the program, so that the verifier takes it for a constant.
 */
struct param {
	char name[12];
	u32 unit, value, least, most;
};
#define PARAMS PARAMS_SECTION const volatile struct param params[] =
#define VALUE(index) (params[index].value)
#define UNIT(index) (params[index].unit)

INLINE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
INLINE u32 larger(u32 a, u32 b) { return a > b ? a : b; }

INLINE struct tcp_sock *tcp(struct sock *sk) { return (struct tcp_sock *)sk; }
INLINE void *own(struct sock *sk) { return ((struct inet_connection_sock *)sk)->icsk_ca_priv; }
INLINE int in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }

/* Whether the window is what holds the sender back: one that is not used must not grow (RFC 7661). */
INLINE int limited_by_window(const struct tcp_sock *tp)
{
	if (READ_BITS(tp, is_cwnd_limited))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

INLINE void set_window(struct tcp_sock *tp, u64 window)
{
	u32 most = tp->snd_cwnd_clamp;

	tp->snd_cwnd = window < 2 ? 2 : window > most ? most : (u32)window;
}

/* One segment for each that was acknowledged (RFC 5681). Returns the acknowledged segments beyond the end of slow start. */
INLINE u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 window = tp->snd_cwnd, step = smaller(acked, tp->snd_ssthresh - window);

	set_window(tp, (u64)window + step);
	return acked - step;
}

/* Adds num/den segments for each that was acknowledged; the fraction waits in snd_cwnd_cnt, in 1/den. */
INLINE void grow(struct tcp_sock *tp, u64 num, u64 den, u32 acked)
{
	u64 count = tp->snd_cwnd_cnt;
	u32 window = tp->snd_cwnd;

	if (!den)
		return;
	/* The fraction may be of a larger window's den. */
	if (count >= den) {
		count = 0;
		window++;
	}
	count += num * acked;
	if (count >= den) {
		u64 steps = count / den;

		count -= steps * den;
		window += (u32)steps;
	}
	tp->snd_cwnd_cnt = (u32)count;
	set_window(tp, window);
}

/* What is left of the window when part/unit of it is given up; never less than two segments (RFC 5681). */
INLINE u32 give_up(u32 window, u32 part, u32 unit)
{
	return larger(window - (u32)((u64)window * part / unit), 2);
}

/* A loss that was none: back to the window before it. */
INLINE u32 window_before_loss(struct sock *sk) { return larger(tcp(sk)->snd_cwnd, tcp(sk)->prior_cwnd); }

#endif
