/*
 * The protocol of the line: how a name goes from one process to the next through the queue that a
 * backend keeps for it. README.md says which code each rule stands for, and what was left out.
 *
 * Two processes want one name. Process 0 has two callers, A and B; B waits behind A in memory.
 * Process 1 has one caller, C. C has the name when the run begins, and may come for it once more.
 *
 *   token   caller   process
 *     1       A         0        (0 is nobody)
 *     2       B         0
 *     3       C         1        has the name at the start
 *     4       C         1        comes again
 *
 * Times are counters that run down with each tick of the clock, so nothing grows with time. A
 * scene, in scenes.txt, says by #define what can happen. A fault, in faults.txt, breaks one rule.
 */

#define LIFE      3 /* how long a place lives without a heartbeat */
#define WAITTRUST 2 /* for how long an offer that is granted may be trusted: one tick less, for drift */
#ifdef TIMELY
#define TTL   5 /* how long a claim or a renewal owns the name */
#define TRUST 4 /* for how long it is trusted */
#else
#define TTL   3 /* the shorter times are, the fewer are the states: a TTL of 3 s has a place's life */
#define TRUST 2
#endif

#ifndef DRIFTS
#define DRIFTS 0 /* how many times in a run a clock lags behind by a tick */
#endif
#ifndef NUMBERS
#define NUMBERS 2 /* how many heartbeats each caller sends */
#endif
#ifndef FAULTS
#define FAULTS 2 /* how many times something goes wrong in a run, of any kind */
#endif
#ifndef SLOTS
#define SLOTS  4 /* how many commands are under way at once */
#endif
#ifndef RENEWALS
#define RENEWALS 1 /* of each grant */
#endif
#define MESSAGES 2

#define TOKENS 5
#define PLACES 4
#define NONE   PLACES /* no place */

/* The phases of a token, as in core/internal/claim. */
#define UNUSED 0
#define TRYING 1
#define OWNED  2
#define ENDING 3
#define OVER   4
#define LAPSED 5 /* its trust has ended before it was released: what is left of it ends by itself */

/* Commands, and answers: granted, renewed or released; held, not the owner, or wait; ask now;
 * nobody knows. */
mtype = { CLAIM, BEAT, RENEW, RELEASE };
mtype = { YES, NO, TRY, LOST };

#define processOf(t) ((t) > 2)

/* Fails with the name of a promise. */
#define must(ok, promise) if :: (ok) -> skip :: else -> printf("broken: "); printf(#promise); printf("\n"); assert(false) fi

/* C has the name when a run begins. */
#define FIRST 3
#define START(x) { 0, 0, 0, x, 0 }
#define CALLERS { 1, 3 }

/* ---- the server ---- */

byte owner = FIRST;       /* the token that owns the name, 0 if it is free */
byte left = TTL;        /* until that ends */
byte fence = 1;         /* the counter */
chan line = [PLACES] of { byte }; /* the places, in the order in which they came */
bit  queued[PLACES];    /* which places are in it */
byte beat[PLACES];      /* until a place is dead; 0: it is */
byte number[PLACES];    /* of the place's newest offer, also of one that was withdrawn */
byte offer[PLACES];     /* the token that would own the name; 0: none is offered */

/* ---- the network ---- */

typedef Command {
	mtype kind;   /* 0: an empty slot */
	byte tok;
	byte place;
	byte num;     /* of a heartbeat */
	byte trust;   /* what a good answer is worth: counted from before the command was sent */
	bit  awaited; /* its sender waits for the answer */
#ifdef TIMELY
	byte late;    /* it is held up for so long */
#endif
};
Command net[SLOTS];

typedef Message {
	bit  there;
	byte place;
	byte num;    /* of the offer that was granted; 0: a hint */
	byte fence;
	bit  forged; /* by somebody who may publish, but does not know the nonce */
};
Message msg[MESSAGES];

/* ---- the processes ---- */

