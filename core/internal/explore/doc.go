// Package explore plays the machines and steps of the engine against a model of a backend: processes, a queue with direct grants, links
// and time. It has tests only.
//
// What can happen next is a move: an effect of somebody's step, so that being preempted between two of them is a move, too; a command
// that is executed, answered, lost, stuck, or executed later by nobody's will; a message of a release; a timer; time; a caller who
// leaves. A schedule is a default one with some deviations from it. The default goes on with whoever has moved last, and whom a deviation
// passes over comes last. After each move the promises are looked at.
//
// It sees each rule broken that core/internal/harness/chaos/mutants.txt has under its name. It cannot see what only costs a command, such
// as a second one who asks, or a release that comes too late; what needs three faults at once, such as MinHold whose release has no
// answer; and what needs a watchdog or an answer that is very late. The tests of the rooms do.
package explore
