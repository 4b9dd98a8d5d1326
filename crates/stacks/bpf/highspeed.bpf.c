/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * HighSpeed TCP (RFC 3649), with the knobs for each destination that the work-around daemon of Net100 (wad.conf) had in 2003:
 * buffers, increase and decrease of one's own, limited slow start (RFC 3742), and whether a full queue of this host is taken
 * for a loss.
 */
#include "stack.h"
#include "rfc3649.h"

LICENSE

enum { MAX_SSTH, FLOYD, IFQ };
PARAMS {
	{ "max_ssth", 1, 0, 0, 100000000 }, /* segments; 0: slow start without a limit */
	{ "floyd", 1, 1, 0, 1 },            /* the RFC's table; 0: increase 1, decrease 0.5 */
	{ "ifq", 1, 0, 0, 1 },              /* 1: a full local queue is no loss */
};

/* What a [section] of the file of --cc-rules says. The loader fills them in order; the first that fits a connection holds. */
#define RULES 16
struct rule {
	u32 used;
	u32 src[4], src_mask[4], dst[4], dst_mask[4]; /* IPv6 words as on the wire; IPv4 is mapped, ::ffff:a.b.c.d */
	u32 src_port, dst_port;                       /* 0: any */
	u32 sndbuf, rcvbuf;                           /* bytes; 0: left alone */
	u32 increase, decrease;                       /* segments in a round trip, part of the window: 1/1000 */
	u32 max_ssth, floyd, ifq;
	u32 divide; /* the connections of this rule share its buffers */
};
RULES_SECTION const volatile struct rule rules[RULES] = {};

/* Open connections of each rule. */
u32 flows[RULES] = {};

struct highspeed {
	u32 rule; /* counted from 1; 0: none fits */
	u32 sharers; /* connections that the buffers were divided by */
	u32 echoed; /* whether the ACK that is being worked on echoed a congestion mark */
	u32 halves; /* limited slow start: what is towards the next segment */
};

#define AF_INET 2
#define SOL_SOCKET 1
#define SO_SNDBUF 7
#define SO_RCVBUF 8
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define CA_ACK_ECE 4
/* ::ffff:0:0 as it lies in memory. */
#define MAPPED (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0xffff0000u : 0x0000ffffu)

/*
 * A knob of the rule that holds for a connection, or what stands in for it where none does. The mask after the barrier shows
 * the verifier a bound that the compiler would else take out again.
 */
#define HIDE(number) asm volatile("" : "+r"(number))
#define KNOB(ca, field, otherwise)                                                                                     \
	({                                                                                                             \
		u32 at_ = (ca)->rule - 1, fits_ = at_ < RULES, value_;                                                 \
		HIDE(at_);                                                                                             \
		value_ = rules[at_ & (RULES - 1)].field;                                                               \
		fits_ ? value_ : (otherwise);                                                                          \
	})

/* The count of the connections of a connection's rule; NULL where none holds. */
INLINE u32 *sharers_of(const struct highspeed *ca)
{
	u32 number = ca->rule - 1;

	if (number >= RULES)
		return 0;
	HIDE(number);
	return &flows[number & (RULES - 1)];
}

/* a(w) - 1: the number, from 0, of the last row whose window is not above w. Seven halvings, which the verifier can follow. */
INLINE u32 row_of(u32 window)
{
	u32 low = 0;

	for (u32 step = 64; step; step >>= 1) {
		u32 probe = low + step;

		if (probe < RFC3649_ROWS && rfc3649[probe].window <= window)
			low = probe;
	}
	return smaller(low, RFC3649_ROWS - 1);
}

INLINE int within(const u32 *address, const volatile u32 *net, const volatile u32 *mask)
{
	return !(((address[0] & mask[0]) ^ net[0]) | ((address[1] & mask[1]) ^ net[1]) |
		 ((address[2] & mask[2]) ^ net[2]) | ((address[3] & mask[3]) ^ net[3]));
}

/* The rule for a connection, counted from 1; 0 where none fits. */
INLINE u32 rule_of(const struct sock *sk)
{
	const struct sock_common *ends = &sk->__sk_common;
	u32 src[4] = { 0, 0, MAPPED, ends->skc_rcv_saddr }, dst[4] = { 0, 0, MAPPED, ends->skc_daddr };
	u32 src_port = ends->skc_num, dst_port = ends->skc_dport;

	dst_port = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? (dst_port & 255) << 8 | dst_port >> 8 : dst_port;
	if (ends->skc_family != AF_INET) {
		for (int word = 0; word < 4; word++) {
			src[word] = ends->skc_v6_rcv_saddr.in6_u.u6_addr32[word];
			dst[word] = ends->skc_v6_daddr.in6_u.u6_addr32[word];
		}
	}
	for (u32 number = 0; number < RULES; number++) {
		const volatile struct rule *rule = &rules[number];

		if (!rule->used)
			return 0;
		if (within(src, rule->src, rule->src_mask) && within(dst, rule->dst, rule->dst_mask) &&
		    (!rule->src_port || rule->src_port == src_port) && (!rule->dst_port || rule->dst_port == dst_port))
			return number + 1;
	}
	return 0;
}