byte phase[TOKENS] = START(OWNED);
byte trust[TOKENS] = START(TRUST); /* until the grant is no longer trusted, by the process's own clock */
byte stood[TOKENS] = { NONE, NONE, NONE, NONE, NONE }; /* the place at which it waited last */
byte offers[TOKENS];    /* the number of the last offer with it */
bit  dirty[TOKENS];     /* it may have left something behind, or may still do so */

byte current[2] = CALLERS; /* the token of the caller that asks or works */
byte place[2] = { NONE, NONE }; /* the process's place */
byte unused[2] = { 0, 2 }; /* its next one: a place that was left is never used again */
byte last[2];           /* the number of its last heartbeat */
byte worth[2];          /* what a message for that number is worth: counted from before that heartbeat was sent */
bit  acked[2];          /* the current token's last heartbeat was answered "wait" */
mtype reply[2];         /* to the command that the process waits for; 0: not yet */
byte got[2];            /* what that reply is worth */
byte minted[2];         /* the fence in it */
bit  asleep[2];         /* it waits for time to pass */
bit  dead[2];

/* ---- bookkeeping ---- */

bit  again;             /* a token is used again: TOKEN_AGAIN */
byte faults = FAULTS;
byte begun = 1;         /* the largest fence that anybody worked with */
bit  forced[TOKENS];    /* an operator took the name from it */
#ifdef TIMELY
bit  hinted[2];         /* there is a hint for the process's place */
bit  swept[TOKENS];     /* since the last tick */
bit  lasting = 1;       /* the owner's end was set by a claim or a renewal, not by a heartbeat */
byte orphaned;          /* for how long the name has been taken by nobody */
byte idle;              /* for how long it has been free while somebody waited */
#endif

/* In a timely scene, time passes only when nothing else can happen. */
#ifdef TIMELY
#define PAUSE timeout
#define ripe(i) (net[i].late == 0)
#else
#define PAUSE true
#define ripe(i) true
#endif

/* ------------------------------------------------------------------ the queue: line.lua */

inline forget(pl) {
	if :: queued[pl] -> line ?? eval(pl); queued[pl] = 0 :: else fi;
	beat[pl] = 0; number[pl] = 0; offer[pl] = 0;
	if :: place[pl > 1] == pl -> acked[pl > 1] = 0 :: else fi
}

/* The first place that lives, or NONE. Dead ones on the way are dropped. */
inline first() {
	head = NONE;
	do
	:: head == NONE && len(line) > 0 ->
		line ? <head>;
		if
		:: beat[head] > 0
#ifdef DEAD_STAYS
		:: beat[head] == 0 -> break
#endif
		:: else -> dropped = head; forget(dropped); head = NONE
		fi
	:: else -> break
	od
}

inline stand(pl) {
	if :: !queued[pl] -> line ! pl; queued[pl] = 1 :: else fi;
	beat[pl] = LIFE
}

/* A message that a process does not listen to is lost. Without the clock's help a hint can only
 * do what a waiter may do at any time: ask. So only timely scenes know of hints. */
inline tell(to) {
#ifdef TIMELY
	if
	:: place[0] == to -> hinted[0] = 1
	:: place[1] == to -> hinted[1] = 1
	:: else
	fi
#else
	skip
#endif
}

#ifdef TURNS
#define BLOCK 2
#else
#define BLOCK 1
#endif

inline grant(t, until) {
#ifdef FENCES
	fresh = fence + 1; fence = fence + BLOCK;
#endif
#ifdef TIMELY
	lasting = 1; orphaned = 0;
#endif
	owner = t; left = until
}

inline vacate() {
	owner = 0; left = 0
}

inline publish(to, n, f) {
	for (k : 0 .. MESSAGES - 1) {
		if
		:: !msg[k].there -> msg[k].there = 1; msg[k].place = to; msg[k].num = n; msg[k].fence = f; break
		:: else
		fi
	}
	k = 0
}

