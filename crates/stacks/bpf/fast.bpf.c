/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FAST TCP. C. Jin, D. X. Wei, S. H. Low, "FAST TCP: motivation, architecture, algorithms, performance", IEEE INFOCOM 2004,
 * section IV: once in a round trip
 *
 *   w <- min(2 w, (1 - gamma) w + gamma (baseRTT / RTT * w + alpha(w, qdelay)))
 *
 * with the RTT averaged by the weight min(3 / w, 1 / 4) for each acknowledged segment. In balance a flow keeps alpha segments
 * in the queue: w (1 - baseRTT / RTT) = alpha. Where there is no queue alpha(w, 0) = mi * w, so that the window grows in
 * proportion. At a loss it gives up half of the window, as TCP does.
 *
 * The paper leaves open what "no queue" is and how slow start ends. Here there is none while the smallest RTT of a round trip
 * shows less than alpha / 8 segments, and slow start ends when a round trip begins with a queue of alpha: a burst of slow start
 * queues behind itself, so that its end tells nothing.
 */
#include "stack.h"

LICENSE

enum { ALPHA, GAMMA, BASE_US, MI };
PARAMS {
	{ "alpha", 1, 200, 1, 1000000 },
	{ "gamma", 1000, 500, 1, 1000 },
	{ "base_us", 1, 0, 0, 100000000 }, /* 0: the smallest RTT that was measured */
	{ "mi", 1000, 125, 0, 1000 },
};

#define NONE 0xffffffffu
#define ENOUGH 8 /* RTTs that the start of a round trip is judged by */

struct fast {
	u64 rtt; /* averaged, 1/65536 us */
	u32 base_us;
	u32 round_us; /* smallest RTT of this round trip */
	u32 round_end; /* it ends with the acknowledgement of this sequence number */
	u32 round_samples; /* RTTs of this round trip */
};

/* Segments of the window that wait in a queue: w (1 - base / rtt). */
INLINE u32 queued(u32 window, u32 base_us, u32 rtt_us)
{
	return rtt_us > base_us ? (u32)((u64)window * (rtt_us - base_us) / rtt_us) : 0;
}

CALLBACK(void, fast_init, struct sock *, sk)
{
	struct fast *ca = own(sk);

	ca->rtt = 0;
	ca->base_us = VALUE(BASE_US);
	ca->round_us = NONE;
	ca->round_samples = 0;
	ca->round_end = tcp(sk)->snd_nxt;
}

CALLBACK(void, fast_pkts_acked, struct sock *, sk, const struct ack_sample *, sample)
{
	struct fast *ca = own(sk);
	s32 measured = sample->rtt_us;
	u32 window = larger(tcp(sk)->snd_cwnd, 1), rtt_us;
	u64 rtt, away, step, old = ca->rtt;

	if (measured <= 0)
		return;
	rtt_us = (u32)measured;
	if (!VALUE(BASE_US) && (!ca->base_us || rtt_us < ca->base_us))
		ca->base_us = rtt_us;
	ca->round_us = smaller(ca->round_us, rtt_us);
	ca->round_samples++;
	rtt = (u64)rtt_us << 16;
	if (!old) {
		ca->rtt = rtt;
		return;
	}
	/* 3 / w of the difference for each segment, and a quarter of it at most: of a large window the weight itself is too small. */
	away = rtt > old ? rtt - old : old - rtt;
	step = away * 3 * sample->pkts_acked / window;
	if (step > away / 4)
		step = away / 4;
	ca->rtt = rtt > old ? old + step : old - step;
}

CALLBACK(void, fast_cong_avoid, struct sock *, sk, u32, ack, u32, acked)
{
	struct tcp_sock *tp = tcp(sk);
	struct fast *ca = own(sk);
	u32 window = tp->snd_cwnd, base = ca->base_us, rtt = (u32)(ca->rtt >> 16), round = ca->round_us;
	int over = (s32)(ack - ca->round_end) >= 0, judged = ca->round_samples >= ENOUGH || over;
	u64 wanted, next;

	if (over) {
		ca->round_end = tp->snd_nxt;
		ca->round_us = NONE;
		ca->round_samples = 0;
	}
	if (in_slow_start(tp)) {
		if (!base || !judged || round == NONE || queued(window, base, round) < VALUE(ALPHA)) {
			if (limited_by_window(tp))
				slow_start(tp, acked);
			return;
		}
		/* What is acknowledged now was sent when the window was half of what it is. */
		window = larger(window / 2, 2);
		tp->snd_ssthresh = window;
		set_window(tp, window);
		return;
	}
	if (!over || !base || !rtt || round == NONE)
		return;
	wanted = (u64)window * smaller(base, rtt) / rtt;
	if ((u64)queued(window, base, round) * 8 < VALUE(ALPHA))
		wanted += larger((u32)((u64)window * VALUE(MI) / UNIT(MI)), VALUE(ALPHA));
	else
		wanted += VALUE(ALPHA);
	next = ((u64)window * (UNIT(GAMMA) - VALUE(GAMMA)) + wanted * VALUE(GAMMA) + UNIT(GAMMA) / 2) / UNIT(GAMMA);
	if (next > 2 * (u64)window)
		next = 2 * (u64)window;
	if (next > window && !limited_by_window(tp))
		return;
	/* Nor does slow start begin again when the window shrinks. */
	if (next < tp->snd_ssthresh)
		tp->snd_ssthresh = larger((u32)next, 2);
	set_window(tp, next);
}

CALLBACK(u32, fast_ssthresh, struct sock *, sk)
{
	return give_up(tcp(sk)->snd_cwnd, 1, 2);
}

CALLBACK(u32, fast_undo, struct sock *, sk)
{
	return window_before_loss(sk);
}

STACK {
	.name = "bpf_fast",
	.init = (void *)fast_init,
	.pkts_acked = (void *)fast_pkts_acked,
	.cong_avoid = (void *)fast_cong_avoid,
	.ssthresh = (void *)fast_ssthresh,
	.undo_cwnd = (void *)fast_undo,
};
