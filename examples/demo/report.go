package main

import (
	"fmt"
	"strings"
	"time"
)

func (s *screen) intro(svc *service) {
	s.printf("%s\n\n", s.bold("Holdfast: three servers, one order book"))
	s.printf("%d HTTP calls, %d RPCs and %d tasks change the same %d orders, %d at a time.\n",
		calls, calls, calls+orders*ships, orders, 3*clients)
	s.printf("A change reads the order, works for 2–5 ms and writes it back. The Echo server,\n")
	s.printf("the gRPC server, the asynq worker and the order book are a process each.\n")
	s.printf("Locks and tasks are in %s.\n", svc)
}

// act is the title of a part.
func (s *screen) act(title string) { s.printf("\n%s\n", s.bold(title)) }

// locks shows what servers.go adds.
func (s *screen) locks() {
	s.printf("   Echo   POST /orders/:id/pay      %s\n", s.bold(`"order:{id|int}"`))
	s.printf("   gRPC   /shop.v1.Orders/Refund    %s\n", s.bold(`"order:{order.id}"`))
	s.printf("   asynq  order:bonus, order:ship   %s\n", s.bold(`"order:{order_id}"`))
}

// progress is a round that is under way.
func (s *screen) progress(r *result, lost int, passed time.Duration) string {
	return fmt.Sprintf("HTTP %s  gRPC %s  asynq %s  %s  %s",
		r.http.bar(), r.rpc.bar(), r.tasks.bar(), seconds(passed), s.verdict(lost == 0, fmt.Sprint(lost, " lost so far")))
}

// bar draws how much of the traffic is done.
func (t *traffic) bar() string {
	const width = 8
	full := int(t.done.Load()) * width / t.total
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// outcome is the last line of a round.
func (s *screen) outcome(r *result) {
	lost, doubles := r.lost(), r.doubles()
	s.printf("   %s, %s. Every call returned OK.\n",
		s.verdict(lost == 0, plural(lost, "lost update")),
		s.verdict(doubles == 0, plural(doubles, "double shipment")))
}

// table compares the two rounds.
func (s *screen) table(without, with *result) {
	line := func(what string, want, a, b any) string {
		return fmt.Sprintf("%-22s %10v  %18v  %15v", what, want, a, b)
	}
	row := func(what string, want, a, b int) {
		text := line(what, want, a, b)
		at := len(text) - 35 // where the cells begin
		s.printf("%s%s%s\n", text[:at], s.verdict(a == want, text[at:at+18]), s.verdict(b == want, text[at+18:]))
	}
	paidA, refundedA, bonusA := kept(without.rows)
	paidB, refundedB, bonusB := kept(with.rows)
	parcelsA, _ := without.parcels()
	parcelsB, _ := with.parcels()

	s.printf("\n%s\n", s.bold(line("", "expected", "without Holdfast", "with Holdfast")))
	row("Echo   payments kept", calls, paidA, paidB)
	row("gRPC   refunds kept", calls, refundedA, refundedB)
	row("asynq  bonuses kept", calls, bonusA, bonusB)
	row("asynq  parcels sent", orders, parcelsA, parcelsB)
	row("lost updates", 0, without.lost(), with.lost())
	row("double shipments", 0, without.doubles(), with.doubles())
	s.printf("%s\n", line("time", "", seconds(without.took), seconds(with.took)))
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