/* For everybody who may have found or left the name free: the first place is given it, or told. */
inline pass() {
	if
#ifdef NOT_FREE
	:: true ->
#else
	:: owner == 0 ->
#endif
		first();
		if
		:: head == NONE
		:: head != NONE && (offer[head] == 0 || 2 * beat[head] < LIFE) -> tell(head)
		:: head != NONE && offer[head] != 0 && 2 * beat[head] >= LIFE ->
			must(!(acked[head > 1] && place[head > 1] == head && offer[head] != current[head > 1]), served);
#if defined(END_SHORT)
			grant(offer[head], beat[head] / 2);
#elif defined(END_TTL)
			grant(offer[head], TTL);
#else
			grant(offer[head], beat[head]);
#endif
#ifdef NO_MINT
			fence = fence - BLOCK;
#endif
#ifdef TIMELY
			lasting = 0;
#endif
			publish(head, number[head], fresh);
			printf("  server    grants to token %d at place %d by offer %d; left %d\n", offer[head], head, number[head], left);
#ifdef STAYS_IN_LINE
			skip
#else
			forget(head)
#endif
		fi
	:: else
	fi
}

/* ------------------------------------------------------------------ the scripts */

/* acquire.lua and ask.lua. */
inline claim() {
	if :: owner == 0 -> first() :: else -> head = NONE fi;
	if
	:: owner == tok || owner == 0 && (head == NONE || head == at) ->
		if :: at != NONE -> forget(at) :: else fi;
		grant(tok, TTL);
		answer = YES
	:: else ->
		if :: owner != 0 && at != NONE && beat[at] > 0 -> stand(at) :: else fi; /* HEXISTS */
		pass();
		answer = NO
	fi
}

/* ask.lua with a note. */
inline heartbeat() {
	if
	:: owner == tok -> answer = TRY
	:: else ->
		stand(at);
#ifdef OFFERS
		if
#ifndef OLD_OFFER
		:: net[i].num > number[at] -> number[at] = net[i].num; offer[at] = tok
#else
		:: net[i].num > 0 -> number[at] = net[i].num; offer[at] = tok
#endif
		:: else
		fi;
#endif
		answer = NO;
		if :: owner == 0 -> first() :: else -> head = NONE fi;
		if
		:: head == at -> answer = TRY
		:: else -> pass()
		fi
	fi
}

/* renew.lua. */
inline renew() {
	if
	:: owner == tok -> left = TTL; answer = YES;
#ifdef TIMELY
		lasting = 1
#endif
	:: else -> answer = NO
	fi
}

/* release.lua. */
inline release() {
	if
	:: owner == tok -> vacate(); pass(); answer = YES
	:: else -> answer = NO
	fi
}

/* leave.lua. */
inline leave(stays) {
	if :: owner == tok -> vacate() :: else fi;
	if
	:: at == NONE
	:: at != NONE && (stays) -> /* withdrawn: the number stays, and keeps late heartbeats from offering */
#ifndef NO_WITHDRAW
		if
		:: queued[at] && offers[tok] > 0 && number[at] <= offers[tok] ->
			offer[at] = 0; number[at] = offers[tok]
		:: else
		fi
#endif
	:: else -> forget(at)
	fi;
	pass()
}

/* ------------------------------------------------------------------ the promises */

/* Nobody trusts what he does not own: so no two are trusted at once. And what was cleaned up for
 * good owns nothing. */
inline check() {
	for (k : 1 .. TOKENS - 1) {
		must(trust[k] == 0 || owner == k || forced[k], exclusion);
		must(phase[k] != OVER || dirty[k] || owner != k, cleanliness)
	}
	k = 0
}

/* ------------------------------------------------------------------ the network */

#define underway(i) (net[i].kind != 0 && ripe(i))
#define room (net[0].kind == 0 || net[1].kind == 0 || net[2].kind == 0 || net[SLOTS - 1].kind == 0)

/* t stays dirty as long as commands are under way that carry it. */
inline settle(t) {
	dirty[t] = 0;
#ifndef SWEEP_ONCE
	for (k : 0 .. SLOTS - 1) {
		if :: net[k].kind != 0 && net[k].tok == t -> dirty[t] = 1 :: else fi
	}
#endif
	k = 0
}

