/* The offer protocol: one job, its home and one partner, in Promela. `make model` checks it with SPIN.

   Messages are lost, doubled and come in any order; both processes die between any two steps and come back with
   what their journals hold. What may go wrong is bounded (LOSSES, DOUBLES, DEATHS of each); all of it is tried.

   The job is given to a batch system at most once, in all (`given`), and where nothing more can happen it has
   ended at home, and the partner has forgotten it. Each precaution can be left out by a switch (-D), and then
   this is no longer so. docs/protocol.md has both side by side. */

#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef DOUBLES
#define DOUBLES 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

mtype = { OFFER, RESOLVE, WITHDRAW, REPORT, ACK };               /* questions, and the answer to a report */
mtype = { YES, NO, NEVER_HEARD, IS_WITHDRAWN };                  /* answers to the first three */
mtype = { NOTHING, RECEIVED, OFFERED, DELEGATED, KEPT, ENDED };  /* the home's journal */
mtype = { ACCEPTED, DECLINED, TOMBSTONE, REPORTED, FORGOTTEN };  /* the partner's, with NOTHING */
mtype = { OFFERING, RESOLVING, WITHDRAWING };                    /* what a running home waits for */
mtype = { WAITS, DONE };                                         /* a batch system, with NOTHING */

chan to_partner = [3] of { mtype };
chan to_home = [3] of { mtype };

mtype home_journal = RECEIVED, partner_journal = NOTHING;        /* durable */
mtype home_batch = NOTHING, partner_batch = NOTHING;             /* batch systems outlive processes */
mtype asks = NOTHING;                                            /* the home's memory: gone when it dies */
byte given, lost, doubled, home_deaths, partner_deaths;
bool calm;                                                       /* nobody dies any more */

inline say(channel, word) {
	if
	:: nfull(channel) -> channel!word
	:: full(channel)                                             /* too many under way: it is lost */
	:: lost < LOSSES -> lost++
	:: doubled < DOUBLES && len(channel) < 2 -> doubled++; channel!word; channel!word
	fi
}

inline submit(batch) {                                           /* never without a look */
	if
#ifndef NO_LOOKUP
	:: batch != NOTHING
#endif
#ifdef NO_LOOKUP
	:: batch != NOTHING -> given++
#endif
	:: batch == NOTHING -> batch = WAITS; given++
	fi;
	assert(given <= 1)                                           /* never twice */
}

inline home_may_die() {
	if
	:: true
	:: !calm && home_deaths < DEATHS -> home_deaths++; asks = NOTHING; goto restarted
	fi
}

inline partner_may_die() {
	if
	:: true
	:: !calm && partner_deaths < DEATHS -> partner_deaths++; goto restarted
	fi
}

inline keep() { home_journal = KEPT; asks = NOTHING; home_may_die(); submit(home_batch) }

#define UNDER_WAY(word) (to_partner??[word])
#define ANSWERED (to_home??[YES] || to_home??[NO] || to_home??[NEVER_HEARD] || to_home??[IS_WITHDRAWN] || to_home??[REPORT])

active proctype home() {
	goto running;
restarted:                                                       /* what the journal has is taken up */
	atomic {
		skip;
#ifndef TAKES_NOTHING_UP
		if
		:: home_journal == OFFERED -> asks = RESOLVING; say(to_partner, RESOLVE)
		:: home_journal == KEPT -> submit(home_batch)
		:: else
		fi
#endif
	};
running:
end:
	do
	:: atomic { home_journal == RECEIVED && asks == NOTHING ->
#ifdef JOURNAL_LAST
		asks = OFFERING; say(to_partner, OFFER); home_may_die(); home_journal = OFFERED }
#else
		home_journal = OFFERED; asks = OFFERING; home_may_die(); say(to_partner, OFFER) }
