/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Scalable TCP. T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks", ACM SIGCOMM Computer
 * Communication Review 33(2), 2003, section 3: for each acknowledgement cwnd += a, at a loss cwnd -= b * cwnd, with a = 0.01
 * and b = 0.125; up to the legacy window of 16 segments it behaves as TCP does. What a loss took is back after
 * log(1 / (1 - b)) / log(1 + a) round trips, 13.4, whatever the window is.
 *
 * The paper counts acknowledgements, of which a receiver sends one for two segments; segments are counted here (RFC 3465).
 */
#include "stack.h"

LICENSE

enum { A, B, LWND };
PARAMS {
	{ "a", 10000, 100, 1, 10000 },
	{ "b", 1000, 125, 1, 999 },
	{ "lwnd", 1, 16, 2, 100000 },
};

CALLBACK(void, scalable_cong_avoid, struct sock *, sk, u32, ack, u32, acked)
{
	struct tcp_sock *tp = tcp(sk);

	if (!limited_by_window(tp))
		return;
	if (in_slow_start(tp)) {
		acked = slow_start(tp, acked);
		if (!acked)
			return;
	}
	if (tp->snd_cwnd <= VALUE(LWND))
		grow(tp, 1, tp->snd_cwnd, acked);
	else
		grow(tp, VALUE(A), UNIT(A), acked);
}

CALLBACK(u32, scalable_ssthresh, struct sock *, sk)
{
	u32 window = tcp(sk)->snd_cwnd;

	if (window <= VALUE(LWND))
		return give_up(window, 1, 2);
	return give_up(window, VALUE(B), UNIT(B));
}

CALLBACK(u32, scalable_undo, struct sock *, sk)
{
	return window_before_loss(sk);
}

STACK {
	.name = "bpf_scalable",
	.cong_avoid = (void *)scalable_cong_avoid,
	.ssthresh = (void *)scalable_ssthresh,
	.undo_cwnd = (void *)scalable_undo,
};