inline execute() {
	tok = net[i].tok; at = net[i].place;
	if
	:: net[i].kind == CLAIM -> claim()
	:: net[i].kind == BEAT -> heartbeat()
	:: net[i].kind == RENEW -> renew()
	:: net[i].kind == RELEASE -> release()
	fi;
	if
	:: net[i].awaited ->
		reply[processOf(tok)] = answer; minted[processOf(tok)] = fresh;
		if
		:: answer == YES -> got[processOf(tok)] = net[i].trust
		:: else
		fi
	:: else
	fi;
	printf("  server    "); printm(net[i].kind); printf(" token %d place %d number %d -> ", tok, at, net[i].num); printm(answer);
	printf("; owner %d left %d fence %d\n", owner, left, fence);
	net[i].kind = 0; net[i].tok = 0; net[i].place = 0; net[i].num = 0; net[i].trust = 0; net[i].awaited = 0;
	check()
}

inline drop(m) {
	msg[m].there = 0; msg[m].place = 0; msg[m].num = 0; msg[m].fence = 0; msg[m].forged = 0
}

/* Commands that are under way at the same time travel on different connections: any order. */
active proctype Server() {
	byte i, k, head, dropped, tok, at, fresh;
	mtype answer;
	bit forge = 1;
	do
	:: atomic {
		if
		:: underway(0) -> i = 0
		:: underway(1) -> i = 1
		:: underway(2) -> i = 2
#if SLOTS > 3
		:: underway(3) -> i = 3
#endif
#if SLOTS > 4
		:: underway(4) -> i = 4
#endif
		fi;
		d_step { execute(); i = 0; k = 0; head = 0; dropped = 0; tok = 0; at = 0; answer = 0; fresh = 0 }
	   }
#ifdef FORCE
	:: d_step { owner != 0 && faults > 0 -> faults--; forced[owner] = 1; printf("  operator  takes the name from token %d\n", owner); vacate(); pass(); check(); head = 0; dropped = 0; fresh = 0 } /* evict.lua */
#endif
#ifdef FORGE
	:: d_step { forge && place[0] != NONE && !msg[1].there -> forge = 0; msg[1].there = 1; msg[1].place = place[0]; msg[1].num = last[0]; msg[1].fence = fence; msg[1].forged = 1 } /* all but the nonce can be known */
#endif
	od
}

inline put(c, t, pl, n, w, wait, wake) {
	for (k : 0 .. SLOTS - 1) {
		if
		:: net[k].kind == 0 ->
			net[k].kind = c; net[k].tok = t; net[k].place = pl; net[k].num = n; net[k].trust = w; net[k].awaited = wait;
#ifdef TIMELY
			net[k].late = wake;
#endif
			break
		:: else
		fi
	}
	k = 0
}

/* A command is sent. Its sender may have to go on without an answer, before or after it is
 * executed; or it is lost. */
inline send(c, n, w) {
	atomic {
		room;
		if
		:: put(c, t, place[p], n, w, 1, 0); printf("  process %d sends ", p); said = c; printm(said); said = 0; printf(" of token %d\n", t)
		:: faults > 0 ->
			printf("  process %d sends ", p); said = c; printm(said); said = 0; printf(" of token %d, and gives it up\n", t);
			faults--;
			reply[p] = LOST;
			dirty[t] = 1;
#ifdef TIMELY
			if
			:: put(c, t, place[p], n, 0, 0, 0)
			:: put(c, t, place[p], n, 0, 0, 1)
			:: put(c, t, place[p], n, 0, 0, 2)
			:: skip
			fi
#else
			put(c, t, place[p], n, 0, 0, 0)
#endif
		fi
	}
}

/* ------------------------------------------------------------------ a process */

inline hush() {
	reply[p] = 0; got[p] = 0; minted[p] = 0
}

/* Work begins with fence f, and is trusted for w from now. */
inline begin(f, w) {
#ifdef FENCES
	must(f > begun || forced[t], fences);
	if :: f > begun -> begun = f :: else fi;
	own = f;
#endif
	phase[t] = OWNED; trust[t] = w; acked[p] = 0; hush(); purge();
	place[p] = NONE; worth[p] = 0;
	printf("  process %d begins with token %d fence %d for %d\n", p, t, f, w);
	check()
}