#endif
	:: atomic { to_home??YES ->
		if
		:: home_journal == OFFERED -> home_journal = DELEGATED; asks = NOTHING
		:: else
		fi }
	:: atomic { to_home??NO ->
		if
		:: home_journal == OFFERED -> keep()
		:: else
		fi }
	:: atomic { to_home??NEVER_HEARD ->                          /* it may still arrive: it is withdrawn */
		if
		:: home_journal == OFFERED && asks == RESOLVING -> asks = WITHDRAWING; say(to_partner, WITHDRAW)
		:: else
		fi }
	:: atomic { to_home??IS_WITHDRAWN ->
		if
		:: home_journal == OFFERED && asks == WITHDRAWING -> keep()
		:: else
		fi }
	:: atomic { to_home??REPORT ->
		if
		:: home_journal == OFFERED || home_journal == DELEGATED -> home_journal = ENDED; asks = NOTHING
		:: else
		fi;
		home_may_die();
		say(to_partner, ACK) }
	:: atomic { asks == OFFERING ->                              /* no answer in time, perhaps too early */
#ifdef SILENCE_IS_NO
		keep() }
#else
		asks = RESOLVING; say(to_partner, RESOLVE) }
#endif
	:: atomic { asks == RESOLVING && !UNDER_WAY(RESOLVE) && !ANSWERED -> say(to_partner, RESOLVE) }
	:: atomic { asks == WITHDRAWING && !UNDER_WAY(WITHDRAW) && !ANSWERED -> say(to_partner, WITHDRAW) }
	:: atomic { home_journal == KEPT && home_batch == DONE -> home_journal = ENDED }
	:: atomic { home_batch == WAITS -> home_batch = DONE }
	:: atomic { !calm && home_deaths < DEATHS -> home_deaths++; asks = NOTHING; goto restarted }
	od
}

#define HAS_IT (partner_journal == ACCEPTED)

active proctype partner() {
	goto running;
restarted:
	atomic {
		skip;
#ifndef TAKES_NOTHING_UP
		if
		:: HAS_IT -> submit(partner_batch)
		:: else
		fi
#endif
	};
running:
end:
	do
	:: atomic { to_partner??OFFER ->
		if
		:: partner_journal == NOTHING ->                         /* it decides, once */
			if
			:: partner_journal = ACCEPTED; partner_may_die(); say(to_home, YES); partner_may_die();
				submit(partner_batch)
			:: partner_journal = DECLINED; partner_may_die(); say(to_home, NO)
			fi
#ifdef DECIDES_ANEW
		:: partner_journal == DECLINED || partner_journal == TOMBSTONE ->
			partner_journal = ACCEPTED; say(to_home, YES); submit(partner_batch)
#else
		:: partner_journal == DECLINED || partner_journal == TOMBSTONE -> say(to_home, NO)
#endif
		:: HAS_IT || partner_journal == REPORTED -> say(to_home, YES)
		:: partner_journal == FORGOTTEN -> say(to_home, NO)      /* the home has settled it */
		fi }
	:: atomic { to_partner??RESOLVE ->
		if
		:: partner_journal == NOTHING -> say(to_home, NEVER_HEARD)
		:: HAS_IT -> say(to_home, YES)
		:: partner_journal == REPORTED -> say(to_home, REPORT)
		:: else -> say(to_home, NO)
		fi }
	:: atomic { to_partner??WITHDRAW ->
		if
		:: partner_journal == NOTHING ->
#ifndef NO_TOMBSTONE
			partner_journal = TOMBSTONE; partner_may_die();
#endif
			say(to_home, IS_WITHDRAWN)
		:: HAS_IT -> say(to_home, YES)
		:: partner_journal == REPORTED -> say(to_home, REPORT)
		:: partner_journal == TOMBSTONE -> say(to_home, IS_WITHDRAWN)
		:: else -> say(to_home, NO)
		fi }
	:: atomic { HAS_IT && partner_batch == DONE ->
		partner_journal = REPORTED; partner_may_die(); say(to_home, REPORT) }
#ifndef REPORTS_ONCE
	:: atomic { partner_journal == REPORTED && !to_home??[REPORT] && !UNDER_WAY(ACK) -> say(to_home, REPORT) }
#endif
	:: atomic { to_partner??ACK ->
		if
		:: partner_journal == REPORTED -> partner_journal = FORGOTTEN
		:: else
		fi }
	:: atomic { partner_batch == WAITS -> partner_batch = DONE }
	:: atomic { !calm && partner_deaths < DEATHS -> partner_deaths++; goto restarted }
	od
}

active proctype judge() {                                        /* where nothing more can happen */
	calm = true;                                                 /* at any time */
end:
	timeout -> assert(home_journal == ENDED && given == 1 && !HAS_IT && partner_journal != REPORTED)
}
