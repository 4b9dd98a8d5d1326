/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Plays the kernel for one congestion control, in user space:  cc -DSTACK_FILE='"fast.bpf.c"' harness.c && ./a.out
 *
 * Reads commands, a line each, and answers each with "cwnd ssthresh [level:option=value ...]":
 *
 *   set INDEX VALUE                  a parameter, in 1/unit
 *   rule INDEX WORD...               a rule as the loader writes it, 27 hex words
 *   ends FAMILY SRC PORT DST PORT    addresses as 32 hex digits; of IPv4 the last 8
 *   start WINDOW SSTHRESH            a new connection; an ssthresh of 0 stands for none
 *   time US                          goes on by so much
 *   ack SEGMENTS RTT_US              acknowledges segments; an RTT of -1 was not measured
 *   trip RTT_US                      time goes on by a round trip, and the window is acknowledged, two segments at a time
 *   loss | marked | local | undo     three duplicate ACKs; a congestion mark; a full local queue; the loss was none
 *   used 0|1                         whether it is the window that holds the sender back
 *   release                          the connection closes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stack.h"
#include STACK_FILE

#define INFINITE 0x7fffffff
#define CA_ECHO 4

static struct tcp_sock tcp_socket;
static u64 now_ns = 1000000000ull;
static char calls[256];

u64 bpf_ktime_get_ns(void)
{
	return now_ns;
}

long bpf_setsockopt(void *sk, int level, int option, void *value, int bytes)
{
	size_t used = strlen(calls);

	(void)sk;
	(void)bytes;
	snprintf(calls + used, sizeof(calls) - used, " %d:%d=%d", level, option, *(int *)value);
	return 0;
}

static void start(struct sock *sk, u32 window, u32 ssthresh)
{
	struct tcp_sock *tp = &tcp_socket;

	memset(tp->within.icsk_ca_priv, 0, sizeof(tp->within.icsk_ca_priv));
	tp->snd_cwnd = tp->max_packets_out = window;
	tp->snd_ssthresh = ssthresh ? ssthresh : INFINITE;
	tp->snd_cwnd_clamp = ~0u;
	tp->snd_cwnd_cnt = tp->prior_cwnd = tp->prior_ssthresh = tp->undo_marker = 0;
	tp->snd_nxt = window;
	tp->is_cwnd_limited = 1;
	if (stack.init)
		stack.init(sk);
}

/* What the kernel does in the order in which it does it, for segments of one byte: sequence numbers count segments. */
static void acknowledge(struct sock *sk, u32 segments, s32 rtt_us)
{
	struct tcp_sock *tp = &tcp_socket;
	struct ack_sample sample = { .pkts_acked = segments, .rtt_us = rtt_us };
	static u32 una;

	una = tp->snd_nxt - tp->max_packets_out + segments;
	if (stack.in_ack_event)
		stack.in_ack_event(sk, 0);
	if (stack.pkts_acked)
		stack.pkts_acked(sk, &sample);
	stack.cong_avoid(sk, una, segments);
	/* The window is filled again. */
	tp->snd_nxt = una + tp->snd_cwnd;
	tp->max_packets_out = tp->snd_cwnd;
}

/* A repair that is over at once: its end leaves the window at the threshold. */
static void reduce(struct sock *sk, int marked, int lost)
{
	struct tcp_sock *tp = &tcp_socket;

	tp->prior_cwnd = tp->snd_cwnd;
	tp->prior_ssthresh = 0;
	tp->undo_marker = lost ? 1 : 0;
	if (stack.in_ack_event)
		stack.in_ack_event(sk, marked ? CA_ECHO : 0);
	tp->snd_ssthresh = stack.ssthresh(sk);
	if (tp->snd_ssthresh < INFINITE)
		tp->snd_cwnd = tp->snd_ssthresh;
	tp->snd_cwnd_cnt = 0;
}

static void address(const char *hex, u32 words[4])
{
	for (int byte = 0; byte < 16; byte++) {
		char pair[3] = { hex[2 * byte], hex[2 * byte + 1], 0 };

		((u8 *)words)[byte] = (u8)strtoul(pair, NULL, 16);
	}
}

static void ends(struct sock_common *common, const char *line)
{
	unsigned family, src_port, dst_port;
	char src[64], dst[64];

	if (sscanf(line, "ends %u %63s %u %63s %u", &family, src, &src_port, dst, &dst_port) != 5)
		exit(2);
	common->skc_family = (u16)family;
	address(src, common->skc_v6_rcv_saddr.in6_u.u6_addr32);
	address(dst, common->skc_v6_daddr.in6_u.u6_addr32);
	common->skc_rcv_saddr = common->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
	common->skc_daddr = common->skc_v6_daddr.in6_u.u6_addr32[3];
	common->skc_num = (u16)src_port;
	common->skc_dport = (u16)((dst_port & 255) << 8 | dst_port >> 8);
	if (family == 2) {
		memset(&common->skc_v6_daddr, 0, sizeof(common->skc_v6_daddr));
		memset(&common->skc_v6_rcv_saddr, 0, sizeof(common->skc_v6_rcv_saddr));
	}
}

#ifdef RULES
static void rule(const char *line)
{
	char *at;
	u32 words[sizeof(struct rule) / 4];
	unsigned long index = strtoul(line + 5, &at, 10);

	for (size_t word = 0; word < sizeof(words) / 4; word++)
		words[word] = (u32)strtoul(at, &at, 16);
	memcpy((struct rule *)&rules[index], words, sizeof(words));
}
#else
static void rule(const char *line)
{
	(void)line;
	exit(2);
}
#endif

int main(void)
{
	struct tcp_sock *tp = &tcp_socket;
	struct sock *sk = (struct sock *)tp;
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		unsigned a = 0, b = 0;
		int rtt = 0;

		calls[0] = 0;
		if (sscanf(line, "set %u %u", &a, &b) == 2)
			((struct param *)params)[a].value = b;
		else if (!strncmp(line, "rule ", 5))
			rule(line);
		else if (!strncmp(line, "ends ", 5))
			ends(&sk->__sk_common, line);
		else if (sscanf(line, "start %u %u", &a, &b) == 2)
			start(sk, a, b);
		else if (sscanf(line, "time %u", &a) == 1)
			now_ns += (u64)a * 1000;
		else if (sscanf(line, "ack %u %d", &a, &rtt) == 2)
			acknowledge(sk, a, rtt);
		else if (sscanf(line, "trip %d", &rtt) == 1) {
			now_ns += (u64)rtt * 1000;
			for (a = tp->snd_cwnd; a > 0; a -= smaller(a, 2))
				acknowledge(sk, smaller(a, 2), rtt);
		} else if (!strncmp(line, "loss", 4))
			reduce(sk, 0, 1);
		else if (!strncmp(line, "marked", 6))
			reduce(sk, 1, 0);
		else if (!strncmp(line, "local", 5))
			reduce(sk, 0, 0);
		else if (!strncmp(line, "undo", 4))
			tp->snd_cwnd = stack.undo_cwnd(sk);
		else if (sscanf(line, "used %u", &a) == 1)
			tp->is_cwnd_limited = a & 1;
		else if (!strncmp(line, "release", 7) && stack.release)
			stack.release(sk);
		else if (strncmp(line, "release", 7))
			return 2;
		printf("%u %u%s\n", tp->snd_cwnd, tp->snd_ssthresh, calls);
		fflush(stdout);
	}
	return 0;
}