inline lineUp() {
	if :: place[p] == NONE -> place[p] = unused[p]; unused[p]++ :: else fi;
	stood[t] = place[p]
}

/* The process waits for no answer any more. */
inline desert() {
	for (k : 0 .. SLOTS - 1) {
		if :: net[k].kind != 0 && processOf(net[k].tok) == p -> net[k].awaited = 0; net[k].trust = 0 :: else fi
	}
	k = 0;
	hush()
}

/* The token is over. It has to be cleaned up if a command is open, or if it says so. */
inline over(o, how, unclean) {
	printf("  process %d token %d is over: phase %d\n", p, o, how);
	if :: unclean -> dirty[o] = 1 :: else fi;
	phase[o] = how; trust[o] = 0; acked[p] = 0; desert();
	check()
}

#ifdef TIMELY
#define awake (!asleep[p])
#else
#define awake true
#endif

#ifdef CRASH
#define crash :: atomic { faults > 0 -> faults--; dead[p] = 1; trust[t] = 0; goto end }
#else
#define crash
#endif

/* The message for the last heartbeat that was sent, with its nonce, while some trust is left. */
#ifdef NO_NONCE
#define genuine(m) true
#else
#define genuine(m) (!msg[m].forged)
#endif
#ifdef OLDER_BELIEVED
#define ours(m) true
#else
#define ours(m) (msg[m].num == last[p])
#endif
#define believed(m) (msg[m].there && msg[m].place == place[p] && ours(m) && worth[p] > 0 && genuine(m))

/* A place that is left hears nothing any more. */
inline purge() {
	for (k : 0 .. MESSAGES - 1) {
		if :: msg[k].there && msg[k].place == place[p] -> drop(k) :: else fi
	}
	k = 0
}

/* The name was granted to the offer. If the heartbeat is still under way, its outcome stays open. */
inline accept(m) {
	for (k : 0 .. SLOTS - 1) {
		if :: net[k].kind == BEAT && net[k].awaited && net[k].tok == t -> dirty[t] = 1 :: else fi
	}
	desert();
	fresh = msg[m].fence;
#ifdef FROM_ARRIVAL
	worth[p] = WAITTRUST;
#endif
	begin(fresh, worth[p]);
	calm = 0; fresh = 0;
}

#ifdef OFFERS
#define hears :: believed(0) -> accept(0); goto work \
	:: believed(1) -> accept(1); goto work
#else
#define hears
#endif

#ifdef GIVEUP
#define quits true
#else
#define quits false
#endif