INLINE void set_buffer(struct sock *sk, int option, u32 bytes)
{
	int value = (int)bytes;

	if (bytes)
		bpf_setsockopt(sk, SOL_SOCKET, option, &value, sizeof(value));
}

/* Gives a connection its buffers; with `divide` its share of them, and anew when connections come and go. */
INLINE void share_buffers(struct sock *sk, struct highspeed *ca)
{
	u32 *open = sharers_of(ca);
	u32 sharers = open && KNOB(ca, divide, 0) ? larger(*open, 1) : 1;

	if (!open || sharers == ca->sharers)
		return;
	ca->sharers = sharers;
	set_buffer(sk, SO_SNDBUF, KNOB(ca, sndbuf, 0) / sharers);
	set_buffer(sk, SO_RCVBUF, KNOB(ca, rcvbuf, 0) / sharers);
}

CALLBACK(void, highspeed_init, struct sock *, sk)
{
	struct highspeed *ca = own(sk);
	u32 *open;

	ca->sharers = ca->echoed = ca->halves = 0;
	ca->rule = rule_of(sk);
	open = sharers_of(ca);
	if (open)
		__sync_fetch_and_add(open, 1);
	share_buffers(sk, ca);
}

CALLBACK(void, highspeed_release, struct sock *, sk)
{
	struct highspeed *ca = own(sk);
	u32 *open = sharers_of(ca);

	if (open)
		__sync_fetch_and_add(open, -1);
	ca->rule = 0;
}

/* RFC 3742: above max_ssth the window grows by at most max_ssth / 2 in a round trip. */
INLINE u32 limited_slow_start(struct tcp_sock *tp, struct highspeed *ca, u32 acked)
{
	u32 window = tp->snd_cwnd, limit = KNOB(ca, max_ssth, VALUE(MAX_SSTH)), den;

	if (!limit || window <= limit)
		return slow_start(tp, acked);
	/* K = int(w / (0.5 max_ssth)); each acknowledged segment adds 1 / K. */
	den = larger(2 * window / limit, 1);
	ca->halves += acked;
	if (ca->halves >= den) {
		u32 steps = ca->halves / den;

		ca->halves -= steps * den;
		slow_start(tp, steps);
	}
	return 0;
}

CALLBACK(void, highspeed_cong_avoid, struct sock *, sk, u32, ack, u32, acked)
{
	struct tcp_sock *tp = tcp(sk);
	struct highspeed *ca = own(sk);
	u32 window;

	share_buffers(sk, ca);
	if (!limited_by_window(tp))
		return;
	if (in_slow_start(tp)) {
		acked = limited_slow_start(tp, ca, acked);
		if (!acked)
			return;
	}
	window = tp->snd_cwnd;
	if (KNOB(ca, floyd, VALUE(FLOYD)))
		grow(tp, row_of(window) + 1, window, acked);
	else
		grow(tp, KNOB(ca, increase, 1000), (u64)1000 * window, acked);
}

CALLBACK(void, highspeed_in_ack, struct sock *, sk, u32, flags)
{
	struct highspeed *ca = own(sk);

	ca->echoed = !!(flags & CA_ACK_ECE);
}

/*
 * The kernel asks for a smaller window where packets were lost, where the network marked them, and where this host's own queue
 * refused one. Only before a repair does it remember a window to come back to.
 */
INLINE int local_queue_full(const struct tcp_sock *tp, const struct highspeed *ca)
{
	return !tp->prior_ssthresh && !tp->undo_marker && !ca->echoed;
}

CALLBACK(u32, highspeed_ssthresh, struct sock *, sk)
{
	struct tcp_sock *tp = tcp(sk);
	struct highspeed *ca = own(sk);
	u32 window = tp->snd_cwnd;

	if (KNOB(ca, ifq, VALUE(IFQ)) && local_queue_full(tp, ca))
		return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH ? tp->snd_ssthresh : window;
	if (KNOB(ca, floyd, VALUE(FLOYD)))
		return give_up(window, rfc3649[row_of(window)].b, 100);
	return give_up(window, KNOB(ca, decrease, 500), 1000);
}

CALLBACK(u32, highspeed_undo, struct sock *, sk)
{
	return window_before_loss(sk);
}

STACK {
	.name = "bpf_highspeed",
	.init = (void *)highspeed_init,
	.release = (void *)highspeed_release,
	.in_ack_event = (void *)highspeed_in_ack,
	.cong_avoid = (void *)highspeed_cong_avoid,
	.ssthresh = (void *)highspeed_ssthresh,
	.undo_cwnd = (void *)highspeed_undo,
};
