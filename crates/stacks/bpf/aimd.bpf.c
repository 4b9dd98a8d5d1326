/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * AIMD: a segments more in each round trip, the part b of the window less at a loss. With a = 1 and b = 0.5 it is TCP Reno
 * (RFC 5681). Short on purpose: copy this file to write a congestion control of your own (docs/manual/stacks.md).
 */
#include "stack.h"

LICENSE

/* Name, unit (the value counts 1/unit), default, least, most: what `--cc aimd:a=2,b=0.3` can set. */
enum { A, B };
PARAMS {
	{ "a", 100, 100, 1, 100000 },
	{ "b", 1000, 500, 1, 999 },
};

/* What is kept for each connection: up to 104 bytes, zero at first. */
struct aimd {
	u32 losses;
};

/* Called for each ACK that acknowledges `acked` segments, but not while a loss is being repaired. */
CALLBACK(void, aimd_cong_avoid, struct sock *, sk, u32, ack, u32, acked)
{
	struct tcp_sock *tp = tcp(sk);

	if (!limited_by_window(tp))
		return;
	if (in_slow_start(tp)) {
		acked = slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* a / window for each acknowledged segment makes a in a round trip. */
	grow(tp, VALUE(A), (u64)UNIT(A) * tp->snd_cwnd, acked);
}

/* Called once for each loss event: the window to go on with. */
CALLBACK(u32, aimd_ssthresh, struct sock *, sk)
{
	struct aimd *ca = own(sk);

	ca->losses++;
	return give_up(tcp(sk)->snd_cwnd, VALUE(B), UNIT(B));
}

/* Called where the loss turns out to have been a reordering. */
CALLBACK(u32, aimd_undo, struct sock *, sk)
{
	return window_before_loss(sk);
}

STACK {
	.name = "bpf_aimd", /* at most 15 characters */
	.cong_avoid = (void *)aimd_cong_avoid,
	.ssthresh = (void *)aimd_ssthresh,
	.undo_cwnd = (void *)aimd_undo,
};