active [2] proctype Process() {
	byte p = _pid - 1; /* the Server comes first */
	byte t = current[p];
	byte k, n, fresh, w;
	mtype said;
	byte renewals, beats;
	byte own;     /* the fence of the first turn */
	bit turn, asker; /* the turn under way: 1 is B's; that of the renewal under way */
	bit calm; /* nothing about the grant is in doubt */
	if
	:: t == FIRST -> goto work
	:: else
	fi;

arrive: /* t is the contender now: core/internal/contend/caller.go */
	atomic { phase[t] = TRYING; current[p] = t; stood[t] = place[p]; goto ask }

ask:
	atomic {
		send(CLAIM, 0, TRUST);
		if
		:: reply[p] == YES && got[p] > 0 -> begin(minted[p], got[p]); calm = 1; goto work
		:: reply[p] == YES && got[p] == 0 -> over(t, OVER, 1); goto next /* too late: it is given back */
		:: reply[p] == NO || reply[p] == LOST -> hush(); goto stay
		fi
	}

stay: /* core/internal/contend/asker.go, core/redislock/wait.go */
	atomic {
		if
		:: beats < NUMBERS
		:: beats == NUMBERS || quits -> goto quit
		crash
		fi;
		acked[p] = 0;
		if
#ifdef REPEATS
		:: offers[t] == last[p] && last[p] > 0 && place[p] != NONE -> /* the same call looks again: the same offer, trusted from its first heartbeat on */
#ifdef FROM_LAST_BEAT
			worth[p] = WAITTRUST;
#endif
			n = last[p]
#endif
		:: last[p]++; n = last[p]; offers[t] = n;
#ifdef NO_DRIFT
			worth[p] = LIFE
#else
			worth[p] = WAITTRUST
#endif
#if defined(OFFERS) && defined(GIVEUP)
		:: t == 2 && beats == 0 -> worth[p] = 0; n = 0 /* the successor of one that gave up offers nothing at first */
#endif
		fi;
		lineUp();
		send(BEAT, n, 0);
		n = 0;
		beats++;
		if
		hears
		:: reply[p] == TRY -> hush(); goto ask
		:: reply[p] == NO -> hush(); acked[p] = beat[place[p]] > 0 && offer[place[p]] == t; asleep[p] = 1; goto listen
		:: reply[p] == LOST -> hush(); asleep[p] = 1; goto listen
		fi
	}

listen:
	if
#ifdef OFFERS
	:: atomic { believed(0) -> accept(0); goto work }
	:: atomic { believed(1) -> accept(1); goto work }
#ifdef TIMELY
	:: atomic { believed(0) && faults > 0 -> faults--; drop(0); goto listen }
#endif
#endif
#ifdef TIMELY
	:: atomic { hinted[p] -> hinted[p] = 0; goto ask }
	:: atomic { !asleep[p] -> goto stay }
#else
	:: goto ask
	:: goto stay
#endif
	fi;

quit: /* the caller gives up; the place stays if somebody else wants it: Leave in core/internal/queue */
	atomic {
		stood[t] = place[p];
		if
#ifndef ALONE
		:: t == 1
#endif
		:: else -> purge(); place[p] = NONE; worth[p] = 0
		fi;
#if defined(OFFERS) && !defined(QUIET)
		over(t, OVER, stood[t] != NONE); /* what was offered may be granted */
#else
		over(t, OVER, stood[t] != NONE && place[p] == NONE);
#endif
#ifdef TOKEN_AGAIN
		if :: t == 1 -> again = 1; goto ask :: else fi;
#endif
		goto next
	}

work: /* core/internal/term */
	if
	:: atomic { trust[t] > 0 && renewals < RENEWALS -> renewals++; asker = turn; send(RENEW, 0, TRUST);
#ifdef TURN_EARLY
		if :: t == 1 -> turn = 1 :: skip fi;
#endif
		if
		:: trust[t] == 0 -> goto lost
		:: trust[t] > 0 && reply[p] == YES ->
#ifdef FROM_ANSWER
			trust[t] = TRUST;
#else
			trust[t] = got[p];
#endif
			hush(); calm = 1
		:: trust[t] > 0 && reply[p] == NO ->
			must(asker == turn, turns); /* which of them has lost? */
			goto lost
		:: trust[t] > 0 && reply[p] == LOST -> hush()
		fi;
		asleep[p] = 1; goto work
	   }
	:: atomic { trust[t] > 0 -> goto finish }
#ifdef TIMELY
	:: atomic { trust[t] > 0 -> asleep[p] = 1; !asleep[p]; goto work } /* the work takes time */
#endif
#ifdef TURNS
	:: atomic { t == 1 && turn == 0 && calm && trust[t] > 0 -> /* the next caller of this process works with the next fence: core/internal/term/turn.go */
		turn = 1;
#ifdef FENCES
		must(own + 1 > begun || forced[t], fences);
		if :: own + 1 > begun -> begun = own + 1 :: else fi;
#endif
		goto work
	   }
#endif
	:: atomic { trust[t] == 0 -> goto lost }
	crash
	fi;

lost:
	atomic { over(t, LAPSED, 0); goto next }

finish: /* core/internal/contend/ending.go, core/internal/term/turn.go */
	atomic {
		trust[t] = 0; phase[t] = ENDING;
		send(RELEASE, 0, 0);
		reply[p] != 0 -> over(t, OVER, reply[p] == LOST);
		goto next
	}

next: /* the next caller of this process */
	atomic {
		renewals = 0; beats = 0; calm = 0; own = 0;
		if
#ifndef ALONE
		:: t == 1 && !turn -> t = 2; goto arrive
#endif
#ifdef AGAIN
		:: t == 3 -> t = 4; goto arrive
#endif
		:: else -> t = 0
		fi
	};
end:
	false
}

