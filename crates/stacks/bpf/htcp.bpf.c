/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * H-TCP. D. J. Leith, R. N. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004. D is the time since
 * the last congestion in s:
 *
 *   in each round trip  cwnd += 2 (1 - beta) alpha(D),  alpha(D) = 1 up to D = 1, then 1 + 10 (D - 1) + ((D - 1) / 2)^2
 *   at a congestion     cwnd *= beta,  beta = RTTmin / RTTmax within 0.5 and 0.8,
 *                       but 0.5 where the throughput differs by more than a fifth from that before the last congestion
 */
#include "stack.h"

LICENSE

enum { DELTA_L, ADAPT };
PARAMS {
	{ "delta_l", 1000, 1000, 1, 60000 }, /* s */
	{ "adapt", 1, 1, 0, 1 },             /* 0: beta is always 0.5 */
};

#define LEAST_BETA 500 /* 1/1000 */
#define MOST_BETA 800

struct htcp {
	u64 congested_ns;
	u64 counted_since_ns;
	u32 counted;
	u32 rate, rate_before; /* segments in a second, now and at the last congestion */
	u32 min_us, max_us; /* the smallest RTT ever, the largest since the last congestion */
	u32 beta; /* 1/1000 */
	/* As they were before the last congestion, should it turn out to be none. */
	u32 undo_rate_before, undo_max_us, undo_beta;
	u64 undo_congested_ns;
};

/* Over at least this time and a round trip the throughput is counted, ns. */
#define COUNT_NS 50000000ull

CALLBACK(void, htcp_init, struct sock *, sk)
{
	struct htcp *ca = own(sk);

	ca->congested_ns = ca->counted_since_ns = bpf_ktime_get_ns();
	ca->undo_congested_ns = ca->congested_ns;
	ca->beta = ca->undo_beta = LEAST_BETA;
	ca->counted = ca->rate = ca->rate_before = ca->min_us = ca->max_us = 0;
	ca->undo_rate_before = ca->undo_max_us = 0;
}

CALLBACK(void, htcp_pkts_acked, struct sock *, sk, const struct ack_sample *, sample)
{
	struct htcp *ca = own(sk);
	u64 now = bpf_ktime_get_ns(), span = now - ca->counted_since_ns;
	s32 measured = sample->rtt_us;

	if (measured > 0) {
		u32 rtt_us = (u32)measured;

		if (!ca->min_us || rtt_us < ca->min_us)
			ca->min_us = rtt_us;
		ca->max_us = larger(ca->max_us, rtt_us);
	}
	ca->counted += sample->pkts_acked;
	if (span >= COUNT_NS && span >= (u64)ca->max_us * 1000) {
		ca->rate = (u32)((u64)ca->counted * 1000000000ull / span);
		ca->counted = 0;
		ca->counted_since_ns = now;
	}
}

CALLBACK(void, htcp_cong_avoid, struct sock *, sk, u32, ack, u32, acked)
{
	struct tcp_sock *tp = tcp(sk);
	struct htcp *ca = own(sk);
	u64 alpha = 1000, ms; /* alpha in 1/1000 */
	u32 window;

	if (!limited_by_window(tp))
		return;
	if (in_slow_start(tp)) {
		acked = slow_start(tp, acked);
		if (!acked)
			return;
	}
	window = tp->snd_cwnd;
	ms = (bpf_ktime_get_ns() - ca->congested_ns) / 1000000;
	if (ms > VALUE(DELTA_L)) {
		ms -= VALUE(DELTA_L);
		alpha += 10 * ms + ms * ms / 4000;
	}
	alpha = 2 * alpha * (1000 - ca->beta) / 1000;
	grow(tp, alpha, (u64)1000 * window, acked);
}

CALLBACK(u32, htcp_ssthresh, struct sock *, sk)
{
	struct htcp *ca = own(sk);
	u32 rate = ca->rate, before = ca->rate_before;
	u32 differs = rate > before ? rate - before : before - rate;

	ca->undo_rate_before = before;
	ca->undo_max_us = ca->max_us;
	ca->undo_beta = ca->beta;
	ca->undo_congested_ns = ca->congested_ns;
	ca->congested_ns = bpf_ktime_get_ns();
	if (!VALUE(ADAPT) || !before || !ca->max_us || (u64)differs * 5 > before)
		ca->beta = LEAST_BETA;
	else
		ca->beta = smaller(larger((u32)((u64)ca->min_us * 1000 / ca->max_us), LEAST_BETA), MOST_BETA);
	ca->rate_before = rate;
	ca->max_us = ca->min_us;
	return give_up(tcp(sk)->snd_cwnd, 1000 - ca->beta, 1000);
}

CALLBACK(u32, htcp_undo, struct sock *, sk)
{
	struct htcp *ca = own(sk);

	/* The time between two congestions goes on, with the RTTs from both sides of the one that was none. */
	ca->rate_before = ca->undo_rate_before;
	ca->max_us = larger(ca->undo_max_us, ca->max_us);
	ca->beta = ca->undo_beta;
	ca->congested_ns = ca->undo_congested_ns;
	return window_before_loss(sk);
}

STACK {
	.name = "bpf_htcp",
	.init = (void *)htcp_init,
	.pkts_acked = (void *)htcp_pkts_acked,
	.cong_avoid = (void *)htcp_cong_avoid,
	.ssthresh = (void *)htcp_ssthresh,
	.undo_cwnd = (void *)htcp_undo,
};
