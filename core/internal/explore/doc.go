// Package explore plays the machines and steps of the engine against a model of a backend: processes, a queue with direct grants, links
// and time. It has tests only.
//
// What can happen next is a move: an effect of somebody's step, so that being preempted between two of them is a move, too; a command
// that is executed, answered, lost, stuck, or executed later by nobody's will; a message of a release; a timer; time; a caller who
// leaves. A schedule is a default one with some deviations from it. The default goes on with whoever has moved last, and whom a deviation
// passes over comes last. After each move the promises are looked at.
package explore