/* core/internal/sweep: a token that is over is cleaned up as long as commands are open that carry it.
 * The command travels in no time: it is sent again and again, so its delay is that of the next. */
#ifdef TIMELY
#define due(t) (!swept[t])
#else
#define due(t) true
#endif

#ifdef TOKEN_AGAIN
#define ended(t) (phase[t] == OVER || phase[t] == LAPSED || again && t == 1)
#else
#define ended(t) (phase[t] == OVER || phase[t] == LAPSED)
#endif

#define unclean(t) (dirty[t] && ended(t) && !dead[processOf(t)] && due(t))

active proctype Sweeper() {
	byte k, tok, at, head, dropped, fresh;
	do
	:: atomic {
		if
		:: unclean(1) -> tok = 1
		:: unclean(2) -> tok = 2
		:: unclean(3) -> tok = 3
		:: unclean(4) -> tok = 4
		fi;
#ifdef TIMELY
		swept[tok] = 1;
#endif
		if
		:: d_step {
			at = stood[tok];
			leave(place[processOf(tok)] == at);
			settle(tok);
			check();
			printf("  clean-up  of token %d at place %d; owner %d\n", tok, at, owner);
			at = 0; head = 0; dropped = 0; fresh = 0
		   }
#ifdef TIMELY
		:: faults > 0 -> faults--
#endif
		fi;
		tok = 0
	   }
	od
}

/* ------------------------------------------------------------------ time */

inline down(x) { if :: x > 0 -> x-- :: else fi }

#define asking(p) (!dead[p] && phase[current[p]] == TRYING)

/* Time passes. The clocks of one process may lag behind. */
active proctype Clock() {
	byte k, slow;
	byte drifts = DRIFTS;
	do
	:: atomic { PAUSE ->
		slow = 2;
		if
		:: skip
		:: drifts > 0 -> drifts--; slow = 0
		:: drifts > 0 -> drifts--; slow = 1
		fi;
		d_step {
#ifdef TIMELY
			if
			:: owner != 0 && (dead[processOf(owner)] || phase[owner] == OVER || phase[owner] == LAPSED) -> orphaned++
			:: else -> orphaned = 0
			fi;
			must(orphaned <= LIFE || lasting && (dead[processOf(owner)] || phase[owner] == LAPSED), orphans);
			if
			:: owner == 0 && (asking(0) || asking(1)) -> idle++
			:: else -> idle = 0
			fi;
			must(idle <= LIFE, served);
			for (k : 1 .. TOKENS - 1) { swept[k] = 0 }
			for (k : 0 .. MESSAGES - 1) { drop(k) }
#endif
			for (k : 1 .. TOKENS - 1) {
				if :: processOf(k) != slow -> down(trust[k]) :: else fi
			}
			for (k : 0 .. SLOTS - 1) {
				if :: processOf(net[k].tok) != slow -> down(net[k].trust) :: else fi;
#ifdef TIMELY
				down(net[k].late)
#endif
			}
			for (k : 0 .. 1) {
				if :: k != slow -> down(worth[k]); down(got[k]) :: else fi;
				asleep[k] = 0
			}
			for (k : 0 .. PLACES - 1) {
				down(beat[k]);
				if :: beat[k] == 0 && place[k > 1] == k -> acked[k > 1] = 0 :: else fi /* not a live place any more */
			}
			down(left);
			if :: left == 0 -> owner = 0 :: else fi;
			check();
			printf("  clock     left %d, trust %d %d %d %d; lagging process (2: none): %d\n", left, trust[1], trust[2], trust[3], trust[4], slow);
			slow = 0
		}
	   }
	od
}
